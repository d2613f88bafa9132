// The sum of what stands around operations. Rows are operations, `operations` of them in a state, unless said otherwise; one
// whose bits are negative does not count.

// out[o] = own[o] + after[o + 1] + before[o - 1] + sum of machines[m] over the arcs of o.
extern "C" __global__ void surround_forward(const float* own, const float* beside, const float* on,
                                            const unsigned char* arcs, const int* neighbours, float* out, int operations,
                                            int machines, int rows, int width) {
  ENTRY
  float sum = 0.f;
  if (neighbours[r] >= 0) {
    sum = own[(long)r * width + c];
    if (has(neighbours, r, operations, 2)) sum += beside[((long)r + 1) * 2 * width + c];
    if (has(neighbours, r, operations, 1)) sum += beside[((long)r - 1) * 2 * width + width + c];
    const long first = (long)(r / operations) * machines;
    for (int m = 0; m < machines; ++m)
      if (arcs[(long)r * machines + m]) sum += on[(first + m) * width + c];
  }
  out[(long)r * width + c] = sum;
}

// into[o] (+)= d[o].
extern "C" __global__ void surround_own(const float* d, const int* neighbours, float* into, int add, int rows, int width) {
  ENTRY
  put(into + (long)r * width + c, neighbours[r] >= 0 ? d[(long)r * width + c] : 0.f, add);
}

// The first half of into[o] (+)= d[o - 1], the second d[o + 1], where those looked at o; the width is that of both halves.
extern "C" __global__ void surround_beside(const float* d, const int* neighbours, float* into, int add, int operations,
                                           int rows, int width) {
  ENTRY
  const int half = width / 2, place = (int)(r % operations);
  float sum = 0.f;
  if (c < half) {
    if (place > 0 && has(neighbours, (long)r - 1, operations, 2)) sum = d[((long)r - 1) * half + c];
  } else {
    if (place + 1 < operations && has(neighbours, (long)r + 1, operations, 1)) sum = d[((long)r + 1) * half + c - half];
  }
  put(into + (long)r * width + c, sum, add);
}

// into[m] (+)= sum of d[o] over the arcs of m; rows are machines.
extern "C" __global__ void surround_machines(const float* d, const unsigned char* arcs, const int* neighbours, float* into,
                                             int add, int operations, int machines, int rows, int width) {
  ENTRY
  const long s = r / machines;
  const int m = (int)(r - s * machines);
  float sum = 0.f;
  for (int o = 0; o < operations; ++o) {
    const long row = s * operations + o;
    if (neighbours[row] >= 0 && arcs[row * machines + m]) sum += d[row * width + c];
  }
  put(into + (long)r * width + c, sum, add);
}
