// Matrix product of many tokens, a quad of invocations sharing every word of x. See matmul.wgsl.
//   out[t,m] = sum_d x[t,d] weight[m,d] + bias[m] + residual[t,m]
// Grid: a quad owns 8 rows (16 when TALL) and 32 columns of out, each of its lanes 8 columns in registers; columns vary
//      fastest; folded into y.
// In:  x [T,d_in] f32, weight [d_out,d_in] in WEIGHT_FORMAT (d_in a multiple of 8), bias [d_out] f32 when HAS_BIAS, scales of
//      the blocks of formats 3 and 4 (weights/blocks.py).
// Out: element (t,m) at out[(out_row0 + t) * out_stride + out_col0 + m]: straight into a cache or a wider matrix.
// Loops per invocation: d_in/8 + 160.
// Loading a word costs as much as 35 multiplications on CPU drivers. So a lane loads the words of one token in four and the
// quad swaps them: column k of a sum is token t + (lane ^ k). Quad operations need every invocation: blocks past the end
// compute too, on repeated rows, and write nothing. SwiftShader shifts and divides integers lane by lane but multiplies
// four at once, so the loop does neither.

override WEIGHT_FORMAT: u32 = 0;  // 0 = f32, 1 = two f16 a word, 2 = two bf16 a word, 3 = Q4_1 blocks, 4 = Q8_0 blocks
override HAS_BIAS: bool = false;
override TALL: bool = false;

struct Params { T: u32, d_in: u32, d_out: u32, out_row0: u32, out_col0: u32, out_stride: u32, add_residual: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> weight: array<u32>;
@group(0) @binding(3) var<storage, read> scales: array<u32>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read> residual: array<f32>;
@group(0) @binding(6) var<storage, read_write> out: array<f32>;

fn write1(at: u32, value: f32) {  // the residual stream, where one is added, lies as out does
  var sum = value;
  if (p.add_residual == 1) { sum += residual[at]; }
  out[at] = sum;
}

struct Eight { lo: vec4f, hi: vec4f }       // eight features of a token, or weights of a column
struct Eights { lo: mat4x4f, hi: mat4x4f }  // those of four columns
struct Sums { left: mat4x4f, right: mat4x4f }  // of four tokens: columns are tokens, lanes are columns m .. m+3 and m+4 .. m+7

// Eight weights of a word. A nibble keeps its place and its scale is divided by 16 for each step instead, which is exact.
fn nibbles(word: u32, scale: vec2f) -> Eight {
  let d = scale.x * vec4f(1, 1.0 / 16, 1.0 / 256, 1.0 / 4096);
  let lo = vec4f(vec4i(vec4u(word) & vec4u(0xf, 0xf0, 0xf00, 0xf000)));
  let hi = vec4f(vec3f(vec3i(vec3u(word) & vec3u(0xf0000, 0xf00000, 0xf000000))), f32(word & 0xf0000000u));
  return Eight(fma(lo, d, vec4f(scale.y)), fma(hi, d / 65536, vec4f(scale.y)));
}
// Signed bytes: each moved to the top of a word, which is 2^24 times its value, and the scale is divided by that (exact).
fn bytes4(word: u32, scale: f32) -> vec4f {
  let moved = (vec4u(word) * vec4u(16777216, 65536, 256, 1)) & vec4u(0xff000000u);
  return vec4f(bitcast<vec4i>(moved)) * (scale / 16777216);
}
fn bf16(pair: u32) -> vec2f {
  return bitcast<vec2f>(vec2u(pair * 65536, pair & 0xffff0000u));
}
// Weights 8 i .. 8 i + 7 of the matrix; scale is that of their block.
fn weight8(i: u32, scale: vec2f) -> Eight {
  if (WEIGHT_FORMAT == 3) { return nibbles(weight[i], scale); }
  if (WEIGHT_FORMAT == 4) { return Eight(bytes4(weight[2 * i], scale.x), bytes4(weight[2 * i + 1], scale.x)); }
  if (WEIGHT_FORMAT == 0) {
    let at = 8 * i;
    return Eight(bitcast<vec4f>(vec4u(weight[at], weight[at + 1], weight[at + 2], weight[at + 3])),
                 bitcast<vec4f>(vec4u(weight[at + 4], weight[at + 5], weight[at + 6], weight[at + 7])));
  }
  let a = weight[4 * i]; let b = weight[4 * i + 1]; let c = weight[4 * i + 2]; let d = weight[4 * i + 3];
  if (WEIGHT_FORMAT == 2) { return Eight(vec4f(bf16(a), bf16(b)), vec4f(bf16(c), bf16(d))); }
  return Eight(vec4f(unpack2x16float(a), unpack2x16float(b)), vec4f(unpack2x16float(c), unpack2x16float(d)));
}
// Scale and minimum of a block.
fn scale_of(block: u32) -> vec2f {
  if (WEIGHT_FORMAT == 3) { return unpack2x16float(scales[block]); }
  if (WEIGHT_FORMAT != 4) { return vec2f(); }
  let pair = unpack2x16float(scales[block / 2]);
  return vec2f(select(pair.x, pair.y, (block & 1) == 1), 0);
}
// Four columns from m on. eights: how many a row has; i: which of them; j: the first of its block.
fn columns4(m: u32, eights: u32, i: u32, s: mat4x2f) -> Eights {
  let last = p.d_out - 1;
  let a = weight8(min(m, last) * eights + i, s[0]); let b = weight8(min(m + 1, last) * eights + i, s[1]);
  let c = weight8(min(m + 2, last) * eights + i, s[2]); let d = weight8(min(m + 3, last) * eights + i, s[3]);
  return Eights(mat4x4f(a.lo, b.lo, c.lo, d.lo), mat4x4f(a.hi, b.hi, c.hi, d.hi));
}
fn scales4(m: u32, blocks: u32, i: u32) -> mat4x2f {
  let last = p.d_out - 1;
  return mat4x2f(scale_of(min(m, last) * blocks + i), scale_of(min(m + 1, last) * blocks + i),
                 scale_of(min(m + 2, last) * blocks + i), scale_of(min(m + 3, last) * blocks + i));
}

fn add8(sum: vec4f, x: Eight, w: Eights) -> vec4f {  // one token, four columns
  return sum + (x.lo * w.lo + x.hi * w.hi);
}
fn add4(sum: mat4x4f, x: Eight, w: Eights) -> mat4x4f {  // four tokens: the lane's own and those of its neighbours
  return mat4x4f(add8(sum[0], x, w), add8(sum[1], Eight(quadSwapX(x.lo), quadSwapX(x.hi)), w),
                 add8(sum[2], Eight(quadSwapY(x.lo), quadSwapY(x.hi)), w),
                 add8(sum[3], Eight(quadSwapDiagonal(x.lo), quadSwapDiagonal(x.hi)), w));
}
fn add(sum: Sums, row: u32, i: u32, left: Eights, right: Eights) -> Sums {
  let own = Eight(x[2 * (row + i)], x[2 * (row + i) + 1]);
  return Sums(add4(sum.left, own, left), add4(sum.right, own, right));
}

fn write16(t: u32, lane: u32, m: u32, sum: mat4x4f) {
  for (var k = 0u; k < 4; k++) {
    let row = t + (lane ^ k);
    for (var j = 0u; j < 4; j++) {
      if (row >= p.T || m + j >= p.d_out) { continue; }
      var b = 0.0;
      if (HAS_BIAS) { b = bias[m + j]; }
      write1((p.out_row0 + row) * p.out_stride + p.out_col0 + m + j, sum[k][j] + b);
    }
  }
}
fn write(t: u32, lane: u32, m: u32, sum: Sums) {
  write16(t, lane, m, sum.left); write16(t, lane, m + 4, sum.right);
}

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(subgroup_invocation_id) invocation: u32) {
  let lane = invocation % 4;
  let quad = quadBroadcast((id.y * groups.x * 8 + id.x) / 4, 0u);
  let across = (p.d_out + 31) / 32;
  let t = quad / across * select(8u, 16u, TALL);
  let m = quad % across * 32 + 8 * lane;
  let eights = p.d_in / 8;
  let blocks = p.d_in / 32;
  let last = p.T - 1;
  let row0 = min(t + lane, last) * eights; let row1 = min(t + 4 + lane, last) * eights;
  let row2 = min(t + 8 + lane, last) * eights; let row3 = min(t + 12 + lane, last) * eights;
  var a = Sums(); var b = Sums(); var c = Sums(); var d = Sums();
  let twice = WEIGHT_FORMAT >= 3;  // blocks hold four eights: two a turn
  for (var i = 0u; i < eights; i += select(1u, 2u, twice)) {
    let l = scales4(m, blocks, i / 4); let r = scales4(m + 4, blocks, i / 4);
    let left = columns4(m, eights, i, l); let right = columns4(m + 4, eights, i, r);
    a = add(a, row0, i, left, right); b = add(b, row1, i, left, right);
    if (TALL) { c = add(c, row2, i, left, right); d = add(d, row3, i, left, right); }
    if (twice) {
      let left = columns4(m, eights, i + 1, l); let right = columns4(m + 4, eights, i + 1, r);
      a = add(a, row0, i + 1, left, right); b = add(b, row1, i + 1, left, right);
      if (TALL) { c = add(c, row2, i + 1, left, right); d = add(d, row3, i + 1, left, right); }
    }
  }
  write(t, lane, m, a); write(t + 4, lane, m, b);
  if (TALL) { write(t + 8, lane, m, c); write(t + 12, lane, m, d); }
}
