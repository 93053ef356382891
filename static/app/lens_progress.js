// How far the lens is, beside its title: so many cells of those in view, and after two seconds a button that stops asking for
// more. What is there stays; the same button goes on.
import { count } from "../lib/numbers.js";
import { announce, h } from "./dom.js";
import { CANCEL_MS } from "./progress.js";

export class LensProgress {
  /**
   * @param {() => import("./lens_data.js").LensData | null} data the cells of now
   * @param {() => void} onChange it was stopped, or goes on
   * @param {() => void} leave takes the focus when the button goes
   */
  constructor(data, onChange, leave) {
    this.data = data;
    this.onChange = onChange;
    this.leave = leave;
    this.words = h("p", { class: "small dim", id: "lens-status" });
    this.button = h("button", { type: "button", id: "lens-stop", class: "quiet", hidden: true, onclick: () => this.#press() });
    /** Since when cells are being computed, ms; 0: they are not. */
    this.since = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  /** There is nothing yet, or another prompt's. */
  clear() {
    this.words.textContent = "";
    this.#rest();
  }

  /** @param {Error} error */
  fail(error) {
    this.words.textContent = error.message;
    this.#rest();
  }

  /** Says how far it is. @returns {boolean} whether all in view is there */
  draw() {
    const data = this.data();
    const { done, total } = data?.progress ?? { done: 0, total: 1 };
    const stopped = data?.stopped === true;
    if (done === total) this.clear();
    else {
      this.words.textContent = stopped ? `stopped at ${count(done)} of ${count(total)}` : `${count(done)} of ${count(total)} cells in view`;
      this.#offer(stopped);
    }
    return done === total;
  }

  /** @param {boolean} stopped */
  #offer(stopped) {
    clearTimeout(this.timer);
    if (stopped) this.since = 0;
    else this.since ||= performance.now();
    const left = stopped ? 0 : this.since + CANCEL_MS - performance.now();
    this.button.textContent = stopped ? "Continue" : "Cancel";
    this.button.title = stopped ? "Compute the cells that are missing" : "Stop computing; the cells that are there stay";
    this.button.hidden = left > 0;
    if (left > 0) this.timer = setTimeout(() => this.draw(), left + 5);
  }

  #rest() {
    clearTimeout(this.timer);
    this.since = 0;
    if (document.activeElement === this.button) this.leave();
    this.button.hidden = true;
  }

  #press() {
    const data = this.data();
    if (!data) return;
    if (data.stopped) data.resume();
    else data.stop();
    this.since = data.stopped ? 0 : performance.now() - CANCEL_MS; // the button stays where it was pressed
    this.draw();
    announce(data.stopped ? `The lens: ${this.words.textContent}.` : "The lens goes on.");
    this.onChange();
  }
}
