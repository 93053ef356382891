// RMSNorm on a GPU: a workgroup shares a row. See rmsnorm.wgsl.
//   out[r,:] = weight * x[r,:] / sqrt(mean(x[r,:]^2) + eps)
// Grid: one workgroup per row, folded into y.
// In:  x, weight and Out: out as there; QK-norm too.
// Loops per invocation: 2 * ceil(width/64) + 6.
// A decode step norms one row 61 times in 30 layers; one invocation alone would walk 576 numbers each time while the GPU
// waits. Here 64 neighbours read 64 neighbouring numbers, and their sums meet in workgroup memory, halved six times.

struct Params { rows: u32, width: u32, heads: u32, N: u32, stride: u32, eps: f32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

const THREADS = 64u;
var<workgroup> squares: array<f32, THREADS>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) local: u32) {
  let row = id.y * groups.x + id.x;
  if (row >= p.rows) { return; }  // the whole workgroup
  let base = row * p.width;
  let head = row % p.heads;
  let start = row / p.heads * p.stride + head * p.width;
  let gain = select(0u, p.width, head >= p.N);

  var sum = 0.0;
  for (var d = local; d < p.width; d += THREADS) { sum += x[start + d] * x[start + d]; }
  squares[local] = sum;
  workgroupBarrier();
  for (var half = THREADS / 2; half > 0; half /= 2) {
    if (local < half) { squares[local] += squares[local + half]; }
    workgroupBarrier();
  }
  let scale = 1 / sqrt(squares[0] / f32(p.width) + p.eps);

  for (var d = local; d < p.width; d += THREADS) { out[base + d] = weight[gain + d] * (x[start + d] * scale); }
}
