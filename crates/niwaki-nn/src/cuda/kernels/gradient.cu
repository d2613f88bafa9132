// A member's gradient in groups of 64 entries. `places` says of each group where it lies, in steps of 128 bytes, and in the lowest bit
// whether it is in halves; where there is no such array, all are f32, one behind the other.

struct Four {
  void* at;
  bool half;

  // Four entries of a member's gradient, the quad-th four.
  __device__ __forceinline__ Four(const float* gradient, const unsigned* places, int quad) {
    const unsigned place = places ? places[quad >> 4] : (unsigned)(quad >> 4) << 2;
    half = place & 1;
    at = (char*)gradient + (long)(place >> 1) * 128 + (quad & 15) * (half ? 8 : 16);
  }
  __device__ __forceinline__ float4 take() const { return half ? four_floats(*(const uint2*)at) : *(const float4*)at; }
  __device__ __forceinline__ void put(float4 x) const {
    if (half) *(uint2*)at = four_bf16(x);
    else *(float4*)at = x;
  }
};

// The sum of the squares of eight entries of a member's gradient; eight threads that follow each other take a group. `any` is not zero
// from where one of them is not.
__device__ __forceinline__ float eight_squares(const float* gradient, const unsigned* places, int eight, unsigned& any) {
  const unsigned place = places ? places[eight >> 3] : (unsigned)(eight >> 3) << 2;
  const uint4* at = (const uint4*)((const char*)gradient + (long)(place >> 1) * 128) + (eight & 7);
  const uint4 x = at[0];
  float v[8];
  if (place & 1) {
    any |= (x.x | x.y | x.z | x.w) & 0x7fff7fffu;
    open_eight(x, v);
  } else {
    const uint4 y = at[8];
    any |= (x.x | x.y | x.z | x.w | y.x | y.y | y.z | y.w) & 0x7fffffffu;
    v[0] = __uint_as_float(x.x); v[1] = __uint_as_float(x.y); v[2] = __uint_as_float(x.z); v[3] = __uint_as_float(x.w);
    v[4] = __uint_as_float(y.x); v[5] = __uint_as_float(y.y); v[6] = __uint_as_float(y.z); v[7] = __uint_as_float(y.w);
  }
  return (v[0] * v[0] + v[1] * v[1] + (v[2] * v[2] + v[3] * v[3])) + (v[4] * v[4] + v[5] * v[5] + (v[6] * v[6] + v[7] * v[7]));
}
