// One cell of the lens: what the model would say if it stopped there, and how a chosen token climbs through depth.
import { unmarked } from "../lib/glyphs.js";
import { count, three } from "../lib/numbers.js";
import { glyphs, spelled } from "./glyphs.js";
import { byId, h } from "./dom.js";
import { later } from "./later.js";
import { depthName, depthWords } from "./lens_cells.js";
import { rankPlot, rankStory } from "./rank_plot.js";
import { barList, fillTokens } from "./row_bars.js";
import { sentence } from "./session.js";
import { WAITING_FOR, chosenDepth, followed, glyphOf, pieceOf, position, store, waiting } from "./state.js";

/** Fills the panel beside the lens. */
export function mountCell() {
  const list = barList({ class: "bars picture", id: "cell-bars", "aria-labelledby": "cell-title" });
  const ranks = h("div", { class: "ranks picture", id: "ranks" });
  const about = h("p", { class: "small dim" });
  const target = targetField();
  byId("cell").append(about, list, target, ranks);
  store.on(["stale"], ({ stale }) => [list, ranks].forEach((part) => part.classList.toggle("stale", stale)));
  showGuess(about, list, target);
  showRanks(ranks);
}

/**
 * Keeps the ten best tokens of the chosen cell up to date.
 * @param {HTMLElement} about what the list is @param {HTMLElement} list @param {HTMLElement} target the field of the followed token
 */
function showGuess(about, list, target) {
  const where = byId("cell-title");
  /** Whose cell is shown. @type {import("./state.js").Trace | null} */
  let shownOf = null;
  store.on([...WAITING_FOR, "token", "depth", "layer", "lensGrown", "lens", "target", "shown", "next"], (state) => {
    const [depth, place] = [chosenDepth(state), position(state)];
    const cell = state.trace && state.lens?.get(depth, place);
    // A new prompt's words do not stand beside the numbers of the one before: those stay, dimmed, until its cell is there.
    const behind = state.trace !== null && shownOf !== null && shownOf !== state.trace && !cell && !ended(state.lens);
    list.classList.toggle("behind", behind);
    if (behind) return;
    shownOf = state.trace;
    where.replaceChildren(state.trace ? depthWords(depth).replace(/^./, (c) => c.toUpperCase()) : "One layer’s guess");
    if (state.trace) where.append(" at ", h("span", { class: "mono" }, ...glyphs(state.shown[place]?.glyph ?? "", state.shown[place]?.text)));
    target.hidden = !state.trace;
    about.textContent = !state.trace
      ? waiting("Select a cell of the lens to see its ten best tokens.")
      : cell
        ? `ten likeliest; entropy ${three(cell.entropy)} nats`
        : (ended(state.lens) ?? "being computed");
    const best = Array.from(cell ? cell.ids : [], (id, i) => ({ id, logprob: cell?.logprobs[i] ?? 0 }));
    fillTokens(list, best, followed(state));
  });
}

/** Keeps the rank of the followed token through depth up to date. @param {HTMLElement} ranks */
function showRanks(ranks) {
  /** The question whose answer is shown or on its way. @type {{trace: import("./state.js").Trace, words: string} | null} */
  let asked = null;
  /** @type {(depth: number) => SVGElement | null} the plot with its cursor at a depth, once its ranks are there */
  let plot = () => null;
  store.on(["depth", "layer"], (state) => {
    const moved = state.trace && asked?.trace === state.trace && plot(chosenDepth(state));
    if (moved) ranks.querySelector(".rank-plot")?.replaceWith(moved);
  });
  store.on(["trace", "token", "target", "next"], async (state) => {
    const { trace } = state;
    const [target, place] = [followed(state), position(state)];
    ranks.classList.toggle("behind", trace !== null && asked?.trace !== trace);
    if (!trace || target === null) return void (trace ? 0 : ranks.replaceChildren());
    const words = `${place} ${target}`;
    if (asked?.trace === trace && asked.words === words) return; // the same tokens computed again are another trace
    const mine = (asked = { trace, words });
    plot = () => null;
    ranks.classList.add("behind");
    const outdated = () => asked !== mine || store.state.trace !== trace;
    /** @type {import("./state.js").Turn} */
    const turn = (ask) => later(() => (outdated() ? Promise.reject(new Error("Another token is followed now.")) : ask()));
    try {
      const found = Array.from(await trace.ranks(place, target, turn));
      if (outdated()) return;
      plot = (depth) => (depth < found.length ? rankPlot(found, depth, spelled(pieceOf(target))) : null);
      ranks.replaceChildren(...rankParts(found, pieceOf(target), /** @type {SVGElement} */ (plot(chosenDepth(store.state)))));
    } catch (error) {
      if (outdated()) return;
      ranks.replaceChildren(h("p", { class: "small dim", text: /** @type {Error} */ (error).message }));
    }
    ranks.classList.remove("behind");
  });
}

/** @param {number[]} found 0 is first @param {ReturnType<typeof pieceOf>} piece @param {SVGElement} plot */
const rankParts = (found, piece, plot) => [
  h("h3", {}, "Rank of ", h("span", { class: "mono ink" }, ...glyphs(piece.glyph, piece.text)), " through depth"),
  plot,
  h("p", { class: "small dim", id: "rank-story", text: rankStory(found, spelled(piece)) }),
  rankTable(found),
];

/** Why no more cells come. @param {import("./lens_data.js").LensData | null} lens @returns {string | null} null: they do */
function ended(lens) {
  if (lens?.failed) return "not computed: the lens says why";
  return lens?.stopped ? "not computed: the lens is stopped" : null;
}

/** @param {number[]} ranks 0 is first */
function rankTable(ranks) {
  const rows = ranks.map((rank, layer) =>
    h("tr", {}, h("th", { scope: "row", text: depthName(layer) }), h("td", { text: count(rank + 1) })),
  );
  return h(
    "details",
    { class: "small" },
    h("summary", { text: "Ranks as a table" }),
    h(
      "table",
      { class: "numbers" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col", text: "after" }), h("th", { scope: "col", text: "rank" }))),
      h("tbody", {}, ...rows),
    ),
  );
}

/** A field that turns typed text into the token to follow. */
function targetField() {
  const field = h("input", {
    type: "text",
    id: "target",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": "Token to follow, as text; a leading space counts, and may be written ·",
    "aria-describedby": "target-note",
  });
  const note = h("p", { class: "small dim", id: "target-note" });
  const automatic = h("button", {
    type: "button",
    class: "quiet",
    text: "First choice",
    title: "Follow the model's own first choice",
    onclick: () => store.set({ target: null }),
  });
  /** The token that the note is about. @type {number | null} */
  let told = null;
  const take = () => {
    const { id, words } = meantToken(field.value);
    note.textContent = words;
    told = id ?? store.state.target;
    if (id !== null) store.set({ target: id });
  };
  field.addEventListener("change", take);
  field.addEventListener("keydown", (event) => event.key === "Enter" && take());
  store.on(["target", "tokens", "trace", "next"], (state) => {
    const { target, tokens, trace } = state;
    const followedNow = followed(state);
    field.placeholder = followedNow === null ? "" : glyphOf(followedNow);
    automatic.setAttribute("aria-pressed", String(target === null));
    if (target !== told) [told, note.textContent] = [target, ""]; // chosen elsewhere: what was said of another is over
    const outside = target !== null && trace && target >= trace.shape.V;
    if (outside) note.textContent = `This model has no token ${count(target)}; following its first choice.`;
    if (target !== null && tokens && trace && document.activeElement !== field) field.value = outside ? "" : tokens.decode([target]);
    if (target === null && document.activeElement !== field) field.value = "";
  });
  return h("div", { class: "target" }, h("label", { for: "target", class: "small dim", text: "Follow" }), field, automatic, note);
}

/**
 * The token that a text means, or null, and what there is to say of it. What is one token as it is typed is that one; else the
 * marks of blanks are read as blanks (the page writes tokens so), and a word may be one token with a space before it alone.
 * @param {string} text @returns {{id: number | null, words: string}}
 */
function meantToken(text) {
  const cut = (/** @type {string} */ part) => store.state.tokens?.encode(part) ?? [];
  try {
    const written = unmarked(text);
    const [typed, read, spaced] = [text, written, ` ${written}`].map((part) => /** @type {number[]} */ (cut(part)));
    if (typed.length === 0) return { id: null, words: "Type the token's text; a space before a word belongs to it." };
    if (typed.length === 1) return { id: typed[0], words: "" };
    if (read.length === 1) return { id: read[0], words: "" };
    if (spaced.length === 1) return { id: spaced[0], words: `Following ${glyphOf(spaced[0])}, with the space that words begin with.` };
    return { id: read[0], words: `That is ${read.length} tokens; following the first, ${glyphOf(read[0])}.` };
  } catch (error) {
    return { id: null, words: sentence(error) };
  }
}
