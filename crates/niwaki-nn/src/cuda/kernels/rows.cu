// Ops that work row by row or entry by entry. `pitch` is the distance between rows, so the same kernels serve a whole
// block of rows and one row of every item. `add` says whether a result replaces what is there or is added to it.

// out (+)= factor * a (kind 0), a + b (1), a * b (2).
extern "C" __global__ void combine(int kind, const ARRAY* a, long a_pitch, const ARRAY* b, long b_pitch, ARRAY* out,
                                   long out_pitch, float factor, int add, int rows, int width, int half_a, int half_b,
                                   int half_out) {
  ENTRY
  float x = TAKE(a, r * a_pitch + c, half_a);
  if (kind == 0) x *= factor;
  if (kind == 1) x += TAKE(b, r * b_pitch + c, half_b);
  if (kind == 2) x *= TAKE(b, r * b_pitch + c, half_b);
  PUT(out, r * out_pitch + c, x, add, half_out);
}

// out = activation(z + bias); saved = the activation's derivative where asked for, stored as `out` is. `out` may be `z`.
extern "C" __global__ void finish(int kind, const ARRAY* z, long z_pitch, const float* bias, long bias_stride, ARRAY* out,
                                  ARRAY* saved, long out_pitch, int rows, int rows_per_member, int width, int half_z,
                                  int half_out) {
  ENTRY
  float x = TAKE(z, r * z_pitch + c, half_z), slope;
  if (bias) x += bias[(long)(r / rows_per_member) * bias_stride + c];
  x = activate(kind, x, slope);
  if (saved) PUT(saved, r * out_pitch + c, slope, 0, half_out);
  PUT(out, r * out_pitch + c, x, 0, half_out);
}

// dz (+)= dout * activation'; what is kept is stored as `dout` is.
extern "C" __global__ void activate_backward(int kind, const ARRAY* dout, const ARRAY* kept, ARRAY* dz, int add, int rows,
                                             int width, int half_out, int half_z) {
  ENTRY
  const long at = r * width + c;
  PUT(dz, at, TAKE(dout, at, half_out) * slope_from(kind, TAKE(kept, at, half_out)), add, half_z);
}

// Sums over rows, in blocks of 64 rows: partial[member, block, width]. With an activation, first turns dout into dz.
extern "C" __global__ void __launch_bounds__(128)
    column_sums(int kind, ARRAY* dout, const ARRAY* kept, float* partial, int rows_per_member, int width, int half) {
  const int c = blockIdx.z * 128 + threadIdx.x, member = blockIdx.y;
  const int first = blockIdx.x * 64, last = min(first + 64, rows_per_member);
  if (c >= width) return;
  float sum = 0.f;
#pragma unroll 8
  for (int r = first; r < last; ++r) {
    const long at = ((long)member * rows_per_member + r) * width + c;
    float x = TAKE(dout, at, half);
    if (kind != NONE_) {
      x *= slope_from(kind, TAKE(kept, at, half));
      PUT(dout, at, x, 0, half);
    }
    sum += x;
  }
  partial[((long)member * gridDim.x + blockIdx.x) * width + c] = sum;
}

// gradient[member, c] (+)= sum over blocks of partial[member, block, c], blocks `pitch` apart; columns from `split` on go
// to `second`.
extern "C" __global__ void __launch_bounds__(128)
    gather_partials(const float* partial, int blocks, int pitch, int columns, float* first, float* second, int split, long stride,
                    int add_first, int add_second) {
  const int c = blockIdx.x * 128 + threadIdx.x, member = blockIdx.y;
  if (c >= columns) return;
  partial += (long)member * blocks * pitch + c;
  float sum = 0.f;
#pragma unroll 8
  for (int b = 0; b < blocks; ++b) sum += partial[(long)b * pitch];
  if (c < split) put(first + member * stride + c, sum, add_first);
  else if (second) put(second + member * stride + c - split, sum, add_second);
}
