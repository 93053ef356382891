// Causal grouped-query attention for CPU drivers of eight lanes and more: FlashAttention-2 (Dao 2023, Algorithm 1).
//   o[t,n,:] = sum_s softmax_s(scale * q[t,n,:] . k[s,n/G,:]) v[s,n/G,:]     over the keys that query t may see
// Query t stands at position P = offset + t. It sees key s when s <= P and (window == 0 or P - s < window or s < sinks).
// Grid: one invocation owns 16 packed rows r = t * G + g of one key/value head, a workgroup 128 of them, the last rows (the
//       longest) first; folded into y. Keys stream through 4 at a time.
// In:  q [T,N,H], k and v [S,K,H] f32, H at most 64.   Out: o [T,N,H] f32, lse [N,T] f32 (natural log).
// Loops per invocation: ceil(S/4) + 32.
// A masked key weighs exactly 0; a row that sees nothing gets o = 0 and lse = -1e30.
//
// The text is that of attention_quads.wgsl, explained there, with 16 rows in place of 8: half the loads, for drivers where a
// load costs more than the registers that spill, and longer to compile. A group of four rows is a field: a, b, c, d.

override H: u32 = 64;        // a multiple of 4 up to 64
const LOG2_E = 1.4426950408889634;
const NOTHING = -1e30;       // finite: Tint refuses infinities, and NOTHING - NOTHING is 0

struct Params { T: u32, S: u32, N: u32, K: u32, offset: u32, window: u32, sinks: u32, scale: f32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4f>;
@group(0) @binding(2) var<storage, read> k: array<vec4f>;
@group(0) @binding(3) var<storage, read> v: array<vec4f>;
@group(0) @binding(4) var<storage, read_write> o: array<vec4f>;
@group(0) @binding(5) var<storage, read_write> lse: array<f32>;

struct Rows { a: mat4x4f, b: mat4x4f, c: mat4x4f, d: mat4x4f }  // four rows each: scores, weights, or four dimensions
struct Each { a: vec4f, b: vec4f, c: vec4f, d: vec4f }          // one number for each of 16 rows
struct Slice { x: Rows, y: Rows, z: Rows, w: Rows }             // 16 dimensions of 16 rows
var<private> query: array<Rows, 16>;                            // [dimension / 4], scaled

fn quad(x: vec4f) -> mat4x4f { return mat4x4f(x, quadSwapX(x), quadSwapY(x), quadSwapDiagonal(x)); }
fn by_row(m: mat4x4f, f: vec4f) -> mat4x4f { return mat4x4f(m[0] * f.x, m[1] * f.y, m[2] * f.z, m[3] * f.w); }

fn score4(s: Rows, at: u32, c: u32) -> Rows {
  var sum = s;
  if (c < H / 4) {
    let keys = transpose(quad(k[at + c]));
    let x = query[c];
    sum = Rows(s.a + keys * x.a, s.b + keys * x.b, s.c + keys * x.c, s.d + keys * x.d);
  }
  return sum;
}
fn score(s: Rows, at: u32, c: u32) -> Rows {
  return score4(score4(score4(score4(s, at, c), at, c + 1), at, c + 2), at, c + 3);
}
fn grow(y: mat4x4f, keep: vec4f, values: mat4x4f, weight: mat4x4f) -> mat4x4f { return by_row(y, keep) + values * weight; }
fn add4(sum: Rows, at: u32, c: u32, keep: Each, w: Rows) -> Rows {
  var y = sum;
  if (c < H / 4) {
    let x = quad(v[at + c]);
    y = Rows(grow(sum.a, keep.a, x, w.a), grow(sum.b, keep.b, x, w.b),
             grow(sum.c, keep.c, x, w.c), grow(sum.d, keep.d, x, w.d));
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

fn put(m: mat4x4f, i: u32, x: vec4f) -> mat4x4f {  // m with x as column i, or as it is
  return mat4x4f(select(m[0], x, i == 0), select(m[1], x, i == 1), select(m[2], x, i == 2), select(m[3], x, i == 3));
}
fn load4(at: u32, c: u32, i: u32) {
  if (c < H / 4) {
    let x = q[at + c] * (p.scale * LOG2_E);
    let y = query[c];
    query[c] = Rows(put(y.a, i, x), put(y.b, i - 4, x), put(y.c, i - 8, x), put(y.d, i - 12, x));
  }
}
fn load(at: u32, c: u32, i: u32) { load4(at, c, i); load4(at, c + 1, i); load4(at, c + 2, i); load4(at, c + 3, i); }
fn column(m: mat4x4f, i: u32) -> vec4f { return select(select(m[3], m[2], i == 2), select(m[1], m[0], i == 0), i < 2); }
fn four(a: vec4f, b: vec4f, c: vec4f, d: vec4f, i: u32) -> vec4f {
  return select(select(d, c, i < 12), select(b, a, i < 4), i < 8);
}
fn number(e: Each, i: u32) -> f32 { return four(e.a, e.b, e.c, e.d, i)[i % 4]; }
fn write4(y: Rows, at: u32, c: u32, i: u32, f: f32) {
  if (c < H / 4) { o[at + c] = four(column(y.a, i), column(y.b, i - 4), column(y.c, i - 8), column(y.d, i - 12), i) * f; }
}
fn write(y: Slice, at: u32, c: u32, i: u32, f: f32) {
  write4(y.x, at, c, i, f); write4(y.y, at, c + 1, i, f); write4(y.z, at, c + 2, i, f); write4(y.w, at, c + 3, i, f);
}

@compute @workgroup_size(8)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) local: u32, @builtin(subgroup_invocation_id) lane: u32) {
  let G = p.N / p.K;
  let rows = p.T * G;
  let blocks = (rows + 127) / 128;
  let group = id.y * groups.x + id.x;
  if (group >= blocks * p.K) { return; }
  let kv_head = group % p.K;
  let r0 = (blocks - 1 - group / p.K) * 128 + local * 16;
  // rows past the end repeat the last and are not written
  let first = vec4u(r0) + vec4u(0, 1, 2, 3);
  let last = vec4u(rows - 1);
  let pa = p.offset + min(first, last) / G;  // positions
  let pb = p.offset + min(first + 4, last) / G;
  let pc = p.offset + min(first + 8, last) / G;
  let pd = p.offset + min(first + 12, last) / G;
  for (var i = 0u; i < 16; i++) {
    let r = min(r0 + i, rows - 1);
    let at = (r / G * p.N + kv_head * G + r % G) * (H / 4);
    load(at, 0, i); load(at, 4, i); load(at, 8, i); load(at, 12, i);
  }

  var y0 = Slice(); var y1 = Slice(); var y2 = Slice(); var y3 = Slice();
  var m = Each(vec4f(NOTHING), vec4f(NOTHING), vec4f(NOTHING), vec4f(NOTHING));
  var l = Each();
  let end = quad_max(min(p.S, pd.w + 1));  // causal: keys after the last row's position are never read
  let all = quad_min(pa.x);                // up to here every row of the quad sees every key
  let start = quad_min(select(0u, pa.x - p.window + 1, p.window > 0 && pa.x >= p.window));
  let order = vec4u(lane, lane ^ 1, lane ^ 2, lane ^ 3) % 4;
  var s = select(0u, start, p.sinks == 0);
  while (s < end) {
    let at = (min(s + order.x, p.S - 1) * p.K + kv_head) * (H / 4);
    var x = score(Rows(), at, 0);
    if (H > 16) { x = score(x, at, 4); } if (H > 32) { x = score(x, at, 8); } if (H > 48) { x = score(x, at, 12); }
    if (s + 3 > all || s + 3 >= p.S || p.window > 0) {
      let at4 = s + order;
      x = Rows(masked(x.a, pa, at4), masked(x.b, pb, at4), masked(x.c, pc, at4), masked(x.d, pd, at4));
    }
    let top = Each(max(m.a, highest(x.a)), max(m.b, highest(x.b)), max(m.c, highest(x.c)), max(m.d, highest(x.d)));
    let keep = Each(exp2(m.a - top.a), exp2(m.b - top.b), exp2(m.c - top.c), exp2(m.d - top.d));
    let weight = Rows(weigh(x.a, top.a), weigh(x.b, top.b), weigh(x.c, top.c), weigh(x.d, top.d));
    l = Each(l.a * keep.a + total(weight.a), l.b * keep.b + total(weight.b),
             l.c * keep.c + total(weight.c), l.d * keep.d + total(weight.d));
    m = top;
    y0 = add(y0, at, 0, keep, weight);
    if (H > 16) { y1 = add(y1, at, 4, keep, weight); } if (H > 32) { y2 = add(y2, at, 8, keep, weight); }
    if (H > 48) { y3 = add(y3, at, 12, keep, weight); }
    s += 4;
    if (s >= p.sinks && s < start) { s = start; }  // nothing to see between the sinks and the window
  }

  for (var i = 0u; i < min(16u, rows - min(r0, rows)); i++) {
    let row = (r0 + i) / G * p.N + kv_head * G + (r0 + i) % G;  // t * N + n
    let sum = number(l, i);
    let f = select(0, 1 / sum, sum > 0);
    let at = row * (H / 4);
    write(y0, at, 0, i, f); write(y1, at, 4, i, f); write(y2, at, 8, i, f); write(y3, at, 12, i, f);
    lse[row % p.N * p.T + row / p.N] = select(NOTHING, (number(m, i) + log2(sum)) / LOG2_E, sum > 0);
  }
}
