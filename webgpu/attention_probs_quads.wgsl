// The attention pattern for one window of rows and columns, rebuilt from q, k and the row log-sum-exp: quads.
//   pattern[n,t,s] = exp(scale * q[t,n,:] . k[s,n/G,:] - lse[n,t]) where query t may see key s, 0 elsewhere
// Query t stands at position P = offset + t. It sees key s when s <= P and (window == 0 or P - s < window or s < sinks).
// An invocation keeps four query rows and streams keys past them: no maximum, no sum, no barrier.
// The four invocations of a quad own different rows and share each load of a key.
//   cells:  out [heads,rows,cols], one number per cell. Grid: x span columns, y 32 rows, z heads.
//   pixels: out [heads,out_rows,out_cols], pixel (i,j) is the largest or the mean of cells
//           row0 + floor(i*rows/out_rows) .. row0 + floor((i+1)*rows/out_rows) - 1 (at least one), columns alike.
//           Grid: x span pixel columns, y 8 pixel rows (one an invocation), z heads.
// A dispatch does rows slice0 .. slice1-1 of the window (cells) or of every pixel (pixels, added to what stands in out).
// out begins as zeros, so that nothing is computed or written above the diagonal.
// In:  q [T,N,H], k [S,K,H] f32, lse [N,T] f32 (natural log).   Out: out f32, heads head0 .. on. H a multiple of 16 up to 128.
// Loops per invocation: cells span; pixels ceil((slice1-slice0)/4) * span * (1 + cols of a pixel).

override H: u32 = 64;
override MEAN: bool = false;  // pixels: false = largest cell, true = mean of the cells
const LOG2_E = 1.4426950408889634;

struct Params {
  T: u32, S: u32, N: u32, K: u32, head0: u32, row0: u32, rows: u32, col0: u32, cols: u32, out_rows: u32, out_cols: u32,
  slice0: u32, slice1: u32, span: u32, offset: u32, window: u32, sinks: u32, scale: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> q: array<array<vec4f, 4>>;
@group(0) @binding(2) var<storage, read> k: array<array<vec4f, 4>>;
@group(0) @binding(3) var<storage, read> lse: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

// Sixteen dimensions of four query rows (a to d). The lanes of a quad load four dimensions of a key each and swap them, so
// lane l meets them in the order l, l^1, l^2, l^3: its queries lie in that order too.
struct Part { a: mat4x4f, b: mat4x4f, c: mat4x4f, d: mat4x4f }
struct Rows { q0: Part, q1: Part, q2: Part, q3: Part, q4: Part, q5: Part, q6: Part, q7: Part, lse: vec4f, position: vec4u }

fn q16(at: u32, lane: u32) -> mat4x4f {
  let f = p.scale * LOG2_E;
  return mat4x4f(q[at][lane] * f, q[at][lane ^ 1] * f, q[at][lane ^ 2] * f, q[at][lane ^ 3] * f);
}
fn k16(at: u32, lane: u32) -> mat4x4f {
  let mine = k[at][lane];
  return mat4x4f(mine, quadSwapX(mine), quadSwapY(mine), quadSwapDiagonal(mine));
}
fn part(at: vec4u, lane: u32) -> Part {
  return Part(q16(at.x, lane), q16(at.y, lane), q16(at.z, lane), q16(at.w, lane));
}

fn dot16(a: mat4x4f, b: mat4x4f, sum: f32) -> f32 {
  return fma(a[3].w, b[3].w, fma(a[3].z, b[3].z, fma(a[3].y, b[3].y, fma(a[3].x, b[3].x,
         fma(a[2].w, b[2].w, fma(a[2].z, b[2].z, fma(a[2].y, b[2].y, fma(a[2].x, b[2].x,
         fma(a[1].w, b[1].w, fma(a[1].z, b[1].z, fma(a[1].y, b[1].y, fma(a[1].x, b[1].x,
         fma(a[0].w, b[0].w, fma(a[0].z, b[0].z, fma(a[0].y, b[0].y, fma(a[0].x, b[0].x, sum))))))))))))))));
}
fn add(sum: vec4f, rows: Part, key: mat4x4f) -> vec4f {
  return vec4f(dot16(rows.a, key, sum.x), dot16(rows.b, key, sum.y), dot16(rows.c, key, sum.z), dot16(rows.d, key, sum.w));
}

fn load(n: u32, t: vec4u, lane: u32) -> Rows {
  var rows = Rows();
  let at = n * p.T + t;
  rows.lse = LOG2_E * vec4f(lse[at.x], lse[at.y], lse[at.z], lse[at.w]);
  rows.position = p.offset + t;
  let a = (t * p.N + n) * (H / 16);
  rows.q0 = part(a, lane);
  if (H > 16) { rows.q1 = part(a + 1, lane); }
  if (H > 32) { rows.q2 = part(a + 2, lane); }
  if (H > 48) { rows.q3 = part(a + 3, lane); }
  if (H > 64) { rows.q4 = part(a + 4, lane); }
  if (H > 80) { rows.q5 = part(a + 5, lane); }
  if (H > 96) { rows.q6 = part(a + 6, lane); }
  if (H > 112) { rows.q7 = part(a + 7, lane); }
  return rows;
}

// Probabilities of key s in the four rows. Where a row does not see it, the exponent is not used (lse may be -1e30).
fn probability(rows: Rows, n: u32, s: u32, lane: u32) -> vec4f {
  let at = (s * p.K + n / (p.N / p.K)) * (H / 16);
  var score = add(vec4f(), rows.q0, k16(at, lane));
  if (H > 16) { score = add(score, rows.q1, k16(at + 1, lane)); }
  if (H > 32) { score = add(score, rows.q2, k16(at + 2, lane)); }
  if (H > 48) { score = add(score, rows.q3, k16(at + 3, lane)); }
  if (H > 64) { score = add(score, rows.q4, k16(at + 4, lane)); }
  if (H > 80) { score = add(score, rows.q5, k16(at + 5, lane)); }
  if (H > 96) { score = add(score, rows.q6, k16(at + 6, lane)); }
  if (H > 112) { score = add(score, rows.q7, k16(at + 7, lane)); }
  let near = p.window == 0 || s < p.sinks;
  let see = (rows.position >= vec4u(s)) & (vec4<bool>(near) | (rows.position < vec4u(s + p.window)));
  return select(vec4f(), exp2(select(vec4f(), score - rows.lse, see)), see);
}

@compute @workgroup_size(8, 1, 1)
fn cells(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) local: u32,
         @builtin(subgroup_invocation_id) id: u32) {
  let lane = id % 4;
  let n = p.head0 + group.z;
  let top = p.slice0 + group.y * 32;
  let row = top + local * 4 + vec4u(0, 1, 2, 3);
  let rows = load(n, min(p.row0 + row, vec4u(p.T - 1)), lane);
  let seen = p.offset + p.row0 + min(top + 32, p.slice1);  // the first key that no row of the workgroup sees
  let begin = p.col0 + group.x * p.span;
  let end = min(min(begin + p.span, p.col0 + p.cols), seen);
  let inside = row < vec4u(p.slice1);
  let to = (group.z * p.rows + row) * p.cols - p.col0;
  for (var s = begin; s < end; s++) {
    let values = probability(rows, n, s, lane);
    if (inside.x) { out[to.x + s] = values.x; }
    if (inside.y) { out[to.y + s] = values.y; }
    if (inside.z) { out[to.z + s] = values.z; }
    if (inside.w) { out[to.w + s] = values.w; }
  }
}

@compute @workgroup_size(8, 1, 1)
fn pixels(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) local: u32,
          @builtin(subgroup_invocation_id) id: u32) {
  let lane = id % 4;
  let n = p.head0 + group.z;
  let i = min(group.y * 8 + local, p.out_rows - 1);
  let first = p.row0 + i * p.rows / p.out_rows;
  let end = max(p.row0 + (i + 1) * p.rows / p.out_rows, first + 1);
  let lowest = p.row0 + min(group.y * 8 + 7, p.out_rows - 1) * p.rows / p.out_rows;  // first row of the last pixel row
  for (var r = p.slice0; r < p.slice1; r += 4) {
    let t = first + r + vec4u(0, 1, 2, 3);
    let inside = t < vec4u(min(end, first + p.slice1));
    let rows = load(n, min(t, vec4u(p.T - 1)), lane);
    for (var j = group.x * p.span; j < min((group.x + 1) * p.span, p.out_cols); j++) {
      let left = p.col0 + j * p.cols / p.out_cols;
      let right = max(p.col0 + (j + 1) * p.cols / p.out_cols, left + 1);
      var largest = vec4f();
      var total = vec4f();
      for (var s = left; s < min(right, p.offset + lowest + r + 4); s++) {
        let values = select(vec4f(), probability(rows, n, s, lane), inside);
        largest = max(largest, values);
        total += values;
      }
      let to = (group.z * p.out_rows + i) * p.out_cols + j;
      let mean = (total.x + total.y + total.z + total.w) / f32((end - first) * (right - left));
      let most = max(max(largest.x, largest.y), max(largest.z, largest.w));
      if (group.y * 8 + local == i) { out[to] = select(max(out[to], most), out[to] + mean, MEAN); }
    }
  }
}
