// Copies items that stay, in words of `Word`: to[slot] = from[picks[slot]].
template <typename Word> __device__ __forceinline__ void pick(const Word* from, Word* to, const int* picks, long size) {
  const long slot = blockIdx.x;
  from += picks[slot] * size;
  to += slot * size;
  for (long i = threadIdx.x; i < size; i += blockDim.x) to[i] = from[i];
}

extern "C" __global__ void __launch_bounds__(256) pick_words(const int* from, int* to, const int* picks, long size) {
  pick(from, to, picks, size);
}

extern "C" __global__ void __launch_bounds__(256) pick_bytes(const char* from, char* to, const int* picks, long size) {
  pick(from, to, picks, size);
}

// Parameters of each share's member: to[share] = from[owners[share]], `quads` of four each.
extern "C" __global__ void __launch_bounds__(256)
    lend_parameters(const float4* from, float4* to, const int* owners, int quads) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < quads) to[(long)blockIdx.y * quads + i] = from[(long)owners[blockIdx.y] * quads + i];
}

// A member's gradient is the sum of its shares' ones, in order: to[member] = sum of from[starts[member]..starts[member + 1]].
extern "C" __global__ void __launch_bounds__(256)
    collect_gradients(const float* from, float* to, const unsigned* places, const int* starts, int quads) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= quads) return;
  float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
  for (int share = starts[blockIdx.y]; share < starts[blockIdx.y + 1]; ++share) {
    const float4 x = Four(from + (long)share * quads * 4, places, i).take();
    sum.x += x.x; sum.y += x.y; sum.z += x.z; sum.w += x.w;
  }
  Four(to + (long)blockIdx.y * quads * 4, places, i).put(sum);
}
