// Rotary position embedding, half-split as in Hugging Face checkpoints (Su et al. 2021, section 3.4.2).
//   out[j]       = x[j] cos[t,j] - x[j + H/2] sin[t,j]
//   out[j + H/2] = x[j + H/2] cos[t,j] + x[j] sin[t,j]          0 <= j < H/2
// Grid: one invocation per pair (token, head, j), folded into y.
// In:  x [T,heads,H] f32, cos and sin [T,H/2] f32, already those of the absolute positions (scaling included).
// Out: out [.., heads, H] f32, written from row out_row0 on: straight into a key cache.
// ROTATE = false copies: layers without rotary positions.
// Loops per invocation: none.

override ROTATE: bool = true;

struct Params { T: u32, heads: u32, H: u32, out_row0: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> cos_table: array<f32>;
@group(0) @binding(3) var<storage, read> sin_table: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.y * groups.x * 64 + id.x;
  let half = p.H / 2;
  if (i >= p.T * p.heads * half) { return; }
  let j = i % half;
  let row = i / half;  // t * heads + head
  let a = x[row * p.H + j];
  let b = x[row * p.H + j + half];
  var c = 1.0;
  var s = 0.0;
  if (ROTATE) {
    let at = row / p.heads * half + j;
    c = cos_table[at];
    s = sin_table[at];
  }
  let to = (p.out_row0 * p.heads + row) * p.H + j;
  out[to] = a * c - b * s;
  out[to + half] = b * c + a * s;
}
