// A window of the attention pattern in the fewest words, for short texts: compiles in a moment. See attention_probs.wgsl.
//   pattern[n,t,s] = exp(scale * q[t,n,:] . k[s,n/G,:] - lse[n,t]) where query t may see key s, 0 elsewhere
// Query t stands at position P = offset + t. It sees key s when s <= P and (window == 0 or P - s < window or s < sinks).
// Grid: one invocation owns one pixel (i,j) of one head, folded into y: the largest or the mean of the cells in rows
//       row0 + floor(i*rows/out_rows) .. row0 + floor((i+1)*rows/out_rows) - 1 (at least one), columns alike.
// In:  q [T,N,H], k [S,K,H] f32, lse [N,T] f32 (natural log).   Out: out [heads,out_rows,out_cols] f32, heads head0 .. on.
// Loops per invocation: pixel_rows * (1 + pixel_cols * (1 + H/4)), the cells of a pixel one by one.

override H: u32 = 64;         // a multiple of 4
override MEAN: bool = false;  // false = largest cell, true = mean of the cells

struct Params {
  T: u32, N: u32, K: u32, heads: u32, head0: u32, row0: u32, rows: u32, col0: u32, cols: u32, out_rows: u32, out_cols: u32,
  offset: u32, window: u32, sinks: u32, scale: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4f>;
@group(0) @binding(2) var<storage, read> k: array<vec4f>;
@group(0) @binding(3) var<storage, read> lse: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let index = id.y * groups.x * 16 + id.x;
  let j = index % p.out_cols;
  let i = index / p.out_cols % p.out_rows;
  let n = p.head0 + index / p.out_cols / p.out_rows;
  if (n >= p.head0 + p.heads) { return; }
  let top = p.row0 + i * p.rows / p.out_rows;
  let bottom = max(p.row0 + (i + 1) * p.rows / p.out_rows, top + 1);
  let left = p.col0 + j * p.cols / p.out_cols;
  let right = max(p.col0 + (j + 1) * p.cols / p.out_cols, left + 1);

  var largest = 0.0;
  var total = 0.0;
  for (var t = top; t < bottom; t++) {
    let position = p.offset + t;
    for (var s = left; s < min(right, position + 1); s++) {
      if (p.window != 0 && position - s >= p.window && s >= p.sinks) { continue; }
      let row = (t * p.N + n) * (H / 4);
      let key = (s * p.K + n / (p.N / p.K)) * (H / 4);
      var score = 0.0;
      for (var h = 0u; h < H / 4; h++) { score += dot(q[row + h], k[key + h]); }
      let weight = exp(score * p.scale - lse[n * p.T + t]);
      largest = max(largest, weight);
      total += weight;
    }
  }
  out[index] = select(largest, total / f32((bottom - top) * (right - left)), MEAN);
}
