// What scores of arcs go through, and its derivative.
#define SLOPE_ 0.2f
__device__ __forceinline__ float leaky(float z) { return z > 0.f ? z : SLOPE_ * z; }
__device__ __forceinline__ float slope_of(float z) { return z > 0.f ? 1.f : SLOPE_; }
