// What was measured of a model, in a dialog: a sortable table of every head, the lens through depth, data and licence.
import { count } from "../lib/numbers.js";
import { byId, h } from "./dom.js";
import { gridOf } from "./grid_keys.js";
import { depthNames } from "./lens_cells.js";
import { NAMED, SCORES, figure, measuredOn } from "./scores.js";
import { switchModel } from "./session.js";
import { store } from "./state.js";

/** @typedef {import("./state.js").ModelEntry} ModelEntry */
/** @typedef {import("./state.js").HeadScores} HeadScores */

const TEXTS = /** @type {Record<string, string>} */ ({ agreement: "agrees with the model’s final answer", cross_entropy: "nats per token" });

/** Plain names of the held-out texts of the embedded model. */
const TITLES = /** @type {Record<string, string>} */ ({
  "tinystories_sample.txt": "TinyStories",
  "public_domain_children.txt": "old children’s books",
});

/** @param {string} text a held-out text's name in the report, often a file's */
const titleOf = (text) => TITLES[text] ?? text.replace(/\.txt$/, "").replaceAll("_", " ");

/**
 * Shows the report of a model; choosing a head in it loads the model where another is in use, and opens the head.
 * @param {ModelEntry} entry
 */
export function openReport(entry) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("report-dialog"));
  const { heads, depth } = entry.report;
  const open = (/** @type {HeadScores} */ { layer, head }) => {
    dialog.close();
    byId("model-button").focus();
    if (store.state.entry?.id !== entry.id) switchModel(entry.id).catch(() => {}); // a notice says what went wrong
    store.set({ layer, head });
  };
  dialog.replaceChildren(
    h(
      "div",
      { class: "dialog-body" },
      h(
        "div",
        { class: "dialog-top" },
        h("h2", { id: "report-title", text: `What the heads of ${entry.name} do` }),
        h("button", { type: "button", text: "Close", onclick: () => dialog.close() }),
      ),
      h("p", { class: "small dim", text: entry.about }),
      ...(heads.length > 0 ? [headTable(entry, open), ...scoreNotes(entry)] : []),
      Object.keys(depth).length > 0 ? h("h3", { text: "Through depth: what each layer would say of these texts" }) : null,
      Object.keys(depth).length > 0 ? depthTable(entry) : null,
      h("p", { class: "small dim", text: sourceWords(entry) }),
    ),
  );
  dialog.showModal();
}

/** What the columns of the head table are, and what each was measured on. @param {ModelEntry} entry @returns {HTMLElement[]} */
function scoreNotes(entry) {
  const { scores } = entry.report;
  const terms = scores.flatMap((score) => {
    const on = measuredOn(entry, score);
    return [h("dt", { text: SCORES[score].name }), h("dd", { text: on ? `${SCORES[score].about}; ${on}` : SCORES[score].about })];
  });
  const from = `Scores run from −1 to 1. From ${NAMED} on a score stands out and its head is called after it; the best of a column is then bold on blue.`;
  const first = scores.includes("first_token") ? " First-token depends on the length of the text: a short prompt shows more of it than a long row." : "";
  return [h("p", { class: "small dim", text: from + first }), h("dl", { class: "report-terms" }, ...terms)];
}

/** Data, size, licence and commit, in short. @param {ModelEntry} entry */
function sourceWords({ licence, hash, report: { about } }) {
  const { data, parameters, training_minutes, commit } = about;
  return [
    data && `Trained on: ${data}.`,
    parameters && `${count(parameters)} parameters${training_minutes ? `, ${count(training_minutes)} minutes of training` : ""}.`,
    `Licence of the weights: ${licence}; SHA-256 ${hash.slice(0, 16)}…${commit ? `, commit ${commit.slice(0, 12)}` : ""}.`,
  ]
    .filter(Boolean)
    .join(" ");
}

/**
 * Every head with its scores. A column's button sorts by it, largest first; a second time back to the order of the layers.
 * @param {ModelEntry} entry
 * @param {(head: HeadScores) => void} open
 */
function headTable({ report: { heads, scores } }, open) {
  const best = Object.fromEntries(scores.map((score) => [score, Math.max(...heads.map((head) => head[score]))]));
  const body = h("tbody");
  const table = h("table", { class: "numbers report-table", id: "report-heads" });
  const grid = gridOf(table, "Scores of every head; arrow keys go through it, Enter sorts by a column or opens a head");
  const columns = scores.map((score) => h("th", { scope: "col", "aria-sort": "none" }));
  const sort = (/** @type {string | null} */ by) => {
    const sorted = by ? heads.toSorted((a, b) => b[by] - a[by] || a.layer - b.layer || a.head - b.head) : heads;
    body.replaceChildren(...sorted.map((head) => headRow(head, scores, best, open)));
    columns.forEach((column, i) => column.setAttribute("aria-sort", scores[i] === by ? "descending" : "none"));
    grid.settle();
  };
  columns.forEach((column, i) => {
    const { name, about } = SCORES[scores[i]];
    const run = () => sort(column.getAttribute("aria-sort") === "none" ? scores[i] : null);
    column.append(h("button", { type: "button", class: "quiet sorter", text: name, title: about, onclick: run }));
  });
  table.append(h("thead", {}, h("tr", {}, h("th", { scope: "col", text: "head" }), ...columns)), body);
  sort(null);
  return h("div", { class: "table-scroll" }, table);
}

/**
 * @param {HeadScores} head
 * @param {string[]} scores
 * @param {Record<string, number>} best largest of each column
 * @param {(head: HeadScores) => void} open
 */
function headRow(head, scores, best, open) {
  const name = `L${head.layer} H${head.head}`;
  const called = head.called.length > 0 ? `, called ${head.called.join("; ")}` : "";
  const button = h("button", { type: "button", class: "quiet", text: name, "aria-label": `${name}: open this head${called}`, onclick: () => open(head) });
  const cells = scores.map((score) => {
    const top = head[score] === best[score] && best[score] >= NAMED; // the best of nothing is nothing
    const value = figure(head[score]);
    return h("td", { class: top ? "best" : head[score] >= NAMED ? "high" : null }, top ? h("strong", { text: value }) : value);
  });
  return h("tr", {}, h("th", { scope: "row" }, button), ...cells);
}

/** Lens agreement and cross-entropy of every text after every layer. @param {ModelEntry} entry */
function depthTable({ shape, report: { depth } }) {
  const layers = depthNames(shape.L).map((text) => h("th", { scope: "col", text }));
  const rows = Object.entries(depth).flatMap(([text, measures]) =>
    Object.entries(measures).map(([measure, values]) =>
      h(
        "tr",
        {},
        h("th", { scope: "row", text: `${titleOf(text)}: ${TEXTS[measure] ?? measure}` }),
        ...values.map((value) => h("td", { text: figure(value) })),
      ),
    ),
  );
  const head = h("thead", {}, h("tr", {}, h("th", { scope: "col", text: "text" }), ...layers));
  const table = h("table", { class: "numbers report-table", id: "report-depth" }, head, h("tbody", {}, ...rows));
  return h("div", { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Through depth" }, table);
}
