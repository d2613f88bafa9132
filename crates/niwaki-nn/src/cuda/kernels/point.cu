// A glimpse and a pointer in one: many queries on few keys, on the tensor cores. POINT_WIDTH, POINT_HEADS and POINT_KEYS
// are constants of the file; POINT_SPLIT says whether products keep what rounding their operands to tf32 loses.
//
// A warp takes 16 rows. In the fragments of a 16 x 8 product, lane 4 g + t holds the sums of rows g and g + 8, columns
// 2 t and 2 t + 1. The same four values serve as a left operand of the next product if its summed index is read in the
// order 0 2 4 6 1 3 5 7, so the right operand is read in that order too, and chains of products stay in registers.

#define W POINT_WIDTH
#define H POINT_HEADS
#define D (W / H)
#define KEYS POINT_KEYS
#define TILES ((KEYS + 7) / 8)  // of eight keys
#define STEPS ((D + 7) / 8)     // of eight columns of a head
#define BANDS ((D + 15) / 16)   // of sixteen columns of a head
// A head's columns, padded with zeros; rows of keys are four apart so that lanes read them from different banks.
#define HEAD (8 * STEPS)
#define PITCH (H * HEAD + 4)
// Room to turn 16 rows of a head's columns and of keys: eight banks from row to row.
#define STAGE ((16 * BANDS + 8 * TILES + 23) / 32 * 32 + 8)

// An operand of a product: what tf32 keeps, and what it loses.
struct Piece {
  unsigned high, low;
};

__device__ __forceinline__ unsigned rounded(float x) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
}

// What is put away for products: rounded now if they would round it anyway.
__device__ __forceinline__ float settled(float x) { return POINT_SPLIT ? x : __uint_as_float(rounded(x)); }

__device__ __forceinline__ Piece piece(float settled) {
  if (!POINT_SPLIT) return {__float_as_uint(settled), 0};
  const unsigned high = rounded(settled);
  return {high, __float_as_uint(settled - __uint_as_float(high))};
}

__device__ __forceinline__ void multiply_once(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                                              unsigned b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// c += a b, [16, 8] += [16, 8] [8, 8].
__device__ __forceinline__ void multiply(float (&c)[4], const Piece (&a)[4], const Piece (&b)[2]) {
  if (POINT_SPLIT) {
    multiply_once(c, a[0].low, a[1].low, a[2].low, a[3].low, b[0].high, b[1].high);
    multiply_once(c, a[0].high, a[1].high, a[2].high, a[3].high, b[0].low, b[1].low);
  }
  multiply_once(c, a[0].high, a[1].high, a[2].high, a[3].high, b[0].high, b[1].high);
}

// Sums as the left operand of the next product.
__device__ __forceinline__ void take_left(const float (&c)[4], Piece (&a)[4]) {
  a[0] = piece(settled(c[0]));
  a[1] = piece(settled(c[2]));
  a[2] = piece(settled(c[1]));
  a[3] = piece(settled(c[3]));
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

// c += (the tiles of left) m, m [8 * TILES, PITCH] with a head's columns from `m` on.
__device__ __forceinline__ void multiply_by_columns(float (&c)[STEPS][4], const float (&left)[TILES][4], const float* m) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int k = 0; k < TILES; ++k) {
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

template <int N> __device__ __forceinline__ void clear(float (&c)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) c[n][i] = 0.f;
}

// Two neighbours of a row of N; zero beyond its end. Rows of an even number start at even places.
template <int N> __device__ __forceinline__ float2 pair(const float* row, int place) {
  if (N % 2 == 0) return place < N ? *(const float2*)(row + place) : make_float2(0.f, 0.f);
  return make_float2(place < N ? row[place] : 0.f, place + 1 < N ? row[place + 1] : 0.f);
}

template <int N> __device__ __forceinline__ void put_pair(float* row, int place, float x, float y, int add) {
  if (place >= N) return;
  if (N % 2 == 0) {
    float2* to = (float2*)(row + place);
    const float2 old = add ? *to : make_float2(0.f, 0.f);
    *to = make_float2(old.x + x, old.y + y);
    return;
  }
  row[place] = add ? row[place] + x : x;
  if (place + 1 < N) row[place + 1] = add ? row[place + 1] + y : y;
}

// Copies an item's keys, values and pointer keys to shared memory, [3, 8 * TILES, PITCH].
__device__ __forceinline__ void share_keys(const float* glimpse, const float* key, long item, float* room) {
  for (int i = threadIdx.x; i < 3 * 8 * TILES * H * HEAD; i += blockDim.x) {
    const int place = i % (H * HEAD), row = i / (H * HEAD), s = row % (8 * TILES), which = row / (8 * TILES);
    const int column = place / HEAD * D + place % HEAD;
    float x = 0.f;
    if (s < KEYS && place % HEAD < D)
      x = which < 2 ? glimpse[(item * KEYS + s) * 2 * W + which * W + column] : key[(item * KEYS + s) * W + column];
    room[row * PITCH + place] = settled(x);
  }
}

// Which keys this lane's two rows may see: four bits for each tile of keys, in the order of its sums.
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
      if (KEYS % 2 == 0) {
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

// Over the four lanes that share a row.
__device__ __forceinline__ float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ __forceinline__ float row_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// One head's glimpse of this warp's rows: queries, weights (zero where closed) and the weighted values. `keys` points at
// the head's columns of the shared keys; the values lie behind them.
__device__ __forceinline__ void look(const float* query, const long (&row)[2], int head, const float* keys,
                                     unsigned long long open, float (&q)[STEPS][4], float (&p)[TILES][4],
                                     float (&glimpse)[STEPS][4]) {
  const int t = threadIdx.x % 4;
  clear(p);
#pragma unroll
  for (int k = 0; k < STEPS; ++k) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float2 x = pair<D>(query + row[i] * W + head * D, 8 * k + 2 * t);
      q[k][2 * i] = x.x;
      q[k][2 * i + 1] = x.y;
    }
    Piece a[4];
    take_left(q[k], a);
    multiply_by_keys(p, a, keys + 8 * k);
  }
  const float scale = rsqrtf((float)D);
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
    const float share = total > 0.f ? 1.f / total : 0.f;
#pragma unroll
    for (int n = 0; n < TILES; ++n)
#pragma unroll
      for (int j = 2 * i; j < 2 * i + 2; ++j) p[n][j] *= share;
  }
  clear(glimpse);
  multiply_by_columns(glimpse, p, keys + 8 * TILES * PITCH);
}

// Logits [item, rows, keys]; a block per item, a warp per 16 rows.
extern "C" __global__ void __launch_bounds__(256)
    point_forward(const float* query, const float* glimpse, const float* key, const unsigned char* open, float* out,
                  int rows, float bound) {
  extern __shared__ __align__(16) float room[];
  const long item = blockIdx.x;
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  share_keys(glimpse, key, item, room);
  __syncthreads();
  const float scale = 2.f * rsqrtf((float)W);
  for (int first = threadIdx.x / 32 * 16; first < rows; first += blockDim.x / 2) {
    const long row[2] = {item * rows + min(first + g, rows - 1), item * rows + min(first + g + 8, rows - 1)};
    const unsigned long long seen = open_bits(open, row);
    float z[TILES][4];
    clear(z);
#pragma unroll 2
    for (int h = 0; h < H; ++h) {
      float q[STEPS][4], p[TILES][4], seen_values[STEPS][4];
      look(query, row, h, room + h * HEAD, seen, q, p, seen_values);
#pragma unroll
      for (int k = 0; k < STEPS; ++k) {
        Piece a[4];
        take_left(seen_values[k], a);
        multiply_by_keys(z, a, room + 2 * 8 * TILES * PITCH + h * HEAD + 8 * k);
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (first + g + 8 * i >= rows) continue;
#pragma unroll
      for (int n = 0; n < TILES; ++n) {
        // tanh x = 1 - 2 / (e^2x + 1).
        const float x = bound - __fdividef(2.f * bound, __expf(scale * z[n][2 * i]) + 1.f);
        const float y = bound - __fdividef(2.f * bound, __expf(scale * z[n][2 * i + 1]) + 1.f);
        put_pair<KEYS>(out + row[i] * KEYS, 8 * n + 2 * t, x, y, 0);
      }
    }
  }
}

// Puts 16 rows of sums into the stage, from a column on.
template <int N> __device__ __forceinline__ void put_away(const float (&c)[N][4], float* stage) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 2; ++i)
      *(float2*)(stage + (g + 8 * i) * STAGE + 8 * n + 2 * t) =
          make_float2(settled(c[n][2 * i]), settled(c[n][2 * i + 1]));
}

// sums[column, key] += the sum over this warp's 16 rows of columns[row, column] * keys[row, key].
__device__ __forceinline__ void add_products(const float (&columns)[STEPS][4], const float (&keys)[TILES][4], float* stage,
                                             float (&sums)[BANDS][TILES][4]) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  __syncwarp();
  put_away(columns, stage);
  put_away(keys, stage + 16 * BANDS);
  __syncwarp();
#pragma unroll
  for (int k = 0; k < 2; ++k)
#pragma unroll
    for (int m = 0; m < BANDS; ++m) {
      const float* at = stage + (8 * k + t) * STAGE + 16 * m + g;
      // Where a head has no such columns, nothing was put.
      const bool second = 16 * m + 8 < HEAD;
      const Piece a[4] = {piece(at[0]), piece(second ? at[8] : 0.f), piece(at[4 * STAGE]),
                          piece(second ? at[4 * STAGE + 8] : 0.f)};
#pragma unroll
      for (int n = 0; n < TILES; ++n) {
        const float* other = stage + (8 * k + t) * STAGE + 16 * BANDS + 8 * n + g;
        const Piece b[2] = {piece(other[0]), piece(other[4 * STAGE])};
        multiply(sums[m][n], a, b);
      }
    }
}

// Writes or adds a head's sums to the cotangent of keys, rows of `stride` scalars.
__device__ __forceinline__ void give(const float (&sums)[BANDS][TILES][4], float* to, int stride, int add) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int m = 0; m < BANDS; ++m)
#pragma unroll
    for (int n = 0; n < TILES; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = 16 * m + g + 8 * (i / 2), s = 8 * n + 2 * t + i % 2;
        if (column < D && s < KEYS) {
          float* place = to + s * stride + column;
          *place = add ? *place + sums[m][n][i] : sums[m][n][i];
        }
      }
}

// Cotangents of queries and keys, written or added; a block per item, a warp per head. Shared memory: the keys, then a
// stage for each warp.
extern "C" __global__ void __launch_bounds__(32 * H)
    point_backward(const float* query, const float* glimpse, const float* key, const unsigned char* open, const float* out,
                   const float* dout, float* dquery, float* dglimpse, float* dkey, int add_query, int add_glimpse,
                   int add_key, int rows, float bound) {
  extern __shared__ __align__(16) float room[];
  const long item = blockIdx.x;
  const int h = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  // An item from which nothing is asked gives nothing: a group without signal costs what reading its zeros costs.
  int asked = 0;
  for (int i = threadIdx.x; i < rows * KEYS; i += blockDim.x) asked |= dout[item * rows * KEYS + i] != 0.f;
  asked = __syncthreads_or(asked);
  if (!asked && dquery && !add_query)
    for (int i = threadIdx.x; i < rows * W; i += blockDim.x) dquery[item * rows * W + i] = 0.f;
  if (asked) share_keys(glimpse, key, item, room);
  __syncthreads();
  const float* keys = room + h * HEAD;
  const float* values = keys + 8 * TILES * PITCH;
  const float* pointer = values + 8 * TILES * PITCH;
  float* stage = room + 3 * 8 * TILES * PITCH + h * 16 * STAGE;
  const float scale = rsqrtf((float)W), inner = rsqrtf((float)D);
  float sums[3][BANDS][TILES][4];
#pragma unroll
  for (int which = 0; which < 3; ++which)
#pragma unroll
    for (int m = 0; m < BANDS; ++m) clear(sums[which][m]);
  for (int first = 0; asked && first < rows; first += 16) {
    const long row[2] = {item * rows + min(first + g, rows - 1), item * rows + min(first + g + 8, rows - 1)};
    const unsigned long long seen = open_bits(open, row);
    float q[STEPS][4], p[TILES][4], seen_values[STEPS][4], dz[TILES][4], d[STEPS][4], ds[TILES][4], dq[STEPS][4];
    look(query, row, h, keys, seen, q, p, seen_values);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const bool here = first + g + 8 * i < rows;
#pragma unroll
      for (int n = 0; n < TILES; ++n) {
        const float2 y = pair<KEYS>(out + row[i] * KEYS, 8 * n + 2 * t);
        const float2 slope = pair<KEYS>(dout + row[i] * KEYS, 8 * n + 2 * t);
        dz[n][2 * i] = here ? slope.x * scale * (bound - __fdividef(y.x * y.x, bound)) : 0.f;
        dz[n][2 * i + 1] = here ? slope.y * scale * (bound - __fdividef(y.y * y.y, bound)) : 0.f;
      }
    }
    add_products(seen_values, dz, stage, sums[2]);
    clear(d);
    multiply_by_columns(d, dz, pointer);
    add_products(d, p, stage, sums[1]);
    clear(ds);
    float centre[2] = {0.f, 0.f};
#pragma unroll
    for (int k = 0; k < STEPS; ++k) {
      Piece a[4];
      take_left(d[k], a);
      multiply_by_keys(ds, a, values + 8 * k);
#pragma unroll
      for (int j = 0; j < 4; ++j) centre[j / 2] = fmaf(seen_values[k][j], d[k][j], centre[j / 2]);
    }
    centre[0] = row_sum(centre[0]);
    centre[1] = row_sum(centre[1]);
#pragma unroll
    for (int n = 0; n < TILES; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) ds[n][j] = inner * p[n][j] * (ds[n][j] - centre[j / 2]);
    add_products(q, ds, stage, sums[0]);
    if (!dquery) continue;
    clear(dq);
    multiply_by_columns(dq, ds, keys);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (first + g + 8 * i >= rows) continue;
#pragma unroll
      for (int k = 0; k < STEPS; ++k)
        put_pair<D>(dquery + row[i] * W + h * D, 8 * k + 2 * t, dq[k][2 * i], dq[k][2 * i + 1], add_query);
    }
  }
  if (dglimpse) {
    give(sums[0], dglimpse + item * KEYS * 2 * W + h * D, 2 * W, add_glimpse);
    give(sums[1], dglimpse + item * KEYS * 2 * W + W + h * D, 2 * W, add_glimpse);
  }
  if (dkey) give(sums[2], dkey + item * KEYS * W + h * D, W, add_key);
}
