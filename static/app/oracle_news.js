// PyTorch may come after the page: set-up installs it while somebody looks already. One line says when Verify can use it.
import { pause, serverStatus } from "./api.js";
import { byId } from "./dom.js";
import { whenCalm } from "./later.js";
import { dismiss, notify } from "./state.js";

const EVERY_MS = 2000;
/** Set-up begins a moment after the page is open; where nobody installs PyTorch, nobody asks for longer. */
const ABSENT_MOST = 30;

/** Says when PyTorch has come, if it was not there when the page was served. */
export async function watchOracle() {
  const { oracle } = JSON.parse(byId("settings").textContent ?? "{}");
  if (oracle.ready) return;
  await whenCalm();
  for (let absent = 0; absent < ABSENT_MOST; await pause(EVERY_MS)) {
    const { state } = (await serverStatus()).oracle;
    if (state === "ready") return sayReady();
    if (state === "failed") return; // Verify says why to whoever asks
    absent = state === "absent" ? absent + 1 : 0;
  }
}

function sayReady() {
  const verify = () => {
    dismiss("oracle");
    byId("proof-badge").click();
  };
  const text = "PyTorch has arrived: what is computed here can be verified now.";
  notify({ id: "oracle", kind: "info", text, action: { label: "Verify", run: verify } });
}
