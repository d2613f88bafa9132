// A thread per entry; the engine keeps rows * width below 2^31, so that the division is a cheap one.
#define ENTRY                                                        \
  const unsigned entry = blockIdx.x * blockDim.x + threadIdx.x;      \
  if (entry >= (unsigned)rows * (unsigned)width) return;             \
  const unsigned r = entry / (unsigned)width;                        \
  const int c = (int)(entry - r * (unsigned)width);

__device__ __forceinline__ void put(float* to, float x, int add) { *to = add ? *to + x : x; }
