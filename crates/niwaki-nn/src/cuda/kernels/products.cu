// Products of a warp on the tensor cores, 16 x 8 sums at a time. Constant: TENSOR_SPLIT, whether products keep what rounding
// their operands to tf32 loses.
//
// In the fragments of a 16 x 8 product, lane 4 g + t holds the sums of rows g and g + 8, columns 2 t and 2 t + 1. The
// same four values serve as a left operand of the next product if its summed index is read in the order 0 2 4 6 1 3 5 7,
// so the right operand is read in that order too, and chains of products stay in registers.

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
__device__ __forceinline__ float settled(float x) { return TENSOR_SPLIT ? x : __uint_as_float(rounded(x)); }

__device__ __forceinline__ Piece piece(float settled) {
  if (!TENSOR_SPLIT) return {__float_as_uint(settled), 0};
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
  if (TENSOR_SPLIT) {
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

// Puts 16 rows of sums into the stage, rows of `pitch` scalars, from a column on.
template <int N> __device__ __forceinline__ void put_away(const float (&c)[N][4], float* stage, int pitch) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 2; ++i)
      *(float2*)(stage + (g + 8 * i) * pitch + 8 * n + 2 * t) =
          make_float2(settled(c[n][2 * i]), settled(c[n][2 * i + 1]));
}

// A right operand of eight of this warp's rows, from a column of the stage on.
__device__ __forceinline__ void take_transposed(const float* stage, int pitch, int k, int column, Piece (&b)[2]) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const float* at = stage + (8 * k + t) * pitch + column + g;
  b[0] = piece(at[0]);
  b[1] = piece(at[4 * pitch]);
}

// Writes or adds sums [i, j] to `to[i * down + j * across]`, for i < rows and j < columns.
template <int M, int N>
__device__ __forceinline__ void give(const float (&sums)[M][N][4], float* to, int rows, int columns, int down, int across,
                                     int add) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int row = 16 * m + g + 8 * (j / 2), column = 8 * n + 2 * t + j % 2;
        if (row < rows && column < columns) {
          float* place = to + row * down + column * across;
          *place = add ? *place + sums[m][n][j] : sums[m][n][j];
        }
      }
}
