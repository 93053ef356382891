// Causal grouped-query attention for GPUs, a tile of keys in workgroup memory: FlashAttention-2 (Dao 2023, Algorithm 1).
//   o[t,n,:] = sum_s softmax_s(scale * q[t,n,:] . k[s,n/G,:]) v[s,n/G,:]     over the keys that query t may see
// Query t stands at position P = offset + t. It sees key s when s <= P and (window == 0 or P - s < window or s < sinks).
// Grid: a workgroup of 64 owns 64 packed rows r = t * G + g of one key/value head, the last rows (the longest) first; folded
//       into y. Four invocations share 4 rows: each has 4 of a tile's 16 keys, and a quarter of the dimensions of o.
// In:  q [T,N,H], k and v [S,K,H] f32, H at most 128.   Out: o [T,N,H] f32, lse [N,T] f32 (natural log).
// Loops per invocation: ceil(S/16) * (5 + 2 * ceil(H/16) + H/4) + 36.
// A masked key weighs exactly 0; a row that sees nothing gets o = 0 and lse = -1e30.
//
// A tile takes four steps with a barrier after each; every loop around a barrier ends by numbers all invocations share.
//   1 the keys into `tile`   2 scores, 4 rows x 4 keys in registers; their maxima into `tops`
//   3 the values into `tile`, over the keys; weights from the maxima of all parts, into `weights`   4 o grows by weights * values
// Loads pay: packing lets the G heads of a group share each tile, and a 4 x 4 block of scores uses 8 loaded vec4s for 64
// products. Lanes of matrices are rows: transpose(Q) * K is a block of scores (column = key). The sums have names, so that
// they stay in registers. A key's row in `tile` is one vec4 longer than a head, so that the parts of four read different banks.

override H: u32 = 64;        // a multiple of 4 up to 128
const TILE = 16u;            // keys
const PARTS = 4u;            // invocations that share 4 rows; each has the keys part + PARTS * j
const THREADS = 64u;
const LOG2_E = 1.4426950408889634;
const NOTHING = -1e30;       // finite: Tint refuses infinities, and NOTHING - NOTHING is 0

struct Params { T: u32, S: u32, N: u32, K: u32, offset: u32, window: u32, sinks: u32, scale: f32, group0: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4f>;
@group(0) @binding(2) var<storage, read> k: array<vec4f>;
@group(0) @binding(3) var<storage, read> v: array<vec4f>;
@group(0) @binding(4) var<storage, read_write> o: array<vec4f>;
@group(0) @binding(5) var<storage, read_write> lse: array<f32>;

const STRIDE = 33u;                                      // vec4s from key to key in a tile
var<workgroup> tile: array<vec4f, TILE * STRIDE>;       // [key][dimension / 4]: keys, then values
var<workgroup> weights: array<vec4f, TILE * 16>;        // [key][row / 4]: of four rows
var<workgroup> tops: array<vec4f, PARTS * 16>;           // [part][row / 4]: maxima, in the end sums, of four rows

fn stage_k(s: u32, end: u32, kv_head: u32, local: u32) {  // keys past the end repeat the last and weigh nothing
  for (var i = local; i < TILE * (H / 4); i += THREADS) {
    let source = (min(s + i / (H / 4), end - 1) * p.K + kv_head) * (H / 4) + i % (H / 4);
    tile[i / (H / 4) * STRIDE + i % (H / 4)] = k[source];
  }
}
fn stage_v(s: u32, end: u32, kv_head: u32, local: u32) {  // the same for values
  for (var i = local; i < TILE * (H / 4); i += THREADS) {
    let source = (min(s + i / (H / 4), end - 1) * p.K + kv_head) * (H / 4) + i % (H / 4);
    tile[i / (H / 4) * STRIDE + i % (H / 4)] = v[source];
  }
}
fn q4(row: vec4u, c: u32) -> mat4x4f {  // lanes = rows
  return transpose(mat4x4f(q[row.x + c], q[row.y + c], q[row.z + c], q[row.w + c]));
}
fn at4(first: u32, step: u32) -> mat4x4f {  // four vec4s of the tile
  return mat4x4f(tile[first], tile[first + step], tile[first + 2 * step], tile[first + 3 * step]);
}
fn values(key: u32, c: u32) -> mat4x4f {  // of four keys; lanes = keys; past the end of a head the last, which is not written
  return transpose(at4(key * STRIDE + min(c, H / 4 - 1), STRIDE));
}
fn by_row(m: mat4x4f, f: vec4f) -> mat4x4f { return mat4x4f(m[0] * f, m[1] * f, m[2] * f, m[3] * f); }
fn masked(score: vec4f, position: vec4u, s: u32, end: u32) -> vec4f {  // one key, four rows
  let near = vec4<bool>(p.window == 0 || s < p.sinks) | (position < vec4u(s + p.window));
  return select(vec4f(NOTHING), score, near & (position >= vec4u(s)) & vec4<bool>(s < end));
}
fn weigh(score: vec4f, top: vec4f) -> vec4f {  // exactly 0 where masked, also in a row that has seen nothing yet
  return select(vec4f(), exp2(score - top), score > vec4f(NOTHING));
}
fn write(y: mat4x4f, inverse: vec4f, row: vec4u, count: u32, c: u32) {
  if (c >= H / 4) { return; }
  let turned = transpose(by_row(y, inverse));
  for (var i = 0u; i < count; i++) { o[row[i] + c] = turned[i]; }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) local: u32) {
  let G = p.N / p.K;
  let rows = p.T * G;
  let blocks = (rows + 63) / 64;
  let group = p.group0 + id.y * groups.x + id.x;
  if (group >= blocks * p.K) { return; }
  let kv_head = group % p.K;
  let r0 = (blocks - 1 - group / p.K) * 64;
  let low = p.offset + r0 / G;                                // position of the workgroup's first row
  let end = min(p.S, p.offset + min(r0 + 63, rows - 1) / G + 1);  // causal: keys after its last row are never read
  let start = select(0u, low - p.window + 1, p.window > 0 && low >= p.window);

  let block = local / PARTS;
  let part = local % PARTS;
  let r = min(r0 + block * 4 + vec4u(0, 1, 2, 3), vec4u(rows - 1));  // rows past the end repeat the last and are not written
  let n = r / G * p.N + kv_head * G + r % G;                  // t * N + n
  let row = n * (H / 4);
  let position = p.offset + r / G;

  var y0 = mat4x4f(); var y1 = mat4x4f(); var y2 = mat4x4f(); var y3 = mat4x4f();
  var y4 = mat4x4f(); var y5 = mat4x4f(); var y6 = mat4x4f(); var y7 = mat4x4f();
  var m = vec4f(NOTHING);
  var l = vec4f();  // of this part's keys
  var s = select(0u, start, p.sinks == 0);
  while (s < end) {
    stage_k(s, end, kv_head, local);
    workgroupBarrier();
    var x = mat4x4f();
    for (var c = 0u; c < H / 4; c++) { x += q4(row, c) * at4(part * STRIDE + c, PARTS * STRIDE); }
    x = x * (p.scale * LOG2_E);
    if (s + TILE > low || s + TILE > end || p.window > 0) {  // otherwise all rows see all keys
      let key = s + part;
      x = mat4x4f(masked(x[0], position, key, end), masked(x[1], position, key + PARTS, end),
                  masked(x[2], position, key + 2 * PARTS, end), masked(x[3], position, key + 3 * PARTS, end));
    }
    tops[part * 16 + block] = max(max(x[0], x[1]), max(x[2], x[3]));
    workgroupBarrier();
    stage_v(s, end, kv_head, local);
    let top = max(m, max(max(tops[block], tops[16 + block]), max(tops[32 + block], tops[48 + block])));
    let keep = exp2(m - top);
    let weight = mat4x4f(weigh(x[0], top), weigh(x[1], top), weigh(x[2], top), weigh(x[3], top));
    l = l * keep + weight[0] + weight[1] + weight[2] + weight[3];
    m = top;
    let to = part * 16 + block;
    weights[to] = weight[0]; weights[to + PARTS * 16] = weight[1];
    weights[to + 2 * PARTS * 16] = weight[2]; weights[to + 3 * PARTS * 16] = weight[3];
    y0 = by_row(y0, keep); y1 = by_row(y1, keep); y2 = by_row(y2, keep); y3 = by_row(y3, keep);
    y4 = by_row(y4, keep); y5 = by_row(y5, keep); y6 = by_row(y6, keep); y7 = by_row(y7, keep);
    workgroupBarrier();
    for (var key = 0u; key < TILE; key += 4) {
      let at = key * 16 + block;
      let w = mat4x4f(weights[at], weights[at + 16], weights[at + 32], weights[at + 48]);
      y0 += w * values(key, part);
      if (H > 16) { y1 += w * values(key, part + PARTS); }
      if (H > 32) { y2 += w * values(key, part + 2 * PARTS); }
      if (H > 48) { y3 += w * values(key, part + 3 * PARTS); }
      if (H > 64) { y4 += w * values(key, part + 4 * PARTS); }
      if (H > 80) { y5 += w * values(key, part + 5 * PARTS); }
      if (H > 96) { y6 += w * values(key, part + 6 * PARTS); }
      if (H > 112) { y7 += w * values(key, part + 7 * PARTS); }
    }
    workgroupBarrier();
    s += TILE;
    if (s >= p.sinks && s < start) { s = start; }  // nothing to see between the sinks and the window
  }

  tops[part * 16 + block] = l;
  workgroupBarrier();
  let total = tops[block] + tops[16 + block] + tops[32 + block] + tops[48 + block];
  let inverse = select(vec4f(), 1 / total, total > vec4f());  // the division, put off to the end
  let count = min(4u, max(rows, r0 + block * 4) - r0 - block * 4);
  write(y0, inverse, row, count, part); write(y1, inverse, row, count, part + PARTS);
  write(y2, inverse, row, count, part + 2 * PARTS); write(y3, inverse, row, count, part + 3 * PARTS);
  write(y4, inverse, row, count, part + 4 * PARTS); write(y5, inverse, row, count, part + 5 * PARTS);
  write(y6, inverse, row, count, part + 6 * PARTS); write(y7, inverse, row, count, part + 7 * PARTS);
  if (part > 0) { return; }
  for (var i = 0u; i < count; i++) {
    lse[n[i] % p.N * p.T + n[i] / p.N] = select(NOTHING, (m[i] + log2(total[i])) / LOG2_E, total[i] > 0);
  }
}
