// SwiGLU (Shazeer 2020, section 2): the gate decides how much of each feature passes.
//   out[i] = silu(gate[i]) * up[i]          silu(g) = g / (1 + exp(-g))
// Grid: one invocation per element, folded into y.
// In:  gate, up [count] f32.   Out: out [count] f32.
// Loops per invocation: none.
// exp only ever sees a negative number, so a gate of -1000 gives 0 and never an infinity.

struct Params { count: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> gate: array<f32>;
@group(0) @binding(2) var<storage, read> up: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.y * groups.x * 64 + id.x;
  if (i >= p.count) { return; }
  let g = gate[i];
  let e = exp(-abs(g));
  let sigmoid = select(e, 1.0, g >= 0) / (1 + e);
  out[i] = g * sigmoid * up[i];
}
