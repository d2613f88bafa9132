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
