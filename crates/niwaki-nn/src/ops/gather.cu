extern "C" __global__ void gather_forward(const float* in, const int* index, float* out, int in_rows, int out_rows,
                                          int rows, int width) {
  ENTRY
  const int at = index[r];
  out[r * width + c] = at < 0 ? 0.f : in[((long)(r / out_rows) * in_rows + at) * width + c];
}

// The same in quads of columns.
extern "C" __global__ void gather_forward_4(const float4* in, const int* index, float4* out, int in_rows, int out_rows,
                                            int rows, int width) {
  ENTRY
  const int at = index[r];
  out[r * width + c] = at < 0 ? make_float4(0.f, 0.f, 0.f, 0.f) : in[((long)(r / out_rows) * in_rows + at) * width + c];
}

// A thread per (item, column) walks the item's rows in order; `din` was zeroed or holds earlier parts.
extern "C" __global__ void gather_backward(const float* dout, const int* index, float* din, int in_rows, int out_rows,
                                           int rows, int width) {
  ENTRY
  for (int j = 0; j < out_rows; ++j) {
    const int at = index[(long)r * out_rows + j];
    if (at >= 0) din[((long)r * in_rows + at) * width + c] += dout[((long)r * out_rows + j) * width + c];
  }
}
