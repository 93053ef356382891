// The attention pattern for one window of rows and columns, rebuilt from q, k and the row log-sum-exp.
//   pattern[n,t,s] = exp(scale * q[t,n,:] . k[s,n/G,:] - lse[n,t]) where query t may see key s, 0 elsewhere
// Query t stands at position P = offset + t. It sees key s when s <= P and (window == 0 or P - s < window or s < sinks).
// Two entry points share the 4 x 4 block of cells:
//   cells:  out [heads,rows,cols], one number per cell. Grid: one invocation per block (x columns, y rows, z heads).
//   pixels: out [heads,out_rows,out_cols], pixel (i,j) is the largest or the mean of cells
//           row0 + floor(i*rows/out_rows) .. row0 + floor((i+1)*rows/out_rows) - 1 (at least one), columns alike.
//           Grid: one invocation per pixel (x columns, y rows, z heads). A pixel of many cells takes several dispatches:
//           each reduces its rows slice0 .. slice1-1 and continues from out when slice0 > 0.
// In:  q [T,N,H], k [S,K,H] f32, lse [N,T] f32 (natural log).   Out: out f32, heads head0 .. on.
// Loops per invocation: cells ceil(H/16) + 20; pixels ceil((slice1-slice0)/4) * (1 + ceil(cols of a pixel/4) * (5 + ceil(H/16))).

override H: u32 = 64;
override MEAN: bool = false;  // pixels: false = largest cell, true = mean of the cells
const LOG2_E = 1.4426950408889634;

struct Params {
  T: u32, S: u32, N: u32, K: u32, head0: u32, row0: u32, rows: u32, col0: u32, cols: u32, out_rows: u32, out_cols: u32,
  slice0: u32, slice1: u32, offset: u32, window: u32, sinks: u32, scale: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4f>;
@group(0) @binding(2) var<storage, read> k: array<vec4f>;
@group(0) @binding(3) var<storage, read> lse: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

// Four rows and four dimensions as one matrix. Past the end of a head there are zeros, for head dimensions that the
// steps below do not divide; for the others the pipeline is made without the test.
fn q4(at: vec4u, h: u32) -> mat4x4f {
  if (H % 16 != 0 && h >= H / 4) { return mat4x4f(); }
  return transpose(mat4x4f(q[at.x + h], q[at.y + h], q[at.z + h], q[at.w + h]));
}
fn k4(at: vec4u, h: u32) -> mat4x4f {
  if (H % 16 != 0 && h >= H / 4) { return mat4x4f(); }
  return mat4x4f(k[at.x + h], k[at.y + h], k[at.z + h], k[at.w + h]);
}
fn sees(position: vec4u, s: u32) -> vec4<bool> {
  let near = p.window == 0 || s < p.sinks;
  return (position >= vec4u(s)) & (vec4<bool>(near) | (position < vec4u(s + p.window)));
}
fn probability(score: vec4f, row_lse: vec4f, position: vec4u, s: u32) -> vec4f {
  // A row that sees nothing has lse = -1e30: the exponent of a masked cell is never used.
  let see = sees(position, s);
  return select(vec4f(), exp2(select(vec4f(), (score * p.scale - row_lse) * LOG2_E, see)), see);
}

// Probabilities of rows t0 .. t0+3 (lanes) and keys s0 .. s0+3 (columns); the caller leaves out what lies past its window.
fn block(n: u32, t0: u32, s0: u32) -> mat4x4f {
  let t = min(vec4u(t0, t0 + 1, t0 + 2, t0 + 3), vec4u(p.T - 1));
  let s = min(vec4u(s0, s0 + 1, s0 + 2, s0 + 3), vec4u(p.S - 1));
  if (s0 > p.offset + t.w) { return mat4x4f(); }  // above the diagonal
  let row = (t * p.N + n) * (H / 4);
  let key = (s * p.K + n / (p.N / p.K)) * (H / 4);
  var score = mat4x4f();
  for (var h = 0u; h < H / 4; h += 4) {
    score += q4(row, h) * k4(key, h); score += q4(row, h + 1) * k4(key, h + 1);
    score += q4(row, h + 2) * k4(key, h + 2); score += q4(row, h + 3) * k4(key, h + 3);
  }
  let at = n * p.T + t;
  let row_lse = vec4f(lse[at.x], lse[at.y], lse[at.z], lse[at.w]);
  let position = p.offset + t;
  return mat4x4f(probability(score[0], row_lse, position, s0), probability(score[1], row_lse, position, s0 + 1),
                 probability(score[2], row_lse, position, s0 + 2), probability(score[3], row_lse, position, s0 + 3));
}

@compute @workgroup_size(16, 1, 1)
fn cells(@builtin(global_invocation_id) id: vec3u) {
  let row = id.y * 4;
  let col = id.x * 4;
  if (row >= p.rows || col >= p.cols) { return; }
  let values = transpose(block(p.head0 + id.z, p.row0 + row, p.col0 + col));
  for (var i = 0u; i < min(4, p.rows - row); i++) {
    let to = (id.z * p.rows + row + i) * p.cols + col;
    for (var j = 0u; j < min(4, p.cols - col); j++) { out[to + j] = values[i][j]; }
  }
}

@compute @workgroup_size(16, 1, 1)
fn pixels(@builtin(global_invocation_id) id: vec3u) {
  if (id.y >= p.out_rows || id.x >= p.out_cols) { return; }
  let first_row = p.row0 + id.y * p.rows / p.out_rows;
  let first_col = p.col0 + id.x * p.cols / p.out_cols;
  let end_row = max(p.row0 + (id.y + 1) * p.rows / p.out_rows, first_row + 1);
  let end_col = max(p.col0 + (id.x + 1) * p.cols / p.out_cols, first_col + 1);
  let to = (id.z * p.out_rows + id.y) * p.out_cols + id.x;
  let area = f32((end_row - first_row) * (end_col - first_col));
  let slice_end = min(first_row + p.slice1, end_row);
  var largest = vec4f();
  var total = vec4f();
  for (var t = first_row + p.slice0; t < slice_end; t += 4) {
    let inside = vec4u(t, t + 1, t + 2, t + 3) < vec4u(slice_end);
    for (var s = first_col; s < end_col; s += 4) {
      if (s > p.offset + t + 3) { break; }
      let values = block(p.head0 + id.z, t, s);
      for (var j = 0u; j < min(4, end_col - s); j++) {
        let value = select(vec4f(), values[j], inside);
        largest = max(largest, value);
        total += value;
      }
    }
  }
  var result = max(max(largest.x, largest.y), max(largest.z, largest.w));
  if (MEAN) { result = (total.x + total.y + total.z + total.w) / area; }
  if (p.slice0 > 0) {
    if (MEAN) { result += out[to]; } else { result = max(result, out[to]); }
  }
  out[to] = result;
}
