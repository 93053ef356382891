// One object holds everything the page shows; parts of the page listen for the fields they draw.

/**
 * @template {object} S
 */
export class Store {
  /** @param {S} initial */
  constructor(initial) {
    /** @type {S} */
    this.state = { ...initial };
    /** @type {{fields: Set<keyof S>, run: (state: S) => void}[]} */
    this.listeners = [];
    /** @type {Set<keyof S>} */
    this.changed = new Set();
  }

  /**
   * Changes fields. Listeners run once, after the current event has been handled, with all changes made by then.
   * @param {Partial<S>} patch
   */
  set(patch) {
    for (const [name, value] of Object.entries(patch)) {
      const field = /** @type {keyof S} */ (name);
      if (Object.is(this.state[field], value)) continue;
      this.state[field] = /** @type {S[keyof S]} */ (value);
      if (this.changed.size === 0) queueMicrotask(() => this.#tell());
      this.changed.add(field);
    }
  }

  /**
   * @param {(keyof S)[]} fields
   * @param {(state: S) => void} run called now and after every change of one of the fields
   */
  on(fields, run) {
    this.listeners.push({ fields: new Set(fields), run });
    run(this.state);
  }

  #tell() {
    const changed = this.changed;
    this.changed = new Set();
    for (const { fields, run } of this.listeners) {
      if ([...fields].some((field) => changed.has(field))) run(this.state);
    }
  }
}
