// Ceiling of arithmetic: what the device reaches when nothing is loaded. Twelve chains y = y * a + b, each step waiting for
// the one before it in its own chain only, so that the adders' latency is covered; no kernel of ours can be faster.
// Grid: one invocation per 12 chains of 16 * turns steps: 384 * turns operations.
// In:  turns, a, b.   Out: out [invocations] f32, the sum of the chains (so that none can be left out).
// Loops per invocation: turns.

struct Params { turns: u32, a: f32, b: f32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.y * groups.x * 64 + id.x;
  let a = p.a;
  let b = p.b;
  let start = f32(i % 64);
  var y0 = start; var y1 = start + 1; var y2 = start + 2; var y3 = start + 3; var y4 = start + 4; var y5 = start + 5;
  var z0 = start; var z1 = start - 1; var z2 = start - 2; var z3 = start - 3; var z4 = start - 4; var z5 = start - 5;
  for (var turn = 0u; turn < p.turns; turn += 1) {
    y0 = fma(y0, a, b); y1 = fma(y1, a, b); y2 = fma(y2, a, b); y3 = fma(y3, a, b); y4 = fma(y4, a, b); y5 = fma(y5, a, b);
    z0 = fma(z0, a, b); z1 = fma(z1, a, b); z2 = fma(z2, a, b); z3 = fma(z3, a, b); z4 = fma(z4, a, b); z5 = fma(z5, a, b);
    y0 = fma(y0, a, b); y1 = fma(y1, a, b); y2 = fma(y2, a, b); y3 = fma(y3, a, b); y4 = fma(y4, a, b); y5 = fma(y5, a, b);
    z0 = fma(z0, a, b); z1 = fma(z1, a, b); z2 = fma(z2, a, b); z3 = fma(z3, a, b); z4 = fma(z4, a, b); z5 = fma(z5, a, b);
    y0 = fma(y0, a, b); y1 = fma(y1, a, b); y2 = fma(y2, a, b); y3 = fma(y3, a, b); y4 = fma(y4, a, b); y5 = fma(y5, a, b);
    z0 = fma(z0, a, b); z1 = fma(z1, a, b); z2 = fma(z2, a, b); z3 = fma(z3, a, b); z4 = fma(z4, a, b); z5 = fma(z5, a, b);
    y0 = fma(y0, a, b); y1 = fma(y1, a, b); y2 = fma(y2, a, b); y3 = fma(y3, a, b); y4 = fma(y4, a, b); y5 = fma(y5, a, b);
    z0 = fma(z0, a, b); z1 = fma(z1, a, b); z2 = fma(z2, a, b); z3 = fma(z3, a, b); z4 = fma(z4, a, b); z5 = fma(z5, a, b);
    y0 = fma(y0, a, b); y1 = fma(y1, a, b); y2 = fma(y2, a, b); y3 = fma(y3, a, b); y4 = fma(y4, a, b); y5 = fma(y5, a, b);
    z0 = fma(z0, a, b); z1 = fma(z1, a, b); z2 = fma(z2, a, b); z3 = fma(z3, a, b); z4 = fma(z4, a, b); z5 = fma(z5, a, b);
    y0 = fma(y0, a, b); y1 = fma(y1, a, b); y2 = fma(y2, a, b); y3 = fma(y3, a, b); y4 = fma(y4, a, b); y5 = fma(y5, a, b);
    z0 = fma(z0, a, b); z1 = fma(z1, a, b); z2 = fma(z2, a, b); z3 = fma(z3, a, b); z4 = fma(z4, a, b); z5 = fma(z5, a, b);
    y0 = fma(y0, a, b); y1 = fma(y1, a, b); y2 = fma(y2, a, b); y3 = fma(y3, a, b); y4 = fma(y4, a, b); y5 = fma(y5, a, b);
    z0 = fma(z0, a, b); z1 = fma(z1, a, b); z2 = fma(z2, a, b); z3 = fma(z3, a, b); z4 = fma(z4, a, b); z5 = fma(z5, a, b);
    y0 = fma(y0, a, b); y1 = fma(y1, a, b); y2 = fma(y2, a, b); y3 = fma(y3, a, b); y4 = fma(y4, a, b); y5 = fma(y5, a, b);
    z0 = fma(z0, a, b); z1 = fma(z1, a, b); z2 = fma(z2, a, b); z3 = fma(z3, a, b); z4 = fma(z4, a, b); z5 = fma(z5, a, b);
    y0 = fma(y0, a, b); y1 = fma(y1, a, b); y2 = fma(y2, a, b); y3 = fma(y3, a, b); y4 = fma(y4, a, b); y5 = fma(y5, a, b);
    z0 = fma(z0, a, b); z1 = fma(z1, a, b); z2 = fma(z2, a, b); z3 = fma(z3, a, b); z4 = fma(z4, a, b); z5 = fma(z5, a, b);
    y0 = fma(y0, a, b); y1 = fma(y1, a, b); y2 = fma(y2, a, b); y3 = fma(y3, a, b); y4 = fma(y4, a, b); y5 = fma(y5, a, b);
    z0 = fma(z0, a, b); z1 = fma(z1, a, b); z2 = fma(z2, a, b); z3 = fma(z3, a, b); z4 = fma(z4, a, b); z5 = fma(z5, a, b);
    y0 = fma(y0, a, b); y1 = fma(y1, a, b); y2 = fma(y2, a, b); y3 = fma(y3, a, b); y4 = fma(y4, a, b); y5 = fma(y5, a, b);
    z0 = fma(z0, a, b); z1 = fma(z1, a, b); z2 = fma(z2, a, b); z3 = fma(z3, a, b); z4 = fma(z4, a, b); z5 = fma(z5, a, b);
    y0 = fma(y0, a, b); y1 = fma(y1, a, b); y2 = fma(y2, a, b); y3 = fma(y3, a, b); y4 = fma(y4, a, b); y5 = fma(y5, a, b);
    z0 = fma(z0, a, b); z1 = fma(z1, a, b); z2 = fma(z2, a, b); z3 = fma(z3, a, b); z4 = fma(z4, a, b); z5 = fma(z5, a, b);
    y0 = fma(y0, a, b); y1 = fma(y1, a, b); y2 = fma(y2, a, b); y3 = fma(y3, a, b); y4 = fma(y4, a, b); y5 = fma(y5, a, b);
    z0 = fma(z0, a, b); z1 = fma(z1, a, b); z2 = fma(z2, a, b); z3 = fma(z3, a, b); z4 = fma(z4, a, b); z5 = fma(z5, a, b);
    y0 = fma(y0, a, b); y1 = fma(y1, a, b); y2 = fma(y2, a, b); y3 = fma(y3, a, b); y4 = fma(y4, a, b); y5 = fma(y5, a, b);
    z0 = fma(z0, a, b); z1 = fma(z1, a, b); z2 = fma(z2, a, b); z3 = fma(z3, a, b); z4 = fma(z4, a, b); z5 = fma(z5, a, b);
    y0 = fma(y0, a, b); y1 = fma(y1, a, b); y2 = fma(y2, a, b); y3 = fma(y3, a, b); y4 = fma(y4, a, b); y5 = fma(y5, a, b);
    z0 = fma(z0, a, b); z1 = fma(z1, a, b); z2 = fma(z2, a, b); z3 = fma(z3, a, b); z4 = fma(z4, a, b); z5 = fma(z5, a, b);
    y0 = fma(y0, a, b); y1 = fma(y1, a, b); y2 = fma(y2, a, b); y3 = fma(y3, a, b); y4 = fma(y4, a, b); y5 = fma(y5, a, b);
    z0 = fma(z0, a, b); z1 = fma(z1, a, b); z2 = fma(z2, a, b); z3 = fma(z3, a, b); z4 = fma(z4, a, b); z5 = fma(z5, a, b);
  }
  if (i < arrayLength(&out)) { out[i] = y0 + y1 + y2 + y3 + y4 + y5 + z0 + z1 + z2 + z3 + z4 + z5; }
}
