// Weights to pixels on a Canvas 2D: one picture pixel per cell or block, enlarged without smoothing.
import { CIVIDIS_PIXELS, packed, parseRgb } from "../lib/colours.js";

/**
 * The colours that follow the theme, as numbers. The canvas's own CSS carries them: outline-color is the masked grey,
 * color the accent.
 * @param {HTMLCanvasElement} canvas
 */
export function themeColours(canvas) {
  const style = getComputedStyle(canvas);
  return { mask: parseRgb(style.outlineColor), accent: style.color, ground: style.borderTopColor };
}

/** @type {HTMLCanvasElement | null} */
let scratch = null;

/**
 * Shades to pixels in a canvas that is not shown.
 * @param {Float32Array} shades [rows * cols], 0..1; NaN takes the masked grey
 * @param {number} rows
 * @param {number} cols
 * @param {import("../lib/colours.js").Rgb} mask
 */
function pixelsOf(shades, rows, cols, mask) {
  scratch ??= document.createElement("canvas");
  scratch.width = cols;
  scratch.height = rows;
  const inner = /** @type {CanvasRenderingContext2D} */ (scratch.getContext("2d", { willReadFrequently: true }));
  const image = inner.createImageData(cols, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const grey = packed(mask);
  for (let i = 0; i < pixels.length; i += 1) {
    const shade = shades[i];
    pixels[i] = shade === shade ? CIVIDIS_PIXELS[Math.max(0, Math.min(255, Math.round(shade * 255)))] : grey;
  }
  inner.putImageData(image, 0, 0);
  return scratch;
}

/**
 * Draws square matrices that lie one after the other, each into its own rectangle: one upload for all of them.
 * @param {CanvasRenderingContext2D} context
 * @param {Float32Array} shades [boxes.length * side * side]
 * @param {number} side
 * @param {({x: number, y: number, width: number, height: number} | null)[]} boxes CSS pixels; null: not drawn
 * @param {import("../lib/colours.js").Rgb} mask
 */
export function paintTiles(context, shades, side, boxes, mask) {
  const tiles = pixelsOf(shades, side * boxes.length, side, mask);
  context.imageSmoothingEnabled = false;
  boxes.forEach((box, i) => {
    if (box) context.drawImage(tiles, 0, i * side, side, side, box.x, box.y, box.width, box.height);
  });
}

/**
 * Draws a matrix of shades into a rectangle.
 * @param {CanvasRenderingContext2D} context
 * @param {Float32Array} shades [rows * cols], 0..1; NaN takes the masked grey
 * @param {number} rows
 * @param {number} cols
 * @param {{x: number, y: number, width: number, height: number}} box CSS pixels
 * @param {import("../lib/colours.js").Rgb} mask
 */
export function paintMatrix(context, shades, rows, cols, box, mask) {
  const pixels = pixelsOf(shades, rows, cols, mask);
  context.imageSmoothingEnabled = false;
  context.drawImage(pixels, 0, 0, cols, rows, box.x, box.y, box.width, box.height);
}
