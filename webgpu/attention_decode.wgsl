// Few queries against a long key/value cache (Flash-Decoding, Dao et al. 2023): the keys are split among invocations.
//   part j of row (t,n): m = max_s score[s], l = sum_s exp2(score[s] - m), sum = sum_s exp2(score[s] - m) v[s,:]
// over the visible keys s of split j, score in units of log2. attention_merge.wgsl puts the parts together.
// Query t stands at position P = offset + t. It sees key s when s <= P and (window == 0 or P - s < window or s < sinks).
// Grid: one invocation owns one split of `span` keys and 4 packed rows of one key/value head; folded into y.
// The T * G queries that share a key/value head are packed, r = t * G + g, so that they share every load of k and v.
// In:  q [T,N,H], k and v [S,K,H] f32.
// Out: part [T*N, splits, H + 4] f32: H numbers of sum, then m, l, 0, 0. A split that sees nothing has l = 0.
// Loops per invocation: ceil(span/4) * (H/2 + 1) + 3H/4.

override H: u32 = 64;
const MAX_H4 = 64;           // private arrays need a size known to the compiler: H <= 256
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

fn visible(position: vec4u, s: u32) -> vec4<bool> {
  let near = p.window == 0 || s < p.sinks;
  return (position >= vec4u(s)) & (vec4<bool>(near) | (position < vec4u(s + p.window)));
}
fn scale_lanes(m: mat4x4f, f: vec4f) -> mat4x4f { return mat4x4f(m[0] * f, m[1] * f, m[2] * f, m[3] * f); }

@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let index = id.y * groups.x * 16 + id.x;
  let G = p.N / p.K;
  let blocks = (p.T * G + 3) / 4;
  let split = index % p.splits;
  let kv_head = index / p.splits % p.K;
  let r0 = index / p.splits / p.K * 4;
  if (r0 >= blocks * 4) { return; }
  let r = min(vec4u(r0, r0 + 1, r0 + 2, r0 + 3), vec4u(p.T * G - 1));  // rows past the end are not written
  let position = p.offset + r / G;
  let head_row = r / G * p.N + kv_head * G + r % G;  // t * N + n
  let row = head_row * (H / 4);
  let kv = kv_head * (H / 4);
  let kv_stride = p.K * (H / 4);

  var turned: array<mat4x4f, MAX_H4>;
  var sum: array<mat4x4f, MAX_H4>;
  for (var h = 0u; h < H / 4; h++) {
    turned[h] = transpose(mat4x4f(q[row.x + h], q[row.y + h], q[row.z + h], q[row.w + h])) * (p.scale * LOG2_E);
    sum[h] = mat4x4f();
  }
  var m = vec4f(NOTHING);
  var l = vec4f();
  let end = min(min(split * p.span + p.span, p.S), position.w + 1);
  for (var s = split * p.span; s < end; s += 4) {
    let at = kv + min(vec4u(s, s + 1, s + 2, s + 3), vec4u(end - 1)) * kv_stride;
    var score = mat4x4f();
    for (var h = 0u; h < H / 4; h++) { score += turned[h] * mat4x4f(k[at.x + h], k[at.y + h], k[at.z + h], k[at.w + h]); }
    var weight = mat4x4f();
    let see0 = visible(position, s);
    let see1 = visible(position, s + 1) & vec4<bool>(s + 1 < end);
    let see2 = visible(position, s + 2) & vec4<bool>(s + 2 < end);
    let see3 = visible(position, s + 3) & vec4<bool>(s + 3 < end);
    score = mat4x4f(select(vec4f(NOTHING), score[0], see0), select(vec4f(NOTHING), score[1], see1),
                    select(vec4f(NOTHING), score[2], see2), select(vec4f(NOTHING), score[3], see3));
    let highest = max(m, max(max(score[0], score[1]), max(score[2], score[3])));
    let keep = exp2(m - highest);
    weight = mat4x4f(select(vec4f(), exp2(score[0] - highest), see0), select(vec4f(), exp2(score[1] - highest), see1),
                     select(vec4f(), exp2(score[2] - highest), see2), select(vec4f(), exp2(score[3] - highest), see3));
    l = l * keep + weight[0] + weight[1] + weight[2] + weight[3];
    m = highest;
    for (var h = 0u; h < H / 4; h++) {
      sum[h] = scale_lanes(sum[h], keep) + weight * transpose(mat4x4f(v[at.x + h], v[at.y + h], v[at.z + h], v[at.w + h]));
    }
  }

  let to = (head_row * p.splits + split) * (H / 4 + 1);
  for (var h = 0u; h < H / 4; h++) {
    let rows = transpose(sum[h]);
    for (var i = 0u; i < min(4, p.T * G - r0); i++) { part[to[i] + h] = rows[i]; }
  }
  for (var i = 0u; i < min(4, p.T * G - r0); i++) { part[to[i] + H / 4] = vec4f(m[i], l[i], 0, 0); }
}
