// Pairs of job and machine, from parts: out[s, j, m] = tanh(a[s, next[s, j]] + b[s, m] + c[s]), zero where it is not open; rows
// counts pairs.
extern "C" __global__ void pairs_forward(const float* operations, const float* machines, const float* state,
                                         const int* next, const unsigned char* open, float* out, int per_state, int machine_count, int jobs,
                                         int rows, int width) {
  ENTRY
  if (!open[r]) {
    out[(long)r * width + c] = 0.f;
    return;
  }
  const long row = r / machine_count, s = row / jobs;
  const int at = next[row], m = (int)(r - row * machine_count);
  float sum = machines[(s * machine_count + m) * width + c] + state[s * width + c];
  if (at >= 0) sum += operations[(s * per_state + at) * width + c];
  out[(long)r * width + c] = tanhf(sum);
}

// The cotangent of one part (0 operations, 1 machines, 2 state): sums over its pairs; rows counts the part's rows.
extern "C" __global__ void pairs_backward(int part, const float* out, const float* dout, const int* next,
                                          const unsigned char* open, float* into, int add, int per_state, int machine_count, int jobs, int rows, int width) {
  ENTRY
  const int each = part == 0 ? per_state : part == 1 ? machine_count : 1;
  const long s = r / each;
  const int own = (int)(r - s * each);
  float sum = 0.f;
  for (int j = 0; j < jobs; ++j) {
    if (part == 0 && next[s * jobs + j] != own) continue;
    const int first = part == 1 ? own : 0, last = part == 1 ? own + 1 : machine_count;
    for (int m = first; m < last; ++m) {
      const long pair = (s * jobs + j) * machine_count + m, at = pair * width + c;
      if (!open[pair]) continue;
      const float y = out[at];
      sum = fmaf(dout[at], 1.f - y * y, sum);
    }
  }
  put(into + (long)r * width + c, sum, add);
}
