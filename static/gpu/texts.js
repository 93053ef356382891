/**
 * The kernels' texts, each fetched once: from an address that changes with any of them where the page knows one, which then
 * names this state of them all.
 * @module
 */
let base = "/kernels";
/** @type {Map<string, Promise<string>>} by address */
const known = new Map();

/** A text did not come; the message names it and the way out. */
export class TextMissing extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = "KernelError";
    this.code = "kernel";
  }
}

/** Take all texts from here on from this folder. @param {string} address such as /kernels/v-0123456789abcdef */
export function takeTextsFrom(address) {
  base = address;
}

/** A name for the state of all texts; null where the address holds none. */
export function textsVersion() {
  return /\/(v-[0-9a-f]+)$/.exec(base)?.[1] ?? null;
}

/** @param {string} file of the kernels' folder @returns {Promise<string>} rejects with TextMissing */
export function fetchText(file) {
  const address = `${base}/${file}`;
  const text = known.get(address) ?? ask(address, file);
  known.set(address, text);
  text.catch(() => known.delete(address)); // it may come the next time
  return text;
}

/** @param {string} address @param {string} file */
async function ask(address, file) {
  const response = await fetch(address).catch(() => {
    throw new TextMissing(`The playground's server does not answer, and the kernel ${file} is not here yet: start it, then try again.`);
  });
  if (!response.ok) throw new TextMissing(`The server did not send ${address} (status ${response.status}): reload the page.`);
  return response.text();
}
