// Causal grouped-query attention in registers, without subgroups: FlashAttention-2 (Dao 2023, Algorithm 1).
//   o[t,n,:] = sum_s softmax_s(scale * q[t,n,:] . k[s,n/G,:]) v[s,n/G,:]     over the keys that query t may see
// Query t stands at position P = offset + t. It sees key s when s <= P and (window == 0 or P - s < window or s < sinks).
// Grid: one invocation owns 8 packed rows r = t * G + g of one key/value head, a workgroup 64 of them, the last rows (the
//       longest) first; folded into y. Keys stream through one at a time.
// In:  q [T,N,H], k and v [S,K,H] f32, H at most 128.   Out: o [T,N,H] f32, lse [N,T] f32 (natural log).
// Loops per invocation: S + 16.
// A masked key weighs exactly 0; a row that sees nothing gets o = 0 and lse = -1e30.
//
// On a CPU driver a load costs 20 to 40 multiplications, so each word of k and v meets eight rows, and q stays in
// registers. Lanes are query rows: k * q is the scores of one key in four rows, and o grows by v times the weights. One key
// at a time keeps the text short, and a driver compiles text: four would rescale o less often and load as much. The sums have
// names, in slices of 16 dimensions, and q is an array that no loop's variable reads: either way a compiler keeps
// registers. Slices that H does not need fall away when the pipeline is made.

override H: u32 = 64;        // a multiple of 4 up to 128
const LOG2_E = 1.4426950408889634;
const NOTHING = -1e30;       // finite: Tint refuses infinities, and NOTHING - NOTHING is 0

struct Params { T: u32, S: u32, N: u32, K: u32, offset: u32, window: u32, sinks: u32, scale: f32, group0: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4f>;
@group(0) @binding(2) var<storage, read> k: array<vec4f>;
@group(0) @binding(3) var<storage, read> v: array<vec4f>;
@group(0) @binding(4) var<storage, read_write> o: array<vec4f>;
@group(0) @binding(5) var<storage, read_write> lse: array<f32>;

struct Rows { a: mat4x4f, b: mat4x4f }               // four dimensions (down) of rows 0-3 and 4-7 (columns)
struct Each { a: vec4f, b: vec4f }                   // one number for each of eight rows
struct Slice { x: Rows, y: Rows, z: Rows, w: Rows }  // 16 dimensions of eight rows
var<private> query: array<Rows, 32>;                 // [dimension / 4], scaled

fn score4(s: Each, at: u32, c: u32) -> Each {
  var sum = s;
  if (c < H / 4) {
    let key = k[at + c];
    sum = Each(s.a + key * query[c].a, s.b + key * query[c].b);
  }
  return sum;
}
fn score(s: Each, at: u32, c: u32) -> Each {
  return score4(score4(score4(score4(s, at, c), at, c + 1), at, c + 2), at, c + 3);
}
fn grow(y: mat4x4f, keep: vec4f, x: vec4f, w: vec4f) -> mat4x4f {
  return mat4x4f(y[0] * keep.x + x * w.x, y[1] * keep.y + x * w.y, y[2] * keep.z + x * w.z, y[3] * keep.w + x * w.w);
}
fn add4(sum: Rows, at: u32, c: u32, keep: Each, weight: Each) -> Rows {
  var y = sum;
  if (c < H / 4) {
    let value = v[at + c];
    y = Rows(grow(sum.a, keep.a, value, weight.a), grow(sum.b, keep.b, value, weight.b));
  }
  return y;
}
fn add(y: Slice, at: u32, c: u32, keep: Each, weight: Each) -> Slice {
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

// Row i of eight goes in and out in a loop, as a choice among columns: the text is an eighth, and no array is indexed by i.
fn put(m: mat4x4f, i: u32, x: vec4f) -> mat4x4f {  // m with x as column i, or as it is
  return mat4x4f(select(m[0], x, i == 0), select(m[1], x, i == 1), select(m[2], x, i == 2), select(m[3], x, i == 3));
}
fn load4(at: u32, c: u32, i: u32) {
  if (c < H / 4) {
    let x = q[at + c] * (p.scale * LOG2_E);
    query[c] = Rows(put(query[c].a, i, x), put(query[c].b, i - 4, x));
  }
}
fn load(at: u32, c: u32, i: u32) { load4(at, c, i); load4(at, c + 1, i); load4(at, c + 2, i); load4(at, c + 3, i); }
fn column(m: mat4x4f, i: u32) -> vec4f { return select(select(m[3], m[2], i == 2), select(m[1], m[0], i == 0), i < 2); }
fn number(e: Each, i: u32) -> f32 { return select(e.b, e.a, i < 4)[i % 4]; }
fn write4(y: Rows, at: u32, c: u32, i: u32, f: f32) {
  if (c < H / 4) { o[at + c] = select(column(y.b, i - 4), column(y.a, i), i < 4) * f; }
}
fn write(y: Slice, at: u32, c: u32, i: u32, f: f32) {
  write4(y.x, at, c, i, f); write4(y.y, at, c + 1, i, f); write4(y.z, at, c + 2, i, f); write4(y.w, at, c + 3, i, f);
}

@compute @workgroup_size(8)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) local: u32) {
  let G = p.N / p.K;
  let rows = p.T * G;
  let blocks = (rows + 63) / 64;
  let group = p.group0 + id.y * groups.x + id.x;
  if (group >= blocks * p.K) { return; }
  let kv_head = group % p.K;
  let r0 = (blocks - 1 - group / p.K) * 64 + local * 8;
  if (r0 >= rows) { return; }
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
  let end = min(p.S, pb.w + 1);  // causal: keys after the last row's position are never read
  let start = select(0u, pa.x - p.window + 1, p.window > 0 && pa.x >= p.window);
  var s = select(0u, start, p.sinks == 0);
  while (s < end) {
    let at = (s * p.K + kv_head) * (H / 4);
    var x = score(Each(), at, 0);
    if (H > 16) { x = score(x, at, 4); } if (H > 32) { x = score(x, at, 8); } if (H > 48) { x = score(x, at, 12); }
    if (H > 64) { x = score(x, at, 16); } if (H > 80) { x = score(x, at, 20); } if (H > 96) { x = score(x, at, 24); }
    if (H > 112) { x = score(x, at, 28); }
    x = Each(masked(x.a, pa, s), masked(x.b, pb, s));
    let top = Each(max(m.a, x.a), max(m.b, x.b));
    let keep = Each(exp2(m.a - top.a), exp2(m.b - top.b));
    let weight = Each(weigh(x.a, top.a), weigh(x.b, top.b));
    l = Each(l.a * keep.a + weight.a, l.b * keep.b + weight.b);
    m = top;
    y0 = add(y0, at, 0, keep, weight);
    if (H > 16) { y1 = add(y1, at, 4, keep, weight); } if (H > 32) { y2 = add(y2, at, 8, keep, weight); }
    if (H > 48) { y3 = add(y3, at, 12, keep, weight); } if (H > 64) { y4 = add(y4, at, 16, keep, weight); }
    if (H > 80) { y5 = add(y5, at, 20, keep, weight); } if (H > 96) { y6 = add(y6, at, 24, keep, weight); }
    if (H > 112) { y7 = add(y7, at, 28, keep, weight); }
    s += 1;
    if (s >= p.sinks && s < start) { s = start; }  // nothing to see between the sinks and the window
  }

  for (var i = 0u; i < min(8u, rows - r0); i++) {
    let row = select(nb, na, i < 4)[i % 4];
    let at = row * (H / 4);
    let sum = number(l, i);
    let f = select(0, 1 / sum, sum > 0);  // the division is put off to the end
    write(y0, at, 0, i, f); write(y1, at, 4, i, f); write(y2, at, 8, i, f); write(y3, at, 12, i, f);
    write(y4, at, 16, i, f); write(y5, at, 20, i, f); write(y6, at, 24, i, f); write(y7, at, 28, i, f);
    lse[row % p.N * p.T + row / p.N] = select(NOTHING, (number(m, i) + log2(sum)) / LOG2_E, sum > 0);
  }
}
