// A glimpse and a pointer in one: many queries on few keys. POINT_WIDTH and POINT_HEADS are constants of the file; a
// thread takes a row, so that all of the row's scalars are registers, and reads keys that its whole block shares.

#define W POINT_WIDTH
#define H POINT_HEADS
#define D (W / H)

struct Keys {
  const float* glimpse;  // [keys, 2 W]
  const float* key;      // [keys, W]
  int count;
};

// Copies an item's keys to shared memory.
__device__ __forceinline__ Keys share_keys(const float* glimpse, const float* key, long item, int keys, float* room) {
  for (int i = threadIdx.x; i < keys * 2 * W; i += blockDim.x) room[i] = glimpse[item * keys * 2 * W + i];
  for (int i = threadIdx.x; i < keys * W; i += blockDim.x) room[keys * 2 * W + i] = key[item * keys * W + i];
  return {room, room + keys * 2 * W, keys};
}

__device__ __forceinline__ float dot(const float* a, const float* b, int width) {
  float sum = 0.f;
#pragma unroll
  for (int i = 0; i < width; ++i) sum = fmaf(a[i], b[i], sum);
  return sum;
}

// One head's glimpse of one row; `top` and `share` are what turns a score into a weight: exp(score - top) * share.
__device__ __forceinline__ void glimpse_of(const float* q, const Keys& k, int head, const unsigned char* open, float* out,
                                           float& top, float& share) {
  const float scale = rsqrtf((float)D);
  top = -3.0e38f;
#pragma unroll 4
  for (int s = 0; s < k.count; ++s) {
    const float score = scale * dot(q, k.glimpse + s * 2 * W + head * D, D);
    if (open[s]) top = fmaxf(top, score);
  }
  float total = 0.f;
#pragma unroll
  for (int i = 0; i < D; ++i) out[i] = 0.f;
#pragma unroll 4
  for (int s = 0; s < k.count; ++s) {
    const float* at = k.glimpse + s * 2 * W + head * D;
    const float weight = open[s] ? __expf(scale * dot(q, at, D) - top) : 0.f;
    total += weight;
#pragma unroll
    for (int i = 0; i < D; ++i) out[i] = fmaf(weight, at[W + i], out[i]);
  }
  share = total > 0.f ? 1.f / total : 0.f;
#pragma unroll
  for (int i = 0; i < D; ++i) out[i] *= share;
}

__device__ __forceinline__ void load_row(const float* from, float* to, int width) {
#pragma unroll
  for (int i = 0; i < width; ++i) to[i] = from[i];
}

// Logits [item, rows, keys]; a block per item.
extern "C" __global__ void __launch_bounds__(256)
    point_forward(const float* query, const float* glimpse, const float* key, const unsigned char* open, float* out,
                  int rows, int keys, float bound) {
  extern __shared__ __align__(16) float room[];
  const long item = blockIdx.x;
  const Keys k = share_keys(glimpse, key, item, keys, room);
  __syncthreads();
  const float scale = rsqrtf((float)W);
  for (int r = threadIdx.x; r < rows; r += blockDim.x) {
    const long row = item * rows + r;
    float g[W], q[D], top, share;
#pragma unroll
    for (int h = 0; h < H; ++h) {
      load_row(query + row * W + h * D, q, D);
      glimpse_of(q, k, h, open + row * keys, g + h * D, top, share);
    }
#pragma unroll 2
    for (int s = 0; s < keys; ++s) out[row * keys + s] = bound * tanhf(scale * dot(g, k.key + s * W, W));
  }
}

// sums[s, i] += sum over the tile's rows of left[s, row] * right[i, row], for s < keys and i < D. Four rows at a time;
// the same thread always owns the same sums.
__device__ __forceinline__ void add_products(const float* left, const float* right, float* sums, int stride, int keys,
                                             int pitch, int tile) {
  for (int place = threadIdx.x; place < (keys + 1) / 2 * D; place += blockDim.x) {
    const int i = place % D, s = place / D * 2;
    const bool second = s + 1 < keys;
    const float4* b = (const float4*)(right + i * pitch);
    const float4* a = (const float4*)(left + s * pitch);
    const float4* c = (const float4*)(left + (second ? s + 1 : s) * pitch);
    float one = 0.f, two = 0.f;
#pragma unroll 4
    for (int r = 0; r < tile / 4; ++r) {
      const float4 x = a[r], y = c[r], z = b[r];
      one = fmaf(x.x, z.x, fmaf(x.y, z.y, fmaf(x.z, z.z, fmaf(x.w, z.w, one))));
      two = fmaf(y.x, z.x, fmaf(y.y, z.y, fmaf(y.z, z.z, fmaf(y.w, z.w, two))));
    }
    sums[s * stride + i] += one;
    if (second) sums[(s + 1) * stride + i] += two;
  }
}

// Cotangents of queries (written or added) and of the keys; a block per item, whose threads are a tile of rows. Shared
// memory: keys, their sums, then three matrices [keys, pitch] and three [D, pitch], pitch = threads + 4.
extern "C" __global__ void __launch_bounds__(160)
    point_backward(const float* query, const float* glimpse, const float* key, const unsigned char* open, const float* dout,
                   float* dquery, float* dglimpse, float* dkey, int add_query, int add_glimpse, int add_key, int rows,
                   int keys, float bound) {
  extern __shared__ __align__(16) float room[];
  const long item = blockIdx.x;
  const int me = threadIdx.x, tile = blockDim.x, pitch = tile + 4, all = keys * 3 * W;
  const Keys k = share_keys(glimpse, key, item, keys, room);
  float* sums = room + all;
  float* dz = sums + all;
  float* p = dz + keys * pitch;
  float* ds = p + keys * pitch;
  float* rg = ds + keys * pitch;
  float* rd = rg + D * pitch;
  float* rq = rd + D * pitch;
  for (int i = me; i < all; i += tile) sums[i] = 0.f;
  __syncthreads();
  const float scale = rsqrtf((float)W), inner = rsqrtf((float)D);
  for (int first = 0; first < rows; first += tile) {
    const bool here = first + me < rows;
    const long row = item * rows + (here ? first + me : rows - 1);
    const unsigned char* seen = open + row * keys;
    float g[W], d[W], q[D], top[H], share[H];
#pragma unroll
    for (int h = 0; h < H; ++h) {
      load_row(query + row * W + h * D, q, D);
      glimpse_of(q, k, h, seen, g + h * D, top[h], share[h]);
    }
#pragma unroll
    for (int i = 0; i < W; ++i) d[i] = 0.f;
#pragma unroll 2
    for (int s = 0; s < keys; ++s) {
      const float* at = k.key + s * W;
      const float y = tanhf(scale * dot(g, at, W));
      const float slope = here ? dout[row * keys + s] * bound * (1.f - y * y) * scale : 0.f;
      dz[s * pitch + me] = slope;
#pragma unroll
      for (int i = 0; i < W; ++i) d[i] = fmaf(slope, at[i], d[i]);
    }
#pragma unroll
    for (int h = 0; h < H; ++h) {
      load_row(query + row * W + h * D, q, D);
      float centre = 0.f, dq[D];
#pragma unroll
      for (int i = 0; i < D; ++i) {
        centre = fmaf(g[h * D + i], d[h * D + i], centre);
        dq[i] = 0.f;
        rg[i * pitch + me] = g[h * D + i];
        rd[i * pitch + me] = d[h * D + i];
        rq[i * pitch + me] = q[i];
      }
#pragma unroll 2
      for (int s = 0; s < keys; ++s) {
        const float* at = k.glimpse + s * 2 * W + h * D;
        const float weight = here && seen[s] ? __expf(inner * dot(q, at, D) - top[h]) * share[h] : 0.f;
        const float slope = inner * weight * (dot(d + h * D, at + W, D) - centre);
        p[s * pitch + me] = weight;
        ds[s * pitch + me] = slope;
#pragma unroll
        for (int i = 0; i < D; ++i) dq[i] = fmaf(slope, at[i], dq[i]);
      }
      if (dquery && here) {
        float* to = dquery + row * W + h * D;
#pragma unroll
        for (int i = 0; i < D; ++i) to[i] = add_query ? to[i] + dq[i] : dq[i];
      }
      __syncthreads();
      add_products(ds, rq, sums + h * D, 2 * W, keys, pitch, tile);
      add_products(p, rd, sums + W + h * D, 2 * W, keys, pitch, tile);
      add_products(dz, rg, sums + keys * 2 * W + h * D, W, keys, pitch, tile);
      __syncthreads();
    }
  }
  if (dglimpse)
    for (int i = me; i < keys * 2 * W; i += tile) {
      float* to = dglimpse + item * keys * 2 * W + i;
      *to = add_glimpse ? *to + sums[i] : sums[i];
    }
  if (dkey)
    for (int i = me; i < keys * W; i += tile) {
      float* to = dkey + item * keys * W + i;
      *to = add_key ? *to + sums[keys * 2 * W + i] : sums[keys * 2 * W + i];
    }
}

// Whole constructions, a thread each: a line of stations that every candidate passes in the order of its choice. A block
// per item; its `group` trajectories choose by their uniforms (the first candidate at which the running sum of
// probabilities exceeds it, the likeliest where rounding leaves none) or, without uniforms, the likeliest. What a scoring
// pass reads of the steps is written beside the choices: last choices, states, open candidates.
extern "C" __global__ void __launch_bounds__(64)
    point_construct(const float* known, const float* glimpse, const float* key, const float* weight, const float* bias,
                    long stride, const int* times, const float* whole, const float* unit, const float* uniforms,
                    int* actions, int* last, float* context, unsigned char* open, int* ends, int items, int group,
                    int keys, int stations, float bound) {
  extern __shared__ __align__(16) float room[];
  const long item = blockIdx.x, member = item / items;
  const int inputs = 2 * stations;
  const Keys k = share_keys(glimpse, key, item, keys, room);
  float* base = room + keys * 3 * W;           // [keys + 1, W]
  float* w = base + (keys + 1) * W;            // [inputs, W]
  float* b = w + inputs * W;                   // [W]
  for (int i = threadIdx.x; i < (keys + 1) * W; i += blockDim.x) base[i] = known[item * (keys + 1) * W + i];
  for (int i = threadIdx.x; i < inputs * W; i += blockDim.x) w[i] = weight[member * stride + i];
  for (int i = threadIdx.x; i < W; i += blockDim.x) b[i] = bias[member * stride + i];
  float* state = b + W + threadIdx.x * (inputs + stations);  // [inputs], then when each station is done
  int* done = (int*)(state + inputs);
  __syncthreads();
  const float scale = rsqrtf((float)W);
  for (int lane = threadIdx.x; lane < group; lane += blockDim.x) {
    const long row = (item * group + lane) * keys;
    int before = keys;
    for (int m = 0; m < stations; ++m) done[m] = 0;
    for (int s = 0; s < keys; ++s) open[row * keys + s] = 1;
    for (int step = 0; step < keys; ++step) {
      unsigned char* seen = open + (row + step) * keys;
      last[row + step] = before;
      for (int m = 0; m < stations; ++m) {
        state[m] = __fdiv_rn((float)done[m], whole[item]);
        state[stations + m] = __fdiv_rn((float)(done[m] - (m ? done[m - 1] : done[0])), unit[item]);
      }
      for (int i = 0; i < inputs; ++i) context[(row + step) * inputs + i] = state[i];
      float g[W], q[D], top, share;
#pragma unroll
      for (int h = 0; h < H; ++h) {
#pragma unroll
        for (int i = 0; i < D; ++i) q[i] = base[before * W + h * D + i] + b[h * D + i];
        for (int c = 0; c < inputs; ++c)
#pragma unroll
          for (int i = 0; i < D; ++i) q[i] = fmaf(state[c], w[c * W + h * D + i], q[i]);
        glimpse_of(q, k, h, seen, g + h * D, top, share);
      }
      // Logits are bounded, so exponentials need no maximum; the likeliest is the one with the largest.
      float total = 0.f, most = -1.f;
      int likeliest = 0;
      for (int s = 0; s < keys; ++s) {
        const float e = seen[s] ? __expf(bound * (tanhf(scale * dot(g, k.key + s * W, W)) - 1.f)) : 0.f;
        total += e;
        if (e > most) { most = e; likeliest = s; }
      }
      int chosen = likeliest;
      if (uniforms) {
        const float target = uniforms[row + step] * total;
        float sum = 0.f;
        for (int s = 0; s < keys; ++s) {
          if (!seen[s]) continue;
          sum += __expf(bound * (tanhf(scale * dot(g, k.key + s * W, W)) - 1.f));
          if (sum > target) { chosen = s; break; }
        }
      }
      actions[row + step] = chosen;
      before = chosen;
      int ready = 0;
      for (int m = 0; m < stations; ++m) {
        ready = max(ready, done[m]) + times[(item * keys + chosen) * stations + m];
        done[m] = ready;
      }
      if (step + 1 < keys)
        for (int s = 0; s < keys; ++s) seen[keys + s] = s == chosen ? 0 : seen[s];
    }
    ends[item * group + lane] = done[stations - 1];
  }
}
