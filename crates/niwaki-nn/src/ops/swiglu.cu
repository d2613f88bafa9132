// out = silu(gate) * up; a row's first half is the gate, its second what passes.
extern "C" __global__ void swiglu_forward(const float* x, long x_pitch, float* out, long out_pitch, int rows, int width) {
  ENTRY
  const float* row = x + r * x_pitch;
  float slope;
  out[r * out_pitch + c] = activate(SILU_, row[c], slope) * row[width + c];
}

// The cotangents of both halves; all rows.
extern "C" __global__ void swiglu_backward(const float* x, const float* dout, float* dx, int add, int rows, int width) {
  ENTRY
  const long gate = (long)r * 2 * width + c, up = gate + width;
  const float d = dout[(long)r * width + c];
  float slope;
  const float passed = activate(SILU_, x[gate], slope);
  put(dx + gate, d * x[up] * slope, add);
  put(dx + up, d * passed, add);
}
