// Making elements. Text is always text: nothing here can turn a string into markup, and the page's policy forbids it too.

/**
 * @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Props
 *   `text`, `class`, `onclick` and its like (functions); everything else becomes an attribute (true: empty, false: absent)
 */

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props} [props]
 * @param {...(Node | string | null | false)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  apply(element, props);
  element.append(.../** @type {(Node | string)[]} */ (children.filter((child) => child !== null && child !== false)));
  return element;
}

/**
 * An SVG element with attributes.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Props} [props]
 * @param {...Node} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function svg(tag, props = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  apply(element, props);
  element.append(...children);
  return element;
}

/**
 * @param {Element} element
 * @param {Props} props
 */
export function apply(element, props) {
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name === "text") element.textContent = String(value);
    else if (value === true) element.setAttribute(name, "");
    else if (value === false || value === null || value === undefined) element.removeAttribute(name);
    else element.setAttribute(name, String(value));
  }
}

/**
 * The element of the page's template with this id.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no element #${id}.`);
  return found;
}

/** @type {Set<() => void>} */
const measuring = new Set();

/**
 * Runs before the next picture of the page, once however often it is asked for. What reads sizes goes here: read in the middle of
 * changes, each size makes the browser lay the whole page out once more.
 * @param {() => void} measure
 */
export function beforePaint(measure) {
  if (measuring.size === 0) {
    requestAnimationFrame(() => {
      const all = [...measuring];
      measuring.clear();
      for (const each of all) each();
    });
  }
  measuring.add(measure);
}

/**
 * Puts a panel's title and more into one line at its top.
 * @param {HTMLElement} title
 * @param {...HTMLElement} more
 */
export function panelTop(title, ...more) {
  const line = h("div", { class: "panel-top" });
  title.before(line);
  line.append(title, ...more);
}

/**
 * Says something to screen readers without moving the focus.
 * @param {string} sentence
 */
export function announce(sentence) {
  byId("announce").textContent = sentence;
}

/**
 * Gives the focus on before an element that has it is hidden or disabled: the keyboard would stand nowhere.
 * @param {HTMLElement} from
 * @param {HTMLElement} to shown by now
 */
export function passFocus(from, to) {
  if (document.activeElement === from) to.focus({ preventScroll: true });
}

/**
 * Says on the button itself that its work is done, for two seconds: a line elsewhere would move what stands below it.
 * @param {HTMLElement} button
 * @param {string} text
 */
export function flash(button, text) {
  const { textContent, ariaLabel } = button;
  if (button.dataset.flash) return;
  Object.assign(button, { textContent: text, ariaLabel: null });
  button.dataset.flash = "on";
  setTimeout(() => {
    Object.assign(button, { textContent, ariaLabel });
    delete button.dataset.flash;
  }, 2000);
}

/**
 * Hands the visitor a file made in the page.
 * @param {string} name
 * @param {string | Uint8Array<ArrayBuffer>} content
 * @param {string} type media type
 */
export function saveFile(name, content, type) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/**
 * A button that is on or off.
 * @param {string} text
 * @param {boolean} pressed
 * @param {(pressed: boolean) => void} onchange
 * @param {Props} [props]
 */
export function toggle(text, pressed, onchange, props = {}) {
  const button = h("button", { type: "button", class: "toggle", "aria-pressed": String(pressed), text, ...props });
  button.addEventListener("click", () => onchange(button.getAttribute("aria-pressed") !== "true"));
  return button;
}

/**
 * A canvas sized in CSS pixels, with one device pixel per pixel of its bitmap.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width CSS pixels
 * @param {number} height CSS pixels
 * @returns {CanvasRenderingContext2D} scaled so that one unit is one CSS pixel
 */
export function sizeCanvas(canvas, width, height) {
  const ratio = Math.max(1, window.devicePixelRatio || 1);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.imageSmoothingEnabled = false;
  return context;
}
