// A product's operands as the libraries want them, and products with few outputs.

// to[member, j, i] = from[member, i, j] rounded to tf32: weights as the tensor cores want them.
extern "C" __global__ void __launch_bounds__(256)
    transpose(const float* from, long from_stride, float* to, long to_stride, int rows, int columns) {
  __shared__ float tile[32][33];
  from += blockIdx.z * from_stride;
  to += blockIdx.z * to_stride;
  const int x = threadIdx.x & 31, y = threadIdx.x >> 5, r0 = blockIdx.y * 32, c0 = blockIdx.x * 32;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    if (r0 + y + i < rows && c0 + x < columns) tile[y + i][x] = from[(long)(r0 + y + i) * columns + c0 + x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    if (c0 + y + i < columns && r0 + x < rows) {
      unsigned rounded;
      asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(tile[x][y + i]));
      to[(long)(c0 + y + i) * rows + r0 + x] = __uint_as_float(rounded);
    }
}

// The same rounded to bf16.
extern "C" __global__ void __launch_bounds__(256)
    transpose_halves(const float* from, long from_stride, Half* to, long to_stride, int rows, int columns) {
  __shared__ float tile[32][33];
  from += blockIdx.z * from_stride;
  to += blockIdx.z * to_stride;
  const int x = threadIdx.x & 31, y = threadIdx.x >> 5, r0 = blockIdx.y * 32, c0 = blockIdx.x * 32;
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    if (r0 + y + i < rows && c0 + x < columns) tile[y + i][x] = from[(long)(r0 + y + i) * columns + c0 + x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 32; i += 8)
    if (c0 + y + i < columns && r0 + x < rows) store(to + (long)(c0 + y + i) * rows + r0 + x, tile[x][y + i]);
}

// Rows of a member's matrix, `pitch` apart and members `stride` apart, packed and rounded to bf16.
extern "C" __global__ void to_bf16(const float* from, long stride, long pitch, unsigned short* to, int rows_per_member,
                                   int rows, int width) {
  ENTRY
  const unsigned member = r / rows_per_member;
  const float x = from[member * stride + (r - member * rows_per_member) * pitch + c];
  unsigned short rounded;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(x));
  to[entry] = rounded;
}

// The same, four columns at a time: width is a fourth of the columns.
extern "C" __global__ void to_bf16_fours(const float* from, long stride, long pitch, uint2* to, int rows_per_member, int rows,
                                         int width) {
  ENTRY
  const unsigned member = r / rows_per_member;
  to[entry] = four_bf16(*(const float4*)(from + member * stride + (r - member * rows_per_member) * pitch + 4 * c));
}

// A product with few outputs (a head), N of them at most: the member's weights [in, out] in shared memory, a warp per
// row; blocks of one member's rows, backward 64 of them.
template <int N>
__device__ __forceinline__ void narrow_forward(const ARRAY* x, long x_pitch, const float* weight, const float* bias,
                                               long stride, float* out, long out_pitch, int rows_per_member, int in,
                                               int outs, int half, int per_block) {
  extern __shared__ float w[];  // [in][N]
  const int member = blockIdx.y, lane = threadIdx.x & 31;
  const int first = blockIdx.x * per_block, last = min(first + per_block, rows_per_member);
  for (int e = threadIdx.x; e < in * N; e += 256) {
    const int n = e % N;
    w[e] = n < outs ? weight[member * stride + (long)(e / N) * outs + n] : 0.f;
  }
  __syncthreads();
#pragma unroll 2
  for (int r = first + (threadIdx.x >> 5); r < last; r += 8) {
    const long row = (long)member * rows_per_member + r;
    float sum[N];
#pragma unroll
    for (int n = 0; n < N; ++n) sum[n] = 0.f;
#pragma unroll 4
    for (int k = lane; k < in; k += 32) {
      const float a = TAKE(x, row * x_pitch + k, half);
#pragma unroll
      for (int n = 0; n < N; n += 4) {
        const float4 v = *(const float4*)(w + k * N + n);
        sum[n] = fmaf(a, v.x, sum[n]); sum[n + 1] = fmaf(a, v.y, sum[n + 1]);
        sum[n + 2] = fmaf(a, v.z, sum[n + 2]); sum[n + 3] = fmaf(a, v.w, sum[n + 3]);
      }
    }
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float total = warp_sum(sum[n]);
      if (lane == n && n < outs) out[row * out_pitch + n] = total + (bias ? bias[member * stride + n] : 0.f);
    }
  }
}

// Its backward pass in one reading of x and dz: dx (+)= dz . W^T, and partials [member, block, in * outs + outs] of dW
// and of the bias gradient. dz of the block's 64 rows in shared memory, a thread per column of x.
template <int N>
__device__ __forceinline__ void narrow_backward(const ARRAY* x, const float* dz, const float* weight, long stride,
                                                ARRAY* dx, int add, float* partial, int rows_per_member, int in, int outs,
                                                int half) {
  __shared__ float d[64][N];
  const int member = blockIdx.y, first = blockIdx.x * 64, count = min(64, rows_per_member - first);
  const long row0 = (long)member * rows_per_member + first;
  for (int e = threadIdx.x; e < 64 * N; e += 128) {
    const int r = e / N, n = e % N;
    d[r][n] = r < count && n < outs ? dz[(row0 + r) * outs + n] : 0.f;
  }
  __syncthreads();
  partial += ((long)member * gridDim.x + blockIdx.x) * (in * outs + outs);
  for (int k = threadIdx.x; k < in; k += 128) {
    float w[N], g[N];
#pragma unroll
    for (int n = 0; n < N; ++n) {
      w[n] = n < outs ? weight[member * stride + (long)k * outs + n] : 0.f;
      g[n] = 0.f;
    }
#pragma unroll 8
    for (int r = 0; r < count; ++r) {
      const float a = TAKE(x, (row0 + r) * in + k, half);
      float sum = 0.f;
#pragma unroll
      for (int n = 0; n < N; ++n) {
        sum = fmaf(d[r][n], w[n], sum);
        g[n] = fmaf(a, d[r][n], g[n]);
      }
      if (dx) PUT(dx, (row0 + r) * in + k, sum, add, half);
    }
#pragma unroll
    for (int n = 0; n < N; ++n)
      if (n < outs) partial[k * outs + n] = g[n];
  }
  if ((int)threadIdx.x < outs) {
    float sum = 0.f;
    for (int r = 0; r < count; ++r) sum += d[r][threadIdx.x];
    partial[in * outs + threadIdx.x] = sum;
  }
}

#define NARROW(N)                                                                                                        \
  extern "C" __global__ void __launch_bounds__(256) narrow_forward_##N(                                                 \
      const ARRAY* x, long x_pitch, const float* weight, const float* bias, long stride, float* out, long out_pitch,    \
      int rows_per_member, int in, int outs, int half, int per_block) {                                                 \
    narrow_forward<N>(x, x_pitch, weight, bias, stride, out, out_pitch, rows_per_member, in, outs, half, per_block);    \
  }                                                                                                                     \
  extern "C" __global__ void __launch_bounds__(128) narrow_backward_##N(                                                \
      const ARRAY* x, const float* dz, const float* weight, long stride, ARRAY* dx, int add, float* partial,            \
      int rows_per_member, int in, int outs, int half) {                                                                \
    narrow_backward<N>(x, dz, weight, stride, dx, add, partial, rows_per_member, in, outs, half);                       \
  }

NARROW(4)
NARROW(8)
