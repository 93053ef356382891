// Start: draw the page, read the link, find the device, load the model, compute. Nothing here waits for weights to draw.
import { mountCell } from "./cell.js";
import { firstList } from "./early.js";
import { gpu } from "./engine.js";
import { HeadPanel } from "./head.js";
import { LensPanel } from "./lens.js";
import { whenCalm } from "./later.js";
import { clampView, mountLink, plainView, viewOfAddress } from "./link.js";
import { mountModelMenu } from "./model_menu.js";
import { mountNotices } from "./notices.js";
import { exposePlayground } from "./playground.js";
import { mountPrediction } from "./prediction.js";
import { mountPrompt } from "./prompt.js";
import { mountPromptScores } from "./prompt_scores.js";
import { chooseModel, sentence, setPrompt } from "./session.js";
import { watchOracle } from "./oracle_news.js";
import { notify, store } from "./state.js";
import { pause } from "./thumbnails.js";
import { mountTopbar } from "./topbar.js";
import { mountVerify } from "./verify_panel.js";
import { Wall } from "./wall.js";

/** @typedef {import("../lib/permalink.js").View} View */

/** Work between two pauses. */
const SLICE_MS = 15;

/** Only a model of the hub has an owner, and then its id is OWNER--NAME. @param {string} id */
const howToPull = (id) => (/^[^-].*--./.test(id) ? `; \`playground pull ${id.replace("--", "/")}\` may bring it` : "");

/**
 * The model that a view asks for; the default, with a sentence, when it is not here.
 * @param {string | null} wanted
 */
function modelOf(wanted) {
  const { models, defaultModel } = store.state;
  const usable = models.filter((model) => model.files);
  if (wanted && !usable.some((model) => model.id === wanted)) {
    notify({
      id: "link-model",
      kind: "info",
      text: `The model ${wanted} is not here${howToPull(wanted)}. Showing another one.`,
    });
  }
  return [wanted, defaultModel].find((id) => usable.some((model) => model.id === id)) ?? usable[0]?.id;
}

async function start() {
  const { models, default: defaultModel } = await firstList;
  store.set({ models, defaultModel });
  const id = modelOf(store.state.model);
  if (store.state.prompt === first.prompt) store.set(plainView()); // the model's own opening, unless somebody types already
  if (!id) throw new Error("No model is here yet; run `playground pull smollm2-135m`, then reload this page.");
  await chooseModel(id);
}

/** @param {View} view opened in this page by a link */
function openView(view) {
  const model = modelOf(view.model);
  const { prompt, ...rest } = view;
  setPrompt(prompt, { now: true, view: rest });
  if (model && model !== store.state.entry?.id) chooseModel(model).catch(() => {});
}

/** Makes the page's parts, in the order in which they are looked at, with pauses in between. */
async function mount() {
  const parts = [
    ...[mountNotices, mountTopbar, mountPrompt, () => new Wall(), () => new HeadPanel(), mountModelMenu, mountPrediction],
    ...[() => new LensPanel(), mountCell, mountPromptScores, mountVerify],
  ];
  let since = -Infinity; // reading the modules has taken its time already
  for (const part of parts) {
    if (performance.now() - since >= SLICE_MS) {
      await pause();
      since = performance.now();
    }
    part();
  }
}

void gpu();
const first = viewOfAddress();
store.set(first);
const ready = start();
void mount();
mountLink(openView);
store.on(["trace", "coming"], clampView); // a view of the prompt that is shown has no trace to come
// The rest is compiled when the first picture is there.
store.on(["trace"], async ({ trace, engine }) => {
  if (!trace) return;
  await engine?.warmAll?.(whenCalm);
  performance.mark("all compiled"); // bench/ waits for it
});
ready.catch((error) => {
  if (!store.state.notices.some((notice) => notice.id === "load")) notify({ id: "start", kind: "warning", text: sentence(error) });
});
exposePlayground(ready);
watchOracle().catch(() => {}); // a server that is gone says so where it is asked for something
