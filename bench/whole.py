"""SmolLM2-135M whole: ours and onnxruntime-web on the same prompt, and what a person waits for in the page.

Ours is checked against the oracle in float64 before it counts: every token that was generated must be the oracle's own
choice, with its log-probability. The peer runs its own 4-bit rounding of the same weights, so only its time is taken.
"""

import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.app_page import serving
from bench.browser import Browser, open_browser
from bench.errors import BenchError
from bench.places import Child
from bench.turns import by_turns, once

LOGPROB_TOLERANCE = 2e-3  # nats, after thirty layers in float32
TOKENS, DECODE_TOKENS, PEER_DECODE_TOKENS = 64, 8, 3
TEXT = (
    "The cat sat on the mat because it was tired. When Mary and John went to the store, John gave a drink to Mary, "
    "and Mary gave the change back to him. They walked home along the river, past the old mill, and talked about the "
    "book that they had both read that summer and about the one that they would read next."
)
SHORTS = (
    "The old man walked to the river and sat down beside the quiet water",
    "A young girl ran up the hill and looked out over the green valley",
    "My best friend went to the city and came back with a new coat",
    "The small dog slept on the floor and woke up when the door opened",
    "Our good neighbour drove to the lake and swam across the very cold water",
)
# The first is what ours is compared with.
PEERS = (("ort-nosubgroups", "smollm2-q4"), ("ort-wasm", "smollm2-q4"), ("ort-wasm", "smollm2-f32"))
LOAD = """async () => {
  const { requestDevice } = await import("/static/gpu/device.js");
  const { Model } = await import("/static/gpu/runtime.js");
  const { checkWeights, openSafetensors } = await import("/static/lib/safetensors.js");
  const get = (name) => fetch(`/files/smollm2/${name}`);
  const config = await (await get("config.json")).json();
  const bytes = new Uint8Array(await (await get("model.safetensors")).arrayBuffer());
  const source = checkWeights(new Map(openSafetensors(bytes)));
  globalThis.model = await Model.load(await requestDevice(), { config, source });
}"""
OURS = """async ({ ids, tokens }) => {
  const { measureModel } = await import("/static/bench/model.js");
  const { logits, ...found } = await measureModel(model, ids, tokens);
  return { ...found, choice: model.choice };
}"""
PEER = """async (given) => {
  const { measureModel } = await import("/peers/model.js");
  try { return { ...(await measureModel(given)), logits: null }; }
  catch (error) { return { error: String(error.message ?? error) }; }
}"""
COMPILED = """() => new Promise((done) => {
  const look = () => performance.getEntriesByName("all compiled").length ? done() : setTimeout(look, 50);
  look();
})"""
# The page's own changes say when to look, and a time counts when its frame is handed on: to ask at every frame would
# take tenths of a second from a CPU that stands in for a GPU.
TO_HEATMAPS = """async ([text]) => {
  const box = document.querySelector("#prompt-text");
  const wall = document.querySelector("#wall");
  const layers = document.querySelectorAll("#wall [role=row]").length;
  const drawn = (count) => Number(wall.dataset.drawn) >= count && !document.querySelector(".stale");
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()))));
  const when = (holds) => new Promise((resolve) => {
    const look = () => {
      if (!holds()) return;
      watch.disconnect();
      resolve(performance.now());
    };
    const watch = new MutationObserver(look);
    watch.observe(document.body, { subtree: true, attributeFilter: ["class", "data-drawn"] });
  });
  const start = performance.now();
  box.value = text;
  box.dispatchEvent(new InputEvent("input", { bubbles: true, inputType: "insertFromPaste" }));
  const ready = await when(() => Number(wall.dataset.drawn) < layers);
  const [first, all] = await Promise.all([1, layers].map((count) => when(() => drawn(count)).then(frame)));
  return { first_ms: first - start, computed_ms: ready - start, wall_ms: all - ready, layers };
}"""


def folder() -> Path:
    """The pulled model. Raises BenchError."""
    from weights.catalogue import resolve

    try:
        return resolve("smollm2-135m")
    except ValueError as error:
        raise BenchError(f"{error} `playground pull smollm2-135m` fetches it.") from error


def prompt(count: int) -> list[int]:
    """The first `count` tokens of TEXT, again and again."""
    from weights.catalogue import load_tokenizer

    ids: list[int] = load_tokenizer(folder()).encode(TEXT)
    return (ids * (count // len(ids) + 1))[:count]


def models(browser: Browser, peers: bool, log: Callable[[str], None]) -> dict[str, Any]:
    """Prefill of 64 tokens and decoding, ours and the peers'.

    Ours runs before and after the one that it is compared with, which takes a minute and so has one turn.
    """
    ids = prompt(TOKENS)
    tab = browser.tab()
    tab.ask(LOAD)

    def ours() -> dict[str, Any]:
        log("chromium: SmolLM2")
        return tab.ask(OURS, {"ids": ids, "tokens": DECODE_TOKENS})

    def theirs(kind: str, name: str) -> dict[str, Any]:
        log(f"{kind}: {name}")
        own = browser.tab()
        told = own.ask(PEER, {"kind": kind, "model": name, "ids": ids, "tokens": PEER_DECODE_TOKENS})
        own.close()
        return told

    def turn(kind: str, name: str) -> dict[str, Any]:
        told = theirs(kind, name)
        if "error" in told:
            raise BenchError(told["error"])
        return told

    compared, *rest = PEERS if peers else [None]
    line = by_turns(ours, {" ".join(compared): partial(turn, *compared)} if compared else {}, rounds=once)
    tab.close()
    found = {"ours": checked(line.ours, ids)}
    for name, readings in line.others.items():
        found[name] = {**readings[0], "ratios": line.ratios[name]} if readings else {"error": line.failed[name]}
    return found | {" ".join(peer): theirs(*peer) for peer in rest}


def checked(every: list[dict[str, Any]], ids: list[int]) -> dict[str, Any]:
    """Medians of ours and the largest error, or {"error"} when the oracle or a later reading disagrees."""
    found = every[0]
    generated = found["generated"]
    if any(each["generated"] != generated for each in every):
        return {"error": "the same prompt went on in two ways: a wrong model has no speed."}
    child = Child("native")
    try:
        told = child.ask({
            "oracle": {"folder": str(folder()), "ids": ids + generated[:-1], "count": len(generated), "next": generated}
        })  # fmt: skip
    finally:
        child.close()
    off = max(abs(a - b) for a, b in zip(found["logprobs"], told["logprobs"], strict=True))
    behind = max(b - a for a, b in zip(told["logprobs"], told["best_logprobs"], strict=True))
    if not (off <= LOGPROB_TOLERANCE and behind <= LOGPROB_TOLERANCE):
        return {"error": f"log-probabilities are off by {max(off, behind):.1e}: a wrong model has no speed."}
    times = {key: statistics.median(each[key] for each in every) for key in ("prefill_ms", "decode_ms")}
    return {**found, **times, "readings": [{key: each[key] for key in times} for each in every], "max_error": off}


def page(gpu: bool, log: Callable[[str], None]) -> dict[str, Any]:
    """In the page, model loaded and compiled: new 14-token prompts to first heatmaps, and the wall of a 256-token one.

    Prompts are pasted one after the other, each when the wall of the one before is drawn and its lens is being filled;
    `short` is the one with the median. first_ms is from the paste until a first row of the wall, the prediction and no
    older picture are shown; wall_ms from the end of the forward pass to the last thumbnail, as a viewer is timed.
    """
    from weights.catalogue import load_tokenizer

    tokens = load_tokenizer(folder())
    long = tokens.decode(prompt(256))
    found: dict[str, Any] = {
        "short_tokens": len(tokens.encode(SHORTS[0])),
        "long_tokens": len(tokens.encode(long)),
    }
    with serving("smollm2-135m") as address, open_browser(software=not gpu) as browser:
        log("page: SmolLM2")
        tab = browser.tab(address)
        tab.ask("async () => { await playground.ready; }")
        tab.ask(COMPILED)
        found["warm"] = tab.ask(TO_HEATMAPS, [SHORTS[0] + " again"])
        log(f"page: {len(SHORTS)} prompts of 14 tokens")
        every = sorted((tab.ask(TO_HEATMAPS, [text]) for text in SHORTS), key=lambda each: each["first_ms"])
        found["short"] = every[len(every) // 2] | {"every_ms": [round(each["first_ms"]) for each in every]}
        log("page: long prompt")
        found["long"] = tab.ask(TO_HEATMAPS, [long])
    return found
