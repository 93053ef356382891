// Logit lens, step 2, over a table of Q8_0 blocks, a quad of invocations sharing every word of x. See lens_tile.wgsl.
//   logit[r,v] = x[r,:] . table[v,:]          table = d * q within a block (weights/blocks.py)
// Over one tile of the vocabulary, per row: m = max logit, s = sum exp(logit - m), u = sum exp(logit - m) (logit - m),
// how many tokens come before the target, and the k largest logits with their ids (equal logits: lower id first).
// Grid: one invocation owns 8 rows and one tile of `tile` tokens, a quad four tiles; tiles vary fastest; folded into y.
// In:  x [rows,D] f32 (after the final norm), D a multiple of 32, table [v_count,D] as bytes and scales (vocabulary rows
//      v0 ..), targets [rows] u32, target_logit [rows] f32. This table's tiles are parts part0 .. of `parts` in all.
// Out: part_logits, part_ids [rows,parts,TOP_K], part_stats [rows,parts,4] f32 = (m, s, u, tokens before the target).
// Loops per invocation: ceil(tile/8) * (1 + D/32) + 2 * tile * (1 + TOP_K) + 10 * TOP_K + 50.
// Products are added one by one in the order of the features: lens_target.wgsl does the same (IN_ORDER), so that equal table
// rows give equal logits.

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

// 32 features of four rows: columns are features, lanes are rows. 32 weights of a token.
struct Features { a: mat4x4f, b: mat4x4f, c: mat4x4f, d: mat4x4f, e: mat4x4f, f: mat4x4f, g: mat4x4f, h: mat4x4f }
struct Block { a: vec4f, b: vec4f, c: vec4f, d: vec4f, e: vec4f, f: vec4f, g: vec4f, h: vec4f }

// Signed bytes: each moved to the top of a word, which is 2^24 times its value, and the scale is divided by that (exact).
fn bytes4(word: u32, scale: f32) -> vec4f {
  return vec4f(bitcast<vec4i>(vec4u(word << 24, word << 16, word << 8, word) & vec4u(0xff000000u))) * scale;
}
fn weights(v: u32, d: u32) -> Block {
  let i = (v * p.D + d) / 32;
  let pair = unpack2x16float(scales[i / 2]);
  let s = select(pair.x, pair.y, i % 2 == 1) / 16777216;
  let l = table[2 * i];
  let h = table[2 * i + 1];
  return Block(bytes4(l.x, s), bytes4(l.y, s), bytes4(l.z, s), bytes4(l.w, s),
               bytes4(h.x, s), bytes4(h.y, s), bytes4(h.z, s), bytes4(h.w, s));
}
fn add4(sum: vec4f, x: mat4x4f, w: vec4f) -> vec4f {
  return fma(x[3], vec4f(w.w), fma(x[2], vec4f(w.z), fma(x[1], vec4f(w.y), fma(x[0], vec4f(w.x), sum))));
}
fn add32(sum: vec4f, x: Features, w: Block) -> vec4f {
  let half = add4(add4(add4(add4(sum, x.a, w.a), x.b, w.b), x.c, w.c), x.d, w.d);
  return add4(add4(add4(add4(half, x.e, w.e), x.f, w.f), x.g, w.g), x.h, w.h);
}

fn x4(row: u32, d: u32) -> vec4f {
  return x[(row * p.D + d) / 4];
}
fn rows4(r: vec4u, d: u32) -> mat4x4f {
  return transpose(mat4x4f(x4(r.x, d), x4(r.y, d), x4(r.z, d), x4(r.w, d)));
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
fn features(r: vec4u, own: u32) -> Features {  // own: the eight of 32 features that this lane loads
  let lo = rows4(r, own);
  let hi = rows4(r, own + 4);
  return Features(from0(lo), from0(hi), from1(lo), from1(hi), from2(lo), from2(hi), from3(lo), from3(hi));
}

var<private> top: array<vec4f, 2 * MAX_K>;  // of rows r0 .. r0+3, and from MAX_K on of r0+4 .. r0+7
var<private> top_id: array<vec4u, 2 * MAX_K>;
var<private> stats: array<mat4x4f, 2>;  // columns m, s, u, tokens before the target; lanes are rows

fn take(half: u32, logit: vec4f, v: u32, wanted: vec4u, wanted_logit: vec4f) {
  let old = stats[half];
  let highest = max(old[0], logit);
  let keep = exp(old[0] - highest);
  let e = exp(logit - highest);
  let before = (logit > wanted_logit) | ((logit == wanted_logit) & (vec4u(v) < wanted));
  let count = old[3] + select(vec4f(), vec4f(1), before & (wanted != vec4u(v)));
  let u = keep * (old[2] + old[1] * (old[0] - highest)) + e * (logit - highest);
  stats[half] = mat4x4f(highest, old[1] * keep + e, u, count);
  let first = half * MAX_K;
  if (!any(logit > top[first + TOP_K - 1])) { return; }
  for (var i = first + TOP_K - 1; i > first; i--) {
    let stays = top[i] >= logit;
    let shifts = top[i - 1] < logit;
    top_id[i] = select(select(vec4u(v), top_id[i - 1], shifts), top_id[i], stays);
    top[i] = max(top[i], min(logit, top[i - 1]));
  }
  top_id[first] = select(vec4u(v), top_id[first], top[first] >= logit);
  top[first] = max(top[first], logit);
}
fn take8(half: u32, left: mat4x4f, right: mat4x4f, v: u32, end: u32, r: vec4u) {
  let wanted = vec4u(targets[r.x], targets[r.y], targets[r.z], targets[r.w]);
  let wanted_logit = vec4f(target_logit[r.x], target_logit[r.y], target_logit[r.z], target_logit[r.w]);
  let logits = array<vec4f, 8>(left[0], left[1], left[2], left[3], right[0], right[1], right[2], right[3]);
  for (var j = 0u; j < 8 && v + j < end; j++) { take(half, logits[j], p.v0 + v + j, wanted, wanted_logit); }
}
fn write4(half: u32, r0: u32, tile: u32) {
  let of_row = transpose(stats[half]);
  for (var i = 0u; i < 4 && r0 + i < p.rows; i++) {
    let part = (r0 + i) * p.parts + p.part0 + tile;
    part_stats[part] = of_row[i];
    for (var j = 0u; j < TOP_K; j++) {
      part_logits[part * TOP_K + j] = top[half * MAX_K + j][i];
      part_ids[part * TOP_K + j] = top_id[half * MAX_K + j][i];
    }
  }
}

@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(subgroup_invocation_id) invocation: u32) {
  let lane = invocation % 4;
  let quad = quadBroadcast((id.y * groups.x * 16 + id.x) / 4, 0u);
  let tiles = (p.v_count + p.tile - 1) / p.tile;
  let across = (tiles + 3) / 4;
  let own = quad % across * 4 + lane;
  let r0 = quad / across * 8;
  let last_row = vec4u(p.rows - 1);
  let ra = min(vec4u(r0, r0 + 1, r0 + 2, r0 + 3), last_row);
  let rb = min(vec4u(r0 + 4, r0 + 5, r0 + 6, r0 + 7), last_row);
  for (var i = 0u; i < 2 * MAX_K; i++) { top[i] = vec4f(NOTHING); top_id[i] = vec4u(0xffffffffu); }
  stats[0] = mat4x4f(vec4f(NOTHING), vec4f(), vec4f(), vec4f());
  stats[1] = stats[0];
  let first = own * p.tile;
  let end = min(first + p.tile, p.v_count);
  let last = p.v_count - 1;
  for (var k = 0u; k < p.tile; k += 8) {  // every lane takes every turn: quad operations need all four
    let v = first + k;
    var a0 = mat4x4f(); var a1 = mat4x4f(); var b0 = mat4x4f(); var b1 = mat4x4f();
    for (var d = 0u; d < p.D; d += 32) {
      let fa = features(ra, d + 8 * lane);
      let fb = features(rb, d + 8 * lane);
      let w0 = weights(min(v, last), d); let w1 = weights(min(v + 1, last), d);
      let w2 = weights(min(v + 2, last), d); let w3 = weights(min(v + 3, last), d);
      a0 = mat4x4f(add32(a0[0], fa, w0), add32(a0[1], fa, w1), add32(a0[2], fa, w2), add32(a0[3], fa, w3));
      b0 = mat4x4f(add32(b0[0], fb, w0), add32(b0[1], fb, w1), add32(b0[2], fb, w2), add32(b0[3], fb, w3));
      let w4 = weights(min(v + 4, last), d); let w5 = weights(min(v + 5, last), d);
      let w6 = weights(min(v + 6, last), d); let w7 = weights(min(v + 7, last), d);
      a1 = mat4x4f(add32(a1[0], fa, w4), add32(a1[1], fa, w5), add32(a1[2], fa, w6), add32(a1[3], fa, w7));
      b1 = mat4x4f(add32(b1[0], fb, w4), add32(b1[1], fb, w5), add32(b1[2], fb, w6), add32(b1[3], fb, w7));
    }
    take8(0, a0, a1, v, end, ra);
    take8(1, b0, b1, v, end, rb);
  }
  if (own < tiles) { write4(0, r0, own); write4(1, r0 + 4, own); }
}
