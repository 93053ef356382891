// Matrix product with the weight matrix stored output-major, as checkpoints do.
//   out[t,m] = sum_d x[t,d] weight[m,d] + bias[m] + residual[t,m]
// Grid: one invocation owns 8 rows and 8 columns of out, all in registers; blocks of columns vary fastest; folded into y.
// In:  x [T,d_in] f32, weight [d_out,d_in] in WEIGHT_FORMAT (d_in a multiple of 8), bias [d_out] f32 when HAS_BIAS,
//      scales of the blocks of formats 3 and 4 (weights/blocks.py).
// Out: element (t,m) at out[(out_row0 + t) * out_stride + out_col0 + m]: straight into a cache or a wider matrix.
// Loops per invocation: d_in/8 + 64.
// A 4 x 4 block is one mat4x4f: columns are weight rows, lanes are tokens. transpose(X) * W adds four products
// to each of sixteen sums for eight vec4 loads; with 8 x 8 the same loads serve twice.

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
fn x4(row: u32, d: u32) -> vec4f {
  return x[(row * p.d_in + d) / 4];
}
// Four tokens and four features, lanes are tokens. Rows past T repeat the last one and are never written.
fn tokens4(t: u32, d: u32) -> mat4x4f {
  let last = p.T - 1;
  return transpose(mat4x4f(x4(min(t, last), d), x4(min(t + 1, last), d), x4(min(t + 2, last), d), x4(min(t + 3, last), d)));
}

fn write4(t: u32, m: u32, values: vec4f) {  // four tokens of one column
  if (m >= p.d_out) { return; }
  var b = 0.0;
  if (HAS_BIAS) { b = bias[m]; }
  for (var i = 0u; i < 4; i++) {
    if (t + i < p.T) { write1((p.out_row0 + t + i) * p.out_stride + p.out_col0 + m, values[i] + b); }
  }
}

fn write16(t: u32, m: u32, block: mat4x4f) {
  write4(t, m, block[0]); write4(t, m + 1, block[1]); write4(t, m + 2, block[2]); write4(t, m + 3, block[3]);
}

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.y * groups.x * 32 + id.x;
  let blocks = (p.d_out + 7) / 8;
  let t = i / blocks * 8;
  let m = i % blocks * 8;
  if (t >= p.T) { return; }
  let last = p.d_out - 1;
  var a0 = mat4x4f(); var a1 = mat4x4f();  // tokens t .. t+3, columns m .. m+3 and m+4 .. m+7
  var b0 = mat4x4f(); var b1 = mat4x4f();  // tokens t+4 .. t+7
  for (var d = 0u; d < p.d_in; d += 8) {
    let w0 = weight8(m, d);
    let w1 = weight8(min(m + 1, last), d);
    let w2 = weight8(min(m + 2, last), d);
    let w3 = weight8(min(m + 3, last), d);
    let w4 = weight8(min(m + 4, last), d);
    let w5 = weight8(min(m + 5, last), d);
    let w6 = weight8(min(m + 6, last), d);
    let w7 = weight8(min(m + 7, last), d);
    let left_lo = mat4x4f(w0.lo, w1.lo, w2.lo, w3.lo); let left_hi = mat4x4f(w0.hi, w1.hi, w2.hi, w3.hi);
    let right_lo = mat4x4f(w4.lo, w5.lo, w6.lo, w7.lo); let right_hi = mat4x4f(w4.hi, w5.hi, w6.hi, w7.hi);
    let upper_lo = tokens4(t, d); let upper_hi = tokens4(t, d + 4);
    let lower_lo = tokens4(t + 4, d); let lower_hi = tokens4(t + 4, d + 4);
    a0 += upper_lo * left_lo + upper_hi * left_hi;
    a1 += upper_lo * right_lo + upper_hi * right_hi;
    b0 += lower_lo * left_lo + lower_hi * left_hi;
    b1 += lower_lo * right_lo + lower_hi * right_hi;
  }
  write16(t, m, a0); write16(t, m + 4, a1);
  write16(t + 4, m, b0); write16(t + 4, m + 4, b1);
}
