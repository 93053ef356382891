// Logit lens, step 2: unembedding fused with everything asked of the logits, so that no [rows,V] tensor is kept.
//   logit[r,v] = x[r,:] . table[v,:]
// Over one tile of the vocabulary, per row: m = max logit, s = sum exp(logit - m), u = sum exp(logit - m) (logit - m),
// how many tokens come before the target, and the k largest logits with their ids (equal logits: lower id first).
// Grid: one invocation owns 4 rows and one tile of `tile` tokens; tiles vary fastest; folded into y.
// In:  x [rows,D] f32 (after the final norm), D a multiple of 8, table [v_count,D] in WEIGHT_FORMAT (vocabulary rows
//      v0 ..) and scales of its blocks (formats 3 and 4; weights/blocks.py), targets [rows] u32, target_logit
//      [rows] f32. This table's tiles are parts part0 .. of `parts` in all.
// Out: part_logits, part_ids [rows,parts,TOP_K], part_stats [rows,parts,4] f32 = (m, s, u, tokens before the target).
// Loops per invocation: ceil(tile/8) * (1 + D/8) + tile * (1 + TOP_K) + 5 * TOP_K + 4.
// Lanes are rows. A logit enters the sorted lists of four rows at once: new[i] = max(top[i], min(logit, top[i-1])).

override WEIGHT_FORMAT: u32 = 0;  // 0 = f32, 1 = two f16 a word, 2 = two bf16 a word, 3 = Q4_1 blocks, 4 = Q8_0 blocks
override TOP_K: u32 = 10;
const MAX_K = 16;
const NOTHING = -1e30;

struct Params { rows: u32, D: u32, v0: u32, v_count: u32, tile: u32, part0: u32, parts: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> table: array<vec4u>;
@group(0) @binding(3) var<storage, read> scales: array<u32>;
@group(0) @binding(4) var<storage, read> targets: array<u32>;
@group(0) @binding(5) var<storage, read> target_logit: array<f32>;
@group(0) @binding(6) var<storage, read_write> part_logits: array<f32>;
@group(0) @binding(7) var<storage, read_write> part_ids: array<u32>;
@group(0) @binding(8) var<storage, read_write> part_stats: array<vec4f>;

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

var<private> top: array<vec4f, MAX_K>;
var<private> top_id: array<vec4u, MAX_K>;
var<private> stats: mat4x4f;  // columns m, s, u, tokens before the target; lanes are rows

fn take(logit: vec4f, v: u32, wanted: vec4u, wanted_logit: vec4f) {
  let highest = max(stats[0], logit);
  let keep = exp(stats[0] - highest);
  let e = exp(logit - highest);
  stats[2] = keep * (stats[2] + stats[1] * (stats[0] - highest)) + e * (logit - highest);
  stats[1] = stats[1] * keep + e;
  stats[0] = highest;
  let before = (logit > wanted_logit) | ((logit == wanted_logit) & (vec4u(v) < wanted));
  stats[3] += select(vec4f(), vec4f(1), before & (wanted != vec4u(v)));
  if (!any(logit > top[TOP_K - 1])) { return; }
  for (var i = TOP_K - 1; i > 0; i--) {
    let stays = top[i] >= logit;
    let shifts = top[i - 1] < logit;
    top_id[i] = select(select(vec4u(v), top_id[i - 1], shifts), top_id[i], stays);
    top[i] = max(top[i], min(logit, top[i - 1]));
  }
  top_id[0] = select(vec4u(v), top_id[0], top[0] >= logit);
  top[0] = max(top[0], logit);
}

@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let index = id.y * groups.x * 16 + id.x;
  let tiles = (p.v_count + p.tile - 1) / p.tile;
  let r0 = index / tiles * 4;
  if (r0 >= p.rows) { return; }
  let r = min(vec4u(r0, r0 + 1, r0 + 2, r0 + 3), vec4u(p.rows - 1));
  let wanted = vec4u(targets[r.x], targets[r.y], targets[r.z], targets[r.w]);
  let wanted_logit = vec4f(target_logit[r.x], target_logit[r.y], target_logit[r.z], target_logit[r.w]);
  for (var i = 0u; i < TOP_K; i++) { top[i] = vec4f(NOTHING); top_id[i] = vec4u(0xffffffffu); }
  stats = mat4x4f(vec4f(NOTHING), vec4f(), vec4f(), vec4f());

  let first = index % tiles * p.tile;
  let end = min(first + p.tile, p.v_count);
  let last = end - 1;
  for (var v = first; v < end; v += 8) {
    var left = mat4x4f();
    var right = mat4x4f();
    for (var d = 0u; d < p.D; d += 8) {
      let w0 = weight8(v, d); let w1 = weight8(min(v + 1, last), d);
      let w2 = weight8(min(v + 2, last), d); let w3 = weight8(min(v + 3, last), d);
      let w4 = weight8(min(v + 4, last), d); let w5 = weight8(min(v + 5, last), d);
      let w6 = weight8(min(v + 6, last), d); let w7 = weight8(min(v + 7, last), d);
      let lo = rows4(r, d);
      let hi = rows4(r, d + 4);
      left += lo * mat4x4f(w0.lo, w1.lo, w2.lo, w3.lo); left += hi * mat4x4f(w0.hi, w1.hi, w2.hi, w3.hi);
      right += lo * mat4x4f(w4.lo, w5.lo, w6.lo, w7.lo); right += hi * mat4x4f(w4.hi, w5.hi, w6.hi, w7.hi);
    }
    let logits = array<vec4f, 8>(left[0], left[1], left[2], left[3], right[0], right[1], right[2], right[3]);
    for (var j = 0u; j < min(8, end - v); j++) { take(logits[j], p.v0 + v + j, wanted, wanted_logit); }
  }

  let rows_stats = transpose(stats);
  for (var i = 0u; i < min(4, p.rows - r0); i++) {
    let part = r[i] * p.parts + p.part0 + index % tiles;
    part_stats[part] = rows_stats[i];
    for (var j = 0u; j < TOP_K; j++) {
      part_logits[part * TOP_K + j] = top[j][i];
      part_ids[part * TOP_K + j] = top_id[j][i];
    }
  }
}
