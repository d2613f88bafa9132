// Attention over items of 8 rows with 32-wide heads: everything in registers and a little shared memory, queries, keys
// and values read once, probabilities computed again in the backward pass. They and their cotangents are stored as In, results and
// theirs as Out.

typedef Choose<ATTENTION_IN>::Scalar In;
typedef Choose<ATTENTION_OUT>::Scalar Out;

#define ROWS 8
#define WIDTH 32

// A warp per (item, head). Lane (i, part): row i = lane / 4, columns part * 8 .. part * 8 + 8.
struct Eight {
  float v[8];
  __device__ __forceinline__ void load(const Half* p) { open_eight(*(const uint4*)p, v); }
  __device__ __forceinline__ void load(const float* p) {
    const float4 a = *(const float4*)p, b = *(const float4*)(p + 4);
    v[0] = a.x; v[1] = a.y; v[2] = a.z; v[3] = a.w; v[4] = b.x; v[5] = b.y; v[6] = b.z; v[7] = b.w;
  }
  __device__ __forceinline__ void put(float* p) const {
    *(float4*)p = make_float4(v[0], v[1], v[2], v[3]);
    *(float4*)(p + 4) = make_float4(v[4], v[5], v[6], v[7]);
  }
  __device__ __forceinline__ void put(Half* p) const { *(uint4*)p = close_eight(v); }
  template <typename T> __device__ __forceinline__ void add(const T* p) {
    Eight o;
    o.load(p);
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

__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// Row i's probabilities from its query and the keys in shared memory.
__device__ __forceinline__ void small_softmax(float (&p)[ROWS], const Eight& q, const float* keys, int i, int part,
                                              float scale, int causal) {
  float top = -3.0e38f;
#pragma unroll
  for (int j = 0; j < ROWS; ++j) {
    Eight k;
    k.load(keys + j * WIDTH + part * 8);
    p[j] = quad_sum(q.dot(k)) * scale;
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
    const In* query, long q_pitch, const In* key, long k_pitch, const In* value, long v_pitch, Out* out,
    long out_pitch, int items, int heads, float scale, int causal) {
  __shared__ float keys[8][ROWS * WIDTH], values[8][ROWS * WIDTH];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, i = lane >> 2, part = lane & 3;
  const int unit = blockIdx.x * 8 + warp;
  if (unit >= items * heads) return;
  const int head = unit % heads;
  const long row = (long)(unit / heads) * ROWS + i;
  const int column = head * WIDTH + part * 8, place = i * WIDTH + part * 8;
  Eight q, t, u;
  q.load(query + row * q_pitch + column);
  t.load(key + row * k_pitch + column);
  u.load(value + row * v_pitch + column);
  t.put(keys[warp] + place);
  u.put(values[warp] + place);
  __syncwarp();
  float p[ROWS];
  small_softmax(p, q, keys[warp], i, part, scale, causal);
  Eight o;
  o.zero();
#pragma unroll
  for (int j = 0; j < ROWS; ++j) {
    t.load(values[warp] + j * WIDTH + part * 8);
    o.axpy(p[j], t);
  }
  o.put(out + row * out_pitch + column);
}

extern "C" __global__ void __launch_bounds__(128) attention_small_backward(
    const In* query, long q_pitch, const In* key, long k_pitch, const In* value, long v_pitch,
    const Out* dout, long out_pitch, In* dquery, In* dkey, In* dvalue, int add_q, int add_k, int add_v,
    int items, int heads, float scale, int causal) {
  __shared__ float store[4][4][ROWS * WIDTH];
  __shared__ float matrices[4][2][ROWS][ROWS + 1];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, i = lane >> 2, part = lane & 3;
  const int unit = blockIdx.x * 4 + warp;
  if (unit >= items * heads) return;
  const int head = unit % heads;
  const long row = (long)(unit / heads) * ROWS + i;
  const int column = head * WIDTH + part * 8, place = i * WIDTH + part * 8;
  float *queries = store[warp][0], *keys = store[warp][1], *values = store[warp][2], *outs = store[warp][3];
  Eight q, t, u, d;
  q.load(query + row * q_pitch + column);
  t.load(key + row * k_pitch + column);
  u.load(value + row * v_pitch + column);
  d.load(dout + row * out_pitch + column);
  q.put(queries + place);
  t.put(keys + place);
  u.put(values + place);
  d.put(outs + place);
  __syncwarp();
  float p[ROWS], ds[ROWS], mean = 0.f;
  small_softmax(p, q, keys, i, part, scale, causal);
#pragma unroll
  for (int j = 0; j < ROWS; ++j) {
    t.load(values + j * WIDTH + part * 8);
    ds[j] = quad_sum(d.dot(t));
    mean = fmaf(p[j], ds[j], mean);
  }
  Eight o;
  o.zero();
#pragma unroll
  for (int j = 0; j < ROWS; ++j) {
    ds[j] = p[j] * (ds[j] - mean) * scale;
    t.load(keys + j * WIDTH + part * 8);
    o.axpy(ds[j], t);
  }
  if (add_q) o.add(dquery + row * q_pitch + column);
  o.put(dquery + row * q_pitch + column);
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
    t.load(queries + r * WIDTH + part * 8);
    dk.axpy(matrices[warp][1][r][i], t);
    t.load(outs + r * WIDTH + part * 8);
    dv.axpy(matrices[warp][0][r][i], t);
  }
  if (add_k) dk.add(dkey + row * k_pitch + column);
  dk.put(dkey + row * k_pitch + column);
  if (add_v) dv.add(dvalue + row * v_pitch + column);
  dv.put(dvalue + row * v_pitch + column);
}
