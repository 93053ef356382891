// Few queries against a long key/value cache (Flash-Decoding, Dao et al. 2023): the keys are split among invocations.
//   part j of row (t,n): m = max_s score[s], l = sum_s exp2(score[s] - m), sum = sum_s exp2(score[s] - m) v[s,:]
// over the visible keys s of split j, score in units of log2. attention_merge.wgsl puts the parts together.
// Query t stands at position P = offset + t. It sees key s when s <= P and (window == 0 or P - s < window or s < sinks).
// Grid: one invocation owns one split of `span` keys, 4 packed rows of one key/value head and 32 of the H dimensions of
//       sum; folded into y. The T * G queries that share a key/value head are packed, r = t * G + g, and so share
//       every load of k and v.
// In:  q [T,N,H], k and v [S,K,H] f32.
// Out: part [T*N, splits, H + 4] f32: H numbers of sum, then m, l, 0, 0. A split that sees nothing has l = 0.
// Loops per invocation: ceil(span/4) * (1 + ceil(H/16)) + 36.
// The arithmetic is that of attention_fa2.wgsl, explained there.

override H: u32 = 64;        // a multiple of 4
const SLICE = 8;             // vec4s of the sum per invocation
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

fn write4(y: mat4x4f, to: vec4u, rows: u32, h: u32) {
  if (H % 32 != 0 && h >= H / 4) { return; }
  let turned = transpose(y);
  for (var i = 0u; i < rows; i++) { part[to[i] + h] = turned[i]; }
}

@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let index = id.y * groups.x * 16 + id.x;
  let G = p.N / p.K;
  let slices = (H / 4 + SLICE - 1) / SLICE;
  let split = index % p.splits;
  let kv_head = index / p.splits % p.K;
  let h0 = index / p.splits / p.K % slices * SLICE;
  let r0 = index / p.splits / p.K / slices * 4;
  if (r0 >= p.T * G) { return; }
  let r = min(vec4u(r0, r0 + 1, r0 + 2, r0 + 3), vec4u(p.T * G - 1));  // rows past the end are not written
  let position = p.offset + r / G;
  let head_row = r / G * p.N + kv_head * G + r % G;  // t * N + n
  let row = head_row * (H / 4);
  let kv = kv_head * (H / 4);

  var y0 = mat4x4f(); var y1 = mat4x4f(); var y2 = mat4x4f(); var y3 = mat4x4f();
  var y4 = mat4x4f(); var y5 = mat4x4f(); var y6 = mat4x4f(); var y7 = mat4x4f();
  var m = vec4f(NOTHING);
  var l = vec4f();
  let end = min(min(split * p.span + p.span, p.S), position.w + 1);
  for (var s = split * p.span; s < end; s += 4) {
    let at = kv + min(vec4u(s, s + 1, s + 2, s + 3), vec4u(end - 1)) * (p.K * (H / 4));
    var score = mat4x4f();
    for (var h = 0u; h < H / 4; h += 4) {
      score += q4(row, h) * k4(at, h); score += q4(row, h + 1) * k4(at, h + 1);
      score += q4(row, h + 2) * k4(at, h + 2); score += q4(row, h + 3) * k4(at, h + 3);
    }
    score = score * (p.scale * LOG2_E);
    score = mat4x4f(masked(score[0], position, s, end), masked(score[1], position, s + 1, end),
                    masked(score[2], position, s + 2, end), masked(score[3], position, s + 3, end));
    let highest = max(m, max(max(score[0], score[1]), max(score[2], score[3])));
    let keep = exp2(m - highest);
    let weight = mat4x4f(weigh(score[0], highest), weigh(score[1], highest), weigh(score[2], highest), weigh(score[3], highest));
    l = l * keep + weight[0] + weight[1] + weight[2] + weight[3];
    m = highest;
    y0 = by_row(y0, keep) + weight * v4(at, h0); y1 = by_row(y1, keep) + weight * v4(at, h0 + 1);
    y2 = by_row(y2, keep) + weight * v4(at, h0 + 2); y3 = by_row(y3, keep) + weight * v4(at, h0 + 3);
    y4 = by_row(y4, keep) + weight * v4(at, h0 + 4); y5 = by_row(y5, keep) + weight * v4(at, h0 + 5);
    y6 = by_row(y6, keep) + weight * v4(at, h0 + 6); y7 = by_row(y7, keep) + weight * v4(at, h0 + 7);
  }

  let rows = min(4u, p.T * G - r0);
  let to = (head_row * p.splits + split) * (H / 4 + 1);
  write4(y0, to, rows, h0); write4(y1, to, rows, h0 + 1); write4(y2, to, rows, h0 + 2); write4(y3, to, rows, h0 + 3);
  write4(y4, to, rows, h0 + 4); write4(y5, to, rows, h0 + 5); write4(y6, to, rows, h0 + 6); write4(y7, to, rows, h0 + 7);
  if (h0 > 0) { return; }
  for (var i = 0u; i < rows; i++) { part[to[i] + H / 4] = vec4f(m[i], l[i], 0, 0); }
}
