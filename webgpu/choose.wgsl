// The likeliest token, chosen where the next step reads it, so that no step of greedy generation waits for the host.
//   id = the largest logit's (equal logits: lower id first),   lse = m + ln(sum exp(logit - m)),   over all lists
// Grid: one workgroup.
// In:  best [lists,5] vec4u as candidates.wgsl writes it.
// Out: ids [1] u32, token [1] vec4u = (id, bits of its logit, bits of lse, 0).
// Loops per invocation: ceil(lists / 64) + 6.

const THREADS = 64u;
const NOTHING = -1e30;

struct Params { lists: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> best: array<vec4u>;
@group(0) @binding(2) var<storage, read_write> ids: array<u32>;
@group(0) @binding(3) var<storage, read_write> token: array<vec4u>;

struct Part { m: f32, s: f32, id: u32 }  // largest logit, sum of exponentials relative to it, its id
var<workgroup> parts: array<Part, THREADS>;

fn merged(a: Part, b: Part) -> Part {
  let m = max(a.m, b.m);
  let first = a.m > b.m || (a.m == b.m && a.id < b.id);
  return Part(m, a.s * exp(a.m - m) + b.s * exp(b.m - m), select(b.id, a.id, first));
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32) {
  var own = Part(NOTHING, 0, 0xffffffffu);
  for (var i = local; i < p.lists; i += THREADS) {
    let state = bitcast<vec2f>(best[5 * i].xy);
    own = merged(own, Part(state.x, state.y, best[5 * i + 3].x));
  }
  parts[local] = own;
  workgroupBarrier();
  for (var half = THREADS / 2; half > 0; half /= 2) {
    if (local < half) { parts[local] = merged(parts[local], parts[local + half]); }
    workgroupBarrier();
  }
  if (local > 0) { return; }
  let all = parts[0];
  ids[0] = all.id;
  token[0] = vec4u(all.id, bitcast<u32>(all.m), bitcast<u32>(all.m + log(all.s)), 0);
}
