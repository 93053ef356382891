// Causal grouped-query attention, FlashAttention-2 forward (Dao 2023, Algorithm 1).
//   o[t,n,:] = sum_s softmax_s(scale * q[t,n,:] . k[s,n/G,:]) v[s,n/G,:]     over the keys that query t may see
// Query t stands at position P = offset + t. It sees key s when s <= P and (window == 0 or P - s < window or s < sinks).
// Grid: one invocation owns 4 query rows of one head and 32 of the H dimensions of o (long rows first; folded into y);
//       keys stream through 4 at a time.
// In:  q [T,N,H], k and v [S,K,H] f32.   Out: o [T,N,H] f32, lse [N,T] f32 (natural log of the sum of exponentials).
// Loops per invocation: ceil(S/4) * (1 + ceil(H/16)) + 36.
// A masked key weighs exactly 0; a row that sees nothing gets o = 0 and lse = -1e30.
//
// Lanes are query rows: transpose(Q) * K is a 4 x 4 block of scores (column = key), and weight * transpose(V) adds four
// keys to a 4 x 4 block of o. The sums have names, because compilers keep those in registers and an array indexed by
// a loop variable in slow memory. A head wider than 32 scores its keys once for every 32 dimensions of o: more work
// than one pass over registers that a CPU does not have, and a quarter of the text. No workgroup memory, no barrier.

override H: u32 = 64;        // a multiple of 4
const SLICE = 8;             // vec4s of o per invocation
const LOG2_E = 1.4426950408889634;
const NOTHING = -1e30;       // finite: Tint refuses infinities, and NOTHING - NOTHING is 0

struct Params { T: u32, S: u32, N: u32, K: u32, offset: u32, window: u32, sinks: u32, scale: f32, group0: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4f>;
@group(0) @binding(2) var<storage, read> k: array<vec4f>;
@group(0) @binding(3) var<storage, read> v: array<vec4f>;
@group(0) @binding(4) var<storage, read_write> o: array<vec4f>;
@group(0) @binding(5) var<storage, read_write> lse: array<f32>;

// Four rows and four dimensions as one matrix. Past the end of a head there are zeros, for head dimensions that the
// steps below do not divide; for the others the pipeline is made without the test.
fn q4(at: vec4u, h: u32) -> mat4x4f {
  if (H % 16 != 0 && h >= H / 4) { return mat4x4f(); }
  return transpose(mat4x4f(q[at.x + h], q[at.y + h], q[at.z + h], q[at.w + h]));
}
fn k4(at: vec4u, h: u32) -> mat4x4f {
  if (H % 16 != 0 && h >= H / 4) { return mat4x4f(); }
  return mat4x4f(k[at.x + h], k[at.y + h], k[at.z + h], k[at.w + h]);
}
fn v4(at: vec4u, h: u32) -> mat4x4f {
  if (H % 32 != 0 && h >= H / 4) { return mat4x4f(); }
  return transpose(mat4x4f(v[at.x + h], v[at.y + h], v[at.z + h], v[at.w + h]));
}
fn by_row(m: mat4x4f, f: vec4f) -> mat4x4f { return mat4x4f(m[0] * f, m[1] * f, m[2] * f, m[3] * f); }

fn sees(position: vec4u, s: u32) -> vec4<bool> {
  let near = p.window == 0 || s < p.sinks;
  return (position >= vec4u(s)) & (vec4<bool>(near) | (position < vec4u(s + p.window)));
}
fn masked(score: vec4f, position: vec4u, s: u32, end: u32) -> vec4f {
  return select(vec4f(NOTHING), score, sees(position, s) & vec4<bool>(s < end));
}
fn weigh(score: vec4f, highest: vec4f) -> vec4f {  // exactly 0 where masked, also in a row that has seen nothing yet
  return select(vec4f(), exp2(score - highest), score > vec4f(NOTHING));
}

fn write4(y: mat4x4f, inverse: vec4f, row: vec4u, rows: u32, h: u32) {
  if (H % 32 != 0 && h >= H / 4) { return; }
  let turned = transpose(by_row(y, inverse));
  for (var i = 0u; i < rows; i++) { o[row[i] + h] = turned[i]; }
}

@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let index = (p.group0 + id.y * groups.x) * 16 + id.x;
  let blocks = (p.T + 3) / 4;
  let slices = (H / 4 + SLICE - 1) / SLICE;
  if (index >= blocks * slices * p.N) { return; }
  let n = index % p.N;
  let h0 = index / p.N % slices * SLICE;
  let t0 = (blocks - 1 - index / p.N / slices) * 4;
  let t = min(vec4u(t0, t0 + 1, t0 + 2, t0 + 3), vec4u(p.T - 1));  // rows past T repeat the last and are not written
  let position = p.offset + t;
  let row = (t * p.N + n) * (H / 4);
  let kv = n / (p.N / p.K) * (H / 4);

  var y0 = mat4x4f(); var y1 = mat4x4f(); var y2 = mat4x4f(); var y3 = mat4x4f();
  var y4 = mat4x4f(); var y5 = mat4x4f(); var y6 = mat4x4f(); var y7 = mat4x4f();
  var m = vec4f(NOTHING);
  var l = vec4f();
  let end = min(p.S, position.w + 1);  // causal: keys after the last row's position are never read
  var start = 0u;                      // the first key inside the first row's window
  if (p.window > 0 && position.x >= p.window) { start = position.x - p.window + 1; }
  var s = select(0u, start, p.sinks == 0);
  while (s < end) {
    let at = kv + min(vec4u(s, s + 1, s + 2, s + 3), vec4u(end - 1)) * (p.K * (H / 4));
    var score = mat4x4f();
    for (var h = 0u; h < H / 4; h += 4) {
      score += q4(row, h) * k4(at, h); score += q4(row, h + 1) * k4(at, h + 1);
      score += q4(row, h + 2) * k4(at, h + 2); score += q4(row, h + 3) * k4(at, h + 3);
    }
    score = score * (p.scale * LOG2_E);
    if (s + 3 > position.x || s + 3 >= end || p.window > 0) {  // otherwise all four rows see all four keys
      score = mat4x4f(masked(score[0], position, s, end), masked(score[1], position, s + 1, end),
                      masked(score[2], position, s + 2, end), masked(score[3], position, s + 3, end));
    }
    let highest = max(m, max(max(score[0], score[1]), max(score[2], score[3])));
    let keep = exp2(m - highest);
    let weight = mat4x4f(weigh(score[0], highest), weigh(score[1], highest), weigh(score[2], highest), weigh(score[3], highest));
    l = l * keep + weight[0] + weight[1] + weight[2] + weight[3];
    m = highest;
    y0 = by_row(y0, keep) + weight * v4(at, h0); y1 = by_row(y1, keep) + weight * v4(at, h0 + 1);
    y2 = by_row(y2, keep) + weight * v4(at, h0 + 2); y3 = by_row(y3, keep) + weight * v4(at, h0 + 3);
    y4 = by_row(y4, keep) + weight * v4(at, h0 + 4); y5 = by_row(y5, keep) + weight * v4(at, h0 + 5);
    y6 = by_row(y6, keep) + weight * v4(at, h0 + 6); y7 = by_row(y7, keep) + weight * v4(at, h0 + 7);
    s += 4;
    if (s >= p.sinks && s < start) { s = start; }  // nothing to see between the sinks and the window
  }

  let rows = min(4u, p.T - t0);
  let inverse = select(vec4f(), 1 / l, l > vec4f());  // the division is put off to the end
  write4(y0, inverse, row, rows, h0); write4(y1, inverse, row, rows, h0 + 1);
  write4(y2, inverse, row, rows, h0 + 2); write4(y3, inverse, row, rows, h0 + 3);
  write4(y4, inverse, row, rows, h0 + 4); write4(y5, inverse, row, rows, h0 + 5);
  write4(y6, inverse, row, rows, h0 + 6); write4(y7, inverse, row, rows, h0 + 7);
  if (h0 > 0) { return; }
  let row_lse = select(vec4f(NOTHING), (m + log2(l)) / LOG2_E, l > vec4f());
  for (var i = 0u; i < rows; i++) { lse[n * p.T + t[i]] = row_lse[i]; }
}
