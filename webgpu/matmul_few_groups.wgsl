// Matrix product of few tokens (2 to 32) on a GPU: a weight row is read by a team, as in matvec_groups.wgsl.
//   out[t,m] = sum_d x[t,d] weight[m,d] + bias[m] + residual[t,m]
// Grid: a workgroup owns 8 rows and 8 columns of out, each of its two teams of 32 invocations 8 x 4; blocks of rows vary
//       fastest, so that the second finds the weights in the cache; folded into y.
// In:  x [T,d_in] f32, weight [d_out,d_in] in WEIGHT_FORMAT (d_in a multiple of 8), bias [d_out] f32 when HAS_BIAS,
//      scales of the blocks of formats 3 and 4 (weights/blocks.py).
// Out: element (t,m) at out[(out_row0 + t) * out_stride + out_col0 + m]: straight into a cache or a wider matrix.
// Loops per invocation: ceil(d_in/256) + 4 * 8 + 32.
// With few tokens a tile of out per workgroup (matmul_groups.wgsl) would leave most of a GPU idle: 14 x 576 is nine of them.
// Here the features are shared among the invocations of a team, so that 14 x 576 occupies 144 workgroups. In one turn a team
// takes 256 neighbouring weights of each of four rows, and each weight serves eight tokens in registers.
// Lanes of matrices are tokens: transpose(X) * W is a 4 x 4 block of out over four features.

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

const TEAM = 32u;
const STRIDE = 2 * TEAM + 1;  // one more than a row, so that a team's invocations read from different banks
var<workgroup> parts: array<f32, 32 * STRIDE>;  // [token of eight][column of four][invocation]

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

fn x4(row: u32, d: u32) -> vec4f {  // rows past T repeat the last one and are never written
  return x[(min(row, p.T - 1) * p.d_in + d) / 4];
}
fn tokens4(t: u32, d: u32) -> mat4x4f {
  return transpose(mat4x4f(x4(t, d), x4(t + 1, d), x4(t + 2, d), x4(t + 3, d)));
}
fn keep(first: u32, block: mat4x4f, local: u32) {  // first: the token of the block's first lane
  for (var i = 0u; i < 4; i++) {
    let at = (first + i) * 4 * STRIDE + local;
    parts[at] = block[0][i]; parts[at + STRIDE] = block[1][i];
    parts[at + 2 * STRIDE] = block[2][i]; parts[at + 3 * STRIDE] = block[3][i];
  }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) local: u32) {
  let group = id.y * groups.x + id.x;
  let blocks = (p.T + 7) / 8;
  let t0 = group % blocks * 8;
  let m0 = group / blocks * 8 + local / TEAM * 4;
  if (group / blocks * 8 >= p.d_out) { return; }  // the whole workgroup
  let last = p.d_out - 1;
  var a = mat4x4f();  // tokens t0 .. t0+3, columns m0 .. m0+3
  var b = mat4x4f();  // tokens t0+4 .. t0+7
  for (var d = local % TEAM * 8; d < p.d_in; d += TEAM * 8) {
    let w0 = weight8(min(m0, last), d);
    let w1 = weight8(min(m0 + 1, last), d);
    let w2 = weight8(min(m0 + 2, last), d);
    let w3 = weight8(min(m0 + 3, last), d);
    let lo = mat4x4f(w0.lo, w1.lo, w2.lo, w3.lo);
    let hi = mat4x4f(w0.hi, w1.hi, w2.hi, w3.hi);
    a += tokens4(t0, d) * lo + tokens4(t0, d + 4) * hi;
    b += tokens4(t0 + 4, d) * lo + tokens4(t0 + 4, d + 4) * hi;
  }
  keep(0, a, local);
  keep(4, b, local);
  workgroupBarrier();

  let own = local % TEAM;  // each invocation adds up one of its team's 32 numbers
  let t = t0 + own / 4;
  let m = m0 + own % 4;
  if (t >= p.T || m > last) { return; }
  var total = 0.0;
  for (var i = 0u; i < TEAM; i++) { total += parts[own * STRIDE + local / TEAM * TEAM + i]; }
  if (HAS_BIAS) { total += bias[m]; }
  write1((p.out_row0 + t) * p.out_stride + p.out_col0 + m, total);
}
