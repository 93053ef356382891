// Matrix product of many tokens on a GPU: the textbook tile in workgroup memory. Compare matmul.wgsl.
//   out[t,m] = sum_d x[t,d] weight[m,d] + bias[m] + residual[t,m]
// Grid: a workgroup owns 32 rows and 64 columns of out; blocks of columns vary fastest; folded into y. Its 256 invocations
//       are four slices of 64; one owns 8 rows x 4 columns in registers, over its slice's 8 of every 32 features.
// In:  x [T,d_in] f32, weight [d_out,d_in] in WEIGHT_FORMAT (d_in a multiple of 8), bias [d_out] f32 when HAS_BIAS,
//      scales of the blocks of formats 3 and 4 (weights/blocks.py).
// Out: element (t,m) at out[(out_row0 + t) * out_stride + out_col0 + m]: straight into a cache or a wider matrix.
// Loops per invocation: 3 * ceil(d_in/32) + 3 + 32.
// A turn over 32 features:
//   1 fill: an invocation fetches one vec4 of x and eight weights, which become f32 once for all 32 tokens. Neighbours fetch
//     neighbouring words of a row; a row of Q4_1 is 16 bytes here, so that the cache serves the rest of its line next turn
//   2 multiply: 12 vec4s from the tile serve 128 products
// The slices quadruple the invocations of a tile, because prompts are short: 64 x 576 is 18 tiles. In the end slices 1 to 3
// hand their sums to slice 0 through the memory of the weights. Rows of the tile are 9 vec4s and not 8, and an invocation owns
// every fourth row and every 16th column, so that neighbours read from different banks.

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

const ROW = 9u;                                  // vec4s from row to row of a tile, eight of them in use
var<workgroup> tokens: array<vec4f, 32 * ROW>;   // [token][feature / 4]
var<workgroup> columns: array<vec4f, 64 * ROW>;  // [column][feature / 4]; in the end sums [8][invocation of a slice]

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

fn fill(t0: u32, m0: u32, d: u32, local: u32) {  // rows past the end repeat the last and are never written
  let x_d = d + local % 8 * 4;
  var x4 = vec4f();  // features past the end are zeros
  if (x_d < p.d_in) { x4 = x[(min(t0 + local / 8, p.T - 1) * p.d_in + x_d) / 4]; }
  tokens[local / 8 * ROW + local % 8] = x4;
  let w_d = d + local % 4 * 8;
  var w = Eight(vec4f(), vec4f());
  if (w_d < p.d_in) { w = weight8(min(m0 + local / 4, p.d_out - 1), w_d); }
  let at = local / 4 * ROW + local % 4 * 2;
  columns[at] = w.lo;
  columns[at + 1] = w.hi;
}
fn tokens4(first: u32, f: u32) -> mat4x4f {  // every fourth token; lanes are tokens
  let at = first * ROW + f;
  return transpose(mat4x4f(tokens[at], tokens[at + 4 * ROW], tokens[at + 8 * ROW], tokens[at + 12 * ROW]));
}
fn columns4(first: u32, f: u32) -> mat4x4f {  // every 16th column
  let at = first * ROW + f;
  return mat4x4f(columns[at], columns[at + 16 * ROW], columns[at + 32 * ROW], columns[at + 48 * ROW]);
}
fn keep(place: u32, sum: mat4x4f) {
  columns[place] = sum[0]; columns[place + 64] = sum[1]; columns[place + 128] = sum[2]; columns[place + 192] = sum[3];
}
fn kept(place: u32) -> mat4x4f {
  return mat4x4f(columns[place], columns[place + 64], columns[place + 128], columns[place + 192]);
}
fn write4(t: u32, m: u32, values: vec4f) {  // every fourth token of one column
  if (m >= p.d_out) { return; }
  var b = 0.0;
  if (HAS_BIAS) { b = bias[m]; }
  for (var i = 0u; i < 4; i++) {
    if (t + 4 * i < p.T) { write1((p.out_row0 + t + 4 * i) * p.out_stride + p.out_col0 + m, values[i] + b); }
  }
}
fn write16(t: u32, m: u32, sum: mat4x4f) {
  write4(t, m, sum[0]); write4(t, m + 16, sum[1]); write4(t, m + 32, sum[2]); write4(t, m + 48, sum[3]);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) local: u32) {
  let group = id.y * groups.x + id.x;
  let across = (p.d_out + 63) / 64;
  let t0 = group / across * 32;
  let m0 = group % across * 64;
  if (t0 >= p.T) { return; }  // the whole workgroup
  let slice = local / 64;
  let place = local % 64;
  let token = place / 16;
  let column = place % 16;
  var a = mat4x4f();  // tokens token + 0, 4, 8, 12 of the tile, columns column + 0, 16, 32, 48
  var b = mat4x4f();  // tokens token + 16, 20, 24, 28
  for (var d = 0u; d < p.d_in; d += 32) {
    fill(t0, m0, d, local);
    workgroupBarrier();
    for (var f = 2 * slice; f < 2 * slice + 2; f++) {
      let w = columns4(column, f);
      a += tokens4(token, f) * w;
      b += tokens4(token + 16, f) * w;
    }
    workgroupBarrier();
  }
  for (var giver = 1u; giver < 4; giver++) {
    if (slice == giver) { keep(place, a); keep(place + 256, b); }
    workgroupBarrier();
    if (slice == 0) { a += kept(place); b += kept(place + 256); }
    workgroupBarrier();
  }
  if (slice > 0) { return; }
  write16(t0 + token, m0 + column, a);
  write16(t0 + token + 16, m0 + column, b);
}
