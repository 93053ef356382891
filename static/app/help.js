// A short glossary and the keys, one click away.
import { byId, h } from "./dom.js";

const WORDS = [
  ["Query", "What a token looks for. Row t of a heatmap is the query of token t."],
  ["Key", "What a token offers to be found by. Column s is the key of token s; a token sees only itself and earlier ones."],
  ["Pattern", "The attention weights of one head: softmax of query · key over √H. Each row sums to 1."],
  ["K/V group", "Query heads that share one key and value head (grouped-query attention). Gaps in the wall part the groups."],
  ["lse", "Log-sum-exp of a row of scores. With it the weights of any part of a row can be rebuilt without the rest."],
  ["Logit lens", "The model’s final norm and unembedding applied after each layer: what it would say if it stopped there."],
  ["First token", "Many heads rest on token 0 when they have nothing to do; leaving it out shows the rest, renormalised."],
  ["Verified", "Every intermediate on this device was compared with a PyTorch reference in double precision."],
];

const KEYS = [
  ["Tab", "from part to part: prompt, tokens, heads, one head, lens, prediction"],
  ["Arrows", "move among tokens, heads, cells of the heatmap and of the lens"],
  ["Enter", "open the focused head"],
  ["Shift + arrows", "ten cells at a time in the heatmap"],
  ["+ and −", "zoom the heatmap; Ctrl + wheel does too, dragging pans"],
  ["Home, End", "first and last"],
];

/** Fills the help dialog and opens it from the bar. */
export function mountHelp() {
  const dialog = /** @type {HTMLDialogElement} */ (byId("help-dialog"));
  const close = h("button", { type: "button", text: "Close", onclick: () => dialog.close() });
  dialog.append(
    h(
      "div",
      { class: "dialog-body" },
      h("div", { class: "dialog-top" }, h("h2", { id: "help-title", text: "Words and keys" }), close),
      h("dl", { class: "glossary" }, ...WORDS.flatMap(([word, meaning]) => [h("dt", { text: word }), h("dd", { text: meaning })])),
      h("h3", { text: "Keyboard" }),
      h("dl", { class: "glossary" }, ...KEYS.flatMap(([key, does]) => [h("dt", {}, h("kbd", { text: key })), h("dd", { text: does })])),
      h("p", {
        class: "small dim",
        text: "Everything runs in this browser; prompts are not sent anywhere, except to this playground’s own server when it computes or verifies for you. Scripts can use window.playground; static/README.md describes it.",
      }),
    ),
  );
  byId("help").addEventListener("click", () => dialog.showModal());
}
