// Attention of few rows in narrow heads: a block per item, a thread per (head, row), so that a query and its result are
// registers. FEW_WIDTH is the columns of a head. Keys and values of the item stand in shared memory; threads of a warp are
// rows of one head as a rule, so they read the same key at the same time.

#define D FEW_WIDTH

struct Item {
  const float *k, *v;  // [keys, heads * D] each
  int width;
};

__device__ __forceinline__ Item share_item(const float* key, long kp, const float* value, long vp, long item, int keys,
                                           int heads, float* room) {
  const int width = heads * D;
  for (int i = threadIdx.x; i < keys * width; i += blockDim.x) {
    const long row = item * keys + i / width;
    room[i] = key[row * kp + i % width];
    room[keys * width + i] = value[row * vp + i % width];
  }
  return {room, room + keys * width, width};
}

__device__ __forceinline__ float dot(const float* a, const float* b) {
  float sum = 0.f;
#pragma unroll
  for (int i = 0; i < D; ++i) sum = fmaf(a[i], b[i], sum);
  return sum;
}

// The weights are exp(score - top) * share over the visible keys.
__device__ __forceinline__ void look(const float* q, const Item& it, int head, const unsigned char* seen, int keys,
                                     float scale, float* out, float& top, float& share) {
  top = -3.0e38f;
#pragma unroll 4
  for (int s = 0; s < keys; ++s) {
    const float score = scale * dot(q, it.k + s * it.width + head * D);
    if (!seen || seen[s]) top = fmaxf(top, score);
  }
  float total = 0.f;
#pragma unroll
  for (int i = 0; i < D; ++i) out[i] = 0.f;
#pragma unroll 4
  for (int s = 0; s < keys; ++s) {
    const int at = s * it.width + head * D;
    const float weight = !seen || seen[s] ? __expf(scale * dot(q, it.k + at) - top) : 0.f;
    total += weight;
#pragma unroll
    for (int i = 0; i < D; ++i) out[i] = fmaf(weight, it.v[at + i], out[i]);
  }
  share = total > 0.f ? 1.f / total : 0.f;
#pragma unroll
  for (int i = 0; i < D; ++i) out[i] *= share;
}

extern "C" __global__ void attention_few_forward(const float* query, long qp, const float* key, long kp, const float* value,
                                                 long vp, float* out, long op, const unsigned char* mask, int heads,
                                                 int rows, int keys, float scale) {
  extern __shared__ __align__(16) float room[];
  const long item = blockIdx.x;
  const Item it = share_item(key, kp, value, vp, item, keys, heads, room);
  __syncthreads();
  for (int place = threadIdx.x; place < heads * rows; place += blockDim.x) {
    const int head = place / rows;
    const long row = item * rows + place % rows;
    float q[D], g[D], top, share;
#pragma unroll
    for (int i = 0; i < D; ++i) q[i] = query[row * qp + head * D + i];
    look(q, it, head, mask ? mask + row * keys : 0, keys, scale, g, top, share);
#pragma unroll
    for (int i = 0; i < D; ++i) out[row * op + head * D + i] = g[i];
  }
}

// Shared memory: keys and values, queries and cotangents of the output [rows, heads * D], then weights and cotangents of
// the scores [heads, rows, keys].
extern "C" __global__ void attention_few_backward(const float* query, long qp, const float* key, long kp,
                                                  const float* value, long vp, const float* dout, long op,
                                                  const unsigned char* mask, float* dquery, float* dkey, float* dvalue,
                                                  int add_query, int add_key, int add_value, int heads, int rows, int keys,
                                                  float scale) {
  extern __shared__ __align__(16) float room[];
  const long item = blockIdx.x;
  const Item it = share_item(key, kp, value, vp, item, keys, heads, room);
  const int width = heads * D;
  float* rq = room + 2 * keys * width;
  float* rd = rq + rows * width;
  float* p = rd + rows * width;
  float* ds = p + heads * rows * keys;
  for (int i = threadIdx.x; i < rows * width; i += blockDim.x) {
    const long row = item * rows + i / width;
    rq[i] = query[row * qp + i % width];
    rd[i] = dout[row * op + i % width];
  }
  __syncthreads();
  for (int place = threadIdx.x; place < heads * rows; place += blockDim.x) {
    const int head = place / rows, r = place % rows;
    const long row = item * rows + r;
    const unsigned char* seen = mask ? mask + row * keys : 0;
    float q[D], d[D], g[D], top, share, centre = 0.f;
#pragma unroll
    for (int i = 0; i < D; ++i) {
      q[i] = rq[r * width + head * D + i];
      d[i] = rd[r * width + head * D + i];
    }
    look(q, it, head, seen, keys, scale, g, top, share);
#pragma unroll
    for (int i = 0; i < D; ++i) {
      centre = fmaf(g[i], d[i], centre);
      g[i] = 0.f;
    }
#pragma unroll 2
    for (int s = 0; s < keys; ++s) {
      const int at = s * width + head * D;
      const float weight = !seen || seen[s] ? __expf(scale * dot(q, it.k + at) - top) * share : 0.f;
      const float slope = scale * weight * (dot(d, it.v + at) - centre);
      p[place * keys + s] = weight;
      ds[place * keys + s] = slope;
#pragma unroll
      for (int i = 0; i < D; ++i) g[i] = fmaf(slope, it.k[at + i], g[i]);
    }
    if (dquery)
#pragma unroll
      for (int i = 0; i < D; ++i) {
        float* to = dquery + row * qp + head * D + i;
        *to = add_query ? *to + g[i] : g[i];
      }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < keys * width; i += blockDim.x) {
    const int s = i / width, c = i % width, first = c / D * rows;
    float one = 0.f, two = 0.f;
    for (int r = 0; r < rows; ++r) {
      one = fmaf(ds[(first + r) * keys + s], rq[r * width + c], one);
      two = fmaf(p[(first + r) * keys + s], rd[r * width + c], two);
    }
    const long row = item * keys + s;
    if (dkey) dkey[row * kp + c] = add_key ? dkey[row * kp + c] + one : one;
    if (dvalue) dvalue[row * vp + c] = add_value ? dvalue[row * vp + c] + two : two;
  }
}
