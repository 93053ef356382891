"""Text to token ids and back, truthfully.

Text that somebody typed never becomes a control token: "<|im_end|>" is read as the letters it is made of. Nothing is
put before or after a prompt. `pieces` gives the bytes that each token really stands for, also where a character is
spread over several tokens. The page's `static/lib/tokens.js` gives the same ids and bytes.
"""

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tokenizers import Tokenizer

from weights.errors import CheckpointError, quoted

MAX_TOKENIZER_BYTES = 64 * 1024 * 1024


class TokenizerMissing(CheckpointError):
    """The folder has no tokenizer.json; ids can still be given."""

    code = "tokenizer-missing"


class TokenizerBroken(CheckpointError):
    """tokenizer.json cannot be used."""

    code = "tokenizer-broken"


class BadTokenId(CheckpointError):
    """An id that is not in the vocabulary."""

    code = "bad-token-id"


def byte_letters() -> dict[str, int]:
    """GPT-2's alphabet: the printable letter that stands for each byte in a byte-level vocabulary, letter -> byte."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + i): byte for i, byte in enumerate(hidden)}


BYTE_OF = byte_letters()
LETTER_OF = {byte: letter for letter, byte in BYTE_OF.items()}


@dataclass
class Tokens:
    """A byte-level tokenizer. special: control tokens, id -> text."""

    tokenizer: Tokenizer
    special: dict[int, str] = field(default_factory=dict)

    @cached_property
    def size(self) -> int:
        """How many ids there are."""
        return max([self.tokenizer.get_vocab_size(), *(id + 1 for id in self.special)])

    @cached_property
    def _known(self) -> set[str]:
        return {letter for letter in BYTE_OF if self.tokenizer.token_to_id(letter) is not None}

    def encode(self, text: str) -> list[int]:
        """Ids of the text, nothing added. Lone surrogates, which are no text, become U+FFFD."""
        clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return self.tokenizer.encode(clean, add_special_tokens=False).ids

    def missing(self, text: str) -> list[str]:
        """Characters with bytes that no token stands for, each once: `encode` leaves those bytes out."""
        return [
            letter
            for letter in dict.fromkeys(text)
            if any(LETTER_OF[byte] not in self._known for byte in letter.encode("utf-8", "replace"))
        ]

    def decode(self, ids: list[int]) -> str:
        """The text of the ids, control tokens spelt out; bytes that are no UTF-8 become U+FFFD."""
        return b"".join(self.pieces(ids)).decode("utf-8", "replace")

    def pieces(self, ids: list[int]) -> list[bytes]:
        """The bytes of each token. Raises BadTokenId."""
        return [self._piece(id) for id in ids]

    def _piece(self, id: int) -> bytes:
        token = self.special.get(id) or (self.tokenizer.id_to_token(id) if 0 <= id < 2**32 else None)
        if token is None:
            raise BadTokenId(f"Token id {id} is not in the vocabulary; ids go from 0 to {self.size - 1}.")
        if id in self.special or any(letter not in BYTE_OF for letter in token):
            return token.encode("utf-8")
        return bytes(BYTE_OF[letter] for letter in token)


def load_tokenizer(folder: Path | str) -> Tokens:
    """Read folder/tokenizer.json. Raises TokenizerMissing, TokenizerBroken."""
    path = Path(folder) / "tokenizer.json"
    if not path.is_file():
        raise TokenizerMissing(f"{quoted(str(folder), 200)} has no tokenizer.json; give token ids instead of text.")
    if path.stat().st_size > MAX_TOKENIZER_BYTES:
        raise TokenizerBroken(f"tokenizer.json is larger than {MAX_TOKENIZER_BYTES} bytes; is it a tokenizer?")
    try:
        spec = json.loads(path.read_bytes())
        # Without added tokens and post-processor, typed text stays text and nothing is put around a prompt.
        tokenizer = Tokenizer.from_str(json.dumps(spec | {"added_tokens": [], "post_processor": None}))
        steps = json.dumps(spec["pre_tokenizer"])
        special = {int(token["id"]): str(token["content"]) for token in spec.get("added_tokens") or []}
    except Exception as error:  # the library raises plain Exception for every fault of the file
        raise TokenizerBroken(f"tokenizer.json cannot be used: {quoted(str(error), 120)}; fetch it again.") from None
    if '"ByteLevel"' not in steps:
        raise TokenizerBroken("tokenizer.json is not byte-level BPE; only byte-level tokenizers are read.")
    if '"add_prefix_space": true' in steps:
        raise TokenizerBroken("tokenizer.json puts a space before each text (add_prefix_space); only false is read.")
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return Tokens(tokenizer, special)
