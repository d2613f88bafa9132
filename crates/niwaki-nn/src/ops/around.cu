// What stands around operations. Rows are operations, `operations` of them in a state, unless said otherwise.

// out[o] = sum of machines[m] over the arcs of o.
extern "C" __global__ void around_gather(const float* from, const unsigned char* arcs, float* out, int operations,
                                         int machines, int rows, int width) {
  ENTRY
  const long first = (long)(r / operations) * machines;
  float sum = 0.f;
  for (int m = 0; m < machines; ++m)
    if (arcs[(long)r * machines + m]) sum += from[(first + m) * width + c];
  out[(long)r * width + c] = sum;
}

// out[o] = from[o + 1] or from[o - 1].
extern "C" __global__ void around_shift(int after, const float* from, const int* neighbours, float* out, int operations,
                                        int rows, int width) {
  ENTRY
  const bool there = has(neighbours, r, operations, after ? 2 : 1);
  const long other = (long)r + (after ? 1 : -1);
  out[(long)r * width + c] = there ? from[other * width + c] : 0.f;
}

// into[o] (+)= dafter[o - 1] + dbefore[o + 1], where those looked at o; either may be absent.
extern "C" __global__ void around_shift_back(const float* dafter, const float* dbefore, const int* neighbours, float* into,
                                             int add, int operations, int rows, int width) {
  ENTRY
  const int place = (int)(r % operations);
  float sum = 0.f;
  if (dafter && place > 0 && has(neighbours, (long)r - 1, operations, 2)) sum += dafter[((long)r - 1) * width + c];
  if (dbefore && place + 1 < operations && has(neighbours, (long)r + 1, operations, 1))
    sum += dbefore[((long)r + 1) * width + c];
  put(into + (long)r * width + c, sum, add);
}

// into[m] (+)= sum of dgathered[o] over the arcs of m; rows are machines, and the cotangent may be absent.
extern "C" __global__ void around_scatter(const float* dgathered, const unsigned char* arcs, float* into, int add,
                                          int operations, int machines, int rows, int width) {
  ENTRY
  const long s = r / machines;
  const int m = (int)(r - s * machines);
  float sum = 0.f;
  for (int o = 0; dgathered && o < operations; ++o)
    if (arcs[(s * operations + o) * machines + m]) sum += dgathered[(s * operations + o) * width + c];
  put(into + (long)r * width + c, sum, add);
}
