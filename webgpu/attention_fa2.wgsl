// Causal grouped-query attention, FlashAttention-2 forward (Dao 2023, Algorithm 1).
//   o[t,n,:] = sum_s softmax_s(scale * q[t,n,:] . k[s,n/G,:]) v[s,n/G,:]     over the keys that query t may see
// Query t stands at position P = offset + t. It sees key s when s <= P and (window == 0 or P - s < window or s < sinks).
// Grid: one invocation owns 4 query rows of one head; keys stream through 4 at a time. Long rows first; folded into y.
// In:  q [T,N,H], k and v [S,K,H] f32.   Out: o [T,N,H] f32, lse [N,T] f32 (natural log of the sum of exponentials).
// Loops per invocation: ceil((key1-key0)/4) * (H/2 + 1) + 3H/4.
// One dispatch sees keys key0 .. key1-1. The next one continues from o and lse: a finished row is the softmax state
// with maximum lse and sum 1. Masked keys weigh exactly 0; a row that sees nothing gets o = 0 and lse = -1e30.
//
// Four by four: lanes are query rows. q is turned once, so that q[h] * K is a 4 x 4 block of scores (column = key),
// and p * transpose(V) adds four keys to a 4 x 4 block of o. No workgroup memory, no barrier.

override H: u32 = 64;
const MAX_H4 = 64;           // private arrays need a size known to the compiler: H <= 256
const LOG2_E = 1.4426950408889634;
const NOTHING = -1e30;       // finite: Tint refuses infinities, and NOTHING - NOTHING is 0

struct Params {
  T: u32, S: u32, N: u32, K: u32, offset: u32, window: u32, sinks: u32, key0: u32, key1: u32, scale: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4f>;
@group(0) @binding(2) var<storage, read> k: array<vec4f>;
@group(0) @binding(3) var<storage, read> v: array<vec4f>;
@group(0) @binding(4) var<storage, read_write> o: array<vec4f>;
@group(0) @binding(5) var<storage, read_write> lse: array<f32>;

fn visible(position: vec4u, s: u32) -> vec4<bool> {
  let near = p.window == 0 || s < p.sinks;
  return (position >= vec4u(s)) & (vec4<bool>(near) | (position < vec4u(s + p.window)));
}
fn scale_lanes(m: mat4x4f, f: vec4f) -> mat4x4f { return mat4x4f(m[0] * f, m[1] * f, m[2] * f, m[3] * f); }

@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let index = id.y * groups.x * 16 + id.x;
  let blocks = (p.T + 3) / 4;
  if (index >= blocks * p.N) { return; }
  let n = index % p.N;
  let t0 = (blocks - 1 - index / p.N) * 4;
  let t = min(vec4u(t0, t0 + 1, t0 + 2, t0 + 3), vec4u(p.T - 1));  // rows past T repeat the last and are not written
  let position = p.offset + t;
  let row = (t * p.N + n) * (H / 4);
  let kv = n / (p.N / p.K) * (H / 4);
  let kv_stride = p.K * (H / 4);

  var turned: array<mat4x4f, MAX_H4>;
  var sum: array<mat4x4f, MAX_H4>;
  var m = vec4f(NOTHING);
  var l = vec4f();
  if (p.key0 > 0) {
    m = vec4f(lse[n * p.T + t.x], lse[n * p.T + t.y], lse[n * p.T + t.z], lse[n * p.T + t.w]);
    l = select(vec4f(), vec4f(1), m > vec4f(NOTHING));
    m = max(m * LOG2_E, vec4f(NOTHING));
  }
  for (var h = 0u; h < H / 4; h++) {
    turned[h] = transpose(mat4x4f(q[row.x + h], q[row.y + h], q[row.z + h], q[row.w + h])) * (p.scale * LOG2_E);
    sum[h] = mat4x4f();
    if (p.key0 > 0) { sum[h] = transpose(mat4x4f(o[row.x + h], o[row.y + h], o[row.z + h], o[row.w + h])); }
  }

  let end = min(min(p.key1, p.S), position.w + 1);  // causal: keys after the last row's position are never read
  var start = 0u;                                   // the first key inside the first row's window
  if (p.window > 0 && position.x >= p.window) { start = position.x - p.window + 1; }
  for (var s = p.key0; s < end; s += 4) {
    if (s >= p.sinks && s < start) { s = start; if (s >= end) { break; } }
    let at = kv + min(vec4u(s, s + 1, s + 2, s + 3), vec4u(end - 1)) * kv_stride;
    var score = mat4x4f();
    for (var h = 0u; h < H / 4; h++) { score += turned[h] * mat4x4f(k[at.x + h], k[at.y + h], k[at.z + h], k[at.w + h]); }

    // Every row sees all four keys, or each is looked at: those past `end` and those the mask hides score NOTHING.
    var see = array<vec4<bool>, 4>(vec4<bool>(true), vec4<bool>(true), vec4<bool>(true), vec4<bool>(true));
    if (s + 3 > position.x || s + 3 >= end || p.window > 0) {
      for (var j = 0u; j < 4; j++) {
        see[j] = visible(position, s + j) & vec4<bool>(s + j < end);
        score[j] = select(vec4f(NOTHING), score[j], see[j]);
      }
    }
    let highest = max(m, max(max(score[0], score[1]), max(score[2], score[3])));
    let keep = exp2(m - highest);
    let weight = mat4x4f(
      select(vec4f(), exp2(score[0] - highest), see[0]), select(vec4f(), exp2(score[1] - highest), see[1]),
      select(vec4f(), exp2(score[2] - highest), see[2]), select(vec4f(), exp2(score[3] - highest), see[3]));
    l = l * keep + weight[0] + weight[1] + weight[2] + weight[3];
    m = highest;
    for (var h = 0u; h < H / 4; h++) {
      sum[h] = scale_lanes(sum[h], keep) + weight * transpose(mat4x4f(v[at.x + h], v[at.y + h], v[at.z + h], v[at.w + h]));
    }
  }

  let inverse = select(vec4f(), 1 / l, l > vec4f());
  let row_lse = select(vec4f(NOTHING), (m + log2(l)) / LOG2_E, l > vec4f());
  for (var h = 0u; h < H / 4; h++) {
    let rows = transpose(scale_lanes(sum[h], inverse));
    for (var i = 0u; i < min(4, p.T - t0); i++) { o[row[i] + h] = rows[i]; }
  }
  for (var i = 0u; i < min(4, p.T - t0); i++) { lse[n * p.T + t[i]] = row_lse[i]; }
}
