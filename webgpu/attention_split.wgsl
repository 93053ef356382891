// Few queries against a long key/value cache (Flash-Decoding, Dao et al. 2023), every load used once.
//   part j of row (t,n): m = max_s score[s], l = sum_s exp2(score[s] - m), sum = sum_s exp2(score[s] - m) v[s,:]
// over the visible keys s of split j, which are every few quadruples of a longer stretch, score in units of log2.
// attention_merge.wgsl puts the parts together.
// Query t stands at position P = offset + t. It sees key s when s <= P and (window == 0 or P - s < window or s < sinks).
// Grid: one invocation owns one split of `span` keys and 4 packed rows r = t * G + g of one key/value head; folded into y.
// In:  q [T,N,H], k and v [S,K,H] f32, H at most 128.
// Out: part [T*N, splits, H + 4] f32: H numbers of sum, then m, l, 0, 0. A split that sees nothing has l = 0.
// Loops per invocation: ceil(span/4) + 5 * ceil(H/4).
// The arithmetic is that of attention_quads.wgsl, explained there; here a lane has keys of its own and shares none.

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
var<private> query: array<mat4x4f, 32>;                          // [dimension / 4]: q of four rows, scaled; in the end sum

fn by_row(m: mat4x4f, f: vec4f) -> mat4x4f { return mat4x4f(m[0] * f.x, m[1] * f.y, m[2] * f.z, m[3] * f.w); }

fn score4(s: mat4x4f, at: vec4u, c: u32) -> mat4x4f {
  var sum = s;
  if (c < H / 4) { sum += transpose(mat4x4f(k[at.x + c], k[at.y + c], k[at.z + c], k[at.w + c])) * query[c]; }
  return sum;
}
fn score(s: mat4x4f, at: vec4u, c: u32) -> mat4x4f {
  return score4(score4(score4(score4(s, at, c), at, c + 1), at, c + 2), at, c + 3);
}
fn add4(sum: mat4x4f, at: vec4u, c: u32, keep: vec4f, weight: mat4x4f) -> mat4x4f {
  var y = sum;
  if (c < H / 4) { y = by_row(sum, keep) + mat4x4f(v[at.x + c], v[at.y + c], v[at.z + c], v[at.w + c]) * weight; }
  return y;
}
fn add(y: Slice, at: vec4u, c: u32, keep: vec4f, weight: mat4x4f) -> Slice {
  return Slice(add4(y.x, at, c, keep, weight), add4(y.y, at, c + 1, keep, weight),
               add4(y.z, at, c + 2, keep, weight), add4(y.w, at, c + 3, keep, weight));
}
fn store4(y: mat4x4f, c: u32) { if (c < H / 4) { query[c] = y; } }
fn store(y: Slice, c: u32) { store4(y.x, c); store4(y.y, c + 1); store4(y.z, c + 2); store4(y.w, c + 3); }

fn masked1(score: vec4f, position: u32, s: vec4u, end: u32) -> vec4f {  // one row, four keys
  let near = vec4<bool>(p.window == 0) | (s < vec4u(p.sinks)) | (vec4u(position) < s + p.window);
  return select(vec4f(NOTHING), score, near & (vec4u(position) >= s) & (s < vec4u(end)));
}
fn masked(m: mat4x4f, at: vec4u, s: vec4u, end: u32) -> mat4x4f {
  return mat4x4f(masked1(m[0], at.x, s, end), masked1(m[1], at.y, s, end),
                 masked1(m[2], at.z, s, end), masked1(m[3], at.w, s, end));
}
fn weigh1(score: vec4f, top: f32) -> vec4f {  // exactly 0 where masked, also in a row that has seen nothing yet
  return select(vec4f(), exp2(score - top), score > vec4f(NOTHING));
}
fn weigh(m: mat4x4f, top: vec4f) -> mat4x4f {
  return mat4x4f(weigh1(m[0], top.x), weigh1(m[1], top.y), weigh1(m[2], top.z), weigh1(m[3], top.w));
}
fn highest(m: mat4x4f) -> vec4f { let t = transpose(m); return max(max(t[0], t[1]), max(t[2], t[3])); }
fn total(m: mat4x4f) -> vec4f { let t = transpose(m); return t[0] + t[1] + t[2] + t[3]; }

fn q4(row: vec4u, c: u32) -> mat4x4f {
  let at = row * (H / 4) + c;
  return mat4x4f(q[at.x], q[at.y], q[at.z], q[at.w]) * (p.scale * LOG2_E);
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
  for (var c = 0u; c < H / 4; c++) { query[c] = q4(row, c); }

  var y0 = Slice(); var y1 = Slice(); var y2 = Slice(); var y3 = Slice();
  var y4 = Slice(); var y5 = Slice(); var y6 = Slice(); var y7 = Slice();
  var m = vec4f(NOTHING);
  var l = vec4f();
  let first = split / 8 * 8;               // up to eight neighbouring splits take turns, four keys each, so that lanes
  let team = min(8u, p.splits - first);    // that run together read from one place
  let end = min(min((first + team) * p.span, p.S), position.w + 1);
  for (var s = first * p.span + split % 8 * 4; s < end; s += 4 * team) {
    let keys = s + vec4u(0, 1, 2, 3);
    let at = (min(keys, vec4u(end - 1)) * p.K + kv_head) * (H / 4);
    var x = score(mat4x4f(), at, 0);
    if (H > 16) { x = score(x, at, 4); } if (H > 32) { x = score(x, at, 8); } if (H > 48) { x = score(x, at, 12); }
    if (H > 64) { x = score(x, at, 16); } if (H > 80) { x = score(x, at, 20); } if (H > 96) { x = score(x, at, 24); }
    if (H > 112) { x = score(x, at, 28); }
    x = masked(x, position, keys, end);
    let top = max(m, highest(x));
    let keep = exp2(m - top);
    let weight = weigh(x, top);
    l = l * keep + total(weight);
    m = top;
    y0 = add(y0, at, 0, keep, weight);
    if (H > 16) { y1 = add(y1, at, 4, keep, weight); } if (H > 32) { y2 = add(y2, at, 8, keep, weight); }
    if (H > 48) { y3 = add(y3, at, 12, keep, weight); } if (H > 64) { y4 = add(y4, at, 16, keep, weight); }
    if (H > 80) { y5 = add(y5, at, 20, keep, weight); } if (H > 96) { y6 = add(y6, at, 24, keep, weight); }
    if (H > 112) { y7 = add(y7, at, 28, keep, weight); }
  }

  store(y0, 0); store(y1, 4); store(y2, 8); store(y3, 12); store(y4, 16); store(y5, 20); store(y6, 24); store(y7, 28);
  for (var i = 0u; i < min(4u, p.T * G - r0); i++) {
    let to = (row[i] * p.splits + split) * (H / 4 + 1);
    for (var c = 0u; c < H / 4; c++) { part[to + c] = query[c][i]; }
    part[to + H / 4] = vec4f(m[i], l[i], 0, 0);
  }
}
