// A thread per entry; the engine keeps rows * width below 2^31, so that the division is a cheap one.
#define ENTRY                                                        \
  const unsigned entry = blockIdx.x * blockDim.x + threadIdx.x;      \
  if (entry >= (unsigned)rows * (unsigned)width) return;             \
  const unsigned r = entry / (unsigned)width;                        \
  const int c = (int)(entry - r * (unsigned)width);

__device__ __forceinline__ void put(float* to, float x, int add) { *to = add ? *to + x : x; }

// An array is of floats; in a file that is compiled with MIXED 1, of halves where the flag that comes with it is not 0.
#if MIXED
#define ARRAY void

__device__ __forceinline__ float take_entry(const void* from, long at, int half) {
  return half ? stored(((const Half*)from)[at]) : ((const float*)from)[at];
}

__device__ __forceinline__ void put_entry(void* to, long at, float x, int add, int half) {
  if (add) x += take_entry(to, at, half);
  if (half) store((Half*)to + at, x);
  else ((float*)to)[at] = x;
}

// The same for quads that start at multiples of four.
__device__ __forceinline__ float4 take_four(const void* from, long quad, int half) {
  return half ? stored_four((const Half*)from + 4 * quad) : stored_four((const float*)from + 4 * quad);
}

__device__ __forceinline__ void put_four(void* to, long quad, float4 x, int half) {
  if (half) store_four((Half*)to + 4 * quad, x);
  else store_four((float*)to + 4 * quad, x);
}

#define TAKE(from, at, half) take_entry(from, at, half)
#define PUT(to, at, x, add, half) put_entry(to, at, x, add, half)
#define TAKE_FOUR(from, quad, half) take_four(from, quad, half)
#define PUT_FOUR(to, quad, x, half) put_four(to, quad, x, half)
#else
#define ARRAY float
#define TAKE(from, at, half) ((from)[at])
#define PUT(to, at, x, add, half) put((to) + (at), x, add)
#define TAKE_FOUR(from, quad, half) (((const float4*)(from))[quad])
#define PUT_FOUR(to, quad, x, half) (((float4*)(to))[quad] = x)
#endif
