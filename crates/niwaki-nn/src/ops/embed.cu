// Row r of a launch is row `first + r * step` of its value, so the same kernels serve all rows (first 0, step 1) and one
// row of every item.

extern "C" __global__ void embed_forward(const float* table, long stride, const int* index, ARRAY* out, int first,
                                         int step, int rows, int rows_per_member, int width, int half) {
  ENTRY
  const long row = first + r * step;
  const int at = index[row];
  const float x = at < 0 ? 0.f : table[(long)(r / rows_per_member) * stride + (long)at * width + c];
  PUT(out, row * width + c, x, 0, half);
}

// Two tables at once: out[r] = left[left index] + right[right index]. width counts quads of columns.
extern "C" __global__ void embed_pair_forward(const float4* left, const int* left_index, const float4* right,
                                              const int* right_index, long stride, ARRAY* out, int first, int step,
                                              int rows, int rows_per_member, int width, int half) {
  ENTRY
  const long row = first + r * step, member = (long)(r / rows_per_member) * stride;
  const int at = left_index[row], to = right_index[row];
  float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
  if (at >= 0) sum = left[member + (long)at * width + c];
  if (to >= 0) {
    const float4 other = right[member + (long)to * width + c];
    sum.x += other.x; sum.y += other.y; sum.z += other.z; sum.w += other.w;
  }
  PUT_FOUR(out, row * width + c, sum, half);
}

// A small table's gradient: 64 rows per block into a copy of the table in shared memory, a thread per column; partials
// [member, block, entries * width].
extern "C" __global__ void __launch_bounds__(128)
    embed_backward_small(const ARRAY* dout, const int* index, float* partial, int rows_per_member, int entries, int width,
                         int half) {
  extern __shared__ float table[];
  const int member = blockIdx.y, first = blockIdx.x * 64, last = min(first + 64, rows_per_member);
  for (int c = threadIdx.x; c < width; c += 128) {
    for (int e = 0; e < entries; ++e) table[e * width + c] = 0.f;
#pragma unroll 4
    for (int r = first; r < last; ++r) {
      const long row = (long)member * rows_per_member + r;
      const int at = index[row];
      const float d = TAKE(dout, row * width + c, half);
      if (at >= 0) table[at * width + c] += d;
    }
    for (int e = 0; e < entries; ++e)
      partial[((long)member * gridDim.x + blockIdx.x) * entries * width + e * width + c] = table[e * width + c];
  }
}

// A large table's: a block for each row and 128 columns, of which the first row with an entry adds up all of them in order, so that the
// same rows always give the same sum (the gradient starts at zero or holds earlier uses). The table starts at `place` in a member's
// gradient; its chunks of 16,384 entries that are written rest no longer, where that is kept.
extern "C" __global__ void __launch_bounds__(128)
    embed_backward_large(const ARRAY* dout, const int* index, float* gradient, long place, unsigned char* live, int chunks, long stride,
                         int rows_per_member, int width, int half) {
  __shared__ int places[1024];
  const int member = blockIdx.y, r = blockIdx.x, c = blockIdx.z * 128 + threadIdx.x;
  const int* own = index + (long)member * rows_per_member;
  const int at = own[r];
  if (at < 0) return;
  int earlier = 0;
  for (int other = threadIdx.x; other < r; other += 128) earlier |= own[other] == at;
  if (__syncthreads_or(earlier)) return;
  const long begins = place + (long)at * width;
  if (live && c < width) live[(long)member * chunks + ((begins + c) >> 14)] = 1;
  float sum = 0.f;
  for (int first = r; first < rows_per_member; first += 1024) {
    const int rows = min(1024, rows_per_member - first);
    for (int i = threadIdx.x; i < rows; i += 128) places[i] = own[first + i] == at;
    const int found = list_places(places, rows);
    const long base = ((long)member * rows_per_member + first) * width + c;
    if (c < width) {
#pragma unroll 8
      for (int i = 0; i < found; ++i) sum += TAKE(dout, base + (long)places[i] * width, half);
    }
    __syncthreads();
  }
  if (c < width) gradient[(long)member * stride + begins + c] += sum;
}
