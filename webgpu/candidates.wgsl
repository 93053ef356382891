// The best logits of a row and what a draw needs to know of the rest, so that the row itself need not be read back.
//   list i takes four neighbours, v = 4 (i + turn * LISTS) ..: of these its eight largest (equal logits: lower id first),
//   m = max logit,   s = sum exp(logit - m),   h = sum exp((logit - m) heat),   heat = 1 / temperature
// A logit that is in no list is at most the eighth of its own: what exceeds every full list's eighth is certainly complete.
// Grid: one invocation per list, folded into y.
// In:  logits [V] f32.
// Out: best [LISTS,5] vec4u: (m, s, h, 0), logits 1 to 4, logits 5 to 8 (bits of f32), then their ids; an empty place holds
//      -1e30 and 0xffffffff, an empty list m = -1e30 and s = h = 0.
// Loops per invocation: ceil(V / (4 * LISTS)) * 5.
// One logit enters a sorted list at all places at once: new[j] = max(old[j], min(logit, old[j-1])).

const LISTS = 256u;
const NOTHING = -1e30;
const LARGEST = 3.4e38;

struct Params { V: u32, heat: f32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> logits: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> best: array<vec4u>;

struct List { a: vec4f, b: vec4f, id_a: vec4u, id_b: vec4u }

fn moved(old: vec4u, before: vec4u, stays: vec4<bool>, shifts: vec4<bool>, v: u32) -> vec4u {
  return select(select(vec4u(v), before, shifts), old, stays);
}
fn taken(list: List, logit: f32, v: u32) -> List {  // ids come in rising order: an equal logit goes behind
  let x = vec4f(logit);
  let before_a = vec4f(LARGEST, list.a.xyz);
  let before_b = vec4f(list.a.w, list.b.xyz);
  return List(max(list.a, min(x, before_a)), max(list.b, min(x, before_b)),
              moved(list.id_a, vec4u(v, list.id_a.xyz), list.a >= x, before_a < x, v),
              moved(list.id_b, vec4u(list.id_a.w, list.id_b.xyz), list.b >= x, before_b < x, v));
}

@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let index = id.y * groups.x * 16 + id.x;
  if (index >= LISTS) { return; }
  var m = NOTHING;
  var s = 0.0;
  var h = 0.0;
  var list = List(vec4f(NOTHING), vec4f(NOTHING), vec4u(0xffffffffu), vec4u(0xffffffffu));
  for (var v = 4 * index; v < p.V; v += 4 * LISTS) {
    let four = select(vec4f(NOTHING), logits[v / 4], vec4u(v, v + 1, v + 2, v + 3) < vec4u(p.V));
    let most = max(max(four.x, four.y), max(four.z, four.w));
    let top = max(m, most);
    s = s * exp(m - top) + dot(exp(four - top), vec4f(1));
    h = h * exp((m - top) * p.heat) + dot(exp((four - top) * p.heat), vec4f(1));
    m = top;
    if (most > list.b.w) {
      for (var j = 0u; j < 4; j++) {
        let logit = select(select(four.w, four.z, j == 2), select(four.y, four.x, j == 0), j < 2);
        if (logit > list.b.w) { list = taken(list, logit, v + j); }
      }
    }
  }
  best[5 * index] = vec4u(bitcast<vec3u>(vec3f(m, s, h)), 0);
  best[5 * index + 1] = bitcast<vec4u>(list.a);
  best[5 * index + 2] = bitcast<vec4u>(list.b);
  best[5 * index + 3] = list.id_a;
  best[5 * index + 4] = list.id_b;
}
