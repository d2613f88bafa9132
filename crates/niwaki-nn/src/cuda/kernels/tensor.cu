// Attention to few keys on the tensor cores, a warp's 16 rows of one head at a time: what pointers and the encoder's
// attention share, behind products.cu. Constants of the files that follow: TENSOR_HEADS, TENSOR_DEPTH (columns of a head),
// TENSOR_KEYS, and TENSOR_SPLIT of products.cu.

#define H TENSOR_HEADS
#define D TENSOR_DEPTH
#define KEYS TENSOR_KEYS
#define W (H * D)
#define TILES ((KEYS + 7) / 8)  // of eight keys
#define STEPS ((D + 7) / 8)     // of eight columns of a head
#define BANDS ((D + 15) / 16)   // of sixteen columns of a head
// A head's columns, padded with zeros; rows of keys are four apart so that lanes read them from different banks.
#define HEAD (8 * STEPS)
#define PITCH (H * HEAD + 4)
// Room to transpose 16 rows of two sets of columns: eight banks from row to row.
#define STAGE_FOR(columns) (((columns) + 23) / 32 * 32 + 8)

// Over the four lanes that share a row.
__device__ __forceinline__ float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ __forceinline__ float row_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// c[n] += a m^T for the tiles of m's rows, m [8 * TILES, PITCH] with eight columns from `m` on.
__device__ __forceinline__ void multiply_by_keys(float (&c)[TILES][4], const Piece (&a)[4], const float* m) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < TILES; ++n) {
    const float2 x = *(const float2*)(m + (8 * n + g) * PITCH + 2 * t);
    const Piece b[2] = {piece(x.x), piece(x.y)};
    multiply(c[n], a, b);
  }
}

// c += (the tiles of left) m, m [8 * K, PITCH] with a head's columns from `m` on.
template <int K>
__device__ __forceinline__ void multiply_by_columns(float (&c)[STEPS][4], const float (&left)[K][4], const float* m) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int k = 0; k < K; ++k) {
    Piece a[4];
    take_left(left[k], a);
#pragma unroll
    for (int n = 0; n < STEPS; ++n) {
      const float* at = m + (8 * k + 2 * t) * PITCH + 8 * n + g;
      const Piece b[2] = {piece(at[0]), piece(at[PITCH])};
      multiply(c[n], a, b);
    }
  }
}

// What a thread reads before it writes the first of it: shared memory might be what is read, for all the compiler knows, so
// it would wait for every single read otherwise.
#define AHEAD 8

// Copies rows of keys, `pitch` scalars apart, to shared memory, [8 * TILES, PITCH]; zero behind the last of `rows`.
__device__ __forceinline__ void share_rows(const float* from, long pitch, int rows, float* to) {
  for (int first = threadIdx.x; first < 8 * TILES * H * HEAD; first += AHEAD * blockDim.x) {
    float x[AHEAD];
#pragma unroll
    for (int j = 0; j < AHEAD; ++j) {
      const int i = first + j * blockDim.x, place = i % (H * HEAD), s = i / (H * HEAD);
      const bool there = s < rows && place % HEAD < D;
      x[j] = there ? from[s * pitch + place / HEAD * D + place % HEAD] : 0.f;
    }
#pragma unroll
    for (int j = 0; j < AHEAD; ++j) {
      const int i = first + j * blockDim.x;
      if (i < 8 * TILES * H * HEAD) to[i / (H * HEAD) * PITCH + i % (H * HEAD)] = settled(x[j]);
    }
  }
}

// Which keys this lane's two rows may see, all where there is no mask: four bits for each tile of keys, in the order of
// its sums.
__device__ __forceinline__ unsigned long long open_bits(const unsigned char* open, const long (&row)[2]) {
  const int t = threadIdx.x % 4;
  unsigned long long bits = 0;
#pragma unroll
  for (int n = 0; n < TILES; ++n)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int s = 8 * n + 2 * t;
      const unsigned char* at = open + row[i] * KEYS + s;
      unsigned two = 0;
      if (!open) {
        two = (s < KEYS) | (s + 1 < KEYS) << 1;
      } else if (KEYS % 2 == 0) {
        if (s < KEYS) {
          const uchar2 x = *(const uchar2*)at;
          two = (x.x != 0) | (x.y != 0) << 1;
        }
      } else {
        two = (s < KEYS && at[0] != 0) | (s + 1 < KEYS && at[1] != 0) << 1;
      }
      bits |= (unsigned long long)two << (4 * n + 2 * i);
    }
  return bits;
}

// One head's glimpse of this warp's rows: weights (zero where closed) and the weighted values. `keys` points at the head's
// columns of the shared keys; the values lie behind them.
__device__ __forceinline__ void look(const float (&q)[STEPS][4], const float* keys, unsigned long long open, float scale,
                                     float (&p)[TILES][4], float (&glimpse)[STEPS][4]) {
  clear(p);
#pragma unroll
  for (int k = 0; k < STEPS; ++k) {
    Piece a[4];
    take_left(q[k], a);
    multiply_by_keys(p, a, keys + 8 * k);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float top = -3.0e38f, total = 0.f;
#pragma unroll
    for (int n = 0; n < TILES; ++n)
#pragma unroll
      for (int j = 2 * i; j < 2 * i + 2; ++j) top = fmaxf(top, open >> (4 * n + j) & 1 ? p[n][j] : -3.0e38f);
    top = row_max(top);
#pragma unroll
    for (int n = 0; n < TILES; ++n)
#pragma unroll
      for (int j = 2 * i; j < 2 * i + 2; ++j) {
        p[n][j] = open >> (4 * n + j) & 1 ? __expf(scale * (p[n][j] - top)) : 0.f;
        total += p[n][j];
      }
    total = row_sum(total);
    const float share = total > 0.f ? __fdividef(1.f, total) : 0.f;
#pragma unroll
    for (int n = 0; n < TILES; ++n)
#pragma unroll
      for (int j = 2 * i; j < 2 * i + 2; ++j) p[n][j] *= share;
  }
  clear(glimpse);
  multiply_by_columns(glimpse, p, keys + 8 * TILES * PITCH);
}

// sums[i, j] += the sum over this warp's 16 rows of left[row, i] * right[row, j].
template <int L, int R>
__device__ __forceinline__ void add_products(const float (&left)[L][4], const float (&right)[R][4], float* stage,
                                             int pitch, float (&sums)[(L + 1) / 2][R][4]) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  constexpr int behind = 16 * ((L + 1) / 2);
  __syncwarp();
  put_away(left, stage, pitch);
  put_away(right, stage + behind, pitch);
  __syncwarp();
#pragma unroll
  for (int k = 0; k < 2; ++k)
#pragma unroll
    for (int m = 0; m < (L + 1) / 2; ++m) {
      const float* at = stage + (8 * k + t) * pitch + 16 * m + g;
      // Where there are no such columns, nothing was put.
      const bool second = 2 * m + 1 < L;
      const Piece a[4] = {piece(at[0]), piece(second ? at[8] : 0.f), piece(at[4 * pitch]),
                          piece(second ? at[4 * pitch + 8] : 0.f)};
#pragma unroll
      for (int n = 0; n < R; ++n) {
        Piece b[2];
        take_transposed(stage, pitch, k, behind + 8 * n, b);
        multiply(sums[m][n], a, b);
      }
    }
}

// Cotangents of the scores, before their scale was applied, from the cotangent `d` of what a head has seen.
__device__ __forceinline__ void pull_scores(const float (&d)[STEPS][4], const float (&seen)[STEPS][4],
                                            const float (&p)[TILES][4], const float* values, float scale,
                                            float (&ds)[TILES][4]) {
  // Sum_s p dp = d seen.
  float centre[2] = {0.f, 0.f};
  clear(ds);
#pragma unroll
  for (int k = 0; k < STEPS; ++k) {
    Piece a[4];
    take_left(d[k], a);
    multiply_by_keys(ds, a, values + 8 * k);
#pragma unroll
    for (int j = 0; j < 4; ++j) centre[j / 2] = fmaf(seen[k][j], d[k][j], centre[j / 2]);
  }
  centre[0] = row_sum(centre[0]);
  centre[1] = row_sum(centre[1]);
#pragma unroll
  for (int n = 0; n < TILES; ++n)
#pragma unroll
    for (int j = 0; j < 4; ++j) ds[n][j] = scale * p[n][j] * (ds[n][j] - centre[j / 2]);
}
