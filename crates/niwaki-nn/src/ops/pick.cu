// Row r of a launch is row `first + r * step` of its value, so the same kernels serve all rows (first 0, step 1) and one
// row of every item.

// Masked log-softmax of a row, the chosen entry and the entropy; saved = (lse, entropy). LANES threads share a row.
template <int LANES>
__device__ __forceinline__ float shared_sum(float x) { return LANES == 32 ? warp_sum(x) : x; }
template <int LANES>
__device__ __forceinline__ float shared_max(float x) { return LANES == 32 ? warp_max(x) : x; }

template <int LANES>
__device__ __forceinline__ void pick(const float* logits, const int* action, const unsigned char* mask, float* log_prob,
                                     float* entropy, float* saved, int first, int step, int rows, int choices) {
  const long r = ((long)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
  const int lane = threadIdx.x % LANES;
  if (r >= rows) return;
  const long row = first + r * step;
  const float* x = logits + row * choices;
  const unsigned char* seen = mask ? mask + row * choices : 0;
  float top = -3.0e38f, total = 0.f, weighted = 0.f;
  for (int j = lane; j < choices; j += LANES)
    if (!seen || seen[j]) top = fmaxf(top, x[j]);
  top = shared_max<LANES>(top);
  for (int j = lane; j < choices; j += LANES)
    if (!seen || seen[j]) {
      const float e = expf(x[j] - top);
      total += e;
      weighted += e * (x[j] - top);
    }
  total = shared_sum<LANES>(total);
  weighted = shared_sum<LANES>(weighted);
  if (lane) return;
  const float lse = top + logf(total), spread = logf(total) - weighted / total;
  const int chosen = action[row];
  const bool idle = chosen < 0;
  log_prob[row] = idle ? 0.f : (seen && !seen[chosen]) ? __int_as_float(0xff800000) : x[chosen] - lse;
  entropy[row] = idle ? 0.f : spread;
  if (saved) *(float2*)(saved + row * 2) = make_float2(lse, spread);
}

extern "C" __global__ void pick_few(const float* logits, const int* action, const unsigned char* mask, float* log_prob,
                                    float* entropy, float* saved, int first, int step, int rows, int choices) {
  pick<1>(logits, action, mask, log_prob, entropy, saved, first, step, rows, choices);
}
extern "C" __global__ void pick_many(const float* logits, const int* action, const unsigned char* mask, float* log_prob,
                                     float* entropy, float* saved, int first, int step, int rows, int choices) {
  pick<32>(logits, action, mask, log_prob, entropy, saved, first, step, rows, choices);
}

// Either cotangent may be absent, which counts as zero.
extern "C" __global__ void pick_backward(const float* logits, const int* action, const unsigned char* mask,
                                         const float* saved, const float* dlog_prob, const float* dentropy, float* dlogits,
                                         int add, int rows, int width) {
  ENTRY
  const int chosen = action[r];
  float d = 0.f;
  if (chosen >= 0 && (!mask || mask[r * width + c])) {
    const float2 both = *(const float2*)(saved + r * 2);
    const float q = logits[r * width + c] - both.x, p = expf(q);
    if (dlog_prob) d += dlog_prob[r] * ((c == chosen ? 1.f : 0.f) - p);
    if (dentropy) d -= dentropy[r] * p * (q + both.y);
  }
  put(dlogits + r * width + c, d, add);
}
