// Rotary position embedding, half-split as in Hugging Face checkpoints (Su et al. 2021, section 3.4.2), of a token's queries
// and keys; its values go into their cache as they are.
//   out[j]       = x[j] cos[t,j] - x[j + H/2] sin[t,j]
//   out[j + H/2] = x[j + H/2] cos[t,j] + x[j] sin[t,j]          0 <= j < H/2
// Grid: one invocation per pair (token, head, j) of the N query, K key and K value heads, folded into y.
// In:  x [T,stride] f32: a row begins with the N + K heads to rotate; qkv [T,N+2K,H] f32, whose last K are the values (x and
//      qkv are the same unless heads are normed between); cos and sin [T,H/2] f32, already those of the absolute positions.
// Out: q [T,N,H] f32; k and v [.., K, H] f32, written from row out_row0 on: straight into the caches.
// ROTATE = false copies: layers without rotary positions.
// Loops per invocation: none.

override ROTATE: bool = true;

struct Params { T: u32, N: u32, K: u32, H: u32, stride: u32, out_row0: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> qkv: array<f32>;
@group(0) @binding(3) var<storage, read> cos_table: array<f32>;
@group(0) @binding(4) var<storage, read> sin_table: array<f32>;
@group(0) @binding(5) var<storage, read_write> q: array<f32>;
@group(0) @binding(6) var<storage, read_write> k: array<f32>;
@group(0) @binding(7) var<storage, read_write> v: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.y * groups.x * 64 + id.x;
  let half = p.H / 2;
  let heads = p.N + 2 * p.K;
  if (i >= p.T * heads * half) { return; }
  let j = i % half;
  let row = i / half;  // t * heads + head
  let t = row / heads;
  let head = row % heads;
  if (head >= p.N + p.K) {
    let at = row * p.H + j;
    let to = ((p.out_row0 + t) * p.K + head - p.N - p.K) * p.H + j;
    v[to] = qkv[at];
    v[to + half] = qkv[at + half];
    return;
  }
  let at = t * p.stride + head * p.H + j;
  let a = x[at];
  let b = x[at + half];
  var c = 1.0;
  var s = 0.0;
  if (ROTATE) {
    c = cos_table[t * half + j];
    s = sin_table[t * half + j];
  }
  let rotated = vec2f(a * c - b * s, b * c + a * s);
  if (head < p.N) {
    let to = (t * p.N + head) * p.H + j;
    q[to] = rotated.x;
    q[to + half] = rotated.y;
  } else {
    let to = ((p.out_row0 + t) * p.K + head - p.N) * p.H + j;
    k[to] = rotated.x;
    k[to + half] = rotated.y;
  }
}
