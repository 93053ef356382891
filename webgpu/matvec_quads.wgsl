// Matrix product for one token with blocks of weights, a quad of invocations sharing every word of x. See matvec.wgsl.
//   out[m] = sum_d x[d] weight[m,d] + bias[m]          weight = d * q + m within a block (weights/blocks.py)
// Grid: one invocation owns 4 columns of out, a quad 16; folded into y.
// In:  x [d_in] f32, weight [d_out,d_in] as quants and scales in WEIGHT_FORMAT 3 or 4 (d_in a multiple of 32), bias [d_out]
//      f32 when HAS_BIAS.
// Out: element m at out[out_row0 * out_stride + out_col0 + m].
// Loops per invocation: d_in/32 + 4.
// Within a block the integers are multiplied as they are: sum x w = d * sum(x q) + m * sum(x). A quant keeps its place in the
// word, and that power of two is taken out of x instead (exact). Quad operations need every invocation: columns past the end
// repeat the last one and are not written.

override WEIGHT_FORMAT: u32 = 3;  // 3 = Q4_1 blocks, 4 = Q8_0 blocks
override HAS_BIAS: bool = false;

struct Params { d_in: u32, d_out: u32, out_row0: u32, out_col0: u32, out_stride: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> weight: array<vec4u>;
@group(0) @binding(3) var<storage, read> scales: array<u32>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;

struct Block { x0: vec4f, x1: vec4f, x2: vec4f, x3: vec4f, x4: vec4f, x5: vec4f, x6: vec4f, x7: vec4f, sum: vec4f }

// Nibbles in their places: element i is q times 16^i, once for the low half of a word and once for the high.
fn low4(word: u32) -> vec4f {
  return vec4f(vec4i(vec4u(word) & vec4u(0xf, 0xf0, 0xf00, 0xf000)));
}
fn high4(word: u32) -> vec4f {
  return low4(word >> 16);
}
// Signed bytes times 2^24.
fn bytes4(word: u32) -> vec4f {
  return vec4f(bitcast<vec4i>(vec4u(word << 24, word << 16, word << 8, word) & vec4u(0xff000000u)));
}

// sum += d * sum(x q) + m * sum(x) over one block, in four parts.
fn q4_block(sum: vec4f, b: Block, i: u32) -> vec4f {
  let w = weight[i];
  let scale = unpack2x16float(scales[i]);
  let half = fma(b.x3, high4(w.y), fma(b.x2, low4(w.y), fma(b.x1, high4(w.x), b.x0 * low4(w.x))));
  let all = fma(b.x7, high4(w.w), fma(b.x6, low4(w.w), fma(b.x5, high4(w.z), fma(b.x4, low4(w.z), half))));
  return fma(b.sum, vec4f(scale.y), fma(all, vec4f(scale.x), sum));
}
fn q8_block(sum: vec4f, b: Block, i: u32) -> vec4f {
  let v = weight[2 * i];
  let w = weight[2 * i + 1];
  let pair = unpack2x16float(scales[i / 2]);
  let half = fma(b.x3, bytes4(v.w), fma(b.x2, bytes4(v.z), fma(b.x1, bytes4(v.y), b.x0 * bytes4(v.x))));
  let all = fma(b.x7, bytes4(w.w), fma(b.x6, bytes4(w.z), fma(b.x5, bytes4(w.y), fma(b.x4, bytes4(w.x), half))));
  return fma(all, vec4f(select(pair.x, pair.y, i % 2 == 1)), sum);
}
fn add(sum: vec4f, b: Block, m: u32, d: u32) -> vec4f {
  let i = (min(m, p.d_out - 1) * p.d_in + d) / 32;
  if (WEIGHT_FORMAT == 3) { return q4_block(sum, b, i); }
  return q8_block(sum, b, i);
}

fn place() -> vec4f {
  if (WEIGHT_FORMAT == 3) { return vec4f(1, 1.0 / 16, 1.0 / 256, 1.0 / 4096); }
  return vec4f(1.0 / 16777216);
}

@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(subgroup_invocation_id) invocation: u32) {
  let lane = invocation % 4;
  let m = (quadBroadcast((id.y * groups.x * 16 + id.x) / 4, 0u) * 4 + lane) * 4;
  let places = place();
  var s0 = vec4f(); var s1 = vec4f(); var s2 = vec4f(); var s3 = vec4f();
  for (var d = 0u; d < p.d_in; d += 32) {
    let lo = x[(d + 8 * lane) / 4];
    let hi = x[(d + 8 * lane) / 4 + 1];
    let own = lo + hi;
    let sum = quadBroadcast(own, 0u) + quadBroadcast(own, 1u) + quadBroadcast(own, 2u) + quadBroadcast(own, 3u);
    let l = lo * places;
    let h = hi * places;
    let b = Block(quadBroadcast(l, 0u), quadBroadcast(h, 0u), quadBroadcast(l, 1u), quadBroadcast(h, 1u),
                  quadBroadcast(l, 2u), quadBroadcast(h, 2u), quadBroadcast(l, 3u), quadBroadcast(h, 3u), sum);
    s0 = add(s0, b, m, d); s1 = add(s1, b, m + 1, d);
    s2 = add(s2, b, m + 2, d); s3 = add(s3, b, m + 3, d);
  }
  let one = vec4f(1);
  let sums = vec4f(dot(s0, one), dot(s1, one), dot(s2, one), dot(s3, one));
  for (var i = 0u; i < 4; i++) {
    if (m + i >= p.d_out) { continue; }
    var b = 0.0;
    if (HAS_BIAS) { b = bias[m + i]; }
    out[p.out_row0 * p.out_stride + p.out_col0 + m + i] = sums[i] + b;
  }
}
