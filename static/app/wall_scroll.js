// The wall's own window. Where the open head stands beside it, it ends where the screen ends, so that any head can be brought
// into sight by scrolling it alone; the page stays where it is, and so does the focus.
import { beforePaint } from "./dom.js";

/** Below the window: the line that names a head, and the edge of the panel. */
const BELOW_PX = 56;
/** On a short screen it goes on below it; on a tall one it is about as tall as the open head. */
const [SHORTEST_PX, TALLEST_PX] = [300, 924];
/** The numbers of the heads stay at its upper edge. */
const NAMES_PX = 22;

/**
 * @param {HTMLElement} box what scrolls
 * @param {() => HTMLElement | null} chosen the cell of the open head; null where the wall does not show it
 * @returns {{reveal: () => void}} brings that cell into sight
 */
export function wallScroll(box, chosen) {
  const fit = () => {
    const wide = matchMedia("(min-width: 720px)").matches;
    const room = innerHeight - BELOW_PX - box.getBoundingClientRect().top - scrollY;
    box.style.maxHeight = wide ? `${Math.max(SHORTEST_PX, Math.min(TALLEST_PX, room))}px` : "";
  };
  const scroll = () => {
    const cell = chosen()?.getBoundingClientRect();
    if (!cell) return;
    const top = box.getBoundingClientRect().top + NAMES_PX;
    const end = top - NAMES_PX + box.clientHeight;
    const seen = Math.min(end, innerHeight - NAMES_PX); // the line that names a head covers as much of the screen's edge
    const bottom = seen - top > 2 * cell.height ? seen : end; // nothing of it is on the screen: then it is made ready
    if (cell.top >= top && cell.bottom <= bottom) return;
    box.scrollTop += (cell.top + cell.bottom - top - bottom) / 2;
  };
  const reveal = () => beforePaint(() => (fit(), scroll()));
  addEventListener("resize", reveal);
  // What stands above moves it: a prompt of more lines, a notice.
  const above = new ResizeObserver(() => beforePaint(fit));
  for (const id of ["prompt", "notices"]) above.observe(/** @type {HTMLElement} */ (document.getElementById(id)));
  return { reveal };
}
