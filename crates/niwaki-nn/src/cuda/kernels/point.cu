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

// Which keys a row may see, as bits: there is no room for more keys than these in shared memory.
struct Open {
  unsigned long long low, high;
  __device__ __forceinline__ bool operator[](int s) const { return (s < 64 ? low >> s : high >> (s - 64)) & 1; }
};

__device__ __forceinline__ Open open_bits(const unsigned char* open, int keys) {
  Open bits = {0, 0};
  for (int s = 0; s < keys; ++s) {
    const unsigned long long bit = open[s] != 0;
    if (s < 64) bits.low |= bit << s; else bits.high |= bit << (s - 64);
  }
  return bits;
}

// One head's glimpse of one row; `top` and `share` are what turns a score into a weight: exp(score - top) * share.
__device__ __forceinline__ void glimpse_of(const float* q, const Keys& k, int head, Open open, float* out,
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

// A head's columns of a row: in quads where they are aligned.
__device__ __forceinline__ void load_row(const float* from, float* to) {
  if (D % 4 == 0) {
#pragma unroll
    for (int i = 0; i < D / 4; ++i) {
      const float4 x = ((const float4*)from)[i];
      to[4 * i] = x.x; to[4 * i + 1] = x.y; to[4 * i + 2] = x.z; to[4 * i + 3] = x.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < D; ++i) to[i] = from[i];
  }
}

__device__ __forceinline__ void store_row(const float* from, float* to, int add) {
  if (D % 4 == 0) {
#pragma unroll
    for (int i = 0; i < D / 4; ++i) {
      float4 x = make_float4(from[4 * i], from[4 * i + 1], from[4 * i + 2], from[4 * i + 3]);
      if (add) {
        const float4 y = ((const float4*)to)[i];
        x.x += y.x; x.y += y.y; x.z += y.z; x.w += y.w;
      }
      ((float4*)to)[i] = x;
    }
  } else {
#pragma unroll
    for (int i = 0; i < D; ++i) to[i] = add ? to[i] + from[i] : from[i];
  }
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
    const Open seen = open_bits(open + row * keys, keys);
    float g[W], q[D], top, share;
#pragma unroll
    for (int h = 0; h < H; ++h) {
      load_row(query + row * W + h * D, q);
      glimpse_of(q, k, h, seen, g + h * D, top, share);
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
extern "C" __global__ void __launch_bounds__(160, 2)
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
  // An item from which nothing is asked gives nothing: a group without signal costs what reading its zeros costs.
  int asked = 0;
  for (int i = me; i < rows * keys; i += tile) asked |= dout[item * rows * keys + i] != 0.f;
  asked = __syncthreads_or(asked);
  if (!asked && dquery && !add_query)
    for (int i = me; i < rows * W; i += tile) dquery[item * rows * W + i] = 0.f;
  for (int first = 0; asked && first < rows; first += tile) {
    const bool here = first + me < rows;
    const long row = item * rows + (here ? first + me : rows - 1);
    const Open seen = open_bits(open + row * keys, keys);
    float g[W], d[W], q[D], top[H], share[H];
#pragma unroll
    for (int h = 0; h < H; ++h) {
      load_row(query + row * W + h * D, q);
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
      load_row(query + row * W + h * D, q);
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
      if (dquery && here) store_row(dq, dquery + row * W + h * D, add_query);
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

// Whole constructions, a warp each: a line of stations that every candidate passes in the order of its choice. A block
// per item, a warp per trajectory, a lane per key or column. Trajectories choose by their uniforms (the first candidate
// at which the running sum of probabilities exceeds it, the likeliest where rounding leaves none) or, without uniforms,
// the likeliest. What a scoring pass reads of the steps is written beside the choices: last choices, states, open
// candidates. Rows of keys are padded in shared memory so that lanes read them from different banks.
#define GLIMPSE_PITCH (2 * W + 4)
#define KEY_PITCH (W + 4)

extern "C" __global__ void __launch_bounds__(512)
    point_construct(const float* known, const float* glimpse, const float* key, const float* weight, const float* bias,
                    long stride, const int* times, const float* whole, const float* unit, const float* uniforms,
                    int* actions, int* last, float* context, unsigned char* open, int* ends, int items, int group,
                    int keys, int stations, float bound) {
  extern __shared__ __align__(16) float room[];
  const long item = blockIdx.x, member = item / items;
  const int inputs = 2 * stations, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  float* kv = room;                              // [keys, GLIMPSE_PITCH]
  float* pointer = kv + keys * GLIMPSE_PITCH;    // [keys, KEY_PITCH]
  float* base = pointer + keys * KEY_PITCH;      // [keys + 1, W]
  float* w = base + (keys + 1) * W;              // [inputs, W]
  float* b = w + inputs * W;                     // [W]
  // Of this warp: query, glimpse, weights [H, keys], state, when each station is done.
  float* q = b + W + threadIdx.x / 32 * (2 * W + H * keys + inputs + stations);
  float* g = q + W;
  float* p = g + W;
  float* state = p + H * keys;
  int* done = (int*)(state + inputs);
  for (int i = threadIdx.x; i < keys * 2 * W; i += blockDim.x)
    kv[i / (2 * W) * GLIMPSE_PITCH + i % (2 * W)] = glimpse[item * keys * 2 * W + i];
  for (int i = threadIdx.x; i < keys * W; i += blockDim.x) pointer[i / W * KEY_PITCH + i % W] = key[item * keys * W + i];
  for (int i = threadIdx.x; i < (keys + 1) * W; i += blockDim.x) base[i] = known[item * (keys + 1) * W + i];
  for (int i = threadIdx.x; i < inputs * W; i += blockDim.x) w[i] = weight[member * stride + i];
  for (int i = threadIdx.x; i < W; i += blockDim.x) b[i] = bias[member * stride + i];
  __syncthreads();
  const float scale = rsqrtf((float)W), inner = rsqrtf((float)D);
  for (int place = threadIdx.x / 32; place < group; place += warps) {
    const long row = (item * group + place) * keys;
    Open seen = {~0ull, ~0ull};
    int before = keys;
    for (int m = lane; m < stations; m += 32) done[m] = 0;
    __syncwarp();
    for (int step = 0; step < keys; ++step) {
      for (int m = lane; m < stations; m += 32) {
        state[m] = __fdiv_rn((float)done[m], whole[item]);
        state[stations + m] = __fdiv_rn((float)(done[m] - done[m ? m - 1 : 0]), unit[item]);
      }
      if (lane == 0) last[row + step] = before;
      for (int s = lane; s < keys; s += 32) open[(row + step) * keys + s] = seen[s];
      __syncwarp();
      for (int i = lane; i < inputs; i += 32) context[(row + step) * inputs + i] = state[i];
      for (int c = lane; c < W; c += 32) {
        float sum = base[before * W + c] + b[c];
        for (int i = 0; i < inputs; ++i) sum = fmaf(state[i], w[i * W + c], sum);
        q[c] = sum;
      }
      __syncwarp();
#pragma unroll
      for (int h = 0; h < H; ++h) {
        float top = -3.0e38f, total = 0.f;
        for (int s = lane; s < keys; s += 32) {
          const float score = inner * dot(q + h * D, kv + s * GLIMPSE_PITCH + h * D, D);
          p[h * keys + s] = score;
          if (seen[s]) top = fmaxf(top, score);
        }
        top = warp_max(top);
        for (int s = lane; s < keys; s += 32) {
          const float e = seen[s] ? __expf(p[h * keys + s] - top) : 0.f;
          p[h * keys + s] = e;
          total += e;
        }
        const float share = __fdividef(1.f, warp_sum(total));
        for (int s = lane; s < keys; s += 32) p[h * keys + s] *= share;
      }
      __syncwarp();
      for (int c = lane; c < W; c += 32) {
        const float* mine = p + c / D * keys;
        float sum = 0.f;
        for (int s = 0; s < keys; ++s) sum = fmaf(mine[s], kv[s * GLIMPSE_PITCH + W + c], sum);
        g[c] = sum;
      }
      __syncwarp();
      // Logits are bounded, so their exponentials need no maximum. The weights' room serves again.
      float total = 0.f, most = -1.f;
      int likeliest = keys;
      for (int s = lane; s < keys; s += 32) {
        const float e = seen[s] ? __expf(bound * (tanhf(scale * dot(g, pointer + s * KEY_PITCH, W)) - 1.f)) : 0.f;
        p[s] = e;
        total += e;
        if (seen[s] && e > most) { most = e; likeliest = s; }
      }
      total = warp_sum(total);
      const float largest = warp_max(most);
      int chosen = most == largest ? likeliest : keys;
#pragma unroll
      for (int hop = 16; hop; hop >>= 1) chosen = min(chosen, __shfl_xor_sync(~0u, chosen, hop));
      if (uniforms) {
        const float target = uniforms[row + step] * total;
        float carried = 0.f;
        for (int first = 0; first < keys; first += 32) {
          const int s = first + lane;
          float sum = s < keys ? p[s] : 0.f;
#pragma unroll
          for (int hop = 1; hop < 32; hop <<= 1) {
            const float other = __shfl_up_sync(~0u, sum, hop);
            if (lane >= hop) sum += other;
          }
          sum += carried;
          const unsigned past = __ballot_sync(~0u, s < keys && seen[s] && sum > target);
          if (past) { chosen = first + __ffs(past) - 1; break; }
          carried = __shfl_sync(~0u, sum, 31);
        }
      }
      if (lane == 0) {
        actions[row + step] = chosen;
        int ready = 0;
        for (int m = 0; m < stations; ++m) {
          ready = max(ready, done[m]) + times[(item * keys + chosen) * stations + m];
          done[m] = ready;
        }
      }
      before = chosen;
      if (chosen < 64) seen.low &= ~(1ull << chosen); else seen.high &= ~(1ull << (chosen - 64));
      __syncwarp();
    }
    if (lane == 0) ends[item * group + place] = done[stations - 1];
    __syncwarp();
  }
}
