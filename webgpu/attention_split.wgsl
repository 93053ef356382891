// Few queries against a long key/value cache (Flash-Decoding, Dao et al. 2023), every load used once.
//   part j of row (t,n): m = max_s score[s], l = sum_s exp2(score[s] - m), sum = sum_s exp2(score[s] - m) v[s,:]
// over the visible keys s of split j, which are every few keys of a longer stretch, score in units of log2.
// attention_merge.wgsl puts the parts together.
// Query t stands at position P = offset + t. It sees key s when s <= P and (window == 0 or P - s < window or s < sinks).
// Grid: one invocation owns one split of `span` keys and 4 packed rows r = t * G + g of one key/value head; folded into y.
// In:  q [T,N,H], k and v [S,K,H] f32, H at most 128.
// Out: part [T*N, splits, H + 4] f32: H numbers of sum, then m, l, 0, 0. A split that sees nothing has l = 0.
// Loops per invocation: span + 8.
// The arithmetic is that of attention_registers.wgsl, explained there, for four rows.

override H: u32 = 64;        // a multiple of 4 up to 128
const LOG2_E = 1.4426950408889634;
const NOTHING = -1e30;       // finite: Tint refuses infinities, and NOTHING - NOTHING is 0

struct Params {
  T: u32, S: u32, N: u32, K: u32, offset: u32, window: u32, sinks: u32, span: u32, splits: u32, scale: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4f>;
@group(0) @binding(2) var<storage, read> k: array<vec4f>;
@group(0) @binding(3) var<storage, read> v: array<vec4f>;
@group(0) @binding(4) var<storage, read_write> part: array<vec4f>;

struct Slice { x: mat4x4f, y: mat4x4f, z: mat4x4f, w: mat4x4f }  // 16 dimensions of four rows (columns)
var<private> query: array<mat4x4f, 32>;                          // [dimension / 4]: q of four rows, scaled

fn by_row(m: mat4x4f, f: vec4f) -> mat4x4f { return mat4x4f(m[0] * f.x, m[1] * f.y, m[2] * f.z, m[3] * f.w); }

fn score4(s: vec4f, at: u32, c: u32) -> vec4f {
  var sum = s;
  if (c < H / 4) { sum += k[at + c] * query[c]; }
  return sum;
}
fn score(s: vec4f, at: u32, c: u32) -> vec4f {
  return score4(score4(score4(score4(s, at, c), at, c + 1), at, c + 2), at, c + 3);
}
fn add4(sum: mat4x4f, at: u32, c: u32, keep: vec4f, weight: vec4f) -> mat4x4f {
  var y = sum;
  if (c < H / 4) {
    let x = v[at + c];
    y = by_row(sum, keep) + mat4x4f(x * weight.x, x * weight.y, x * weight.z, x * weight.w);
  }
  return y;
}
fn add(y: Slice, at: u32, c: u32, keep: vec4f, weight: vec4f) -> Slice {
  return Slice(add4(y.x, at, c, keep, weight), add4(y.y, at, c + 1, keep, weight),
               add4(y.z, at, c + 2, keep, weight), add4(y.w, at, c + 3, keep, weight));
}
fn masked(score: vec4f, position: vec4u, s: u32) -> vec4f {
  let near = vec4<bool>(p.window == 0 || s < p.sinks) | (position < vec4u(s + p.window));
  return select(vec4f(NOTHING), score, near & (position >= vec4u(s)));
}
fn weigh(score: vec4f, top: vec4f) -> vec4f {  // exactly 0 where masked, also in a row that has seen nothing yet
  return select(vec4f(), exp2(score - top), score > vec4f(NOTHING));
}

fn put(m: mat4x4f, i: u32, x: vec4f) -> mat4x4f {  // m with x as column i
  return mat4x4f(select(m[0], x, i == 0), select(m[1], x, i == 1), select(m[2], x, i == 2), select(m[3], x, i == 3));
}
fn load4(at: u32, c: u32, i: u32) { if (c < H / 4) { query[c] = put(query[c], i, q[at + c] * (p.scale * LOG2_E)); } }
fn load(at: u32, c: u32, i: u32) { load4(at, c, i); load4(at, c + 1, i); load4(at, c + 2, i); load4(at, c + 3, i); }
fn column(m: mat4x4f, i: u32) -> vec4f { return select(select(m[3], m[2], i == 2), select(m[1], m[0], i == 0), i < 2); }
fn write4(y: mat4x4f, to: u32, c: u32, i: u32) { if (c < H / 4) { part[to + c] = column(y, i); } }
fn write(y: Slice, to: u32, c: u32, i: u32) {
  write4(y.x, to, c, i); write4(y.y, to, c + 1, i); write4(y.z, to, c + 2, i); write4(y.w, to, c + 3, i);
}

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let index = id.y * groups.x * 8 + id.x;
  let G = p.N / p.K;
  let split = index % p.splits;
  let kv_head = index / p.splits % p.K;
  let r0 = index / p.splits / p.K * 4;
  if (r0 >= p.T * G) { return; }
  let r = min(vec4u(r0, r0 + 1, r0 + 2, r0 + 3), vec4u(p.T * G - 1));  // rows past the end are not written
  let position = p.offset + r / G;
  let row = r / G * p.N + kv_head * G + r % G;                         // t * N + n
  for (var i = 0u; i < 4; i++) {
    let at = row[i] * (H / 4);
    load(at, 0, i); load(at, 4, i); load(at, 8, i); load(at, 12, i);
    load(at, 16, i); load(at, 20, i); load(at, 24, i); load(at, 28, i);
  }

  var y0 = Slice(); var y1 = Slice(); var y2 = Slice(); var y3 = Slice();
  var y4 = Slice(); var y5 = Slice(); var y6 = Slice(); var y7 = Slice();
  var m = vec4f(NOTHING);
  var l = vec4f();
  let first = split / 8 * 8;               // up to eight neighbouring splits take turns, a key each, so that lanes
  let team = min(8u, p.splits - first);    // that run together read from one place
  let end = min(min((first + team) * p.span, p.S), position.w + 1);
  for (var s = first * p.span + split % 8; s < end; s += team) {
    let at = (s * p.K + kv_head) * (H / 4);
    var x = score(vec4f(), at, 0);
    if (H > 16) { x = score(x, at, 4); } if (H > 32) { x = score(x, at, 8); } if (H > 48) { x = score(x, at, 12); }
    if (H > 64) { x = score(x, at, 16); } if (H > 80) { x = score(x, at, 20); } if (H > 96) { x = score(x, at, 24); }
    if (H > 112) { x = score(x, at, 28); }
    x = masked(x, position, s);
    let top = max(m, x);
    let keep = exp2(m - top);
    let weight = weigh(x, top);
    l = l * keep + weight;
    m = top;
    y0 = add(y0, at, 0, keep, weight);
    if (H > 16) { y1 = add(y1, at, 4, keep, weight); } if (H > 32) { y2 = add(y2, at, 8, keep, weight); }
    if (H > 48) { y3 = add(y3, at, 12, keep, weight); } if (H > 64) { y4 = add(y4, at, 16, keep, weight); }
    if (H > 80) { y5 = add(y5, at, 20, keep, weight); } if (H > 96) { y6 = add(y6, at, 24, keep, weight); }
    if (H > 112) { y7 = add(y7, at, 28, keep, weight); }
  }

  for (var i = 0u; i < min(4u, p.T * G - r0); i++) {
    let to = (row[i] * p.splits + split) * (H / 4 + 1);
    write(y0, to, 0, i); write(y1, to, 4, i); write(y2, to, 8, i); write(y3, to, 12, i);
    write(y4, to, 16, i); write(y5, to, 20, i); write(y6, to, 24, i); write(y7, to, 28, i);
    part[to + H / 4] = vec4f(m[i], l[i], 0, 0);
  }
}
