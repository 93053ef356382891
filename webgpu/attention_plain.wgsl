// Causal grouped-query attention in the fewest words: what a first prompt runs on while a faster text is being compiled.
//   o[t,n,:] = sum_s softmax_s(scale * q[t,n,:] . k[s, n/G, :]) v[s, n/G, :]
// Query t stands at position P = offset + t. It sees key s when s <= P and (window == 0 or P - s < window or s < sinks).
// Grid: one invocation owns 4 dimensions of o of one query head's row, folded into y; it computes all the row's scores,
//       so H / 4 invocations do each product of q and k again. What is saved is registers, and so the compiler's time.
// In:  q [T,N,H], k and v [S,K,H] f32.   Out: o [T,N,H], lse [N,T] (natural log; -1e30 and o = 0 where nothing is seen).
// Loops per invocation: S * (1 + H/4).
// Softmax online (Milakov and Gimelshein 2018): m is the largest score so far, l and y are sums of exp2(score - m).

override H: u32 = 64;        // a multiple of 4
const LOG2_E = 1.4426950408889634;
const NOTHING = -1e30;       // finite: Tint refuses infinities, and NOTHING - NOTHING is 0

struct Params { T: u32, S: u32, N: u32, K: u32, offset: u32, window: u32, sinks: u32, scale: f32, group0: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4f>;
@group(0) @binding(2) var<storage, read> k: array<vec4f>;
@group(0) @binding(3) var<storage, read> v: array<vec4f>;
@group(0) @binding(4) var<storage, read_write> o: array<vec4f>;
@group(0) @binding(5) var<storage, read_write> lse: array<f32>;

@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let index = (p.group0 + id.y * groups.x) * 16 + id.x;
  let h = index % (H / 4);
  let row = index / (H / 4);  // t * N + n
  if (row >= p.T * p.N) { return; }
  let t = row / p.N;
  let n = row % p.N;
  let position = p.offset + t;

  var y = vec4f();
  var m = NOTHING;
  var l = 0.0;
  for (var s = 0u; s < min(p.S, position + 1); s++) {
    if (p.window != 0 && position - s >= p.window && s >= p.sinks) { continue; }
    let at = (s * p.K + n / (p.N / p.K)) * (H / 4);
    var score = 0.0;
    for (var i = 0u; i < H / 4; i++) { score += dot(q[row * (H / 4) + i], k[at + i]); }
    score *= p.scale * LOG2_E;
    let highest = max(m, score);
    let keep = exp2(m - highest);
    let weight = exp2(score - highest);
    l = l * keep + weight;
    y = y * keep + weight * v[at + h];
    m = highest;
  }
  o[row * (H / 4) + h] = select(y / l, vec4f(), l == 0);
  if (h == 0) { lse[n * p.T + t] = select((m + log2(l)) / LOG2_E, NOTHING, l == 0); }
}
