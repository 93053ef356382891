// Matrix product of many tokens with Q4_1 blocks, a quad of invocations sharing every word of x. See matmul.wgsl.
//   out[t,m] = sum_d x[t,d] weight[m,d] + bias[m]          weight = d * q + m within a block (weights/blocks.py)
// Grid: a quad owns 8 rows and 32 columns of out, each of its lanes 8 x 8 in registers; columns vary fastest; folded into y.
// In:  x [T,d_in] f32, weight [d_out,d_in] as quants of four bits and scales (d_in a multiple of 32), bias [d_out] f32 when
//      HAS_BIAS.
// Out: element (t,m) at out[(out_row0 + t) * out_stride + out_col0 + m]: straight into a cache or a wider matrix.
// Loops per invocation: d_in/32 + 64.
// Loading a word costs as much as 20 to 40 multiplications on CPU drivers. So a lane loads 8 of a block's 32 features of the
// 8 tokens and the quad hands them around; a word of weights holds eight and serves 8 tokens. Quad operations need every
// invocation: blocks past the end compute too, on repeated rows, and write nothing.

override HAS_BIAS: bool = false;

struct Params { T: u32, d_in: u32, d_out: u32, out_row0: u32, out_col0: u32, out_stride: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> weight: array<vec4u>;
@group(0) @binding(3) var<storage, read> scales: array<u32>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;

// Eight features of eight tokens: columns are features, lanes are tokens. Sums have the same shape, columns those of out.
struct Tile { a0: mat4x4f, a1: mat4x4f, b0: mat4x4f, b1: mat4x4f }  // tokens t .. t+3 twice, tokens t+4 .. t+7 twice
struct Eight { lo: vec4f, hi: vec4f }
struct Scales { s0: vec2f, s1: vec2f, s2: vec2f, s3: vec2f }

fn x4(row: u32, d: u32) -> vec4f {
  return x[(min(row, p.T - 1) * p.d_in + d) / 4];
}
fn tokens4(t: u32, d: u32) -> mat4x4f {
  return transpose(mat4x4f(x4(t, d), x4(t + 1, d), x4(t + 2, d), x4(t + 3, d)));
}
fn block(m: u32, d: u32) -> u32 {
  return (min(m, p.d_out - 1) * p.d_in + d) / 32;
}
fn scales4(m: u32, d: u32) -> Scales {
  return Scales(unpack2x16float(scales[block(m, d)]), unpack2x16float(scales[block(m + 1, d)]),
                unpack2x16float(scales[block(m + 2, d)]), unpack2x16float(scales[block(m + 3, d)]));
}
// Eight weights of a word. A nibble keeps its place and its scale is divided by 16 for each step instead, which is exact;
// shifts and unsigned conversions cost several instructions on CPU drivers.
fn nibbles(word: u32, scale: vec2f) -> Eight {
  let d = scale.x * vec4f(1, 1.0 / 16, 1.0 / 256, 1.0 / 4096);
  let lo = vec4f(vec4i(vec4u(word) & vec4u(0xf, 0xf0, 0xf00, 0xf000)));
  let hi = vec4f(vec4i(vec4u(word >> 16) & vec4u(0xf, 0xf0, 0xf00, 0xf000)));
  return Eight(fma(lo, d, vec4f(scale.y)), fma(hi, d, vec4f(scale.y)));
}

fn from0(m: mat4x4f) -> mat4x4f {
  return mat4x4f(quadBroadcast(m[0], 0u), quadBroadcast(m[1], 0u), quadBroadcast(m[2], 0u), quadBroadcast(m[3], 0u));
}
fn from1(m: mat4x4f) -> mat4x4f {
  return mat4x4f(quadBroadcast(m[0], 1u), quadBroadcast(m[1], 1u), quadBroadcast(m[2], 1u), quadBroadcast(m[3], 1u));
}
fn from2(m: mat4x4f) -> mat4x4f {
  return mat4x4f(quadBroadcast(m[0], 2u), quadBroadcast(m[1], 2u), quadBroadcast(m[2], 2u), quadBroadcast(m[3], 2u));
}
fn from3(m: mat4x4f) -> mat4x4f {
  return mat4x4f(quadBroadcast(m[0], 3u), quadBroadcast(m[1], 3u), quadBroadcast(m[2], 3u), quadBroadcast(m[3], 3u));
}

fn add8(sum: vec4f, lo: mat4x4f, hi: mat4x4f, w: Eight) -> vec4f {  // four tokens of one column, eight products each
  let first = fma(lo[3], vec4f(w.lo.w), fma(lo[2], vec4f(w.lo.z), fma(lo[1], vec4f(w.lo.y), fma(lo[0], vec4f(w.lo.x), sum))));
  return fma(hi[3], vec4f(w.hi.w), fma(hi[2], vec4f(w.hi.z), fma(hi[1], vec4f(w.hi.y), fma(hi[0], vec4f(w.hi.x), first))));
}
fn add32(sum: mat4x4f, lo: mat4x4f, hi: mat4x4f, w0: Eight, w1: Eight, w2: Eight, w3: Eight) -> mat4x4f {
  return mat4x4f(add8(sum[0], lo, hi, w0), add8(sum[1], lo, hi, w1), add8(sum[2], lo, hi, w2), add8(sum[3], lo, hi, w3));
}
// Eight features: one word of each of eight columns.
fn step(sum: Tile, x: Tile, left: vec4u, right: vec4u, l: Scales, r: Scales) -> Tile {
  let w0 = nibbles(left.x, l.s0); let w1 = nibbles(left.y, l.s1);
  let w2 = nibbles(left.z, l.s2); let w3 = nibbles(left.w, l.s3);
  let w4 = nibbles(right.x, r.s0); let w5 = nibbles(right.y, r.s1);
  let w6 = nibbles(right.z, r.s2); let w7 = nibbles(right.w, r.s3);
  return Tile(add32(sum.a0, x.a0, x.a1, w0, w1, w2, w3), add32(sum.a1, x.a0, x.a1, w4, w5, w6, w7),
              add32(sum.b0, x.b0, x.b1, w0, w1, w2, w3), add32(sum.b1, x.b0, x.b1, w4, w5, w6, w7));
}

fn write4(t: u32, m: u32, values: vec4f) {  // four tokens of one column
  if (m >= p.d_out) { return; }
  var b = 0.0;
  if (HAS_BIAS) { b = bias[m]; }
  for (var i = 0u; i < 4; i++) {
    if (t + i < p.T) { out[(p.out_row0 + t + i) * p.out_stride + p.out_col0 + m] = values[i] + b; }
  }
}
fn write16(t: u32, m: u32, part: mat4x4f) {
  write4(t, m, part[0]); write4(t, m + 1, part[1]); write4(t, m + 2, part[2]); write4(t, m + 3, part[3]);
}

@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(subgroup_invocation_id) invocation: u32) {
  let lane = invocation % 4;
  let quad = quadBroadcast((id.y * groups.x * 16 + id.x) / 4, 0u);
  let across = (p.d_out + 31) / 32;
  let t = quad / across * 8;
  let m = quad % across * 32 + 8 * lane;
  var sum = Tile(mat4x4f(), mat4x4f(), mat4x4f(), mat4x4f());
  for (var d = 0u; d < p.d_in; d += 32) {
    let own = d + 8 * lane;
    let x = Tile(tokens4(t, own), tokens4(t, own + 4), tokens4(t + 4, own), tokens4(t + 4, own + 4));
    let w0 = weight[block(m, d)]; let w1 = weight[block(m + 1, d)];
    let w2 = weight[block(m + 2, d)]; let w3 = weight[block(m + 3, d)];
    let w4 = weight[block(m + 4, d)]; let w5 = weight[block(m + 5, d)];
    let w6 = weight[block(m + 6, d)]; let w7 = weight[block(m + 7, d)];
    let l = scales4(m, d); let r = scales4(m + 4, d);
    sum = step(sum, Tile(from0(x.a0), from0(x.a1), from0(x.b0), from0(x.b1)),
               vec4u(w0.x, w1.x, w2.x, w3.x), vec4u(w4.x, w5.x, w6.x, w7.x), l, r);
    sum = step(sum, Tile(from1(x.a0), from1(x.a1), from1(x.b0), from1(x.b1)),
               vec4u(w0.y, w1.y, w2.y, w3.y), vec4u(w4.y, w5.y, w6.y, w7.y), l, r);
    sum = step(sum, Tile(from2(x.a0), from2(x.a1), from2(x.b0), from2(x.b1)),
               vec4u(w0.z, w1.z, w2.z, w3.z), vec4u(w4.z, w5.z, w6.z, w7.z), l, r);
    sum = step(sum, Tile(from3(x.a0), from3(x.a1), from3(x.b0), from3(x.b1)),
               vec4u(w0.w, w1.w, w2.w, w3.w), vec4u(w4.w, w5.w, w6.w, w7.w), l, r);
  }
  write16(t, m, sum.a0); write16(t, m + 4, sum.a1);
  write16(t + 4, m, sum.b0); write16(t + 4, m + 4, sum.b1);
}
