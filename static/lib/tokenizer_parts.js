// A tokenizer.json in parts small enough to be taken over one at a time: a vocabulary of 49,152 words read and built at once
// holds a page up for a quarter of a second.

/** Words or merges in a part. */
const SIZE = 4096;

/**
 * First comes `head`, the description with an empty vocabulary and no merges; then its words with their ids, then its merges
 * in order. What is no vocabulary or no list of merges stays in the head, for the reader to refuse.
 * @typedef {{head: any} | {words: [string, number][]} | {merges: (string | [string, string])[]}} Part
 */

/**
 * @param {any} tokenizer parsed tokenizer.json
 * @returns {Generator<Part>}
 */
export function* parts(tokenizer) {
  const { vocab, merges } = tokenizer?.model ?? {};
  const readable = typeof vocab === "object" && vocab !== null && Array.isArray(merges);
  yield { head: readable ? { ...tokenizer, model: { ...tokenizer.model, vocab: {}, merges: [] } } : tokenizer };
  if (!readable) return;
  const words = Object.entries(vocab);
  for (let at = 0; at < words.length; at += SIZE) yield { words: words.slice(at, at + SIZE) };
  for (let at = 0; at < merges.length; at += SIZE) yield { merges: merges.slice(at, at + SIZE) };
}
