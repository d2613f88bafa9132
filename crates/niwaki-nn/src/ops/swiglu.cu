// out = silu(gate) * up; a row's first half is the gate, its second what passes.
extern "C" __global__ void swiglu_forward(const ARRAY* x, long x_pitch, ARRAY* out, long out_pitch, int rows, int width,
                                          int half_x, int half_out) {
  ENTRY
  const long row = r * x_pitch;
  float slope;
  PUT(out, r * out_pitch + c, activate(SILU_, TAKE(x, row + c, half_x), slope) * TAKE(x, row + width + c, half_x), 0, half_out);
}

// The cotangents of both halves; all rows.
extern "C" __global__ void swiglu_backward(const ARRAY* x, const ARRAY* dout, ARRAY* dx, int add, int rows, int width,
                                           int half_x, int half_out) {
  ENTRY
  const long gate = (long)r * 2 * width + c, up = gate + width;
  const float d = TAKE(dout, (long)r * width + c, half_out);
  float slope;
  const float passed = activate(SILU_, TAKE(x, gate, half_x), slope);
  PUT(dx, gate, d * TAKE(x, up, half_x) * slope, add, half_x);
  PUT(dx, up, d * passed, add, half_x);
}

// The same where all is in halves, eight columns at a time: width counts eights.
extern "C" __global__ void swiglu_forward_8(const uint4* x, long x_pitch, uint4* out, long out_pitch, int rows, int width) {
  ENTRY
  const uint4* row = x + r * (x_pitch / 8);
  float gate[8], up[8], slope;
  open_eight(row[c], gate);
  open_eight(row[width + c], up);
#pragma unroll
  for (int i = 0; i < 8; ++i) up[i] *= quick_silu(gate[i], slope);
  out[r * (out_pitch / 8) + c] = close_eight(up);
}

extern "C" __global__ void swiglu_backward_8(const uint4* x, const uint4* dout, uint4* dx, int add, int rows, int width) {
  ENTRY
  const long at = (long)r * 2 * width + c;
  float gate[8], up[8], d[8], old_gate[8], old_up[8], slope;
  open_eight(x[at], gate);
  open_eight(x[at + width], up);
  open_eight(dout[(long)r * width + c], d);
  if (add) {
    open_eight(dx[at], old_gate);
    open_eight(dx[at + width], old_up);
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float passed = quick_silu(gate[i], slope);
    gate[i] = d[i] * up[i] * slope + (add ? old_gate[i] : 0.f);
    up[i] = d[i] * passed + (add ? old_up[i] : 0.f);
  }
  dx[at] = close_eight(gate);
  dx[at + width] = close_eight(up);
}
