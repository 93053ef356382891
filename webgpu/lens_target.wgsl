// Logit lens, step 1: the logit of each row's target token, needed before its rank can be counted.
//   target_logit[r] = x[r,:] . table[target[r],:]
// Grid: one invocation per row, folded into y.
// In:  x [rows,D] f32 (after the final norm), table [v_count,D] in WEIGHT_FORMAT (vocabulary rows v0 ..), targets [rows] u32.
// Out: target_logit [rows] f32, written where the target falls into this table; 0xffffffff (no target) is never written.
// Loops per invocation: ceil(D/8).
// The sums are made in the same order as in lens_tile.wgsl, so that equal table rows give equal logits.

override WEIGHT_FORMAT: u32 = 0;  // 0 = f32, 1 = two f16 a word, 2 = two bf16 a word
override ALIGNED: bool = true;    // D is a multiple of 8, so a row starts on a whole vec4

struct Params { rows: u32, D: u32, v0: u32, v_count: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> table: array<vec4u>;
@group(0) @binding(3) var<storage, read> targets: array<u32>;
@group(0) @binding(4) var<storage, read_write> target_logit: array<f32>;

struct Eight { lo: vec4f, hi: vec4f }

fn halves(pair: u32) -> vec2f {
  if (WEIGHT_FORMAT == 1) { return unpack2x16float(pair); }
  return vec2f(bitcast<f32>(pair << 16), bitcast<f32>(pair & 0xffff0000u));
}

// One element, zero past the end of the row: for rows that do not start on a whole vec4.
fn weight1(row: u32, d: u32) -> f32 {
  if (d >= p.D) { return 0; }
  let i = row * p.D + d;
  if (WEIGHT_FORMAT == 0) { return bitcast<f32>(table[i / 4][i % 4]); }
  return halves(table[i / 8][i / 2 % 4])[i % 2];
}
fn x1(row: u32, d: u32) -> f32 {
  if (d >= p.D) { return 0; }
  let i = row * p.D + d;
  return x[i / 4][i % 4];
}

fn weight8(row: u32, d: u32) -> Eight {
  if (!ALIGNED) {
    return Eight(vec4f(weight1(row, d), weight1(row, d + 1), weight1(row, d + 2), weight1(row, d + 3)),
                 vec4f(weight1(row, d + 4), weight1(row, d + 5), weight1(row, d + 6), weight1(row, d + 7)));
  }
  let i = (row * p.D + d) / 8;
  if (WEIGHT_FORMAT == 0) { return Eight(bitcast<vec4f>(table[2 * i]), bitcast<vec4f>(table[2 * i + 1])); }
  let words = table[i];
  return Eight(vec4f(halves(words.x), halves(words.y)), vec4f(halves(words.z), halves(words.w)));
}
fn x4(row: u32, d: u32) -> vec4f {
  if (!ALIGNED) { return vec4f(x1(row, d), x1(row, d + 1), x1(row, d + 2), x1(row, d + 3)); }
  return x[(row * p.D + d) / 4];
}

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let row = id.y * groups.x * 8 + id.x;
  if (row >= p.rows) { return; }
  let token = targets[row];
  if (token < p.v0 || token >= p.v0 + p.v_count) { return; }
  var logit = 0.0;
  for (var d = 0u; d < p.D; d += 8) {
    let w = weight8(token - p.v0, d);
    let lo = x4(row, d);
    let hi = x4(row, d + 4);
    logit += lo.x * w.lo.x + lo.y * w.lo.y + lo.z * w.lo.z + lo.w * w.lo.w;
    logit += hi.x * w.hi.x + hi.y * w.hi.y + hi.z * w.hi.z + hi.w * w.hi.w;
  }
  target_logit[row] = logit;
}
