// Causal grouped-query attention for devices whose lanes are few (CPU drivers): FlashAttention-2 (Dao 2023, Algorithm 1).
//   o[t,n,:] = sum_s softmax_s(scale * q[t,n,:] . k[s,n/G,:]) v[s,n/G,:]     over the keys that query t may see
// Query t stands at position P = offset + t. It sees key s when s <= P and (window == 0 or P - s < window or s < sinks).
// Grid: one invocation owns 8 packed rows r = t * G + g of one key/value head, a workgroup 64 of them, the last rows (the
//       longest) first; folded into y. Keys stream through 4 at a time.
// In:  q [T,N,H], k and v [S,K,H] f32, H at most 128.   Out: o [T,N,H] f32, lse [N,T] f32 (natural log).
// Loops per invocation: ceil(S/4) + 16.
// A masked key weighs exactly 0; a row that sees nothing gets o = 0 and lse = -1e30.
//
// A quad shares its loads: number j of quad(x) is what lane `lane ^ j` read, another order for each lane, which no sum minds.
// Of a key the lanes read four neighbouring dimensions (q is loaded in the same order), of the values one dimension of four
// keys (the weights are turned into that order). The sums have names, in slices of 16 dimensions, because compilers keep
// those in registers and an array in memory; slices that H does not need fall away when the pipeline is made. Each load is
// followed by all its products, and matrices stand before vectors: so SwiftShader makes the least code (webgpu/README.md).
// Nothing is assumed about how lanes lie in a workgroup or how many a subgroup has: rows follow the index in the workgroup,
// all of which shares one key/value head, and the loop runs to the last key that any lane of the quad needs.

override H: u32 = 64;        // a multiple of 4 up to 128
const LOG2_E = 1.4426950408889634;
const NOTHING = -1e30;       // finite: Tint refuses infinities, and NOTHING - NOTHING is 0
struct Params { T: u32, S: u32, N: u32, K: u32, offset: u32, window: u32, sinks: u32, scale: f32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4f>;
@group(0) @binding(2) var<storage, read> k: array<f32>;
@group(0) @binding(3) var<storage, read> v: array<f32>;
@group(0) @binding(4) var<storage, read_write> o: array<vec4f>;
@group(0) @binding(5) var<storage, read_write> lse: array<f32>;
struct Each { a: vec4f, b: vec4f }                   // one number for each of eight rows
struct Four { x: Each, y: Each, z: Each, w: Each }   // scores or weights of four keys, or four dimensions
struct Slice { x: Four, y: Four, z: Four, w: Four }  // 16 dimensions
struct Rows { a: mat4x4f, b: mat4x4f }               // as Four, its columns
var<private> qa: array<mat4x4f, 32>;                 // [dimension / 4]: q of rows 0-3, scaled, in the lane's order
var<private> qb: array<mat4x4f, 32>;                 // rows 4-7
var<private> odd: bool; var<private> high: bool;     // the lane in its quad
fn quad(x: f32) -> vec4f { return vec4f(x, quadSwapX(x), quadSwapY(x), quadSwapDiagonal(x)); }
// In the lane's order: number j is x[lane ^ j].
fn turn(x: vec4f) -> vec4f { let y = select(x, x.yxwz, odd); return select(y, y.zwxy, high); }
fn turn_keys(a: vec4f, b: vec4f, c: vec4f, d: vec4f) -> mat4x4f {
  let t = transpose(mat4x4f(a, b, c, d));
  return transpose(mat4x4f(turn(t[0]), turn(t[1]), turn(t[2]), turn(t[3])));
}
fn score1(s: Each, c: u32, key: vec4f) -> Each { return Each(s.a + qa[c] * key, s.b + qb[c] * key); }
fn score4(s: Four, at: vec4u, c: u32) -> Four {
  var sum = s;
  if (c < H / 4) {
    sum = Four(score1(s.x, c, quad(k[at.x + 4 * c])), score1(s.y, c, quad(k[at.y + 4 * c])),
               score1(s.z, c, quad(k[at.z + 4 * c])), score1(s.w, c, quad(k[at.w + 4 * c])));
  }
  return sum;
}
fn score(s: Four, i: vec4u, c: u32) -> Four { return score4(score4(score4(score4(s, i, c), i, c + 1), i, c + 2), i, c + 3); }
fn add1(y: Each, keep: Each, weight: Rows, value: vec4f) -> Each {
  return Each(keep.a * y.a + weight.a * value, keep.b * y.b + weight.b * value);
}
fn add4(sum: Four, at: u32, c: u32, keep: Each, weight: Rows) -> Four {
  var y = sum;
  if (c < H / 4) {
    let i = at + 4 * c;
    y = Four(add1(sum.x, keep, weight, quad(v[i])), add1(sum.y, keep, weight, quad(v[i + 1])),
             add1(sum.z, keep, weight, quad(v[i + 2])), add1(sum.w, keep, weight, quad(v[i + 3])));
  }
  return y;
}
fn add(y: Slice, at: u32, c: u32, keep: Each, weight: Rows) -> Slice {
  return Slice(add4(y.x, at, c, keep, weight), add4(y.y, at, c + 1, keep, weight),
               add4(y.z, at, c + 2, keep, weight), add4(y.w, at, c + 3, keep, weight));
}
fn masked1(score: vec4f, position: vec4u, s: u32) -> vec4f {  // four rows, one key
  let near = vec4<bool>(p.window == 0 || s < p.sinks) | (position < vec4u(s + p.window));
  return select(vec4f(NOTHING), score, near & (position >= vec4u(s)) & vec4<bool>(s < p.S));
}
fn masked(x: Each, pa: vec4u, pb: vec4u, s: u32) -> Each { return Each(masked1(x.a, pa, s), masked1(x.b, pb, s)); }
fn weigh1(score: vec4f, top: vec4f) -> vec4f { return select(vec4f(), exp2(score - top), score > vec4f(NOTHING)); }
fn weigh(x: Each, top: Each) -> Each { return Each(weigh1(x.a, top.a), weigh1(x.b, top.b)); }
fn quad_min(x: u32) -> u32 { let y = min(x, quadSwapX(x)); return min(y, quadSwapY(y)); }
fn quad_max(x: u32) -> u32 { let y = max(x, quadSwapX(x)); return max(y, quadSwapY(y)); }
// Row i of eight goes in and out in a loop, as a choice among rows: no array is indexed by i (webgpu/README.md).
fn put(m: mat4x4f, i: u32, x: vec4f) -> mat4x4f {  // m with x as row i, or as it is
  let t = transpose(m);
  return transpose(mat4x4f(select(t[0], x, i == 0), select(t[1], x, i == 1), select(t[2], x, i == 2), select(t[3], x, i == 3)));
}
fn load4(at: u32, c: u32, i: u32) {
  if (c < H / 4) {
    let x = turn(q[at + c] * (p.scale * LOG2_E));
    qa[c] = put(qa[c], i, x);
    qb[c] = put(qb[c], i - 4, x);
  }
}
fn load(at: u32, c: u32, i: u32) { load4(at, c, i); load4(at, c + 1, i); load4(at, c + 2, i); load4(at, c + 3, i); }
fn number(e: Each, i: u32) -> f32 { return select(e.b, e.a, i < 4)[i % 4]; }
fn write4(y: Four, at: u32, c: u32, i: u32, f: f32) {
  if (c < H / 4) { o[at + c] = vec4f(number(y.x, i), number(y.y, i), number(y.z, i), number(y.w, i)) * f; }
}
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
  odd = lane % 2 == 1; high = lane % 4 > 1;
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
  var s = select(0u, start, p.sinks == 0);
  while (s < end) {
    let ak = (min(s + vec4u(0, 1, 2, 3), vec4u(p.S - 1)) * p.K + kv_head) * H + lane % 4;
    let at = (min(s + lane % 4, p.S - 1) * p.K + kv_head) * H;
    var x = score(Four(), ak, 0);
    if (H > 16) { x = score(x, ak, 4); } if (H > 32) { x = score(x, ak, 8); } if (H > 48) { x = score(x, ak, 12); }
    if (H > 64) { x = score(x, ak, 16); } if (H > 80) { x = score(x, ak, 20); } if (H > 96) { x = score(x, ak, 24); }
    if (H > 112) { x = score(x, ak, 28); }
    if (s + 3 > all || s + 3 >= p.S || p.window > 0) {
      x = Four(masked(x.x, pa, pb, s), masked(x.y, pa, pb, s + 1), masked(x.z, pa, pb, s + 2), masked(x.w, pa, pb, s + 3));
    }
    let top = Each(max(m.a, max(max(x.x.a, x.y.a), max(x.z.a, x.w.a))), max(m.b, max(max(x.x.b, x.y.b), max(x.z.b, x.w.b))));
    let keep = Each(exp2(m.a - top.a), exp2(m.b - top.b));
    let w = Four(weigh(x.x, top), weigh(x.y, top), weigh(x.z, top), weigh(x.w, top));
    l = Each(l.a * keep.a + w.x.a + w.y.a + w.z.a + w.w.a, l.b * keep.b + w.x.b + w.y.b + w.z.b + w.w.b);
    m = top;
    let turned = Rows(turn_keys(w.x.a, w.y.a, w.z.a, w.w.a), turn_keys(w.x.b, w.y.b, w.z.b, w.w.b));
    y0 = add(y0, at, 0, keep, turned);
    if (H > 16) { y1 = add(y1, at, 4, keep, turned); } if (H > 32) { y2 = add(y2, at, 8, keep, turned); }
    if (H > 48) { y3 = add(y3, at, 12, keep, turned); } if (H > 64) { y4 = add(y4, at, 16, keep, turned); }
    if (H > 80) { y5 = add(y5, at, 20, keep, turned); } if (H > 96) { y6 = add(y6, at, 24, keep, turned); }
    if (H > 112) { y7 = add(y7, at, 28, keep, turned); }
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
