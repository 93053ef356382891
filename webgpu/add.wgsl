// The residual stream: what a layer computed is added to what came in.
//   out[i] = a[i] + b[i]
// Grid: one invocation per element, folded into y.
// In:  a, b [count] f32.   Out: out [count] f32.
// Loops per invocation: none.

struct Params { count: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.y * groups.x * 64 + id.x;
  if (i >= p.count) { return; }
  out[i] = a[i] + b[i];
}
