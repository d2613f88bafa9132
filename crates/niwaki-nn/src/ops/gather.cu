extern "C" __global__ void gather_forward(const ARRAY* in, const int* index, ARRAY* out, int in_rows, int out_rows, int rows,
                                          int width, int half_in, int half_out) {
  ENTRY
  const int at = index[r];
  const float x = at < 0 ? 0.f : TAKE(in, ((long)(r / out_rows) * in_rows + at) * width + c, half_in);
  PUT(out, r * width + c, x, 0, half_out);
}

// The same in quads of columns.
extern "C" __global__ void gather_forward_4(const ARRAY* in, const int* index, ARRAY* out, int in_rows, int out_rows, int rows,
                                            int width, int half_in, int half_out) {
  ENTRY
  const int at = index[r];
  const float4 x = at < 0 ? make_float4(0.f, 0.f, 0.f, 0.f)
                          : TAKE_FOUR(in, ((long)(r / out_rows) * in_rows + at) * width + c, half_in);
  PUT_FOUR(out, r * width + c, x, half_out);
}

// Where few rows are gathered by few items: a thread per (row of the operand, column) looks through them in order.
extern "C" __global__ void gather_backward_few(const ARRAY* dout, const int* index, ARRAY* din, int add, int in_rows, int out_rows,
                                               int rows, int width, int half_in, int half_out) {
  ENTRY
  const long first = (long)(r / in_rows) * out_rows;
  const int row = (int)(r % in_rows);
  float sum = 0.f;
#pragma unroll 8
  for (int j = 0; j < out_rows; ++j)
    if (index[first + j] == row) sum += TAKE(dout, (first + j) * width + c, half_out);
  PUT(din, (long)r * width + c, sum, add, half_in);
}

// The same in quads of columns.
extern "C" __global__ void gather_backward_few_4(const ARRAY* dout, const int* index, ARRAY* din, int add, int in_rows, int out_rows,
                                                 int rows, int width, int half_in, int half_out) {
  ENTRY
  const long first = (long)(r / in_rows) * out_rows;
  const int row = (int)(r % in_rows);
  float4 sum = add ? TAKE_FOUR(din, (long)r * width + c, half_in) : make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll 8
  for (int j = 0; j < out_rows; ++j)
    if (index[first + j] == row) {
      const float4 x = TAKE_FOUR(dout, (first + j) * width + c, half_out);
      sum.x += x.x; sum.y += x.y; sum.z += x.z; sum.w += x.w;
    }
  PUT_FOUR(din, (long)r * width + c, sum, half_in);
}

// A thread per (item, column) walks the item's rows in order; `din` was zeroed or holds earlier parts.
extern "C" __global__ void gather_backward(const ARRAY* dout, const int* index, ARRAY* din, int in_rows, int out_rows,
                                           int rows, int width, int half_in, int half_out) {
  ENTRY
  for (int j = 0; j < out_rows; ++j) {
    const int at = index[(long)r * out_rows + j];
    if (at >= 0)
      PUT(din, ((long)r * in_rows + at) * width + c, TAKE(dout, ((long)r * out_rows + j) * width + c, half_out), 1, half_in);
  }
}
