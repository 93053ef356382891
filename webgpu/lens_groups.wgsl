// Logit lens on a GPU, after the product with the vocabulary: a workgroup shares a row of logits. Compare lens_tile.wgsl.
//   m = max logit, s = sum exp(logit - m), u = sum exp(logit - m) (logit - m) over whole[r,:]
//   lse = m + ln(s),  entropy = ln(s) - u/s (nats),  the k largest logits (equal logits: lower id first),  a target's rank
// Grid: one workgroup per row, folded into y.
// In:  whole [rows,V] f32 logits, targets [rows] u32.
// Out: ids [rows,TOP_K] u32, logits [rows,TOP_K] f32, stats [rows,4] f32 = (lse, entropy, target logit, target rank);
//      rank 0 = best; without a target (0xffffffff) the target logit is -1e30 and the rank -1.
// Loops per invocation: ceil(V/256) * (1 + TOP_K) + 9 * TOP_K + 8.
// In lens_tile one invocation walks 512 rows of the table, and its neighbour the 512 after those: no two share a line of memory.
// Here the product is that of matmul_groups.wgsl and few rows of logits are kept for a moment; 256 neighbours then read 256
// neighbouring logits. Each has a sorted list of its own, and k times the best of all their heads wins; the target's logit is
// the very number that it is compared with, so that equal table rows rank as equals.

override TOP_K: u32 = 10;
const MAX_K = 16;
const NOTHING = -1e30;
const THREADS = 256u;

struct Params { rows: u32, V: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> whole: array<f32>;
@group(0) @binding(2) var<storage, read> targets: array<u32>;
@group(0) @binding(3) var<storage, read_write> ids: array<u32>;
@group(0) @binding(4) var<storage, read_write> logits: array<f32>;
@group(0) @binding(5) var<storage, read_write> stats: array<vec4f>;

var<workgroup> sums: array<vec4f, THREADS>;  // m, s, u, tokens before the target
var<workgroup> best: array<f32, THREADS>;
var<workgroup> best_id: array<u32, THREADS>;

var<private> top: array<f32, MAX_K>;
var<private> top_id: array<u32, MAX_K>;

fn take(logit: f32, v: u32) {  // ids come in rising order, so that an equal logit goes behind
  if (logit <= top[TOP_K - 1]) { return; }
  for (var i = TOP_K - 1; i > 0; i--) {
    let stays = top[i] >= logit;
    let shifts = top[i - 1] < logit;
    top_id[i] = select(select(v, top_id[i - 1], shifts), top_id[i], stays);
    top[i] = max(top[i], min(logit, top[i - 1]));
  }
  top_id[0] = select(v, top_id[0], top[0] >= logit);
  top[0] = max(top[0], logit);
}
fn merged(a: vec4f, b: vec4f) -> vec4f {  // of two parts of a row
  let m = max(a.x, b.x);
  let keep = exp(a.x - m);
  let e = exp(b.x - m);
  let u = keep * (a.z + a.y * (a.x - m)) + e * (b.z + b.y * (b.x - m));
  return vec4f(m, a.y * keep + b.y * e, u, a.w + b.w);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) local: u32) {
  let row = id.y * groups.x + id.x;
  if (row >= p.rows) { return; }  // the whole workgroup
  let base = row * p.V;
  let wanted = targets[row];
  let wanted_logit = whole[base + min(wanted, p.V - 1)];
  for (var i = 0u; i < TOP_K; i++) { top[i] = NOTHING; top_id[i] = 0xffffffffu; }

  var own = vec4f(NOTHING, 0, 0, 0);
  for (var v = local; v < p.V; v += THREADS) {
    let logit = whole[base + v];
    let before = v != wanted && (logit > wanted_logit || (logit == wanted_logit && v < wanted));
    own = merged(own, vec4f(logit, 1, 0, select(0.0, 1.0, before)));
    take(logit, v);
  }
  sums[local] = own;
  workgroupBarrier();
  for (var half = THREADS / 2; half > 0; half /= 2) {
    if (local < half) { sums[local] = merged(sums[local], sums[local + half]); }
    workgroupBarrier();
  }

  var at = 0u;  // how many of this invocation's list have won
  for (var place = 0u; place < TOP_K; place++) {
    best[local] = top[at];
    best_id[local] = top_id[at];
    workgroupBarrier();
    for (var half = THREADS / 2; half > 0; half /= 2) {
      if (local < half) {
        let other = best[local + half];
        if (other > best[local] || (other == best[local] && best_id[local + half] < best_id[local])) {
          best[local] = other;
          best_id[local] = best_id[local + half];
        }
      }
      workgroupBarrier();
    }
    let winner = best_id[0];
    if (winner == top_id[at]) { at = min(at + 1, TOP_K - 1); }
    if (local == 0) { ids[row * TOP_K + place] = winner; logits[row * TOP_K + place] = best[0]; }
    workgroupBarrier();
  }
  if (local > 0) { return; }
  let total = sums[0];
  var answer = vec4f(total.x + log(total.y), log(total.y) - total.z / total.y, NOTHING, -1);
  if (wanted != 0xffffffffu) { answer.z = wanted_logit; answer.w = total.w; }
  stats[row] = answer;
}
