// Ceiling of memory: a buffer read once, in order, by vec4s. A kernel that has to read more than its caches hold cannot
// be faster; one that reuses what it read can.
// Grid: one invocation per 64 vec4s of x; the invocations of a workgroup read side by side.
// In:  x [64 * 64 * workgroups] vec4f.   Out: out [invocations] f32, the sum of what each read.
// Loops per invocation: 64.

struct Params { count: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
  let block = group.y * groups.x + group.x;
  let first = block * 4096 + lane;
  if (first + 4032 >= p.count) { return; }
  var sum = vec4f();
  for (var turn = 0u; turn < 64; turn += 1) {
    sum += x[first + turn * 64];
  }
  out[block * 64 + lane] = dot(sum, vec4f(1));
}
