// Queries, keys and values as images, for kernels that read texels: a driver on a CPU reads the four numbers of one at once.
//   k_image[s, x] = k[s, 4x .. 4x+3], v likewise, for S rows, and q for T rows; an image may be larger.
// Grid: a workgroup of 16 owns row t of q and row s = t of k and v, its invocations every 16th texel; max(T, S) rows.
// In:  q [T,q_width*4], k and v [S,width*4] f32; q_width = N*H/4, width = K*H/4.
// Out: three images of at least [T,q_width] and [S,width] texels of four f32.
// Loops per invocation: ceil(q_width/16) + ceil(width/16).
// Loops, not conditions: a driver on a CPU runs both sides of a branch, and leaves a loop when no invocation is in it.

struct Params { T: u32, q_width: u32, S: u32, width: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4f>;
@group(0) @binding(2) var<storage, read> k: array<vec4f>;
@group(0) @binding(3) var<storage, read> v: array<vec4f>;
@group(0) @binding(4) var q_image: texture_storage_2d<rgba32float, write>;
@group(0) @binding(5) var k_image: texture_storage_2d<rgba32float, write>;
@group(0) @binding(6) var v_image: texture_storage_2d<rgba32float, write>;

@compute @workgroup_size(16)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(local_invocation_index) local: u32) {
  let row = id.x;
  for (var x = select(p.q_width, local, row < p.T); x < p.q_width; x += 16) {
    textureStore(q_image, vec2u(x, row), q[row * p.q_width + x]);
  }
  for (var x = select(p.width, local, row < p.S); x < p.width; x += 16) {
    textureStore(k_image, vec2u(x, row), k[row * p.width + x]);
    textureStore(v_image, vec2u(x, row), v[row * p.width + x]);
  }
}
