// SwiGLU (Shazeer 2020, section 2): the gate decides how much of each feature passes.
//   out[t,m] = silu(gate[t,m]) * up[t,m]          silu(g) = g / (1 + exp(-g))
// Grid: one invocation per element of out, folded into y.
// In:  gate_up [T,2F] f32: a row is F gates, then what they let pass.   Out: out [T,F] f32.
// Loops per invocation: none.
// exp only ever sees a negative number, so a gate of -1000 gives 0 and never an infinity.

struct Params { T: u32, F: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> gate_up: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.y * groups.x * 64 + id.x;
  if (i >= p.T * p.F) { return; }
  let at = i + i / p.F * p.F;  // t * 2F + m
  let g = gate_up[at];
  let e = exp(-abs(g));
  let sigmoid = select(e, 1.0, g >= 0) / (1 + e);
  out[i] = g * sigmoid * gate_up[at + p.F];
}
