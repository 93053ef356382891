// Puts the parts of attention_decode.wgsl together: a softmax over splits of sums that are each relative to their own maximum.
//   m = max_j m_j,   l = sum_j l_j exp2(m_j - m),   o = sum_j sum_j exp2(m_j - m) / l,   lse = ln(2) (m + log2(l))
// Grid: one invocation owns 4 numbers of one row (t,n); folded into y.
// In:  part [T*N, splits, H + 4] f32: H numbers of sum, then m, l, 0, 0.
// Out: o [T,N,H] f32, lse [N,T] f32 (natural log). A row that sees nothing gets o = 0 and lse = -1e30.
// Loops per invocation: splits.

override H: u32 = 64;
const LOG2_E = 1.4426950408889634;
const NOTHING = -1e30;

struct Params { T: u32, N: u32, splits: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> part: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> o: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> lse: array<f32>;

@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let index = id.y * groups.x * 16 + id.x;
  let h = index % (H / 4);
  let row = index / (H / 4);  // t * N + n
  if (row >= p.T * p.N) { return; }
  var m = NOTHING;
  var l = 0.0;
  var sum = vec4f();
  for (var j = 0u; j < p.splits; j++) {
    let at = (row * p.splits + j) * (H / 4 + 1);
    let state = part[at + H / 4];
    let highest = max(m, state.x);
    let keep = exp2(m - highest);
    let add = exp2(state.x - highest);
    sum = sum * keep + part[at + h] * add;
    l = l * keep + state.y * add;
    m = highest;
  }
  let seen = l > 0;
  o[index] = select(vec4f(), sum / l, seen);
  if (h == 0) { lse[row % p.N * p.T + row / p.N] = select(NOTHING, (m + log2(l)) / LOG2_E, seen); }
}
