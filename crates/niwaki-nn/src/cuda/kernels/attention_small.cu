// Attention over items of 8 rows with 32-wide heads: everything in registers and a little shared memory, queries, keys
// and values read once, probabilities computed again in the backward pass.

#define ROWS 8
#define WIDTH 32

// A warp per (item, head). Lane (i, part): row i = lane / 4, columns part * 4 .. + 4 and the same 16 further on, so that
// the four lanes of a row touch whole 64-byte pieces. In shared memory odd rows hold their two halves swapped: rows 128
// bytes apart would otherwise meet in the same banks.
struct Eight {
  float v[8];
  __device__ __forceinline__ void load(const float* row, int c) {
    const float4 a = *(const float4*)(row + c), b = *(const float4*)(row + (c ^ 16));
    v[0] = a.x; v[1] = a.y; v[2] = a.z; v[3] = a.w; v[4] = b.x; v[5] = b.y; v[6] = b.z; v[7] = b.w;
  }
  __device__ __forceinline__ void store(float* row, int c) const {
    *(float4*)(row + c) = make_float4(v[0], v[1], v[2], v[3]);
    *(float4*)(row + (c ^ 16)) = make_float4(v[4], v[5], v[6], v[7]);
  }
  __device__ __forceinline__ void add(const float* row, int c) {
    Eight o;
    o.load(row, c);
#pragma unroll
    for (int c = 0; c < 8; ++c) v[c] += o.v[c];
  }
  __device__ __forceinline__ float dot(const Eight& o) const {
    float s = 0.f;
#pragma unroll
    for (int c = 0; c < 8; ++c) s = fmaf(v[c], o.v[c], s);
    return s;
  }
  __device__ __forceinline__ void axpy(float f, const Eight& o) {
#pragma unroll
    for (int c = 0; c < 8; ++c) v[c] = fmaf(f, o.v[c], v[c]);
  }
  __device__ __forceinline__ void zero() {
#pragma unroll
    for (int c = 0; c < 8; ++c) v[c] = 0.f;
  }
};

__device__ __forceinline__ int turned(int row, int c) { return c ^ ((row & 1) << 4); }

__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// Row i's probabilities from its query and the keys in shared memory, which stay in registers for who needs them again.
__device__ __forceinline__ void small_softmax(float (&p)[ROWS], Eight (&k)[ROWS], const Eight& q, const float* keys,
                                              int i, int part, float scale, int causal) {
  float top = -3.0e38f;
#pragma unroll
  for (int j = 0; j < ROWS; ++j) {
    k[j].load(keys + j * WIDTH, turned(j, part * 4));
    p[j] = quad_sum(q.dot(k[j])) * scale;
    if (causal && j > i) p[j] = -3.0e38f;
    top = fmaxf(top, p[j]);
  }
  float total = 0.f;
#pragma unroll
  for (int j = 0; j < ROWS; ++j) {
    p[j] = (causal && j > i) ? 0.f : __expf(p[j] - top);
    total += p[j];
  }
  const float share = 1.f / total;
#pragma unroll
  for (int j = 0; j < ROWS; ++j) p[j] *= share;
}

extern "C" __global__ void __launch_bounds__(256) attention_small_forward(
    const float* query, long q_pitch, const float* key, long k_pitch, const float* value, long v_pitch, float* out,
    long out_pitch, int items, int heads, float scale, int causal) {
  __shared__ float keys[8][ROWS * WIDTH], values[8][ROWS * WIDTH];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, i = lane >> 2, part = lane & 3;
  const int unit = blockIdx.x * 8 + warp;
  if (unit >= items * heads) return;
  const int head = unit % heads;
  const long row = (long)(unit / heads) * ROWS + i;
  const int column = head * WIDTH, c = part * 4, place = turned(i, c);
  Eight q, t, u;
  q.load(query + row * q_pitch + column, c);
  t.load(key + row * k_pitch + column, c);
  u.load(value + row * v_pitch + column, c);
  t.store(keys[warp] + i * WIDTH, place);
  u.store(values[warp] + i * WIDTH, place);
  __syncwarp();
  float p[ROWS];
  Eight k[ROWS];
  small_softmax(p, k, q, keys[warp], i, part, scale, causal);
  Eight o;
  o.zero();
#pragma unroll
  for (int j = 0; j < ROWS; ++j) {
    t.load(values[warp] + j * WIDTH, turned(j, part * 4));
    o.axpy(p[j], t);
  }
  o.store(out + row * out_pitch + column, c);
}

extern "C" __global__ void __launch_bounds__(128, 4) attention_small_backward(
    const float* query, long q_pitch, const float* key, long k_pitch, const float* value, long v_pitch,
    const float* dout, long out_pitch, float* dquery, float* dkey, float* dvalue, int add_q, int add_k, int add_v,
    int items, int heads, float scale, int causal) {
  __shared__ float store[4][4][ROWS * WIDTH];
  __shared__ float matrices[4][2][ROWS][ROWS + 1];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, i = lane >> 2, part = lane & 3;
  const int unit = blockIdx.x * 4 + warp;
  if (unit >= items * heads) return;
  const int head = unit % heads;
  const long row = (long)(unit / heads) * ROWS + i;
  const int column = head * WIDTH, c = part * 4, place = turned(i, c);
  float *queries = store[warp][0], *keys = store[warp][1], *values = store[warp][2], *outs = store[warp][3];
  Eight q, t, u, d;
  q.load(query + row * q_pitch + column, c);
  t.load(key + row * k_pitch + column, c);
  u.load(value + row * v_pitch + column, c);
  d.load(dout + row * out_pitch + column, c);
  q.store(queries + i * WIDTH, place);
  t.store(keys + i * WIDTH, place);
  u.store(values + i * WIDTH, place);
  d.store(outs + i * WIDTH, place);
  __syncwarp();
  float p[ROWS], ds[ROWS], mean = 0.f;
  Eight k[ROWS];
  small_softmax(p, k, q, keys, i, part, scale, causal);
#pragma unroll
  for (int j = 0; j < ROWS; ++j) {
    t.load(values + j * WIDTH, turned(j, part * 4));
    ds[j] = quad_sum(d.dot(t));
    mean = fmaf(p[j], ds[j], mean);
  }
  Eight o;
  o.zero();
#pragma unroll
  for (int j = 0; j < ROWS; ++j) {
    ds[j] = p[j] * (ds[j] - mean) * scale;
    o.axpy(ds[j], k[j]);
  }
  if (add_q) o.add(dquery + row * q_pitch + column, c);
  o.store(dquery + row * q_pitch + column, c);
#pragma unroll
  for (int j = 0; j < ROWS; ++j) {
    if ((j & 3) == part) {
      matrices[warp][0][i][j] = p[j];
      matrices[warp][1][i][j] = ds[j];
    }
  }
  __syncwarp();
  // The same lane now stands for key row i.
  Eight dk, dv;
  dk.zero();
  dv.zero();
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    t.load(queries + r * WIDTH, turned(r, part * 4));
    dk.axpy(matrices[warp][1][r][i], t);
    t.load(outs + r * WIDTH, turned(r, part * 4));
    dv.axpy(matrices[warp][0][r][i], t);
  }
  if (add_k) dk.add(dkey + row * k_pitch + column, c);
  dk.store(dkey + row * k_pitch + column, c);
  if (add_v) dv.add(dvalue + row * v_pitch + column, c);
  dv.store(dvalue + row * v_pitch + column, c);
}
