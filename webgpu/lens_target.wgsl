// Logit lens, step 1: the logit of each row's target token, needed before its rank can be counted.
//   target_logit[r] = x[r,:] . table[target[r],:]
// Grid: one invocation per row, folded into y.
// In:  x [rows,D] f32 (after the final norm), D a multiple of 8, table [v_count,D] in WEIGHT_FORMAT (vocabulary rows
//      v0 ..) and scales of its blocks (formats 3 and 4; weights/blocks.py), targets [rows] u32.
// Out: target_logit [rows] f32, written where the target falls into this table; 0xffffffff (no target) is never written.
// Loops per invocation: D/8.
// The same matrix products as in lens_tile.wgsl round the same way, so that equal table rows give equal logits.

override WEIGHT_FORMAT: u32 = 0;  // 0 = f32, 1 = two f16 a word, 2 = two bf16 a word, 3 = Q4_1 blocks, 4 = Q8_0 blocks

override IN_ORDER: bool = false;  // add one by one, as lens_quads.wgsl does, not as lens_tile.wgsl

struct Params { rows: u32, D: u32, v0: u32, v_count: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> table: array<vec4u>;
@group(0) @binding(3) var<storage, read> scales: array<u32>;
@group(0) @binding(4) var<storage, read> targets: array<u32>;
@group(0) @binding(5) var<storage, read_write> target_logit: array<f32>;

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
  let i = (row * p.D + d) / 8;
  if (WEIGHT_FORMAT == 3) { return nibbles(table[i / 4][i % 4], unpack2x16float(scales[i / 4])); }
  if (WEIGHT_FORMAT == 4) {
    let pair = unpack2x16float(scales[i / 8]);
    let scale = select(pair.x, pair.y, i / 4 % 2 == 1);
    return Eight(signed_bytes(table[i / 2][i % 2 * 2]) * scale, signed_bytes(table[i / 2][i % 2 * 2 + 1]) * scale);
  }
  if (WEIGHT_FORMAT == 0) { return Eight(bitcast<vec4f>(table[2 * i]), bitcast<vec4f>(table[2 * i + 1])); }
  let words = table[i];
  return Eight(vec4f(halves(words.x), halves(words.y)), vec4f(halves(words.z), halves(words.w)));
}
fn x4(row: u32, d: u32) -> vec4f {
  return x[(row * p.D + d) / 4];
}
fn rows4(r: vec4u, d: u32) -> mat4x4f { return transpose(mat4x4f(x4(r.x, d), x4(r.y, d), x4(r.z, d), x4(r.w, d))); }

fn one_by_one(sum: f32, a: vec4f, w: vec4f) -> f32 {
  return fma(a.w, w.w, fma(a.z, w.z, fma(a.y, w.y, fma(a.x, w.x, sum))));
}

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let row = id.y * groups.x * 8 + id.x;
  if (row >= p.rows) { return; }
  let token = targets[row];
  if (token < p.v0 || token >= p.v0 + p.v_count) { return; }
  var left = mat4x4f();
  for (var d = 0u; d < p.D; d += 8) {
    let w = weight8(token - p.v0, d);
    if (IN_ORDER) {
      left[0].x = one_by_one(one_by_one(left[0].x, x4(row, d), w.lo), x4(row, d + 4), w.hi);
      continue;
    }
    let lo = rows4(vec4u(row), d);
    let hi = rows4(vec4u(row), d + 4);
    left += lo * mat4x4f(w.lo, w.lo, w.lo, w.lo); left += hi * mat4x4f(w.hi, w.hi, w.hi, w.hi);
  }
  target_logit[row] = left[0].x;
}
