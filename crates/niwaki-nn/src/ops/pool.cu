// rows counts results; mean = 1 divides by the rows that count.
extern "C" __global__ void pool_forward(const float* in, const unsigned char* mask, float* out, int group, int mean,
                                        int rows, int width) {
  ENTRY
  float sum = 0.f;
  int count = 0;
  // What does not count is read nevertheless, so that nothing waits for the mask.
#pragma unroll 8
  for (int j = 0; j < group; ++j) {
    const long row = (long)r * group + j;
    const float x = in[row * width + c];
    const bool counts = !mask || mask[row];
    sum += counts ? x : 0.f;
    count += counts;
  }
  out[r * width + c] = mean ? (count ? sum / count : 0.f) : sum;
}

extern "C" __global__ void pool_backward(const float* dout, const unsigned char* mask, float* din, int group, int mean,
                                         int add, int rows, int width) {
  ENTRY
  int count = group;
  if (mask) {
    count = 0;
    for (int j = 0; j < group; ++j) count += mask[(long)r * group + j] != 0;
  }
  const float share = mean ? (count ? dout[r * width + c] / count : 0.f) : dout[r * width + c];
  for (int j = 0; j < group; ++j) {
    const long row = (long)r * group + j;
    put(din + row * width + c, mask && !mask[row] ? 0.f : share, add);
  }
}
