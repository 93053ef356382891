// Matrix product for one token with blocks of weights, a quad of invocations sharing every word of x. See matvec.wgsl.
//   out[m] = sum_d x[d] weight[m,d] + bias[m] + residual[m]        weight = d * q + m within a block (weights/blocks.py)
// Grid: one invocation owns 8 columns of out, a quad 32; folded into y.
// In:  x [d_in] f32, weight [d_out,d_in] as quants and scales in WEIGHT_FORMAT 3 or 4 (d_in a multiple of 32), bias [d_out]
//      f32 when HAS_BIAS.
// Out: element m at out[out_row0 * out_stride + out_col0 + m].
// Loops per invocation: d_in/32 + 8.
// Within a block the integers are multiplied as they are: sum x w = d * sum(x q) + m * sum(x). A quant keeps its place in the
// word, and that power of two is taken out of x instead (exact). A lane loads the eight of 32 features that are its own and
// the quad swaps them: the k-th in turn are those of lane ^ k. Quad operations need every invocation: columns past the end
// repeat the last one and are not written. No shift and no division in the loop: SwiftShader does those lane by lane.

override WEIGHT_FORMAT: u32 = 3;  // 3 = Q4_1 blocks, 4 = Q8_0 blocks
override HAS_BIAS: bool = false;

struct Params { d_in: u32, d_out: u32, out_row0: u32, out_col0: u32, out_stride: u32, add_residual: u32 }
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

struct Eight { lo: vec4f, hi: vec4f }
struct Block { own: Eight, x: Eight, y: Eight, diagonal: Eight, sum: f32 }  // as the quad swaps them

// Eight nibbles in their places: element i is q times 16^i, and 16^4 more in the high half.
fn nibbles(word: u32) -> Eight {
  let lo = vec4f(vec4i(vec4u(word) & vec4u(0xf, 0xf0, 0xf00, 0xf000)));
  return Eight(lo, vec4f(vec3f(vec3i(vec3u(word) & vec3u(0xf0000, 0xf00000, 0xf000000))), f32(word & 0xf0000000u)));
}
// Signed bytes times 2^24.
fn bytes4(word: u32) -> vec4f {
  return vec4f(bitcast<vec4i>((vec4u(word) * vec4u(16777216, 65536, 256, 1)) & vec4u(0xff000000u)));
}
// The integers of eight features of a block, times x.
fn eight(e: Eight, block: u32, lane: u32) -> f32 {
  if (WEIGHT_FORMAT == 3) {
    let q = nibbles(weight[4 * block + lane]);
    return dot(e.lo, q.lo) + dot(e.hi, q.hi);
  }
  let at = 8 * block + 2 * lane;
  return dot(e.lo, bytes4(weight[at])) + dot(e.hi, bytes4(weight[at + 1]));
}
fn block1(b: Block, i: u32, lane: u32) -> f32 {
  let all = eight(b.own, i, lane) + eight(b.x, i, lane ^ 1) + eight(b.y, i, lane ^ 2) + eight(b.diagonal, i, lane ^ 3);
  if (WEIGHT_FORMAT == 3) {
    let scale = unpack2x16float(scales[i]);
    return fma(b.sum, scale.y, all * scale.x);
  }
  let pair = unpack2x16float(scales[i / 2]);
  return all * select(pair.x, pair.y, (i & 1) == 1);
}
fn block4(b: Block, m: u32, blocks: u32, i: u32, lane: u32) -> vec4f {
  let last = p.d_out - 1;
  return vec4f(block1(b, min(m, last) * blocks + i, lane), block1(b, min(m + 1, last) * blocks + i, lane),
               block1(b, min(m + 2, last) * blocks + i, lane), block1(b, min(m + 3, last) * blocks + i, lane));
}

fn places() -> Eight {
  if (WEIGHT_FORMAT == 4) { return Eight(vec4f(1.0 / 16777216), vec4f(1.0 / 16777216)); }
  let nibble = vec4f(1, 1.0 / 16, 1.0 / 256, 1.0 / 4096);
  return Eight(nibble, nibble / 65536);
}

fn write4(m: u32, sums: vec4f) {
  for (var i = 0u; i < 4; i++) {
    if (m + i >= p.d_out) { continue; }
    var b = 0.0;
    if (HAS_BIAS) { b = bias[m + i]; }
    write1(p.out_row0 * p.out_stride + p.out_col0 + m + i, sums[i] + b);
  }
}

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(subgroup_invocation_id) invocation: u32) {
  let lane = invocation % 4;
  let m = (quadBroadcast((id.y * groups.x * 8 + id.x) / 4, 0u) * 4 + lane) * 8;
  let place = places();
  let blocks = p.d_in / 32;
  var left = vec4f(); var right = vec4f();
  for (var i = 0u; i < blocks; i++) {
    let lo = x[8 * i + 2 * lane];
    let hi = x[8 * i + 2 * lane + 1];
    let two = lo + hi;
    let four = two + quadSwapX(two);
    let sum = dot(four + quadSwapY(four), vec4f(1));
    let own = Eight(lo * place.lo, hi * place.hi);
    let b = Block(own, Eight(quadSwapX(own.lo), quadSwapX(own.hi)), Eight(quadSwapY(own.lo), quadSwapY(own.hi)),
                  Eight(quadSwapDiagonal(own.lo), quadSwapDiagonal(own.hi)), sum);
    left += block4(b, m, blocks, i, lane);
    right += block4(b, m + 4, blocks, i, lane);
  }
  write4(m, left);
  write4(m + 4, right);
}
