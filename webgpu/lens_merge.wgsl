// Logit lens, step 3: the tiles of one row become one answer.
//   lse = m + ln(s),  entropy = ln(s) - u/s (nats),  over all tiles;  the k best of the tiles' k best
// Grid: one invocation per row, folded into y.
// In:  part_logits, part_ids [rows,parts,TOP_K] (sorted, equal logits: lower id first; earlier parts hold lower ids),
//      part_stats [rows,parts,4] f32 = (m, s, u, tokens before the target), targets [rows] u32, target_logit [rows] f32.
// Out: ids [rows,TOP_K] u32, logits [rows,TOP_K] f32, stats [rows,4] f32 = (lse, entropy, target logit, target rank);
//      rank 0 = best; without a target (0xffffffff) the target logit is -1e30 and the rank -1.
// Loops per invocation: parts * (1 + 2 * TOP_K) + TOP_K.

override TOP_K: u32 = 10;
const MAX_K = 16;
const NOTHING = -1e30;

struct Params { rows: u32, parts: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> part_logits: array<f32>;
@group(0) @binding(2) var<storage, read> part_ids: array<u32>;
@group(0) @binding(3) var<storage, read> part_stats: array<vec4f>;
@group(0) @binding(4) var<storage, read> targets: array<u32>;
@group(0) @binding(5) var<storage, read> target_logit: array<f32>;
@group(0) @binding(6) var<storage, read_write> ids: array<u32>;
@group(0) @binding(7) var<storage, read_write> logits: array<f32>;
@group(0) @binding(8) var<storage, read_write> stats: array<vec4f>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let row = id.y * groups.x * 8 + id.x;
  if (row >= p.rows) { return; }
  var m = NOTHING;
  var s = 0.0;
  var u = 0.0;
  var rank = 0.0;
  var top: array<f32, MAX_K>;
  var top_id: array<u32, MAX_K>;
  for (var i = 0u; i < TOP_K; i++) { top[i] = NOTHING; top_id[i] = 0xffffffffu; }

  for (var part = row * p.parts; part < (row + 1) * p.parts; part++) {
    let tile = part_stats[part];
    let highest = max(m, tile.x);
    let keep = exp(m - highest);
    let e = exp(tile.x - highest);
    u = keep * (u + s * (m - highest)) + e * (tile.z + tile.y * (tile.x - highest));
    s = s * keep + tile.y * e;
    m = highest;
    rank += tile.w;

    // Two sorted lists into one: a tile's logit goes first only when it is larger, so that lower ids win ties.
    if (part_logits[part * TOP_K] <= top[TOP_K - 1]) { continue; }
    let old = top;
    let old_id = top_id;
    var a = 0u;
    var b = 0u;
    for (var i = 0u; i < TOP_K; i++) {
      let value = part_logits[part * TOP_K + b];
      if (value > old[a]) {
        top[i] = value;
        top_id[i] = part_ids[part * TOP_K + b];
        b++;
      } else {
        top[i] = old[a];
        top_id[i] = old_id[a];
        a++;
      }
    }
  }
  for (var i = 0u; i < TOP_K; i++) {
    ids[row * TOP_K + i] = top_id[i];
    logits[row * TOP_K + i] = top[i];
  }
  let none = targets[row] == 0xffffffffu;
  var answer = vec4f(m + log(s), log(s) - u / s, NOTHING, -1);
  if (!none) { answer.z = target_logit[row]; answer.w = rank; }
  stats[row] = answer;
}
