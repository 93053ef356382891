// "Verify on this device": the comparison with the oracle, kernel by kernel, with the layer where each is worst.
import { plural, three } from "../lib/numbers.js";
import { byId, h, passFocus } from "./dom.js";
import { stepProgress } from "./progress.js";
import { sentence } from "./session.js";
import { store } from "./state.js";
import { firstFailure, verify } from "./verify.js";

/** @typedef {import("./verify.js").Check} Check */

/** Fills the dialog and opens it from the badge. */
export function mountVerify() {
  const dialog = /** @type {HTMLDialogElement} */ (byId("verify-dialog"));
  const status = h("p", { id: "verify-status", role: "status" });
  const start = h("button", { type: "button", class: "primary", id: "verify-start", text: "Verify on this device" });
  const stop = h("button", { type: "button", text: "Stop", hidden: true });
  const progress = stepProgress();
  const results = h("div", { id: "verify-results" });
  dialog.append(
    h(
      "div",
      { class: "dialog-body" },
      h(
        "div",
        { class: "dialog-top" },
        h("h2", { id: "verify-title", text: "Verify on this device" }),
        h("button", { type: "button", text: "Close", onclick: () => dialog.close() }),
      ),
      h("p", {
        class: "dim",
        text: "Runs the prompt once more with every intermediate recorded, and compares each with a PyTorch reference in double precision on the server.",
      }),
      h("div", { class: "row" }, start, stop, progress.element),
      status,
      results,
    ),
  );
  byId("proof-badge").addEventListener("click", () => dialog.showModal());

  /** @type {AbortController | null} */
  let running = null;
  stop.addEventListener("click", () => running?.abort());
  start.addEventListener("click", async () => {
    const { engine, entry, shown } = store.state;
    if (!engine || !entry || shown.length === 0)
      return void (status.textContent = "There is nothing to verify yet: load a model and type a prompt.");
    if (engine.kind === "server")
      return void (status.textContent = "The server's oracle computes these views itself, so there are no kernels to verify here.");
    running = new AbortController();
    stop.hidden = false;
    passFocus(start, stop);
    start.disabled = true;
    store.set({ proof: { verdict: "running", words: "verifying" } });
    progress.start();
    /** @type {Check[]} */
    const checks = [];
    const say = (/** @type {string} */ text) => (status.textContent = text);
    try {
      const onCheck = (/** @type {Check} */ check) => {
        checks.push(check);
        if (check.layer === null || check.name === "resid_post") results.replaceChildren(table(checks));
      };
      const report = await verify(
        engine,
        entry,
        shown.map((piece) => piece.id),
        { say, onPart: progress.part, onCheck, signal: running.signal },
      );
      running.signal.throwIfAborted();
      results.replaceChildren(table(report.checks));
      conclude(report, say);
    } catch (error) {
      store.set({ proof: { verdict: "none", words: "not verified here" } });
      const other = store.state.shown !== shown || store.state.engine !== engine;
      if (other) results.replaceChildren();
      say(other ? "Stopped: prompt or model changed meanwhile." : running.signal.aborted ? "Stopped." : sentence(error));
    }
    running = null;
    progress.stop();
    start.disabled = false;
    passFocus(stop, start);
    stop.hidden = true;
  });
  // A proof holds for the prompt it was made on: another model or prompt starts without one.
  store.on(["entry", "engine", "shown"], ({ engine }) => {
    if (running) return running.abort();
    const words = engine?.kind === "server" ? "computed by the oracle" : "not verified here";
    store.set({ proof: { verdict: "none", words } });
    results.replaceChildren();
    status.textContent = "";
  });
}

/**
 * @param {import("./verify.js").Report} report
 * @param {(text: string) => void} say
 */
function conclude({ passed, largest, checks, tokens }, say) {
  const wrong = firstFailure(checks);
  if (passed || !wrong) {
    store.set({ proof: { verdict: "passed", words: `verified on this device: largest error ${three(largest)}` } });
    const worst = checks.reduce((a, b) => (b.error > a.error ? b : a));
    const unit = worst.relative ? "of its largest value" : "absolute";
    say(
      `All ${checks.length} intermediates of this prompt's ${plural(tokens, "token")} agree with the oracle. Largest error ${three(largest)}, ${unit}, in ${worst.name}.`,
    );
    return;
  }
  store.set({ proof: { verdict: "failed", words: "out of tolerance" } });
  const where = wrong.layer === null ? "" : ` of layer ${wrong.layer}`;
  say(
    `Out of tolerance. The first intermediate that is wrong is ${wrong.name}${where}, written by the kernel ${wrong.kernel}; what comes after it cannot be right either.`,
  );
}

/** One line per kernel and intermediate with its worst layer; the layers unfold. @param {Check[]} checks */
function table(checks) {
  /** @type {Map<string, Check[]>} */
  const groups = new Map();
  for (const check of checks) groups.set(check.name, [...(groups.get(check.name) ?? []), check]);
  const rows = [...groups.values()].map((group) => {
    const worst = group.reduce((a, b) => (b.error > a.error ? b : a));
    const verdict = group.every((check) => check.passed);
    return h(
      "tr",
      { class: verdict ? "" : "failed" },
      h("td", {}, h("code", { text: worst.kernel })),
      h("th", { scope: "row" }, h("code", { text: worst.name })),
      h("td", { class: "figure", text: three(worst.error) }),
      h("td", { text: worst.layer === null ? "–" : `layer ${worst.layer}` }),
      h("td", { text: `${three(worst.limit)} ${worst.relative ? "of the largest value" : "absolute"}` }),
      h("td", { class: "verdict", text: verdict ? "within" : "out of tolerance" }),
      h("td", {}, group.length > 1 ? layers(group) : ""),
    );
  });
  const head = ["Kernel", "Intermediate", "Largest error", "Worst at", "Tolerance", "Verdict", "Layers"].map((text) =>
    h("th", { scope: "col", text }),
  );
  return h(
    "div",
    { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Comparison with the oracle" },
    h("table", { class: "checks" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)),
  );
}

/** @param {Check[]} group */
function layers(group) {
  const items = group.map(({ layer, error, passed }) => h("li", { class: passed ? "" : "failed", text: `${layer}: ${three(error)}` }));
  return h("details", {}, h("summary", { class: "small", text: "all" }), h("ol", { class: "layer-errors" }, ...items));
}
