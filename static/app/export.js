// One head's weights as text that other programs read. The whole head up to 1,024 tokens, else the part that is shown.
import { announce, byId, flash, saveFile } from "./dom.js";
import { notify } from "./state.js";

const MOST = 1024;

/** @param {string} text */
const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/**
 * @param {import("./head_data.js").HeadData} data
 * @param {"copy" | "csv" | "json"} form
 * @param {import("./state.js").State} state
 */
export async function exportHead(data, form, { shown, zoom, prompt, entry, noFirst }) {
  const T = data.trace.shape.T;
  const [row0, rows, col0, cols] = zoom ?? [0, T, 0, T];
  if (rows > MOST || cols > MOST) {
    notify({
      id: "export",
      kind: "info",
      text: `A file of ${rows} × ${cols} weights is too large to be useful; zoom in to at most ${MOST} tokens and export that part.`,
    });
    return;
  }
  const { cells } = await data.picture({ row0, rows, col0, cols }, 0, noFirst);
  const { layer, head } = data;
  const name = `${entry?.id ?? "model"}-L${layer}H${head}`;
  const names = shown.map((piece, i) => `${i} ${piece.glyph}`);
  const line = (/** @type {number} */ i) => Array.from(cells.subarray(i * cols, (i + 1) * cols), (w) => (Number.isNaN(w) ? "" : String(w)));
  const grid = [["query/key", ...names.slice(col0, col0 + cols)], ...Array.from({ length: rows }, (_, i) => [names[row0 + i], ...line(i)])];
  if (form === "copy") {
    try {
      await navigator.clipboard.writeText(grid.map((cell) => cell.join("\t")).join("\n"));
    } catch {
      const text = "The browser does not let this page write to the clipboard; CSV saves the same numbers.";
      return void notify({ id: "export", kind: "info", text });
    }
    flash(byId("copy-head"), "Copied");
    announce(`${rows} × ${cols} weights are in the clipboard, separated by tabs.`);
  } else if (form === "csv") {
    saveFile(`${name}.csv`, grid.map((row) => row.map(quoted).join(",")).join("\r\n"), "text/csv");
  } else {
    const weights = Array.from({ length: rows }, (_, i) =>
      Array.from(cells.subarray(i * cols, (i + 1) * cols), (w) => (Number.isNaN(w) ? null : w)),
    );
    const tokens = shown.map(({ id, text }) => ({ id, text }));
    saveFile(
      `${name}.json`,
      JSON.stringify({ model: entry?.id, prompt, layer, head, row0, col0, withoutFirst: noFirst, tokens, weights }),
      "application/json",
    );
  }
}
