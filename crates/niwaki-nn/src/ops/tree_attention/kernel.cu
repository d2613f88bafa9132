// Attention along a tree of rows, a row to itself and its ancestors, tile by tile on the tensor cores: 64 rows of one head
// against tiles of KEYS others, in shared memory; scores go through no other memory. Tiles in which nobody sees anybody cost
// a look at their bits. TENSOR_HEADS is one: a tile holds one head's columns. Sums have one order: same bits every time.

#define MANY 64  // rows of a block, 16 of each warp

// Bits of the rows that each row sees, [item, rows, words]; a thread per row.
extern "C" __global__ void tree_ways(const int* parent, unsigned* ways, int rows, int words, int count) {
  const long at = (long)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= count) return;
  const int* parents = parent + at / rows * rows;
  unsigned* way = ways + at * words;
  for (int w = 0; w < words; ++w) way[w] = 0;
  for (int row = (int)(at % rows); row >= 0;) {
    way[row / 32] |= 1u << row % 32;
    const int up = parents[row];
    row = up < row ? up : -1;
  }
}

// A head's columns of this lane's two rows, in the order of sums.
__device__ __forceinline__ void take_rows(const float* from, long pitch, const int (&row)[2], float (&to)[STEPS][4]) {
#pragma unroll
  for (int k = 0; k < STEPS; ++k)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int c = 8 * k + 2 * (threadIdx.x % 4) + j % 2;
      to[k][j] = c < D ? from[row[j / 2] * pitch + c] : 0.f;
    }
}

__device__ __forceinline__ void put_rows(const float (&from)[STEPS][4], float* to, long pitch, const int (&row)[2],
                                         const bool (&there)[2], int add) {
#pragma unroll
  for (int k = 0; k < STEPS; ++k)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int c = 8 * k + 2 * (threadIdx.x % 4) + j % 2;
      if (!there[j / 2] || c >= D) continue;
      float* place = to + row[j / 2] * pitch + c;
      *place = add ? *place + from[k][j] : from[k][j];
    }
}

// c = rows m^T, m a tile.
__device__ __forceinline__ void compare(const float (&rows)[STEPS][4], const float* m, float (&c)[TILES][4]) {
  clear(c);
#pragma unroll
  for (int k = 0; k < STEPS; ++k) {
    Piece a[4];
    take_left(rows[k], a);
    multiply_by_keys(c, a, m + 8 * k);
  }
}

// Whether the bit of a sum's column is set.
__device__ __forceinline__ bool sees(unsigned bits, int n, int j) {
  return bits >> (8 * n + 2 * (threadIdx.x % 4) + j % 2) & 1;
}

#define TREE_BLOCK                                                                                                      \
  const int head = blockIdx.y, key_head = head / (heads / key_heads), words = (rows + 31) / 32;                         \
  const long item = blockIdx.z, base = item * rows;                                                                     \
  const int first = blockIdx.x * MANY + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;                                   \
  const bool there[2] = {first < rows, first + 8 < rows};                                                               \
  const int row[2] = {min(first, rows - 1), min(first + 8, rows - 1)};

// Block: MANY rows of a head of an item. saved = log of the sum [item, heads, rows].
extern "C" __global__ void __launch_bounds__(128) tree_forward(
    const float* query, long q_pitch, const float* key, long k_pitch, const float* value, long v_pitch, float* out,
    long out_pitch, float* saved, const unsigned* ways, int heads, int key_heads, int rows, float scale) {
  __shared__ __align__(16) float keys[KEYS * PITCH], values[KEYS * PITCH];
  TREE_BLOCK
  float q[STEPS][4], sum[STEPS][4], top[2] = {-3.0e38f, -3.0e38f}, total[2] = {0.f, 0.f};
  take_rows(query + base * q_pitch + head * D, q_pitch, row, q);
  clear(sum);
  for (int start = 0; start < min((int)(blockIdx.x + 1) * MANY, rows); start += KEYS) {
    unsigned seen[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) seen[i] = there[i] ? ways[(base + row[i]) * words + start / 32] : 0;
    if (!__syncthreads_or(seen[0] | seen[1])) continue;
    share_rows(key + (base + start) * k_pitch + key_head * D, k_pitch, rows - start, keys);
    share_rows(value + (base + start) * v_pitch + key_head * D, v_pitch, rows - start, values);
    __syncthreads();
    if (!__any_sync(~0u, seen[0] | seen[1])) continue;
    float p[TILES][4];
    compare(q, keys, p);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float high = top[i], part = 0.f;
#pragma unroll
      for (int n = 0; n < TILES; ++n)
#pragma unroll
        for (int j = 2 * i; j < 2 * i + 2; ++j) {
          p[n][j] *= scale;
          high = fmaxf(high, sees(seen[i], n, j) ? p[n][j] : -3.0e38f);
        }
      high = row_max(high);
      const float shrink = __expf(top[i] - high);
      top[i] = high;
#pragma unroll
      for (int n = 0; n < TILES; ++n)
#pragma unroll
        for (int j = 2 * i; j < 2 * i + 2; ++j) {
          p[n][j] = sees(seen[i], n, j) ? __expf(p[n][j] - high) : 0.f;
          part += p[n][j];
        }
      total[i] = fmaf(total[i], shrink, row_sum(part));
#pragma unroll
      for (int k = 0; k < STEPS; ++k)
#pragma unroll
        for (int j = 2 * i; j < 2 * i + 2; ++j) sum[k][j] *= shrink;
    }
    multiply_by_columns(sum, p, values);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int k = 0; k < STEPS; ++k)
#pragma unroll
      for (int j = 2 * i; j < 2 * i + 2; ++j) sum[k][j] /= total[i];
    if (saved && there[i] && threadIdx.x % 4 == 0) saved[(item * heads + head) * rows + row[i]] = top[i] + logf(total[i]);
  }
  put_rows(sum, out + base * out_pitch + head * D, out_pitch, row, there, 0);
}

// The same blocks: the sum of p dp, which is d out . out, into `means [item, heads, rows]`, and the query's cotangent if
// wanted.
extern "C" __global__ void __launch_bounds__(128) tree_backward_query(
    const float* query, long q_pitch, const float* key, long k_pitch, const float* value, long v_pitch, const float* out,
    const float* dout, long out_pitch, const float* saved, const unsigned* ways, float* means, float* dquery, int add,
    int heads, int key_heads, int rows, float scale) {
  __shared__ __align__(16) float keys[KEYS * PITCH], values[KEYS * PITCH];
  TREE_BLOCK
  float q[STEPS][4], d[STEPS][4], dq[STEPS][4], mean[2] = {0.f, 0.f}, lse[2];
  take_rows(out + base * out_pitch + head * D, out_pitch, row, q);
  take_rows(dout + base * out_pitch + head * D, out_pitch, row, d);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int k = 0; k < STEPS; ++k)
#pragma unroll
      for (int j = 2 * i; j < 2 * i + 2; ++j) mean[i] = fmaf(q[k][j], d[k][j], mean[i]);
    mean[i] = row_sum(mean[i]);
    const long at = (item * heads + head) * rows + row[i];
    lse[i] = saved[at];
    if (there[i] && threadIdx.x % 4 == 0) means[at] = mean[i];
  }
  if (!dquery) return;
  take_rows(query + base * q_pitch + head * D, q_pitch, row, q);
  clear(dq);
  for (int start = 0; start < min((int)(blockIdx.x + 1) * MANY, rows); start += KEYS) {
    unsigned seen[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) seen[i] = there[i] ? ways[(base + row[i]) * words + start / 32] : 0;
    if (!__syncthreads_or(seen[0] | seen[1])) continue;
    share_rows(key + (base + start) * k_pitch + key_head * D, k_pitch, rows - start, keys);
    share_rows(value + (base + start) * v_pitch + key_head * D, v_pitch, rows - start, values);
    __syncthreads();
    if (!__any_sync(~0u, seen[0] | seen[1])) continue;
    float p[TILES][4], dp[TILES][4];
    compare(q, keys, p);
    compare(d, values, dp);
#pragma unroll
    for (int n = 0; n < TILES; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float weight = sees(seen[j / 2], n, j) ? __expf(fmaf(scale, p[n][j], -lse[j / 2])) : 0.f;
        dp[n][j] = scale * weight * (dp[n][j] - mean[j / 2]);
      }
    multiply_by_columns(dq, dp, keys);
  }
  put_rows(dq, dquery + base * q_pitch + head * D, q_pitch, row, there, add);
}

// Block: MANY keys of a query head's key head; its part of their cotangents and of the values', [item, heads, rows, 2, D].
// Rows of sums are keys here, columns are queries.
extern "C" __global__ void __launch_bounds__(128) tree_backward_key(
    const float* query, long q_pitch, const float* key, long k_pitch, const float* value, long v_pitch, const float* dout,
    long out_pitch, const float* saved, const unsigned* ways, const float* means, float* parts, int heads, int key_heads,
    int rows, float scale) {
  __shared__ __align__(16) float queries[KEYS * PITCH], slopes[KEYS * PITCH];
  __shared__ float lse[KEYS], mean[KEYS];
  __shared__ unsigned bits[2][KEYS];
  TREE_BLOCK
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  float k[STEPS][4], v[STEPS][4], dk[STEPS][4], dv[STEPS][4];
  take_rows(key + base * k_pitch + key_head * D, k_pitch, row, k);
  take_rows(value + base * v_pitch + key_head * D, v_pitch, row, v);
  clear(dk);
  clear(dv);
  for (int start = blockIdx.x * MANY; start < rows; start += KEYS) {
    __syncthreads();
    unsigned any = 0;
    if (threadIdx.x < 2 * KEYS) {
      const int at = start + threadIdx.x % KEYS, word = 2 * blockIdx.x + threadIdx.x / KEYS;
      if (at < rows && word < words) any = ways[(base + at) * words + word];
      bits[threadIdx.x / KEYS][threadIdx.x % KEYS] = any;
    }
    if (!__syncthreads_or(any)) continue;
    share_rows(query + (base + start) * q_pitch + head * D, q_pitch, rows - start, queries);
    share_rows(dout + (base + start) * out_pitch + head * D, out_pitch, rows - start, slopes);
    if (threadIdx.x < KEYS && start + threadIdx.x < rows) {
      const long at = (item * heads + head) * rows + start + threadIdx.x;
      lse[threadIdx.x] = saved[at];
      mean[threadIdx.x] = means[at];
    }
    __syncthreads();
    float p[TILES][4], ds[TILES][4];
    compare(k, queries, p);
    compare(v, slopes, ds);
#pragma unroll
    for (int n = 0; n < TILES; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int c = 8 * n + 2 * t + j % 2;
        const bool seen = bits[warp / 2][c] >> (warp % 2 * 16 + g + 8 * (j / 2)) & 1;
        p[n][j] = seen ? __expf(fmaf(scale, p[n][j], -lse[c])) : 0.f;
        ds[n][j] = seen ? scale * p[n][j] * (ds[n][j] - mean[c]) : 0.f;
      }
    multiply_by_columns(dv, p, slopes);
    multiply_by_columns(dk, ds, queries);
  }
  float* to = parts + (item * heads + head) * rows * 2 * D;
  put_rows(dk, to, 2 * D, row, there, 0);
  put_rows(dv, to + D, 2 * D, row, there, 0);
}

// Sums the parts of the query heads that share a key head; a thread per (item, row, key head, key or value, column).
extern "C" __global__ void tree_gather(const float* parts, float* dkey, long k_pitch, float* dvalue, long v_pitch, int add_k,
                                       int add_v, int heads, int key_heads, int rows, long count) {
  const long at = (long)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= count) return;
  const int c = at % D, of = at / D % 2, key_head = at / (2 * D) % key_heads, share = heads / key_heads;
  const long row = at / (2 * D) / key_heads, item = row / rows;
  float* to = of ? dvalue : dkey;
  if (!to) return;
  float sum = 0.f;
  for (int h = 0; h < share; ++h)
    sum += parts[(((item * heads + key_head * share + h) * rows + row % rows) * 2 + of) * D + c];
  to += row * (of ? v_pitch : k_pitch) + key_head * D + c;
  *to = (of ? add_v : add_k) ? *to + sum : sum;
}
