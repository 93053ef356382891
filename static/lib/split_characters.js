// Byte-level tokens may end inside a character: "日" is three bytes and often two tokens. A chip must not pretend that half a
// character is text, so the page needs to know which neighbours share one.

/**
 * @param {number} lead first byte of a character in UTF-8
 * @returns {number} bytes of the whole character; 1 for a byte that cannot start one
 */
function characterBytes(lead) {
  if (lead >= 0xf0 && lead < 0xf8) return 4;
  if (lead >= 0xe0) return lead < 0xf0 ? 3 : 1;
  return lead >= 0xc2 ? 2 : 1;
}

/**
 * @param {Uint8Array[]} pieces bytes of each token
 * @returns {boolean[]} [i] is true when token i and token i + 1 share a character
 */
export function sharedCharacters(pieces) {
  let missing = 0;
  return pieces.map((bytes) => {
    for (const byte of bytes) {
      const continues = byte >= 0x80 && byte < 0xc0;
      missing = missing > 0 && continues ? missing - 1 : characterBytes(byte) - 1;
    }
    return missing > 0;
  });
}
