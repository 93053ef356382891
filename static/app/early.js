// The first module of the page, with few others, because what it begins takes longest: the device, the list of models, and
// compiling what the prompt that the page opens on will run. Then the rest of the page is asked for, all at once. Compiling
// ahead is a guess that costs little when it is wrong; what fails here is told by those who need it later.
import { parseConfig } from "../gpu/config.js";
import { requestDevice } from "../gpu/device.js";
import { Kernels } from "../gpu/kernels.js";
import { place, tensorShapes } from "../gpu/layout.js";
import { fetchText, takeTextsFrom } from "../gpu/texts.js";
import { firstChoice } from "../gpu/variants.js";
import { dispatchesOf, picturePlans, plainChoice, warm } from "../gpu/warm.js";
import { OPENING, readLink } from "../lib/permalink.js";
import { listModels } from "./api.js";

/** @typedef {{id: string, config: unknown, formats: Record<string, string[]>}} First the default model, as the server describes it */

/** @type {{kernels: string, modules: string[], opening: import("../lib/permalink.js").Opening | null, first: First | null}} */
const settings = JSON.parse(/** @type {HTMLElement} */ (document.getElementById("settings")).textContent ?? "{}");

/** Modules asked for between two pauses. */
const AT_ONCE = 16;

takeTextsFrom(settings.kernels);
export const firstDevice = requestDevice();
export const firstList = listModels();

/** About how many tokens a text has, before a tokenizer is here. @param {string} prompt */
export const guessTokens = (prompt) => Math.max(2, Math.ceil(prompt.length / 4));

/** @param {First} first @param {string} prompt */
async function compileFor({ config: raw, formats }, prompt) {
  const config = parseConfig(raw);
  const placed = place(config, dtypesOf(tensorShapes(config).keys(), formats));
  const T = guessTokens(prompt);
  /** @param {import("../gpu/variants.js").Choice} choice */
  const plans = (choice) => picturePlans(config, placed, plainChoice(config, T, choice), T);
  const { kernels: manifest } = JSON.parse(await fetchText("manifest.json"));
  // Most texts are the same whatever the device: they come while it is being opened.
  for (const { kernel } of dispatchesOf(() => plans({}))) fetchText(manifest[kernel].file).catch(() => {});
  const device = await firstDevice;
  const kernels = await Kernels.of(device);
  await warm(kernels, () => plans(firstChoice(device.features, device.software)));
}

/**
 * A format for every tensor: where the layers differ, each of theirs in turn.
 * @param {Iterable<string>} names @param {Record<string, string[]>} formats by name, `*` in place of the layer
 */
function dtypesOf(names, formats) {
  /** @type {Map<string, string>} */
  const dtypes = new Map();
  for (const name of names) {
    const every = formats[name.replace(/\.\d+\./, ".*.")] ?? ["F32"];
    dtypes.set(name, every[Number(/\.(\d+)\./.exec(name)?.[1] ?? 0) % every.length]);
  }
  return dtypes;
}

const { first, opening, modules } = settings;
const { view } = readLink(location.hash, opening ?? OPENING);
if (first && (view.model === null || view.model === first.id)) compileFor(first, view.prompt).catch(() => {});
for (const asked of [firstDevice, firstList]) asked.catch(() => {});
void askForAll(modules);

/** To ask for one takes nearly a millisecond, and together they would hold the page up. @param {string[]} addresses */
async function askForAll(addresses) {
  for (let at = 0; at < addresses.length; at += AT_ONCE) {
    const links = addresses.slice(at, at + AT_ONCE).map((href) => Object.assign(document.createElement("link"), { rel: "modulepreload", href }));
    document.head.append(...links);
    await new Promise((resolve) => setTimeout(resolve));
  }
}
