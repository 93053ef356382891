// Causal grouped-query attention for devices whose lanes are few (CPU drivers): FlashAttention-2 (Dao 2023, Algorithm 1).
//   o[t,n,:] = sum_s softmax_s(scale * q[t,n,:] . k[s,n/G,:]) v[s,n/G,:]     over the keys that query t may see
// Query t stands at position P = offset + t. It sees key s when s <= P and (window == 0 or P - s < window or s < sinks).
// Grid: one invocation owns 8 packed rows r = t * G + g of one key/value head, a workgroup 64 of them, the last rows first;
//       folded into y. Keys stream through 4 at a time.
// In:  q [T,N*H/4], k and v [S,K*H/4] as images of texels of four f32 (attention_images.wgsl), H at most 128.
// Out: o [T,N,H] f32, lse [N,T] f32 (natural log).
// Loops per invocation: ceil(S/4) + 8.
// A masked key weighs exactly 0; a row that sees nothing gets o = 0 and lse = -1e30.
// A driver on a CPU reads the four numbers of a texel at once, where it tests and loads each word of a buffer by itself, and
// runs both sides of every branch, so keys that all rows of a quad see have a loop without masks (webgpu/README.md).
// The lanes of a quad read the same four dimensions of four keys, and swapping passes them on: number j of quad(x) is of key
// lane ^ j, for scores, masks and values alike. A matrix's columns are dimensions or keys, its rows query rows.
// Sums have names, because compilers keep those in registers and an array in memory; slices that H does not need fall away.
// Nothing is assumed about how lanes lie in a workgroup: the loops run to the last key that any lane of the quad needs.

override H: u32 = 64;        // a multiple of 4 up to 128
const LOG2_E = 1.4426950408889634;
const NOTHING = -1e30;       // finite: Tint refuses infinities, and NOTHING - NOTHING is 0

struct Params { T: u32, S: u32, N: u32, K: u32, offset: u32, window: u32, sinks: u32, scale: f32, group0: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var q: texture_2d<f32>;
@group(0) @binding(2) var k: texture_2d<f32>;
@group(0) @binding(3) var v: texture_2d<f32>;
@group(0) @binding(4) var<storage, read_write> o: array<vec4f>;
@group(0) @binding(5) var<storage, read_write> lse: array<f32>;
@group(0) @binding(6) var nearest: sampler;

struct Rows { a: mat4x4f, b: mat4x4f }               // eight rows: four scores or weights of each, or four dimensions
struct Each { a: vec4f, b: vec4f }                   // one number for each of eight rows
struct Slice { x: Rows, y: Rows, z: Rows, w: Rows }  // 16 dimensions of eight rows
struct Sums { m: Each, l: Each, y0: Slice, y1: Slice, y2: Slice, y3: Slice, y4: Slice, y5: Slice, y6: Slice, y7: Slice }
var<private> qa: array<mat4x4f, 32>;                 // [dimension / 4]: q of rows 0-3, scaled
var<private> qb: array<mat4x4f, 32>;                 // rows 4-7
var<private> step: f32;                              // from a texel of k or v to the next: coordinates go from 0 to 1

struct Four { x: vec4f, y: vec4f, z: vec4f, w: vec4f }  // one texel of each key lane ^ 0, 1, 2, 3
fn quad(x: vec4f) -> Four { return Four(x, quadSwapX(x), quadSwapY(x), quadSwapDiagonal(x)); }
fn score4(s: Rows, at: vec2f, c: u32) -> Rows {
  var y = s;
  if (c < H / 4) {
    let t = quad(textureSampleLevel(k, nearest, at + vec2f(f32(c) * step, 0), 0));
    y = Rows(mat4x4f(s.a[0] + qa[c] * t.x, s.a[1] + qa[c] * t.y, s.a[2] + qa[c] * t.z, s.a[3] + qa[c] * t.w),
             mat4x4f(s.b[0] + qb[c] * t.x, s.b[1] + qb[c] * t.y, s.b[2] + qb[c] * t.z, s.b[3] + qb[c] * t.w));
  }
  return y;
}
fn score(s: Rows, at: vec2f, c: u32) -> Rows {
  return score4(score4(score4(score4(s, at, c), at, c + 1), at, c + 2), at, c + 3);
}
fn scores(at: vec2f) -> Rows {  // of eight rows with four keys
  var x = score(Rows(), at, 0); if (H > 16) { x = score(x, at, 4); } if (H > 32) { x = score(x, at, 8); }
  if (H > 48) { x = score(x, at, 12); } if (H > 64) { x = score(x, at, 16); } if (H > 80) { x = score(x, at, 20); }
  if (H > 96) { x = score(x, at, 24); } if (H > 112) { x = score(x, at, 28); }
  return x;
}
fn plus(sum: mat4x4f, keep: vec4f, weight: mat4x4f, v: mat4x4f) -> mat4x4f {  // four dimensions of four rows
  return mat4x4f(keep * sum[0] + weight * v[0], keep * sum[1] + weight * v[1],
                 keep * sum[2] + weight * v[2], keep * sum[3] + weight * v[3]);
}
fn add4(sum: Rows, at: vec2f, c: u32, keep: Each, weight: Rows) -> Rows {
  var y = sum;
  if (c < H / 4) {
    let t = quad(textureSampleLevel(v, nearest, at + vec2f(f32(c) * step, 0), 0));
    let m = transpose(mat4x4f(t.x, t.y, t.z, t.w));
    y = Rows(plus(sum.a, keep.a, weight.a, m), plus(sum.b, keep.b, weight.b, m));
  }
  return y;
}
fn add(y: Slice, at: vec2f, c: u32, keep: Each, weight: Rows) -> Slice {
  return Slice(add4(y.x, at, c, keep, weight), add4(y.y, at, c + 1, keep, weight),
               add4(y.z, at, c + 2, keep, weight), add4(y.w, at, c + 3, keep, weight));
}
fn added(t: Sums, at: vec2f, top: Each, weight: Rows) -> Sums {  // t and four keys more, whose scores are at most top
  let keep = Each(exp2(t.m.a - top.a), exp2(t.m.b - top.b)); var n = t; n.m = top;
  n.l = Each(t.l.a * keep.a + total(weight.a), t.l.b * keep.b + total(weight.b));
  n.y0 = add(t.y0, at, 0, keep, weight); if (H > 16) { n.y1 = add(t.y1, at, 4, keep, weight); }
  if (H > 32) { n.y2 = add(t.y2, at, 8, keep, weight); } if (H > 48) { n.y3 = add(t.y3, at, 12, keep, weight); }
  if (H > 64) { n.y4 = add(t.y4, at, 16, keep, weight); } if (H > 80) { n.y5 = add(t.y5, at, 20, keep, weight); }
  if (H > 96) { n.y6 = add(t.y6, at, 24, keep, weight); } if (H > 112) { n.y7 = add(t.y7, at, 28, keep, weight); }
  return n;
}
fn masked1(score: vec4f, position: vec4u, s: u32) -> vec4f {  // four rows, one key
  let near = vec4<bool>(p.window == 0 || s < p.sinks) | (position < vec4u(s + p.window));
  return select(vec4f(NOTHING), score, near & (position >= vec4u(s)) & vec4<bool>(s < p.S));
}
fn masked(m: mat4x4f, at: vec4u, s: vec4u) -> mat4x4f {
  return mat4x4f(masked1(m[0], at, s.x), masked1(m[1], at, s.y), masked1(m[2], at, s.z), masked1(m[3], at, s.w));
}
fn weigh(m: mat4x4f, top: vec4f) -> mat4x4f {
  return mat4x4f(exp2(m[0] - top), exp2(m[1] - top), exp2(m[2] - top), exp2(m[3] - top));
}
fn seen(weight: mat4x4f, score: mat4x4f) -> mat4x4f {  // exactly 0 where masked, also in a row that has seen nothing yet
  let w = weight; let s = score; let none = vec4f(NOTHING);
  return mat4x4f(select(vec4f(), w[0], s[0] > none), select(vec4f(), w[1], s[1] > none),
                 select(vec4f(), w[2], s[2] > none), select(vec4f(), w[3], s[3] > none));
}
fn highest(m: mat4x4f, top: vec4f) -> vec4f { return max(top, max(max(m[0], m[1]), max(m[2], m[3]))); }
fn total(m: mat4x4f) -> vec4f { return m[0] + m[1] + m[2] + m[3]; }
fn quad_min(x: u32) -> u32 { let y = min(x, quadSwapX(x)); return min(y, quadSwapY(y)); }
fn quad_max(x: u32) -> u32 { let y = max(x, quadSwapX(x)); return max(y, quadSwapY(y)); }

struct Place { t: vec4u, n: vec4u }  // tokens and query heads of four rows
fn query(at: Place, c: u32) -> mat4x4f {
  let x = at.n * (H / 4) + c;
  return p.scale * LOG2_E * transpose(mat4x4f(
    textureLoad(q, vec2u(x.x, at.t.x), 0), textureLoad(q, vec2u(x.y, at.t.y), 0),
    textureLoad(q, vec2u(x.z, at.t.z), 0), textureLoad(q, vec2u(x.w, at.t.w), 0)));
}
fn load4(a: Place, b: Place, c: u32) { if (c < H / 4) { qa[c] = query(a, c); qb[c] = query(b, c); } }
fn load(a: Place, b: Place, c: u32) { load4(a, b, c); load4(a, b, c + 1); load4(a, b, c + 2); load4(a, b, c + 3); }

// Row i of eight goes out in a loop, as a choice among columns: no array is indexed by i (webgpu/README.md).
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
  let a = Place(ra / G, kv_head * G + ra % G); let b = Place(rb / G, kv_head * G + rb % G);
  let pa = p.offset + a.t; let pb = p.offset + b.t; let order = vec4u(lane % 4) ^ vec4u(0, 1, 2, 3);
  load(a, b, 0); load(a, b, 4); load(a, b, 8); load(a, b, 12); load(a, b, 16); load(a, b, 20); load(a, b, 24); load(a, b, 28);
  step = 1 / f32(textureDimensions(k).x);
  let x0 = (f32(kv_head * (H / 4)) + 0.5) * step; let down = 1 / f32(textureDimensions(k).y);
  let end = quad_max(min(p.S, pb.w + 1));  // causal: keys after the last row's position are never read
  let all = quad_min(select(min(pa.x + 1, p.S), 0, p.window > 0));  // every row of the quad sees the keys before this one
  let start = quad_min(select(0u, pa.x - p.window + 1, p.window > 0 && pa.x >= p.window));
  var s = select(0u, start, p.sinks == 0);
  var t = Sums(); t.m = Each(vec4f(NOTHING), vec4f(NOTHING));
  while (s + 3 < all) {
    let at = vec2f(x0, (f32(s + order.x) + 0.5) * down); let x = scores(at);
    let top = Each(highest(x.a, t.m.a), highest(x.b, t.m.b));
    t = added(t, at, top, Rows(weigh(x.a, top.a), weigh(x.b, top.b))); s += 4;
  }
  while (s < end) {
    let keys = s + order;
    let at = vec2f(x0, (f32(min(keys.x, end - 1)) + 0.5) * down);
    let y = scores(at); let x = Rows(masked(y.a, pa, keys), masked(y.b, pb, keys));
    let top = Each(highest(x.a, t.m.a), highest(x.b, t.m.b));
    t = added(t, at, top, Rows(seen(weigh(x.a, top.a), x.a), seen(weigh(x.b, top.b), x.b)));
    s += 4; if (s >= p.sinks && s < start) { s = start; }  // nothing to see between the sinks and the window
  }
  for (var i = 0u; i < min(8u, rows - min(r0, rows)); i++) {
    let token = select(b.t, a.t, i < 4)[i % 4]; let n = select(b.n, a.n, i < 4)[i % 4]; let at = (token * p.N + n) * (H / 4);
    let sum = number(t.l, i); let f = select(0, 1 / sum, sum > 0);
    write(t.y0, at, 0, i, f); write(t.y1, at, 4, i, f); write(t.y2, at, 8, i, f); write(t.y3, at, 12, i, f);
    write(t.y4, at, 16, i, f); write(t.y5, at, 20, i, f); write(t.y6, at, 24, i, f); write(t.y7, at, 28, i, f);
    lse[n * p.T + token] = select(NOTHING, (number(t.m, i) + log2(sum)) / LOG2_E, sum > 0);
  }
}
