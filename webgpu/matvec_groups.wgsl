// Matrix product for one token on a GPU: neighbouring invocations read neighbouring words. Compare matvec.wgsl.
//   out[m] = sum_d x[d] weight[m,d] + bias[m] + residual[m]
// Grid: a workgroup owns 8 columns of out, each of its two teams of 32 invocations 4; folded into y.
// In:  x [d_in] f32, weight [d_out,d_in] in WEIGHT_FORMAT (d_in a multiple of 8), bias [d_out] f32 when HAS_BIAS,
//      scales of the blocks of formats 3 and 4 (weights/blocks.py).
// Out: element m at out[out_row0 * out_stride + out_col0 + m].
// Loops per invocation: ceil(d_in/256) + 32.
// A GPU fetches whole lines of memory for 32 or so invocations at once. So a weight row belongs to a team and not to one
// invocation: in one turn its 32 invocations take 256 neighbouring weights (Q4_1: one line of 128 bytes, Q8_0: two, f16: four)
// and their 256 numbers of x, and no fetched byte is left unused. Each number of x serves four rows. A row of 576 takes
// three turns in place of 72, and 4,608 invocations share 576 columns in place of 144: a GPU waits less and for fewer.
// Then the sums of a team meet in workgroup memory; behind its one barrier eight invocations add 32 numbers each.

override WEIGHT_FORMAT: u32 = 0;  // 0 = f32, 1 = two f16 a word, 2 = two bf16 a word, 3 = Q4_1 blocks, 4 = Q8_0 blocks
override HAS_BIAS: bool = false;

struct Params { d_in: u32, d_out: u32, out_row0: u32, out_col0: u32, out_stride: u32, add_residual: u32 }
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

const TEAM = 32u;
var<workgroup> parts: array<vec4f, 2 * TEAM>;  // [team][invocation]: sums of four columns

struct Eight { lo: vec4f, hi: vec4f }

fn halves(pair: u32) -> vec2f {
  if (WEIGHT_FORMAT == 1) { return unpack2x16float(pair); }
  return vec2f(bitcast<f32>(pair << 16), bitcast<f32>(pair & 0xffff0000u));
}
fn nibbles(word: u32, scale: vec2f) -> Eight {  // a nibble keeps its place and its scale is divided instead, see matmul.wgsl
  let d = scale.x * vec4f(1, 1.0 / 16, 1.0 / 256, 1.0 / 4096);
  let lo = vec4f(vec4i(vec4u(word) & vec4u(0xf, 0xf0, 0xf00, 0xf000)));
  let hi = vec4f(vec4i(vec4u(word >> 16) & vec4u(0xf, 0xf0, 0xf00, 0xf000)));
  return Eight(fma(lo, d, vec4f(scale.y)), fma(hi, d, vec4f(scale.y)));
}
fn signed_bytes(word: u32) -> vec4f {
  return vec4f(bitcast<vec4i>(vec4u(word << 24, word << 16, word << 8, word)) >> vec4u(24));
}
fn weight8(row: u32, d: u32) -> Eight {  // eight weights of a row, from d on (a multiple of 8)
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

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) local: u32) {
  let m0 = (id.y * groups.x + id.x) * 8;
  if (m0 >= p.d_out) { return; }  // the whole workgroup
  let m = m0 + local / TEAM * 4;
  let last = p.d_out - 1;
  var sum = vec4f();
  for (var d = local % TEAM * 8; d < p.d_in; d += TEAM * 8) {
    let w0 = weight8(min(m, last), d);
    let w1 = weight8(min(m + 1, last), d);
    let w2 = weight8(min(m + 2, last), d);
    let w3 = weight8(min(m + 3, last), d);
    sum += x[d / 4] * mat4x4f(w0.lo, w1.lo, w2.lo, w3.lo) + x[d / 4 + 1] * mat4x4f(w0.hi, w1.hi, w2.hi, w3.hi);
  }
  parts[local] = sum;
  workgroupBarrier();

  let column = m0 + local;
  if (local >= 8 || column > last) { return; }
  var total = 0.0;
  for (var i = 0u; i < TEAM; i++) { total += parts[local / 4 * TEAM + i][local % 4]; }
  if (HAS_BIAS) { total += bias[column]; }
  write1(p.out_row0 * p.out_stride + p.out_col0 + column, total);
}
