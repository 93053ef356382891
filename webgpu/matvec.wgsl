// Matrix product for one token (decoding), where reading the weights is all the work; several tokens each by itself.
//   out[t,m] = sum_d x[t,d] weight[m,d] + bias[m] + residual[t,m]
// Grid: one invocation owns 4 columns of out for one token; folded into y.
// In:  x [T,d_in] f32, weight [d_out,d_in] in WEIGHT_FORMAT (d_in a multiple of 8), bias [d_out] f32 when HAS_BIAS,
//      scales of the blocks of formats 3 and 4 (weights/blocks.py).
// Out: element (t,m) at out[(out_row0 + t) * out_stride + out_col0 + m].
// Loops per invocation: d_in/8 (and 4 to write).
// x * mat4x4f(four weight rows) is four dot products: every load of x serves four columns.

override WEIGHT_FORMAT: u32 = 0;  // 0 = f32, 1 = two f16 a word, 2 = two bf16 a word, 3 = Q4_1 blocks, 4 = Q8_0 blocks
override HAS_BIAS: bool = false;

struct Params { T: u32, d_in: u32, d_out: u32, out_row0: u32, out_col0: u32, out_stride: u32, add_residual: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> weight: array<vec4u>;
@group(0) @binding(3) var<storage, read> scales: array<u32>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read> residual: array<f32>;
@group(0) @binding(6) var<storage, read_write> out: array<f32>;

fn write1(at: u32, value: f32) {  // the residual stream, where one is added, lies as out does
  var sum = value;
  if (p.add_residual == 1) { sum += residual[at]; }
  out[at] = sum;
}

struct Eight { lo: vec4f, hi: vec4f }

fn halves(pair: u32) -> vec2f {
  if (WEIGHT_FORMAT == 1) { return unpack2x16float(pair); }
  return vec2f(bitcast<f32>(pair << 16), bitcast<f32>(pair & 0xffff0000u));
}
// Four bits each: the low four nibbles of a word, then the high four. A nibble keeps its place and its scale is divided by
// 16 for each step instead, which is exact; shifts and unsigned conversions cost several instructions on CPU drivers.
fn nibbles(word: u32, scale: vec2f) -> Eight {
  let d = scale.x * vec4f(1, 1.0 / 16, 1.0 / 256, 1.0 / 4096);
  let lo = vec4f(vec4i(vec4u(word) & vec4u(0xf, 0xf0, 0xf00, 0xf000)));
  let hi = vec4f(vec4i(vec4u(word >> 16) & vec4u(0xf, 0xf0, 0xf00, 0xf000)));
  return Eight(fma(lo, d, vec4f(scale.y)), fma(hi, d, vec4f(scale.y)));
}
fn signed_bytes(word: u32) -> vec4f {
  return vec4f(bitcast<vec4i>(vec4u(word << 24, word << 16, word << 8, word)) >> vec4u(24));
}

// Eight weights of a row, from d on (a multiple of 8).
fn weight8(row: u32, d: u32) -> Eight {
  let i = (row * p.d_in + d) / 8;
  if (WEIGHT_FORMAT == 3) { return nibbles(weight[i / 4][i % 4], unpack2x16float(scales[i / 4])); }
  if (WEIGHT_FORMAT == 4) {
    let pair = unpack2x16float(scales[i / 8]);
    let scale = select(pair.x, pair.y, i / 4 % 2 == 1);
    return Eight(signed_bytes(weight[i / 2][i % 2 * 2]) * scale, signed_bytes(weight[i / 2][i % 2 * 2 + 1]) * scale);
  }
  if (WEIGHT_FORMAT == 0) { return Eight(bitcast<vec4f>(weight[2 * i]), bitcast<vec4f>(weight[2 * i + 1])); }
  let words = weight[i];
  return Eight(vec4f(halves(words.x), halves(words.y)), vec4f(halves(words.z), halves(words.w)));
}
fn x4(t: u32, d: u32) -> vec4f {
  return x[(t * p.d_in + d) / 4];
}

@compute @workgroup_size(64)  // llvmpipe keeps 160 KB of each dispatch for ever when this is 32 or 16
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.y * groups.x * 64 + id.x;
  let blocks = (p.d_out + 3) / 4;
  let t = i / blocks;
  let m = i % blocks * 4;
  if (t >= p.T) { return; }
  let last = p.d_out - 1;
  var sum = vec4f();
  for (var d = 0u; d < p.d_in; d += 8) {
    let w0 = weight8(m, d);
    let w1 = weight8(min(m + 1, last), d);
    let w2 = weight8(min(m + 2, last), d);
    let w3 = weight8(min(m + 3, last), d);
    sum += x4(t, d) * mat4x4f(w0.lo, w1.lo, w2.lo, w3.lo) + x4(t, d + 4) * mat4x4f(w0.hi, w1.hi, w2.hi, w3.hi);
  }
  for (var i = 0u; i < 4 && m + i <= last; i++) {
    var b = 0.0;
    if (HAS_BIAS) { b = bias[m + i]; }
    write1((p.out_row0 + t) * p.out_stride + p.out_col0 + m + i, sum[i] + b);
  }
}
