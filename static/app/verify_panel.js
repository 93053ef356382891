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
  const panel = new VerifyPanel();
  byId("proof-badge").addEventListener("click", () => panel.dialog.showModal());
}

class VerifyPanel {
  constructor() {
    this.dialog = /** @type {HTMLDialogElement} */ (byId("verify-dialog"));
    this.status = h("p", { id: "verify-status", role: "status" });
    this.start = h("button", { type: "button", class: "primary", id: "verify-start", text: "Verify on this device" });
    this.stop = h("button", { type: "button", text: "Stop", hidden: true });
    this.progress = stepProgress();
    this.results = h("div", { id: "verify-results" });
    /** @type {AbortController | null} */
    this.running = null;
    this.dialog.append(this.#body());
    this.stop.addEventListener("click", () => this.running?.abort());
    this.start.addEventListener("click", () => void this.#verify());
    // A proof holds for the prompt it was made on: another model or prompt starts without one.
    store.on(["entry", "engine", "shown"], ({ engine }) => {
      if (this.running) return this.running.abort();
      const words = engine?.kind === "server" ? "oracle’s numbers" : "not verified here";
      store.set({ proof: { verdict: "none", words } });
      this.results.replaceChildren();
      this.say("");
    });
  }

  #body() {
    const title = h("h2", { id: "verify-title", text: "Verify on this device" });
    const about =
      "Runs the prompt once more with every intermediate recorded, and compares each with a PyTorch reference in double precision on the server.";
    return h(
      "div",
      { class: "dialog-body" },
      h("div", { class: "dialog-top" }, title, h("button", { type: "button", text: "Close", onclick: () => this.dialog.close() })),
      h("p", { class: "dim", text: about }),
      h("div", { class: "row" }, this.start, this.stop, this.progress.element),
      this.status,
      this.results,
    );
  }

  /** @param {string} text */
  say(text) {
    this.status.textContent = text;
  }

  async #verify() {
    const { engine, entry, shown } = store.state;
    if (!engine || !entry || shown.length === 0) return this.say("There is nothing to verify yet: load a model and type a prompt.");
    if (engine.kind === "server")
      return this.say("The server's oracle computes these views itself, so there are no kernels to verify here.");
    const { signal } = this.#begin();
    const ids = shown.map((piece) => piece.id);
    try {
      const [say, onPart] = [(/** @type {string} */ text) => this.say(text), this.progress.part];
      const report = await verify(engine, entry, ids, { say, onPart, onCheck: this.#table(), signal });
      signal.throwIfAborted();
      this.results.replaceChildren(table(report.checks));
      conclude(report, say);
    } catch (error) {
      store.set({ proof: { verdict: "none", words: "not verified here" } });
      const other = store.state.shown !== shown || store.state.engine !== engine;
      if (other) this.results.replaceChildren();
      this.say(other ? "Stopped: prompt or model changed meanwhile." : signal.aborted ? "Stopped." : sentence(error));
    }
    this.#end();
  }

  /** What shows the checks so far, a layer at a time. */
  #table() {
    /** @type {Check[]} */
    const checks = [];
    return (/** @type {Check} */ check) => {
      checks.push(check);
      if (check.layer === null || check.name === "resid_post") this.results.replaceChildren(table(checks));
    };
  }

  #begin() {
    this.running = new AbortController();
    this.stop.hidden = false;
    passFocus(this.start, this.stop);
    this.start.disabled = true;
    store.set({ proof: { verdict: "running", words: "verifying" } });
    this.progress.start();
    return this.running;
  }

  #end() {
    this.running = null;
    this.progress.stop();
    this.start.disabled = false;
    passFocus(this.stop, this.start);
    this.stop.hidden = true;
  }
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
