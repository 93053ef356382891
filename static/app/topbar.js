// The top bar: who computes, whether it is proved, the theme, the link to this view, help.
import { announce, byId, flash } from "./dom.js";
import { mountHelp } from "./help.js";
import { addressToShare } from "./link.js";
import { store } from "./state.js";

const THEMES = { auto: "Auto", light: "Light", dark: "Dark" };

/** Keeps the bar up to date. */
export function mountTopbar() {
  store.on(["deviceWords"], ({ deviceWords }) => {
    byId("device-words").textContent = deviceWords;
    byId("device").title = deviceWords; // one line, cut short where the window is narrow
  });
  store.on(["proof"], ({ proof }) => {
    byId("proof-badge").textContent = proof.words;
    byId("proof-badge").dataset.verdict = proof.verdict;
  });
  byId("share").addEventListener("click", () => void share());
  mountTheme();
  mountHelp();
}

async function share() {
  const address = addressToShare();
  history.replaceState(null, "", address);
  try {
    await navigator.clipboard.writeText(address);
    flash(byId("share"), "Link copied");
    announce("The link to this view is in the clipboard.");
  } catch {
    flash(byId("share"), "See address bar");
    announce("The browser does not let this page write to the clipboard; the address bar holds the link to this view.");
  }
}

function mountTheme() {
  const button = byId("theme");
  const show = () => {
    const theme = /** @type {keyof typeof THEMES} */ (document.documentElement.dataset.theme ?? "auto");
    button.textContent = `Theme: ${THEMES[theme].toLowerCase()}`;
    button.setAttribute("aria-label", `Theme: ${THEMES[theme]}`);
    store.set({ painted: store.state.painted + 1 });
  };
  button.addEventListener("click", () => {
    const order = Object.keys(THEMES);
    const next = order[(order.indexOf(document.documentElement.dataset.theme ?? "auto") + 1) % order.length];
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem("playground-theme", next);
    } catch {
      // Blocked storage: the theme lasts for this visit.
    }
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
}
