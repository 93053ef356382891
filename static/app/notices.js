// Sentences that concern the whole page, each with its way out, under the top bar.
import { byId, h } from "./dom.js";
import { dismiss, store } from "./state.js";

/** Keeps the list of notices up to date. */
export function mountNotices() {
  store.on(["notices"], ({ notices }) => {
    byId("notices").replaceChildren(
      ...notices.map(({ id, kind, text, action }) =>
        h(
          "div",
          { class: `notice ${kind}`, role: kind === "warning" ? "alert" : "status", id: `notice-${id}` },
          h("p", { text }),
          action ? h("button", { type: "button", text: action.label, onclick: action.run }) : null,
          h("button", { type: "button", class: "quiet", text: "Close", onclick: () => dismiss(id) }),
        ),
      ),
    );
  });
}
