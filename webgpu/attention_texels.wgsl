// Causal grouped-query attention for devices whose lanes are few (CPU drivers): FlashAttention-2 (Dao 2023, Algorithm 1).
//   o[t,n,:] = sum_s softmax_s(scale * q[t,n,:] . k[s,n/G,:]) v[s,n/G,:]     over the keys that query t may see
// Query t stands at position P = offset + t. It sees key s when s <= P and (window == 0 or P - s < window or s < sinks).
// Grid: one invocation owns 8 packed rows r = t * G + g of one key/value head, a workgroup 64 of them, the last rows (the
//       longest) first; folded into y. Keys stream through 4 at a time.
// In:  q [T,N,H] f32, H at most 128; k and v as images [S,K*H/4] of texels (attention_images.wgsl).
// Out: o [T,N,H] f32, lse [N,T] f32 (natural log).
// Loops per invocation: ceil(S/4) + 16.
// A masked key weighs exactly 0; a row that sees nothing gets o = 0 and lse = -1e30.
// Keys and values are images because a driver on a CPU reads the four numbers of a texel at once, where it tests and loads
// each word of a buffer by itself (webgpu/README.md). The lanes of a quad read the same four dimensions of four keys, and
// swapping passes them on: number j of quad(x) is of key lane ^ j, for scores, masks and values alike.
// A matrix's columns are dimensions or keys, its rows query rows. Sums have names, in slices of 16 dimensions, because
// compilers keep those in registers and an array in memory; slices that H does not need fall away when the pipeline is made.
// Nothing is assumed about how lanes lie in a workgroup or how many a subgroup has: the loop runs to the last key that any
// lane of the quad needs.

override H: u32 = 64;        // a multiple of 4 up to 128
const LOG2_E = 1.4426950408889634;
const NOTHING = -1e30;       // finite: Tint refuses infinities, and NOTHING - NOTHING is 0

struct Params { T: u32, S: u32, N: u32, K: u32, offset: u32, window: u32, sinks: u32, scale: f32, group0: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4f>;
@group(0) @binding(2) var k: texture_2d<f32>;
@group(0) @binding(3) var v: texture_2d<f32>;
@group(0) @binding(4) var<storage, read_write> o: array<vec4f>;
@group(0) @binding(5) var<storage, read_write> lse: array<f32>;

struct Rows { a: mat4x4f, b: mat4x4f }               // eight rows: four scores or weights of each, or four dimensions
struct Each { a: vec4f, b: vec4f }                   // one number for each of eight rows
struct Slice { x: Rows, y: Rows, z: Rows, w: Rows }  // 16 dimensions of eight rows
var<private> qa: array<mat4x4f, 32>;                 // [dimension / 4]: q of rows 0-3, scaled
var<private> qb: array<mat4x4f, 32>;                 // rows 4-7

struct Four { x: vec4f, y: vec4f, z: vec4f, w: vec4f }  // one texel of each key lane ^ 0, 1, 2, 3
fn quad(x: vec4f) -> Four { return Four(x, quadSwapX(x), quadSwapY(x), quadSwapDiagonal(x)); }
fn score4(s: Rows, at: vec2u, c: u32) -> Rows {
  var y = s;
  if (c < H / 4) {
    let t = quad(textureLoad(k, at + vec2u(c, 0), 0));
    y = Rows(mat4x4f(s.a[0] + qa[c] * t.x, s.a[1] + qa[c] * t.y, s.a[2] + qa[c] * t.z, s.a[3] + qa[c] * t.w),
             mat4x4f(s.b[0] + qb[c] * t.x, s.b[1] + qb[c] * t.y, s.b[2] + qb[c] * t.z, s.b[3] + qb[c] * t.w));
  }
  return y;
}
fn score(s: Rows, at: vec2u, c: u32) -> Rows {
  return score4(score4(score4(score4(s, at, c), at, c + 1), at, c + 2), at, c + 3);
}
fn add4(sum: Rows, at: vec2u, c: u32, keep: Each, weight: Rows) -> Rows {
  var y = sum;
  if (c < H / 4) {
    let t = quad(textureLoad(v, at + vec2u(c, 0), 0));
    let v0 = vec4f(t.x.x, t.y.x, t.z.x, t.w.x);
    let a0 = keep.a * sum.a[0] + weight.a * v0; let b0 = keep.b * sum.b[0] + weight.b * v0;
    let v1 = vec4f(t.x.y, t.y.y, t.z.y, t.w.y);
    let a1 = keep.a * sum.a[1] + weight.a * v1; let b1 = keep.b * sum.b[1] + weight.b * v1;
    let v2 = vec4f(t.x.z, t.y.z, t.z.z, t.w.z);
    let a2 = keep.a * sum.a[2] + weight.a * v2; let b2 = keep.b * sum.b[2] + weight.b * v2;
    let v3 = vec4f(t.x.w, t.y.w, t.z.w, t.w.w);
    let a3 = keep.a * sum.a[3] + weight.a * v3; let b3 = keep.b * sum.b[3] + weight.b * v3;
    y = Rows(mat4x4f(a0, a1, a2, a3), mat4x4f(b0, b1, b2, b3));
  }
  return y;
}
fn add(y: Slice, at: vec2u, c: u32, keep: Each, weight: Rows) -> Slice {
  return Slice(add4(y.x, at, c, keep, weight), add4(y.y, at, c + 1, keep, weight),
               add4(y.z, at, c + 2, keep, weight), add4(y.w, at, c + 3, keep, weight));
}
fn masked1(score: vec4f, position: vec4u, s: u32) -> vec4f {  // four rows, one key
  let near = vec4<bool>(p.window == 0 || s < p.sinks) | (position < vec4u(s + p.window));
  return select(vec4f(NOTHING), score, near & (position >= vec4u(s)) & vec4<bool>(s < p.S));
}
fn masked(m: mat4x4f, at: vec4u, s: vec4u) -> mat4x4f {
  return mat4x4f(masked1(m[0], at, s.x), masked1(m[1], at, s.y), masked1(m[2], at, s.z), masked1(m[3], at, s.w));
}
fn weigh1(score: vec4f, top: vec4f) -> vec4f {  // exactly 0 where masked, also in a row that has seen nothing yet
  return select(vec4f(), exp2(score - top), score > vec4f(NOTHING));
}
fn weigh(m: mat4x4f, top: vec4f) -> mat4x4f {
  return mat4x4f(weigh1(m[0], top), weigh1(m[1], top), weigh1(m[2], top), weigh1(m[3], top));
}
fn highest(m: mat4x4f) -> vec4f { return max(max(m[0], m[1]), max(m[2], m[3])); }
fn total(m: mat4x4f) -> vec4f { return m[0] + m[1] + m[2] + m[3]; }
fn quad_min(x: u32) -> u32 { let y = min(x, quadSwapX(x)); return min(y, quadSwapY(y)); }
fn quad_max(x: u32) -> u32 { let y = max(x, quadSwapX(x)); return max(y, quadSwapY(y)); }

// Row i of eight goes in and out in a loop, as a choice among columns: no array is indexed by i (webgpu/README.md).
fn put(m: mat4x4f, i: u32, x: vec4f) -> mat4x4f {  // m with x as row i, or as it is
  let here = vec4u(i) == vec4u(0, 1, 2, 3);
  return mat4x4f(select(m[0], vec4f(x.x), here), select(m[1], vec4f(x.y), here),
                 select(m[2], vec4f(x.z), here), select(m[3], vec4f(x.w), here));
}
fn load4(at: u32, c: u32, i: u32) {
  if (c < H / 4) {
    let x = q[at + c] * (p.scale * LOG2_E);
    qa[c] = put(qa[c], i, x); qb[c] = put(qb[c], i - 4, x);
  }
}
fn load(at: u32, c: u32, i: u32) { load4(at, c, i); load4(at, c + 1, i); load4(at, c + 2, i); load4(at, c + 3, i); }
fn column(m: mat4x4f, i: u32) -> vec4f { return select(select(m[3], m[2], i == 2), select(m[1], m[0], i == 0), i < 2); }
fn row_of(y: Rows, i: u32) -> vec4f { return select(column(transpose(y.b), i - 4), column(transpose(y.a), i), i < 4); }
fn number(e: Each, i: u32) -> f32 { return select(e.b, e.a, i < 4)[i % 4]; }
fn write4(y: Rows, at: u32, c: u32, i: u32, f: f32) { if (c < H / 4) { o[at + c] = row_of(y, i) * f; } }
fn write(y: Slice, at: u32, c: u32, i: u32, f: f32) {
  write4(y.x, at, c, i, f); write4(y.y, at, c + 1, i, f); write4(y.z, at, c + 2, i, f); write4(y.w, at, c + 3, i, f);
}
@compute @workgroup_size(8)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) local: u32, @builtin(subgroup_invocation_id) lane: u32) {
  let G = p.N / p.K; let rows = p.T * G; let blocks = (rows + 63) / 64;
  let group = p.group0 + id.y * groups.x + id.x; if (group >= blocks * p.K) { return; }
  let kv_head = group % p.K; let r0 = (blocks - 1 - group / p.K) * 64 + local * 8;
  let ra = min(r0 + vec4u(0, 1, 2, 3), vec4u(rows - 1));  // rows past the end repeat the last and are not written
  let rb = min(r0 + vec4u(4, 5, 6, 7), vec4u(rows - 1));
  let na = ra / G * p.N + kv_head * G + ra % G;           // t * N + n
  let nb = rb / G * p.N + kv_head * G + rb % G;
  let pa = p.offset + ra / G;                             // positions
  let pb = p.offset + rb / G;
  let order = vec4u(lane % 4) ^ vec4u(0, 1, 2, 3);
  for (var i = 0u; i < 8; i++) {
    let at = select(nb, na, i < 4)[i % 4] * (H / 4);
    load(at, 0, i); load(at, 4, i); load(at, 8, i); load(at, 12, i);
    load(at, 16, i); load(at, 20, i); load(at, 24, i); load(at, 28, i);
  }
  var y0 = Slice(); var y1 = Slice(); var y2 = Slice(); var y3 = Slice();
  var y4 = Slice(); var y5 = Slice(); var y6 = Slice(); var y7 = Slice();
  var m = Each(vec4f(NOTHING), vec4f(NOTHING)); var l = Each();
  let end = quad_max(min(p.S, pb.w + 1));  // causal: keys after the last row's position are never read
  let all = quad_min(pa.x);                // up to here every row of the quad sees every key
  let start = quad_min(select(0u, pa.x - p.window + 1, p.window > 0 && pa.x >= p.window));
  var s = select(0u, start, p.sinks == 0);
  while (s < end) {
    let keys = s + order;
    let at = vec2u(kv_head * (H / 4), min(keys.x, p.S - 1));
    var x = score(Rows(), at, 0); if (H > 16) { x = score(x, at, 4); } if (H > 32) { x = score(x, at, 8); }
    if (H > 48) { x = score(x, at, 12); } if (H > 64) { x = score(x, at, 16); } if (H > 80) { x = score(x, at, 20); }
    if (H > 96) { x = score(x, at, 24); } if (H > 112) { x = score(x, at, 28); }
    if (s + 3 > all || s + 3 >= p.S || p.window > 0) { x = Rows(masked(x.a, pa, keys), masked(x.b, pb, keys)); }
    let top = Each(max(m.a, highest(x.a)), max(m.b, highest(x.b)));
    let keep = Each(exp2(m.a - top.a), exp2(m.b - top.b));
    let weight = Rows(weigh(x.a, top.a), weigh(x.b, top.b));
    l = Each(l.a * keep.a + total(weight.a), l.b * keep.b + total(weight.b)); m = top;
    y0 = add(y0, at, 0, keep, weight); if (H > 16) { y1 = add(y1, at, 4, keep, weight); }
    if (H > 32) { y2 = add(y2, at, 8, keep, weight); } if (H > 48) { y3 = add(y3, at, 12, keep, weight); }
    if (H > 64) { y4 = add(y4, at, 16, keep, weight); } if (H > 80) { y5 = add(y5, at, 20, keep, weight); }
    if (H > 96) { y6 = add(y6, at, 24, keep, weight); } if (H > 112) { y7 = add(y7, at, 28, keep, weight); }
    s += 4; if (s >= p.sinks && s < start) { s = start; }  // nothing to see between the sinks and the window
  }
  for (var i = 0u; i < min(8u, rows - min(r0, rows)); i++) {
    let row = select(nb, na, i < 4)[i % 4]; let at = row * (H / 4);  // row: t * N + n
    let sum = number(l, i); let f = select(0, 1 / sum, sum > 0);
    write(y0, at, 0, i, f); write(y1, at, 4, i, f); write(y2, at, 8, i, f); write(y3, at, 12, i, f);
    write(y4, at, 16, i, f); write(y5, at, 20, i, f); write(y6, at, 24, i, f); write(y7, at, 28, i, f);
    lse[row % p.N * p.T + row / p.N] = select(NOTHING, (number(m, i) + log2(sum)) / LOG2_E, sum > 0);
  }
}
