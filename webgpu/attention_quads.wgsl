// Causal grouped-query attention for devices whose lanes are few (CPU drivers): FlashAttention-2 (Dao 2023, Algorithm 1).
//   o[t,n,:] = sum_s softmax_s(scale * q[t,n,:] . k[s,n/G,:]) v[s,n/G,:]     over the keys that query t may see
// Query t stands at position P = offset + t. It sees key s when s <= P and (window == 0 or P - s < window or s < sinks).
// Grid: one invocation owns 8 packed rows r = t * G + g of one key/value head, a workgroup 64 of them, the last rows (the
//       longest) first; folded into y. Keys stream through 4 at a time.
// In:  q [T,N,H], k and v [S,K,H] f32, H at most 128.   Out: o [T,N,H] f32, lse [N,T] f32 (natural log).
// Loops per invocation: ceil(S/4) + 16.
// A masked key weighs exactly 0; a row that sees nothing gets o = 0 and lse = -1e30.
//
// A quad shares its loads: each of its four invocations reads one of four keys, and swapping passes it on, so column j of
// quad(x) is what lane `lane ^ j` read. The lanes have rows of their own, so each meets the same keys in another order,
// which no sum minds. Everything is a product of 4 x 4 matrices whose columns are query rows: scores are
// transpose(K) * Q, and o grows by V * weights. The sums have names, in slices of 16 dimensions, because compilers keep
// those in registers and an array in memory; slices that H does not need fall away when the pipeline is made.
// Nothing is assumed about how lanes lie in a workgroup or how many a subgroup has: rows follow the index in the workgroup,
// all of which shares one key/value head, and the loop runs to the last key that any lane of the quad needs.

override H: u32 = 64;        // a multiple of 4 up to 128
const LOG2_E = 1.4426950408889634;
const NOTHING = -1e30;       // finite: Tint refuses infinities, and NOTHING - NOTHING is 0

struct Params { T: u32, S: u32, N: u32, K: u32, offset: u32, window: u32, sinks: u32, scale: f32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4f>;
@group(0) @binding(2) var<storage, read> k: array<vec4f>;
@group(0) @binding(3) var<storage, read> v: array<vec4f>;
@group(0) @binding(4) var<storage, read_write> o: array<vec4f>;
@group(0) @binding(5) var<storage, read_write> lse: array<f32>;

struct Rows { a: mat4x4f, b: mat4x4f }               // eight rows: four scores or weights of each, or four dimensions
struct Each { a: vec4f, b: vec4f }                   // one number for each of eight rows
struct Slice { x: Rows, y: Rows, z: Rows, w: Rows }  // 16 dimensions of eight rows
var<private> qa: array<mat4x4f, 32>;                 // [dimension / 4]: q of rows 0-3, scaled
var<private> qb: array<mat4x4f, 32>;                 // rows 4-7

fn quad(x: vec4f) -> mat4x4f { return mat4x4f(x, quadSwapX(x), quadSwapY(x), quadSwapDiagonal(x)); }
fn by_row(m: mat4x4f, f: vec4f) -> mat4x4f { return mat4x4f(m[0] * f.x, m[1] * f.y, m[2] * f.z, m[3] * f.w); }

fn score4(s: Rows, at: u32, c: u32) -> Rows {
  var sum = s;
  if (c < H / 4) {
    let keys = transpose(quad(k[at + c]));
    sum = Rows(s.a + keys * qa[c], s.b + keys * qb[c]);
  }
  return sum;
}
fn score(s: Rows, at: u32, c: u32) -> Rows {
  return score4(score4(score4(score4(s, at, c), at, c + 1), at, c + 2), at, c + 3);
}
fn add4(sum: Rows, at: u32, c: u32, keep: Each, weight: Rows) -> Rows {
  var y = sum;
  if (c < H / 4) {
    let values = quad(v[at + c]);
    y = Rows(by_row(sum.a, keep.a) + values * weight.a, by_row(sum.b, keep.b) + values * weight.b);
  }
  return y;
}
fn add(y: Slice, at: u32, c: u32, keep: Each, weight: Rows) -> Slice {
  return Slice(add4(y.x, at, c, keep, weight), add4(y.y, at, c + 1, keep, weight),
               add4(y.z, at, c + 2, keep, weight), add4(y.w, at, c + 3, keep, weight));
}
fn masked1(score: vec4f, position: u32, s: vec4u) -> vec4f {  // one row, four keys
  let near = vec4<bool>(p.window == 0) | (s < vec4u(p.sinks)) | (vec4u(position) < s + p.window);
  return select(vec4f(NOTHING), score, near & (vec4u(position) >= s) & (s < vec4u(p.S)));
}
fn masked(m: mat4x4f, at: vec4u, s: vec4u) -> mat4x4f {
  return mat4x4f(masked1(m[0], at.x, s), masked1(m[1], at.y, s), masked1(m[2], at.z, s), masked1(m[3], at.w, s));
}
fn weigh1(score: vec4f, top: f32) -> vec4f {  // exactly 0 where masked, also in a row that has seen nothing yet
  return select(vec4f(), exp2(score - top), score > vec4f(NOTHING));
}
fn weigh(m: mat4x4f, top: vec4f) -> mat4x4f {
  return mat4x4f(weigh1(m[0], top.x), weigh1(m[1], top.y), weigh1(m[2], top.z), weigh1(m[3], top.w));
}
fn highest(m: mat4x4f) -> vec4f { let t = transpose(m); return max(max(t[0], t[1]), max(t[2], t[3])); }
fn total(m: mat4x4f) -> vec4f { let t = transpose(m); return t[0] + t[1] + t[2] + t[3]; }
fn quad_min(x: u32) -> u32 { let y = min(x, quadSwapX(x)); return min(y, quadSwapY(y)); }
fn quad_max(x: u32) -> u32 { let y = max(x, quadSwapX(x)); return max(y, quadSwapY(y)); }

// Row i of eight goes in and out in a loop, as a choice among columns: no array is indexed by i (webgpu/README.md).
fn put(m: mat4x4f, i: u32, x: vec4f) -> mat4x4f {  // m with x as column i, or as it is
  return mat4x4f(select(m[0], x, i == 0), select(m[1], x, i == 1), select(m[2], x, i == 2), select(m[3], x, i == 3));
}
fn load4(at: u32, c: u32, i: u32) {
  if (c < H / 4) {
    let x = q[at + c] * (p.scale * LOG2_E);
    qa[c] = put(qa[c], i, x);
    qb[c] = put(qb[c], i - 4, x);
  }
}
fn load(at: u32, c: u32, i: u32) { load4(at, c, i); load4(at, c + 1, i); load4(at, c + 2, i); load4(at, c + 3, i); }
fn column(m: mat4x4f, i: u32) -> vec4f { return select(select(m[3], m[2], i == 2), select(m[1], m[0], i == 0), i < 2); }
fn row_of(y: Rows, i: u32) -> vec4f { return select(column(y.b, i - 4), column(y.a, i), i < 4); }
fn number(e: Each, i: u32) -> f32 { return select(e.b, e.a, i < 4)[i % 4]; }
fn write4(y: Rows, at: u32, c: u32, i: u32, f: f32) { if (c < H / 4) { o[at + c] = row_of(y, i) * f; } }
fn write(y: Slice, at: u32, c: u32, i: u32, f: f32) {
  write4(y.x, at, c, i, f); write4(y.y, at, c + 1, i, f); write4(y.z, at, c + 2, i, f); write4(y.w, at, c + 3, i, f);
}
@compute @workgroup_size(8)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) local: u32, @builtin(subgroup_invocation_id) lane: u32) {
  let G = p.N / p.K;
  let rows = p.T * G;
  let blocks = (rows + 63) / 64;
  let group = id.y * groups.x + id.x;
  if (group >= blocks * p.K) { return; }
  let kv_head = group % p.K;
  let r0 = (blocks - 1 - group / p.K) * 64 + local * 8;
  let ra = min(r0 + vec4u(0, 1, 2, 3), vec4u(rows - 1));  // rows past the end repeat the last and are not written
  let rb = min(r0 + vec4u(4, 5, 6, 7), vec4u(rows - 1));
  let na = ra / G * p.N + kv_head * G + ra % G;           // t * N + n
  let nb = rb / G * p.N + kv_head * G + rb % G;
  let pa = p.offset + ra / G;                             // positions
  let pb = p.offset + rb / G;
  for (var i = 0u; i < 8; i++) {
    let at = select(nb, na, i < 4)[i % 4] * (H / 4);
    load(at, 0, i); load(at, 4, i); load(at, 8, i); load(at, 12, i);
    load(at, 16, i); load(at, 20, i); load(at, 24, i); load(at, 28, i);
  }

  var y0 = Slice(); var y1 = Slice(); var y2 = Slice(); var y3 = Slice();
  var y4 = Slice(); var y5 = Slice(); var y6 = Slice(); var y7 = Slice();
  var m = Each(vec4f(NOTHING), vec4f(NOTHING));
  var l = Each();
  let end = quad_max(min(p.S, pb.w + 1));  // causal: keys after the last row's position are never read
  let all = quad_min(pa.x);                // up to here every row of the quad sees every key
  let start = quad_min(select(0u, pa.x - p.window + 1, p.window > 0 && pa.x >= p.window));
  let order = vec4u(lane, lane ^ 1, lane ^ 2, lane ^ 3) % 4;
  var s = select(0u, start, p.sinks == 0);
  while (s < end) {
    let at = (min(s + order.x, p.S - 1) * p.K + kv_head) * (H / 4);
    var x = score(Rows(), at, 0);
    if (H > 16) { x = score(x, at, 4); } if (H > 32) { x = score(x, at, 8); } if (H > 48) { x = score(x, at, 12); }
    if (H > 64) { x = score(x, at, 16); } if (H > 80) { x = score(x, at, 20); } if (H > 96) { x = score(x, at, 24); }
    if (H > 112) { x = score(x, at, 28); }
    if (s + 3 > all || s + 3 >= p.S || p.window > 0) { x = Rows(masked(x.a, pa, s + order), masked(x.b, pb, s + order)); }
    let top = Each(max(m.a, highest(x.a)), max(m.b, highest(x.b)));
    let keep = Each(exp2(m.a - top.a), exp2(m.b - top.b));
    let weight = Rows(weigh(x.a, top.a), weigh(x.b, top.b));
    l = Each(l.a * keep.a + total(weight.a), l.b * keep.b + total(weight.b));
    m = top;
    y0 = add(y0, at, 0, keep, weight);
    if (H > 16) { y1 = add(y1, at, 4, keep, weight); } if (H > 32) { y2 = add(y2, at, 8, keep, weight); }
    if (H > 48) { y3 = add(y3, at, 12, keep, weight); } if (H > 64) { y4 = add(y4, at, 16, keep, weight); }
    if (H > 80) { y5 = add(y5, at, 20, keep, weight); } if (H > 96) { y6 = add(y6, at, 24, keep, weight); }
    if (H > 112) { y7 = add(y7, at, 28, keep, weight); }
    s += 4;
    if (s >= p.sinks && s < start) { s = start; }  // nothing to see between the sinks and the window
  }

  for (var i = 0u; i < min(8u, rows - min(r0, rows)); i++) {
    let row = select(nb, na, i < 4)[i % 4];  // t * N + n
    let sum = number(l, i);
    let f = select(0, 1 / sum, sum > 0);
    let at = row * (H / 4);
    write(y0, at, 0, i, f); write(y1, at, 4, i, f); write(y2, at, 8, i, f); write(y3, at, 12, i, f);
    write(y4, at, 16, i, f); write(y5, at, 20, i, f); write(y6, at, 24, i, f); write(y7, at, 28, i, f);
    lse[row % p.N * p.T + row / p.N] = select(NOTHING, (number(m, i) + log2(sum)) / LOG2_E, sum > 0);
  }
}
