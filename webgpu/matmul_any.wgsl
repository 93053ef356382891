// Matrix product for rows of any length: the plain one, for the few shapes that matmul.wgsl does not take.
//   out[t,m] = sum_d x[t,d] weight[m,d] + bias[m] + residual[t,m]
// Grid: one invocation per element of out, folded into y.
// In:  x [T,d_in] f32, weight [d_out,d_in] in WEIGHT_FORMAT, bias [d_out] f32 when HAS_BIAS.
// Out: element (t,m) at out[(out_row0 + t) * out_stride + out_col0 + m].
// Loops per invocation: d_in.

override WEIGHT_FORMAT: u32 = 0;  // 0 = f32, 1 = two f16 a word, 2 = two bf16 a word
override HAS_BIAS: bool = false;

struct Params { T: u32, d_in: u32, d_out: u32, out_row0: u32, out_col0: u32, out_stride: u32, add_residual: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<u32>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read> residual: array<f32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;

fn write1(at: u32, value: f32) {  // the residual stream, where one is added, lies as out does
  var sum = value;
  if (p.add_residual == 1) { sum += residual[at]; }
  out[at] = sum;
}

fn weight1(i: u32) -> f32 {
  if (WEIGHT_FORMAT == 0) { return bitcast<f32>(weight[i]); }
  let pair = weight[i / 2];  // little-endian: the even element is the low half
  let odd = i % 2 == 1;
  if (WEIGHT_FORMAT == 1) {
    let values = unpack2x16float(pair);
    return select(values.x, values.y, odd);
  }
  return bitcast<f32>(select(pair << 16, pair & 0xffff0000u, odd));  // bf16 is the upper half of an f32
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.y * groups.x * 64 + id.x;
  if (i >= p.T * p.d_out) { return; }
  let t = i / p.d_out;
  let m = i % p.d_out;
  var sum = 0.0;
  for (var d = 0u; d < p.d_in; d++) { sum += x[t * p.d_in + d] * weight1(m * p.d_in + d); }
  if (HAS_BIAS) { sum += bias[m]; }
  write1((p.out_row0 + t) * p.out_stride + p.out_col0 + m, sum);
}
