// Colour maps. cividis (Nunez, Anderton and Renslow 2018) reads the same for most colour-blind people and grows evenly in
// lightness. Kept as 17 stops of the published map with straight lines between them: at most 1/255 away from it.

const CIVIDIS = [
  0x00224e, 0x002e6a, 0x1a386f, 0x32436d, 0x434e6c, 0x535a6d, 0x61656f, 0x6f7073, 0x7d7c78, 0x8c8878, 0x9b9476, 0xaba072, 0xbcae6c,
  0xcdbb63, 0xdec958, 0xf0d846, 0xfee838,
];

/** @typedef {[number, number, number]} Rgb red, green and blue, 0..255 */

/**
 * The cividis colour of a value.
 * @param {number} value 0..1; values outside are clamped, NaN counts as 0
 * @returns {Rgb}
 */
export function cividis(value) {
  const place = Math.min(1, Math.max(0, value || 0)) * (CIVIDIS.length - 1);
  const stop = Math.min(CIVIDIS.length - 2, Math.floor(place));
  const part = place - stop;
  const [from, to] = [CIVIDIS[stop], CIVIDIS[stop + 1]];
  /** @param {number} shift */
  const channel = (shift) => Math.round(((from >> shift) & 255) * (1 - part) + ((to >> shift) & 255) * part);
  return [channel(16), channel(8), channel(0)];
}

/** cividis in 256 steps as packed little-endian RGBA, for writing canvas pixels as Uint32. */
export const CIVIDIS_PIXELS = Uint32Array.from({ length: 256 }, (_, i) => packed(cividis(i / 255)));

/**
 * One opaque canvas pixel.
 * @param {Rgb} rgb
 */
export function packed([red, green, blue]) {
  return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
}

/**
 * The ink, black or white, that reads best on a colour (WCAG relative luminance; the better of the two always has 4.5:1).
 * @param {Rgb} rgb
 */
export function inkOn(rgb) {
  const [red, green, blue] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}

/**
 * `rgb(1 2 3)`, `rgba(1, 2, 3, 0.5)` or `rgb(1, 2, 3)` as the browser's computed styles spell it.
 * @param {string} text
 * @returns {Rgb} black when the text is no colour
 */
export function parseRgb(text) {
  const found = text.match(/[\d.]+/g) ?? [];
  return [Number(found[0] ?? 0), Number(found[1] ?? 0), Number(found[2] ?? 0)];
}
