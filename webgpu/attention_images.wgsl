// Queries, keys and values as images, for kernels that read texels: a driver on a CPU reads the four numbers of one at once.
//   k_image[s, x] = k[s, 4x .. 4x+3], v likewise, for S rows, and q for T rows; an image may be larger.
// Grid: one invocation per texel of k and v, and of q, 64 in a workgroup, folded into y.
// In:  q [T,q_width*4], k and v [S,width*4] f32; q_width = N*H/4, width = K*H/4.
// Out: three images of at least [T,q_width] and [S,width] texels of four f32.
// Loops per invocation: 0.

struct Params { T: u32, q_width: u32, S: u32, width: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4f>;
@group(0) @binding(2) var<storage, read> k: array<vec4f>;
@group(0) @binding(3) var<storage, read> v: array<vec4f>;
@group(0) @binding(4) var q_image: texture_storage_2d<rgba32float, write>;
@group(0) @binding(5) var k_image: texture_storage_2d<rgba32float, write>;
@group(0) @binding(6) var v_image: texture_storage_2d<rgba32float, write>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) local: u32) {
  let i = (id.y * groups.x + id.x) * 64 + local;
  if (i < p.T * p.q_width) { textureStore(q_image, vec2u(i % p.q_width, i / p.q_width), q[i]); }
  if (i < p.S * p.width) {
    let at = vec2u(i % p.width, i / p.width);
    textureStore(k_image, at, k[i]);
    textureStore(v_image, at, v[i]);
  }
}
