// Logit lens, step 2, over a table of Q8_0 blocks, a quad of invocations sharing every word of x. See lens_tile.wgsl.
//   logit[r,v] = x[r,:] . table[v,:]          table = d * q within a block (weights/blocks.py)
// Over one tile of the vocabulary, per row: m = max logit, s = sum exp(logit - m), u = sum exp(logit - m) (logit - m),
// how many tokens come before the target, and the k largest logits with their ids (equal logits: lower id first).
// Grid: one invocation owns 8 rows (4 unless MANY) and one tile of `tile` tokens, a quad four tiles; tiles vary fastest;
//      folded into y.
// In:  x [rows,D] f32 (after the final norm), D a multiple of 32, table [v_count,D] as bytes and scales (vocabulary rows
//      v0 ..), targets [rows] u32, target_logit [rows] f32. This table's tiles are parts part0 .. of `parts` in all.
// Out: part_logits, part_ids [rows,parts,TOP_K], part_stats [rows,parts,4] f32 = (m, s, u, tokens before the target).
// Loops per invocation: ceil(tile/8) * (1 + D/32) + 2 * tile * (1 + TOP_K) + 10 * TOP_K + 50.
// Products are added one by one in the order of the features: lens_target.wgsl does the same (IN_ORDER), so that equal table
// rows give equal logits.

override TOP_K: u32 = 10;
override MANY: bool = true;  // 8 rows instead of 4
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

// 32 features of a row, or weights of a token.
struct Block { a: vec4f, b: vec4f, c: vec4f, d: vec4f, e: vec4f, f: vec4f, g: vec4f, h: vec4f }
struct Blocks { a: Block, b: Block, c: Block, d: Block }

// Signed bytes: each moved to the top of a word, which is 2^24 times its value, and the scale is divided by that (exact).
// SwiftShader shifts and divides lane by lane but multiplies four integers at once.
fn bytes4(word: u32, scale: f32) -> vec4f {
  return vec4f(bitcast<vec4i>((vec4u(word) * vec4u(16777216, 65536, 256, 1)) & vec4u(0xff000000u))) * scale;
}
fn weights(v: u32, blocks: u32, b: u32) -> Block {
  let i = min(v, p.v_count - 1) * blocks + b;
  let pair = unpack2x16float(scales[i / 2]);
  let s = select(pair.x, pair.y, (i & 1) == 1) / 16777216;
  let l = table[2 * i];
  let h = table[2 * i + 1];
  return Block(bytes4(l.x, s), bytes4(l.y, s), bytes4(l.z, s), bytes4(l.w, s),
               bytes4(h.x, s), bytes4(h.y, s), bytes4(h.z, s), bytes4(h.w, s));
}
fn weights4(v: u32, blocks: u32, b: u32) -> Blocks {
  return Blocks(weights(v, blocks, b), weights(v + 1, blocks, b), weights(v + 2, blocks, b), weights(v + 3, blocks, b));
}
fn add4(sum: f32, x: vec4f, w: vec4f) -> f32 {  // one by one: a sum stays in its register
  return fma(x.w, w.w, fma(x.z, w.z, fma(x.y, w.y, fma(x.x, w.x, sum))));
}
fn add32(sum: f32, x: Block, w: Block) -> f32 {
  let half = add4(add4(add4(add4(sum, x.a, w.a), x.b, w.b), x.c, w.c), x.d, w.d);
  return add4(add4(add4(add4(half, x.e, w.e), x.f, w.f), x.g, w.g), x.h, w.h);
}
fn tokens4(sum: vec4f, x: Block, w: Blocks) -> vec4f {
  return vec4f(add32(sum.x, x, w.a), add32(sum.y, x, w.b), add32(sum.z, x, w.c), add32(sum.w, x, w.d));
}
// 32 features of a row from word `at` on: each lane loads eight of them.
fn features(at: u32, lane: u32) -> Block {
  let lo = x[at + 2 * lane];
  let hi = x[at + 2 * lane + 1];
  return Block(quadBroadcast(lo, 0u), quadBroadcast(hi, 0u), quadBroadcast(lo, 1u), quadBroadcast(hi, 1u),
               quadBroadcast(lo, 2u), quadBroadcast(hi, 2u), quadBroadcast(lo, 3u), quadBroadcast(hi, 3u));
}
fn rows4(r: vec4u, at: u32, lane: u32) -> Blocks {
  let first = r * (p.D / 4) + at;
  return Blocks(features(first.x, lane), features(first.y, lane), features(first.z, lane), features(first.w, lane));
}
fn add(sum: mat4x4f, x: Blocks, w: Blocks) -> mat4x4f {  // columns are rows of x, lanes are tokens
  return mat4x4f(tokens4(sum[0], x.a, w), tokens4(sum[1], x.b, w), tokens4(sum[2], x.c, w), tokens4(sum[3], x.d, w));
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
  let a = transpose(left);
  let b = transpose(right);
  let logits = array<vec4f, 8>(a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]);
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

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(subgroup_invocation_id) invocation: u32) {
  let lane = invocation % 4;
  let quad = quadBroadcast((id.y * groups.x * 8 + id.x) / 4, 0u);
  let tiles = (p.v_count + p.tile - 1) / p.tile;
  let across = (tiles + 3) / 4;
  let own = quad % across * 4 + lane;
  let r0 = quad / across * select(4u, 8u, MANY);
  let last_row = vec4u(p.rows - 1);
  let ra = min(vec4u(r0, r0 + 1, r0 + 2, r0 + 3), last_row);
  let rb = min(vec4u(r0 + 4, r0 + 5, r0 + 6, r0 + 7), last_row);
  for (var i = 0u; i < 2 * MAX_K; i++) { top[i] = vec4f(NOTHING); top_id[i] = vec4u(0xffffffffu); }
  stats[0] = mat4x4f(vec4f(NOTHING), vec4f(), vec4f(), vec4f());
  stats[1] = stats[0];
  let first = own * p.tile;
  let end = min(first + p.tile, p.v_count);
  let blocks = p.D / 32;
  for (var v = first; v < first + p.tile; v += 8) {  // every lane takes every turn: quad operations need all four
    var a0 = mat4x4f(); var a1 = mat4x4f(); var b0 = mat4x4f(); var b1 = mat4x4f();
    for (var i = 0u; i < blocks; i++) {
      let left = weights4(v, blocks, i); let right = weights4(v + 4, blocks, i);
      let fa = rows4(ra, 8 * i, lane);
      a0 = add(a0, fa, left); a1 = add(a1, fa, right);
      if (MANY) {
        let fb = rows4(rb, 8 * i, lane);
        b0 = add(b0, fb, left); b1 = add(b1, fb, right);
      }
    }
    take8(0, a0, a1, v, end, ra);
    if (MANY) { take8(1, b0, b1, v, end, rb); }
  }
  if (own >= tiles) { return; }
  write4(0, r0, own);
  if (MANY) { write4(1, r0 + 4, own); }
}
