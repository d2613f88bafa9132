// Shared by every kernel file: activations with their derivatives, sums over warps, halves (bf16) and what is stored in them.

#define NONE_ 0
#define GELU_ 1
#define RELU_ 2
#define TANH_ 3
#define SILU_ 4
#define ELU_ 5
#define SIGMOID_ 6

// z Phi(z), and its derivative Phi(z) + z phi(z). One exponential serves both: with x = |z|/sqrt 2 and t = 1/(1 + p x),
// erfc(x) = (a1 t + ... + a5 t^5) exp(-x^2) to 1.5e-7 (Abramowitz and Stegun 7.1.26), which is f32's own rounding.
__device__ __forceinline__ float gelu_with_slope(float z, float& slope) {
  const float e = __expf(-0.5f * z * z);
  const float t = __fdividef(1.f, fmaf(0.3275911f * 0.70710678118654752f, fabsf(z), 1.f));
  const float p = t * fmaf(t, fmaf(t, fmaf(t, fmaf(t, 1.061405429f, -1.453152027f), 1.421413741f), -0.284496736f), 0.254829592f);
  const float tail = 0.5f * p * e;
  const float cumulative = z < 0.f ? tail : 1.f - tail;
  slope = fmaf(z * 0.39894228040143268f, e, cumulative);
  return z * cumulative;
}

// z sigma(z) and its slope where both go into halves, which have no bits for more than this.
__device__ __forceinline__ float quick_silu(float z, float& slope) {
  const float s = __fdividef(1.f, 1.f + __expf(-z));
  slope = s + z * s * (1.f - s);
  return z * s;
}

__device__ __forceinline__ float activate(int kind, float z, float& slope) {
  switch (kind) {
    case GELU_: return gelu_with_slope(z, slope);
    case RELU_: slope = z > 0.f ? 1.f : 0.f; return fmaxf(z, 0.f);
    case TANH_: { const float y = tanhf(z); slope = 1.f - y * y; return y; }
    case SILU_: { const float s = 1.f / (1.f + expf(-z)); slope = s + z * s * (1.f - s); return z * s; }
    case ELU_: { const float y = z > 0.f ? z : expm1f(z); slope = z > 0.f ? 1.f : y + 1.f; return y; }
    case SIGMOID_: { const float y = 1.f / (1.f + expf(-z)); slope = y * (1.f - y); return y; }
    default: slope = 1.f; return z;
  }
}

// An activation's derivative from what is kept of it: itself for GELU and SiLU, the output for the others.
__device__ __forceinline__ float slope_from(int kind, float kept) {
  if (kind == RELU_) return kept > 0.f ? 1.f : 0.f;
  if (kind == TANH_) return 1.f - kept * kept;
  if (kind == ELU_) return kept > 0.f ? 1.f : kept + 1.f;
  if (kind == SIGMOID_) return kept * (1.f - kept);
  return kept;
}

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int hop = 16; hop; hop >>= 1) x += __shfl_xor_sync(~0u, x, hop);
  return x;
}

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int hop = 16; hop; hop >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, hop));
  return x;
}

// Lists the places of those of `rows` places whose entry in shared memory is not zero, in order, where the entries stood;
// how many there are. All threads of the block call it.
__device__ __forceinline__ int list_places(int* places, int rows) {
  __shared__ int listed;
  __syncthreads();
  if (threadIdx.x < 32) {
    int before = 0;
    for (int first = 0; first < rows; first += 32) {
      const int place = first + threadIdx.x;
      const bool wanted = place < rows && places[place];
      const unsigned all = __ballot_sync(~0u, wanted);
      if (wanted) places[before + __popc(all & ((1u << threadIdx.x) - 1))] = place;
      before += __popc(all);
      __syncwarp();
    }
    if (threadIdx.x == 0) listed = before;
  }
  __syncthreads();
  return listed;
}

__device__ __forceinline__ uint2 four_bf16(float4 x) {
  uint2 rounded;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(rounded.x) : "f"(x.y), "f"(x.x));
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(rounded.y) : "f"(x.w), "f"(x.z));
  return rounded;
}

__device__ __forceinline__ float4 four_floats(uint2 halves) {
  return make_float4(__uint_as_float(halves.x << 16), __uint_as_float(halves.x & 0xffff0000u),
                     __uint_as_float(halves.y << 16), __uint_as_float(halves.y & 0xffff0000u));
}

// Eight halves that lie side by side.
__device__ __forceinline__ void open_eight(uint4 x, float (&to)[8]) {
  const float4 a = four_floats(make_uint2(x.x, x.y)), b = four_floats(make_uint2(x.z, x.w));
  to[0] = a.x; to[1] = a.y; to[2] = a.z; to[3] = a.w; to[4] = b.x; to[5] = b.y; to[6] = b.z; to[7] = b.w;
}

__device__ __forceinline__ uint4 close_eight(const float (&x)[8]) {
  const uint2 a = four_bf16(make_float4(x[0], x[1], x[2], x[3])), b = four_bf16(make_float4(x[4], x[5], x[6], x[7]));
  return make_uint4(a.x, a.y, b.x, b.y);
}

// A scalar in halves.
struct Half {
  unsigned short bits;
};

__device__ __forceinline__ float stored(float x) { return x; }
__device__ __forceinline__ float stored(Half x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ __forceinline__ void store(float* to, float x) { *to = x; }
__device__ __forceinline__ void store(Half* to, float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to->bits) : "f"(x)); }

// Four that lie side by side, aligned as four of them.
__device__ __forceinline__ float4 stored_four(const float* from) { return *(const float4*)from; }
__device__ __forceinline__ float4 stored_four(const Half* from) { return four_floats(*(const uint2*)from); }
__device__ __forceinline__ void store_four(float* to, float4 x) { *(float4*)to = x; }
__device__ __forceinline__ void store_four(Half* to, float4 x) { *(uint2*)to = four_bf16(x); }

// The scalar that a constant of a file calls for.
template <int HALF> struct Choose { typedef float Scalar; };
template <> struct Choose<1> { typedef Half Scalar; };
