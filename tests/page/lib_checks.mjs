// Runs the page's pure functions in Node and prints what tests/page/test_types.py looks at, as one JSON object.
import { HeadData } from "../../static/app/head_data.js";
import { rankStory } from "../../static/app/rank_plot.js";
import { registerHooks } from "node:module";
import { cividis, inkOn } from "../../static/lib/colours.js";
import { blankName } from "../../static/lib/glyphs.js";
import { cellsOfPixel } from "../../static/lib/maths.js";
import { megabytes, partOf, three } from "../../static/lib/numbers.js";
import { blockMasked, withoutFirst } from "../../static/lib/pattern.js";
import { DEFAULT_VIEW, LONGEST_PROMPT, readLink, writeLink } from "../../static/lib/permalink.js";
import { sharedCharacters } from "../../static/lib/split_characters.js";
import { patternWindow } from "../../static/lib/windows.js";
import { fitRegion, reveal, zoomAround, zoomAt } from "../../static/lib/zoom.js";

// The page's server hands out the tokenizer library; nothing here cuts text.
const vendor = { url: "data:text/javascript,export class Tokenizer {}", shortCircuit: true };
registerHooks({ resolve: (name, context, next) => (name.startsWith("/vendor/") ? vendor : next(name, context)) });
const { ServerEngine } = await import("../../static/app/server_engine.js");

/** Pixels that leave a cell out or cover none. */
function badPixels() {
  const bad = [];
  for (const [total, out] of [
    [10, 3],
    [14, 14],
    [1000, 37],
    [5, 5],
    [257, 64],
  ]) {
    let next = 0;
    for (let i = 0; i < out; i += 1) {
      const [from, to] = cellsOfPixel(i, total, out);
      if (from !== next || to <= from) bad.push([total, out, i]);
      next = to;
    }
    if (next !== total) bad.push([total, out]);
  }
  return bad;
}

/** Relative luminance (WCAG 2). */
function luminance(rgb) {
  const [red, green, blue] = rgb.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function worstContrast() {
  const contrasts = Array.from({ length: 256 }, (_, i) => {
    const colour = cividis(i / 255);
    const [light, dark] = [luminance(colour), inkOn(colour) === "#000" ? 0 : 1].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  });
  return Math.min(...contrasts);
}

/** Links of a model that has an opening of its own: what is written, and whether it is read back as the same view. */
function openings() {
  const opening = { prompt: "a b", layer: 2, head: 0, token: 1, key: 0 };
  const views = [{}, { token: null }, { layer: 1 }, { layer: null, head: null, token: null, key: null }, { prompt: "c" }, { scale: "row" }];
  return views.map((change) => {
    const view = { ...DEFAULT_VIEW, ...opening, ...change };
    const link = writeLink(view, { opening });
    return [link, JSON.stringify(readLink(link, opening).view) === JSON.stringify(view), writeLink(view, { opening, whole: true })];
  });
}

/** No field has its default. */
const FAR_VIEW = {
  ...DEFAULT_VIEW,
  model: "a-b.c",
  prompt: "x &=#%\u{1F44D}\n",
  layer: 3,
  head: 0,
  token: 2,
  key: 1,
  scale: "sqrt",
  noFirst: true,
  lock: false,
  view: "table",
  zoom: [1, 2, 3, 4],
  depth: 0,
  target: 77,
  order: "prompt.first_token",
  only: "0.5",
  temperature: 0.75,
  topK: 40,
  topP: 0.9,
  seed: 4294967295,
  maxTokens: 512,
};

function links() {
  const back = readLink(`#${writeLink(FAR_VIEW)}`);
  const bad = readLink("#l=-1&z=1,2&v=no&p=%&q=1&s&o=prompt.constructor&f=2&gt=9&gk=-1&gp=0&gs=1e3&gn=0");
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  return {
    roundTrip: same(back.view, FAR_VIEW),
    unread: back.unread,
    default: writeLink(DEFAULT_VIEW),
    hostile: bad.unread,
    hostileView: same(bad.view, DEFAULT_VIEW),
    lineEnds: readLink("#p=a%0D%0Ab%0Dc%0A").view.prompt,
    openings: openings(),
    longest: [0, 1].map((more) => {
      const { view, unread } = readLink(writeLink({ ...DEFAULT_VIEW, layer: 1, prompt: "x".repeat(LONGEST_PROMPT + more) }));
      return [view.layer, view.prompt.length === LONGEST_PROMPT, unread.length];
    }),
  };
}

/** A random layer with a sliding window of 3 and one sink, its lse computed here from the definition. */
function windows() {
  const [T, N, K, H] = [9, 2, 1, 4];
  const rule = { window: 3, sinks: 1 };
  const wave = (n, shift) => Float32Array.from({ length: n }, (_, i) => Math.sin(i * 12.9 + shift));
  const [q, k, lse] = [wave(T * N * H, 1), wave(T * K * H, 2), new Float32Array(N * T)];
  for (let n = 0; n < N; n += 1) {
    for (let t = 0; t < T; t += 1) {
      let sum = 0;
      for (let s = 0; s <= t; s += 1) {
        if (t - s >= 3 && s >= 1) continue;
        let dot = 0;
        for (let i = 0; i < H; i += 1) dot += q[(t * N + n) * H + i] * k[s * H + i];
        sum += Math.exp(dot / 2);
      }
      lse[n * T + t] = Math.log(sum);
    }
  }
  const region = { row0: 0, rows: T, col0: 0, cols: T };
  const request = { head0: 0, heads: N, ...region, outRows: T, outCols: T, reduce: "max" };
  const whole = patternWindow({ q, k, lse }, { T, N, K, H }, rule, request);
  const rowSum = (cells, row) => cells.subarray(row * T, (row + 1) * T).reduce((a, b) => a + (b || 0), 0);
  let wronglyMasked = 0;
  for (let t = 0; t < T; t += 1) {
    for (let s = 0; s < T; s += 1) wronglyMasked += Number(blockMasked(t, t + 1, s, s + 1, rule) !== (whole[t * T + s] === 0));
  }
  const rest = withoutFirst(
    whole.subarray(0, T * T),
    region,
    Array.from({ length: T }, (_, t) => whole[t * T]),
  );
  const off = Math.max(...Array.from({ length: N * T }, (_, row) => Math.abs(rowSum(whole, row) - 1)));
  return { off, wronglyMasked, renormalised: rowSum(rest, 5), nothingLeft: Number.isNaN(rest[0]) };
}

/** A safetensors file of one [n] f32 tensor. */
function answerOf(name, n) {
  const header = JSON.stringify({ [name]: { dtype: "F32", shape: [n], data_offsets: [0, 4 * n] } });
  const bytes = new TextEncoder().encode(header.padEnd(Math.ceil(header.length / 8) * 8));
  const file = new Uint8Array(8 + bytes.length + 4 * n);
  new DataView(file.buffer).setBigUint64(0, BigInt(bytes.length), true);
  file.set(bytes, 8);
  return file;
}

/** The server's stand-in, against a fetch that fails once: what it asks, and what it says after its end. */
async function serverTrace() {
  const asked = [];
  let fails = false;
  globalThis.fetch = async (_, { body, signal }) => {
    signal?.throwIfAborted();
    asked.push(JSON.parse(body).positions);
    return fails ? new Response("{}", { status: 500 }) : new Response(answerOf("logits", 4));
  };
  const entry = { id: "m", shape: { L: 1, N: 1, K: 1, H: 1, D: 1, V: 4 } };
  const engine = Object.assign(Object.create(ServerEngine.prototype), { entry, config: { windows: [] } });
  const trace = await engine.run([5, 6, 7]);
  fails = true;
  const failure = await trace.logits(0).catch((error) => error.message);
  fails = false;
  const again = (await trace.logits(0)).length;
  await trace.read("logits");
  trace.destroy();
  const after = await trace.logits(1).catch((error) => error.message);
  return { failure, again, asked, after };
}

/** A row of a head, from a trace that fails once: what it says, and what it gives the next time. */
async function headRows() {
  const answers = [Promise.reject(new Error("refused")), Promise.resolve(Float32Array.of(0.25, 0.75))];
  const trace = { shape: { T: 2 }, window: () => answers.shift() };
  const data = new HeadData(trace, { window: 0, sinks: 0 }, 0, 0);
  const row = () => data.row(1, false).then((cells) => [...cells], (error) => error.message);
  return [await row(), await row()];
}

const encode = (text) => new TextEncoder().encode(text);
const [tokyo, thumb] = [encode("東"), encode("👍")];
console.log(
  JSON.stringify({
    blanks: [" ", "\n\n", "\n    ", "\t", "", "\r", " a", "·"].map(blankName),
    three: [undefined, NaN, -Infinity, 0, 0.5].map(three),
    sizes: [0, 49_999, 512_000, 949_999, 999_999, 1e6, 3_500_000, 96_632_200, 98_391_867, 1_234_567_890].map((bytes) => [bytes, megabytes(bytes)]),
    parts: [partOf(41_200_000, 96_632_200), partOf(512_000, 900_000), partOf(0, 4_000_000)],
    badPixels: badPixels(),
    ends: [cividis(0), cividis(1), cividis(NaN)],
    worstContrast: worstContrast(),
    links: links(),
    windows: windows(),
    stories: [rankStory([38, 3, 0], ","), rankStory([0, 0], "·a"), rankStory([400, 120, 5], "x")],
    serverTrace: await serverTrace(),
    headRows: await headRows(),
    shared: sharedCharacters([
      encode("a"),
      tokyo.subarray(0, 2),
      tokyo.subarray(2),
      thumb.subarray(0, 1),
      thumb.subarray(1, 3),
      thumb.subarray(3),
      encode("b"),
    ]),
    zoom: [
      zoomAt({ row0: 0, rows: 100, col0: 0, cols: 100 }, 2, 99, 99, 100),
      fitRegion({ row0: -5, rows: 500, col0: 90, cols: 20 }, 100),
      reveal({ row0: 10, rows: 10, col0: 10, cols: 10 }, 25, 3, 100),
      zoomAround({ row0: 0, rows: 14, col0: 0, cols: 14 }, 1.5, 13, 13, 14), // zoomAt alone rounds the last row away
    ],
  }),
);
