// Attention along a tree of rows, a row to itself and its ancestors, tile by tile on the tensor cores: 64 rows of one head
// against tiles of KEYS others, in shared memory; scores go through no other memory. The next tile is on its way while one is
// worked on, and tiles in which nobody sees anybody are not fetched. TENSOR_HEADS is one: a tile holds one head's columns.
// Sums have one order: same bits every time.

// Whether rows of a head can be copied in pieces of 16 bytes.
__device__ __forceinline__ bool in_fours(const float* from, long pitch) {
  return D % 4 == 0 && pitch % 4 == 0 && (unsigned long long)from % 16 == 0;
}

// Starts to copy a head's columns of a tile of rows, `pitch` scalars apart, to shared memory, [KEYS, PITCH]; zero behind the last
// of `rows`, of which there is at least one, and behind the last column.
__device__ __forceinline__ void fetch_rows(const float* from, long pitch, int rows, bool fours, float* to) {
  const unsigned base = (unsigned)__cvta_generic_to_shared(to);
  if (fours) {
    for (int i = threadIdx.x; i < KEYS * HEAD / 4; i += 128) {
      const int s = i / (HEAD / 4), c = i % (HEAD / 4) * 4;
      const bool there = s < rows && c < D;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(base + (s * PITCH + c) * 4),
                   "l"(from + (there ? s * pitch + c : 0)), "r"(there ? 16 : 0));
    }
  } else {
    for (int i = threadIdx.x; i < KEYS * HEAD; i += 128) {
      const int s = i / HEAD, c = i % HEAD;
      const bool there = s < rows && c < D;
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(base + (s * PITCH + c) * 4),
                   "l"(from + (there ? s * pitch + c : 0)), "r"(there ? 4 : 0));
    }
  }
}

// Rounds what this thread has fetched, if products would round it anyway.
__device__ __forceinline__ void settle_rows(float* tile, bool fours) {
  if (TENSOR_SPLIT) return;
  if (fours) {
    for (int i = threadIdx.x; i < KEYS * HEAD / 4; i += 128) {
      float4* at = (float4*)(tile + i / (HEAD / 4) * PITCH + i % (HEAD / 4) * 4);
      float4 x = *at;
      x.x = settled(x.x); x.y = settled(x.y); x.z = settled(x.z); x.w = settled(x.w);
      *at = x;
    }
  } else {
    for (int i = threadIdx.x; i < KEYS * HEAD; i += 128) {
      float* at = tile + i / HEAD * PITCH + i % HEAD;
      *at = settled(*at);
    }
  }
}

__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits for all groups but the last.
__device__ __forceinline__ void await_group() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }

// Two tiles of two matrices: the one that is worked on and the next one.
struct Stages {
  const float *left, *right;
  long left_pitch, right_pitch;
  bool left_fours, right_fours;
  float* room;  // [2][left, right][KEYS, PITCH]
  int rows;

  __device__ __forceinline__ Stages(const float* l, long l_pitch, const float* r, long r_pitch, float* shared, int n)
      : left(l), right(r), left_pitch(l_pitch), right_pitch(r_pitch), left_fours(in_fours(l, l_pitch)),
        right_fours(in_fours(r, r_pitch)), room(shared), rows(n) {}

  __device__ __forceinline__ float* stage(int which) const { return room + which * 2 * KEYS * PITCH; }

  // One group, empty where there is no such tile.
  __device__ __forceinline__ void fetch(int tile, int which) const {
    const int start = tile * KEYS;
    if (start < rows) {
      fetch_rows(left + start * left_pitch, left_pitch, rows - start, left_fours, stage(which));
      fetch_rows(right + start * right_pitch, right_pitch, rows - start, right_fours, stage(which) + KEYS * PITCH);
    }
    close_group();
  }

  // Behind it a barrier is due.
  __device__ __forceinline__ void settle(int which) const {
    await_group();
    settle_rows(stage(which), left_fours);
    settle_rows(stage(which) + KEYS * PITCH, right_fours);
  }
};

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

#define TREE_BLOCK(TILES_OF)                                                                                            \
  const int head = blockIdx.y, key_head = head / (heads / key_heads), words = (rows + 31) / 32;                         \
  const long item = blockIdx.z, base = item * rows;                                                                     \
  const int first = blockIdx.x * MANY + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;                                   \
  const bool there[2] = {first < rows, first + 8 < rows};                                                               \
  const int row[2] = {min(first, rows - 1), min(first + 8, rows - 1)};                                                  \
  const unsigned* todo = TILES_OF + (item * gridDim.x + blockIdx.x) * ((words + 31) / 32);

// The first tile, on its way, and which of its rows this lane's two rows see.
#define TREE_SEEN                                                                                                       \
  int tile = next_tile(todo, 0, words), next;                                                                           \
  tiles.fetch(tile, 0);                                                                                                 \
  unsigned seen[2], later[2];                                                                                           \
  _Pragma("unroll") for (int i = 0; i < 2; ++i)                                                                         \
      seen[i] = there[i] && tile < words ? ways[(base + row[i]) * words + tile] : 0;

// The tile after this one starts on its way; this one is there.
#define TREE_NEXT                                                                                                       \
  next = next_tile(todo, tile + 1, words);                                                                              \
  tiles.fetch(next, which ^ 1);                                                                                         \
  _Pragma("unroll") for (int i = 0; i < 2; ++i)                                                                         \
      later[i] = there[i] && next < words ? ways[(base + row[i]) * words + next] : 0;                                   \
  tiles.settle(which);                                                                                                  \
  __syncthreads();                                                                                                      \
  const float *keys = tiles.stage(which), *values = keys + KEYS * PITCH;

#define TREE_ON                                                                                                         \
  tile = next;                                                                                                          \
  seen[0] = later[0], seen[1] = later[1];

// Block: MANY rows of a head of an item. saved = log of the sum [item, heads, rows].
extern "C" __global__ void __launch_bounds__(128) tree_forward(
    const float* query, long q_pitch, const float* key, long k_pitch, const float* value, long v_pitch, float* out,
    long out_pitch, float* saved, const unsigned* ways, const unsigned* seen_tiles, int heads, int key_heads, int rows,
    float scale) {
  extern __shared__ __align__(16) float room[];
  TREE_BLOCK(seen_tiles)
  const Stages tiles(key + base * k_pitch + key_head * D, k_pitch, value + base * v_pitch + key_head * D, v_pitch, room, rows);
  TREE_SEEN
  float q[STEPS][4], sum[STEPS][4], top[2] = {-3.0e38f, -3.0e38f}, total[2] = {0.f, 0.f};
  take_rows(query + base * q_pitch + head * D, q_pitch, row, q);
  clear(sum);
  for (int which = 0; tile < words; which ^= 1) {
    TREE_NEXT
    if (__any_sync(~0u, seen[0] | seen[1])) {
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
    __syncthreads();
    TREE_ON
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
    const float* dout, long out_pitch, const float* saved, const unsigned* ways, const unsigned* seen_tiles, float* means,
    float* dquery, int add, int heads, int key_heads, int rows, float scale) {
  extern __shared__ __align__(16) float room[];
  TREE_BLOCK(seen_tiles)
  const Stages tiles(key + base * k_pitch + key_head * D, k_pitch, value + base * v_pitch + key_head * D, v_pitch, room, rows);
  TREE_SEEN
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
  if (!dquery) {
    asm volatile("cp.async.wait_all;" ::: "memory");
    return;
  }
  take_rows(query + base * q_pitch + head * D, q_pitch, row, q);
  clear(dq);
  for (int which = 0; tile < words; which ^= 1) {
    TREE_NEXT
    if (__any_sync(~0u, seen[0] | seen[1])) {
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
    __syncthreads();
    TREE_ON
  }
  put_rows(dq, dquery + base * q_pitch + head * D, q_pitch, row, there, add);
}

// Block: MANY keys of a query head's key head; its part of their cotangents and of the values', [item, heads, rows, 2, D].
// Rows of sums are keys here, columns are queries.
extern "C" __global__ void __launch_bounds__(128) tree_backward_key(
    const float* query, long q_pitch, const float* key, long k_pitch, const float* value, long v_pitch, const float* dout,
    long out_pitch, const float* saved, const unsigned* ways, const unsigned* seeing_tiles, const float* means, float* parts,
    int heads, int key_heads, int rows, float scale) {
  extern __shared__ __align__(16) float room[];
  __shared__ float numbers[2][KEYS];  // log of the sum and mean
  __shared__ unsigned bits[2][KEYS];
  TREE_BLOCK(seeing_tiles)
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const Stages tiles(query + base * q_pitch + head * D, q_pitch, dout + base * out_pitch + head * D, out_pitch, room, rows);
  // Of two numbers and two words of each query of a tile this thread brings one each.
  const float* brought = (warp % 2 ? means : saved) + (item * heads + head) * rows + lane;
  const int word = 2 * blockIdx.x + warp % 2;
  const unsigned* way = ways + (base + lane) * words + word;
  int tile = next_tile(todo, 0, words);
  tiles.fetch(tile, 0);
  float number = 0.f;
  unsigned bit = 0;
  const auto bring = [&](int tile) {
    const bool there = warp < 2 && tile * KEYS + lane < rows;
    number = there ? brought[tile * KEYS] : 0.f;
    bit = there && word < words ? way[(long)tile * KEYS * words] : 0;
  };
  bring(tile);
  float k[STEPS][4], v[STEPS][4], dk[STEPS][4], dv[STEPS][4];
  take_rows(key + base * k_pitch + key_head * D, k_pitch, row, k);
  take_rows(value + base * v_pitch + key_head * D, v_pitch, row, v);
  clear(dk);
  clear(dv);
  for (int which = 0; tile < words; which ^= 1) {
    if (warp < 2) {
      numbers[warp][lane] = number;
      bits[warp][lane] = bit;
    }
    tile = next_tile(todo, tile + 1, words);
    tiles.fetch(tile, which ^ 1);
    bring(tile);
    tiles.settle(which);
    __syncthreads();
    if (__any_sync(~0u, bits[warp / 2][lane] >> warp % 2 * 16 & 0xffff)) {
      const float *queries = tiles.stage(which), *slopes = queries + KEYS * PITCH;
      float p[TILES][4], ds[TILES][4];
      compare(k, queries, p);
      compare(v, slopes, ds);
#pragma unroll
      for (int n = 0; n < TILES; ++n)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int c = 8 * n + 2 * t + j % 2;
          const bool seen = bits[warp / 2][c] >> (warp % 2 * 16 + g + 8 * (j / 2)) & 1;
          p[n][j] = seen ? __expf(fmaf(scale, p[n][j], -numbers[0][c])) : 0.f;
          ds[n][j] = seen ? scale * p[n][j] * (ds[n][j] - numbers[1][c]) : 0.f;
        }
      multiply_by_columns(dv, p, slopes);
      multiply_by_columns(dk, ds, queries);
    }
    __syncthreads();
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
