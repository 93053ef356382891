// Embedding: a token's row of the table becomes its first residual stream.
//   out[t,d] = table[ids[t], d]
// Grid: one invocation per element of out, folded into y.
// In:  ids [T] u32, table [v_count,D] in WEIGHT_FORMAT: the vocabulary rows v0 .. v0+v_count-1, scales
//      of its blocks (formats 3 and 4; weights/blocks.py).
// Out: out [T,D] f32.
// A large vocabulary comes in several tables (a binding holds 128 MiB): each dispatch writes the tokens it owns only.
// Loops per invocation: none.

override WEIGHT_FORMAT: u32 = 0;  // 0 = f32, 1 = two f16 a word, 2 = two bf16 a word, 3 = Q4_1 blocks, 4 = Q8_0 blocks

struct Params { T: u32, D: u32, v0: u32, v_count: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> ids: array<u32>;
@group(0) @binding(2) var<storage, read> table: array<u32>;
@group(0) @binding(3) var<storage, read> scales: array<u32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

fn weight(i: u32) -> f32 {
  if (WEIGHT_FORMAT == 0) { return bitcast<f32>(table[i]); }
  if (WEIGHT_FORMAT == 3) {
    let scale = unpack2x16float(scales[i / 32]);
    return f32((table[i / 8] >> (i % 8 * 4)) & 15) * scale.x + scale.y;
  }
  if (WEIGHT_FORMAT == 4) {
    let scale = unpack2x16float(scales[i / 64]);
    return f32(extractBits(bitcast<i32>(table[i / 4]), i % 4 * 8, 8)) * select(scale.x, scale.y, i / 32 % 2 == 1);
  }
  let pair = table[i / 2];  // little-endian: the even element is the low half
  let odd = i % 2 == 1;
  if (WEIGHT_FORMAT == 1) {
    let values = unpack2x16float(pair);
    return select(values.x, values.y, odd);
  }
  return bitcast<f32>(select(pair << 16, pair & 0xffff0000u, odd));  // bf16 is the upper half of an f32
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = id.y * groups.x * 64 + id.x;
  if (i >= p.T * p.D) { return; }
  let token = ids[i / p.D];
  if (token < p.v0 || token >= p.v0 + p.v_count) { return; }
  out[i] = weight((token - p.v0) * p.D + i % p.D);
}
