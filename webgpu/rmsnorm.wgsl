// RMSNorm (Zhang and Sennrich 2019, equation 4); also QK-norm, where a row is one head of a token.
//   out[r,:] = weight * x[r,:] / sqrt(mean(x[r,:]^2) + eps)
// Grid: one invocation per row, folded into y.
// In:  x f32: a row for each token, or for QK-norm `heads` rows at the start of each token's `stride` numbers; weight [width]
//      f32, or [2,width]: those of a token's first N heads (queries), then of the others (keys).   Out: out [rows,width] f32.
// Loops per invocation: 2 * ceil(width/4).
// The four partial sums keep the rounding error of a long row small.

struct Params { rows: u32, width: u32, heads: u32, N: u32, stride: u32, eps: f32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let row = id.y * groups.x * 8 + id.x;
  if (row >= p.rows) { return; }
  let base = row * p.width;
  let head = row % p.heads;
  let start = row / p.heads * p.stride + head * p.width;
  let gain = select(0u, p.width, head >= p.N);
  let last = p.width - 1;

  var squares = vec4f();
  for (var d = 0u; d < p.width; d += 4) {
    let i = vec4u(d, d + 1, d + 2, d + 3);
    let at = start + min(i, vec4u(last));
    let value = vec4f(x[at.x], x[at.y], x[at.z], x[at.w]);
    squares += select(vec4f(), value * value, i <= vec4u(last));
  }
  let mean = (squares.x + squares.y + squares.z + squares.w) / f32(p.width);
  let scale = 1 / sqrt(mean + p.eps);

  for (var d = 0u; d < p.width; d += 4) {
    for (var i = d; i < min(d + 4, p.width); i++) { out[base + i] = weight[gain + i] * (x[start + i] * scale); }
  }
}
