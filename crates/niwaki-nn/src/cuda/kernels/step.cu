// Optimisers over the flat buffers [member, length]: the gradient's norm, then one pass that takes the step. Behind gradient.cu.

// A double's sum over the block, for its first thread.
__device__ __forceinline__ double block_sum(double sum) {
  __shared__ double sums[8];
#pragma unroll
  for (int hop = 16; hop; hop >>= 1) sum += __shfl_xor_sync(~0u, sum, hop);
  if ((threadIdx.x & 31) == 0) sums[threadIdx.x >> 5] = sum;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int w = 1; w < 8; ++w) sum += sums[w];
  return sum;
}

// A chunk has 16,384 entries. One that rests has never had a gradient, which is zero there; `live` says which do not, [member, chunk];
// where there is no such array, none rests.
__device__ __forceinline__ bool rests(const unsigned char* live, int chunks, int chunk) {
  return live && !live[(long)blockIdx.y * chunks + chunk];
}

// squares[member, chunk] = sum of squares of a chunk, from chunk `first` on: a block each. Threads add floats of a few entries, then
// doubles. With `find`, chunks in which something is not zero rest no longer.
extern "C" __global__ void __launch_bounds__(256)
    sum_squares(const float* gradient, const unsigned* places, double* squares, unsigned char* live, int find, int first, int chunks,
                int length) {
  gradient += (long)blockIdx.y * length;
  const int chunk = first + blockIdx.x, end = min(chunk * 2048 + 2048, length >> 3);
  const long at = (long)blockIdx.y * chunks + chunk;
  if (!find && rests(live, chunks, chunk)) {
    if (threadIdx.x == 0) squares[at] = 0.0;
    return;
  }
  double sum = 0.0;
  unsigned any = 0;
#pragma unroll 8
  for (int i = chunk * 2048 + threadIdx.x; i < end; i += 256) sum += (double)eight_squares(gradient, places, i, any);
  if (find && __syncthreads_or(any != 0) && threadIdx.x == 0) live[at] = 1;
  sum = block_sum(sum);
  if (threadIdx.x == 0) squares[at] = sum;
}

// gradient[member, first..end] = 0, a block for each chunk that some of it lies in; where a chunk rests, it is. `first` is a multiple
// of four, and what lies between `end` and the next one belongs to nobody.
extern "C" __global__ void __launch_bounds__(256)
    clear_chunks(float* gradient, const unsigned char* live, int first, int end, int chunks, int length) {
  const int chunk = (first >> 14) + blockIdx.x;
  if (rests(live, chunks, chunk)) return;
  float4* g = (float4*)(gradient + (long)blockIdx.y * length);
  const int last = min((end + 3) >> 2, chunk * 4096 + 4096);
#pragma unroll 4
  for (int i = max(first >> 2, chunk * 4096) + threadIdx.x; i < last; i += 256) g[i] = make_float4(0.f, 0.f, 0.f, 0.f);
}

// A block per member: the norm, and the factor on the gradient (rate included for the SGDs). rule: 0 N-SGD, 1 SGD, 2 Adam.
// settings[member] = (rate, 1/(1 - first^n), 1/(1 - second^n)).
extern "C" __global__ void __launch_bounds__(256)
    norm_finish(const double* squares, int chunks, const double* settings, int rule, double clip, double smallest,
                double* norms, float* factors) {
  const int member = blockIdx.x;
  double sum = 0.0;
#pragma unroll 8
  for (int c = threadIdx.x; c < chunks; c += 256) sum += squares[(long)member * chunks + c];
  sum = block_sum(sum);
  if (threadIdx.x) return;
  const double norm = sqrt(sum), rate = settings[member * 3];
  norms[member] = norm;
  const double kept = clip > 0.0 && norm > clip ? clip / norm : 1.0;
  double factor = kept;
  if (rule == 0) factor = norm < smallest ? 0.0 : rate / norm;
  if (rule == 1) factor = rate * kept;
  factors[member] = (float)factor;
}

// Parameters of members in bf16, four at a time.
extern "C" __global__ void __launch_bounds__(256) parameters_to_bf16(const float4* from, uint2* to, long fours) {
  const long at = (long)blockIdx.x * 256 + threadIdx.x;
  if (at < fours) to[blockIdx.y * fours + at] = four_bf16(from[blockIdx.y * fours + at]);
}

// Steps: a block of threads for each `taken` quads, from a first such block on. They lie in one chunk, of 4,096; where it rests, there is
// nothing to do. The rounded parameters follow where there are some.
extern "C" __global__ void __launch_bounds__(256)
    step_sgd(float* parameters, uint2* rounded, const float* gradient, const unsigned* places, const unsigned char* live,
             const float* factors, int chunks, int length, int taken, int before) {
  const float factor = factors[blockIdx.y];
  const int start = (before + blockIdx.x) * taken;
  if (factor == 0.f || rests(live, chunks, start >> 12)) return;
  float4* p = (float4*)(parameters + (long)blockIdx.y * length);
  gradient += (long)blockIdx.y * length;
  const int quads = length >> 2, end = min(start + taken, quads);
#pragma unroll 4
  for (int i = start + threadIdx.x; i < end; i += 256) {
    float4 x = p[i];
    const float4 d = Four(gradient, places, i).take();
    x.x = fmaf(factor, d.x, x.x); x.y = fmaf(factor, d.y, x.y);
    x.z = fmaf(factor, d.z, x.z); x.w = fmaf(factor, d.w, x.w);
    p[i] = x;
    if (rounded) rounded[(long)blockIdx.y * quads + i] = four_bf16(x);
  }
}

__device__ __forceinline__ void adam_entry(float& x, float d, float& m, float& v, float first, float second,
                                           float epsilon, float decay, float rate, float scale1, float scale2) {
  m = first * m + (1.f - first) * d;
  v = second * v + (1.f - second) * d * d;
  x -= rate * decay * x;
  x += rate * (m * scale1) / (sqrtf(v * scale2) + epsilon);
}

// What is kept in bf16 between steps.
__device__ __forceinline__ float4 kept_bf16(float4 x) {
  const uint2 bits = four_bf16(x);
  return make_float4(__uint_as_float(bits.x << 16), __uint_as_float(bits.x & 0xffff0000u), __uint_as_float(bits.y << 16),
                     __uint_as_float(bits.y & 0xffff0000u));
}

template <bool BF16>
__device__ __forceinline__ void adam(
    float* parameters, uint2* rounded, const float* gradient, const unsigned* places, float* moments, long second_at,
    const unsigned char* live, const float* factors, const double* settings, float first, float second, float epsilon, float decay,
    int chunks, int length, int taken, int before) {
  const int member = blockIdx.y, start = (before + blockIdx.x) * taken;
  const float factor = factors[member], rate = (float)settings[member * 3];
  const float scale1 = (float)settings[member * 3 + 1], scale2 = (float)settings[member * 3 + 2];
  if (rests(live, chunks, start >> 12)) return;
  float4* p = (float4*)(parameters + (long)member * length);
  gradient += (long)member * length;
  float4* m = (float4*)(moments + (long)member * length);
  float4* v = (float4*)(moments + second_at + (long)member * length);
  const int quads = length >> 2, end = min(start + taken, quads);
  for (int i = start + threadIdx.x; i < end; i += 256) {
    float4 x = p[i], mean = m[i], square = v[i];
    const float4 d = Four(gradient, places, i).take();
    adam_entry(x.x, factor * d.x, mean.x, square.x, first, second, epsilon, decay, rate, scale1, scale2);
    adam_entry(x.y, factor * d.y, mean.y, square.y, first, second, epsilon, decay, rate, scale1, scale2);
    adam_entry(x.z, factor * d.z, mean.z, square.z, first, second, epsilon, decay, rate, scale1, scale2);
    adam_entry(x.w, factor * d.w, mean.w, square.w, first, second, epsilon, decay, rate, scale1, scale2);
    if (BF16) { x = kept_bf16(x); mean = kept_bf16(mean); square = kept_bf16(square); }
    p[i] = x; m[i] = mean; v[i] = square;
    if (rounded) rounded[(long)member * quads + i] = four_bf16(x);
  }
}

extern "C" __global__ void __launch_bounds__(256) step_adam(
    float* parameters, uint2* rounded, const float* gradient, const unsigned* places, float* moments, long second_at,
    const unsigned char* live, const float* factors, const double* settings, float first, float second, float epsilon, float decay,
    int chunks, int length, int taken, int before) {
  adam<false>(parameters, rounded, gradient, places, moments, second_at, live, factors, settings, first, second, epsilon, decay,
            chunks, length, taken, before);
}

extern "C" __global__ void __launch_bounds__(256) step_adam_bf16(
    float* parameters, uint2* rounded, const float* gradient, const unsigned* places, float* moments, long second_at,
    const unsigned char* live, const float* factors, const double* settings, float first, float second, float epsilon, float decay,
    int chunks, int length, int taken, int before) {
  adam<true>(parameters, rounded, gradient, places, moments, second_at, live, factors, settings, first, second, epsilon, decay,
           chunks, length, taken, before);
}
