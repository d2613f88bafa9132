// out = silu(gate) * up.
extern "C" __global__ void swiglu_forward(const float* gate, long gate_pitch, const float* up, long up_pitch, float* out,
                                          long out_pitch, int rows, int width) {
  ENTRY
  float slope;
  out[r * out_pitch + c] = activate(SILU_, gate[r * gate_pitch + c], slope) * up[r * up_pitch + c];
}

// The cotangent of the gate (which 0) or of what passes (1); all rows.
extern "C" __global__ void swiglu_backward(const float* gate, const float* up, const float* dout, float* into, int which,
                                           int add, int rows, int width) {
  ENTRY
  const long at = (long)r * width + c;
  float slope;
  const float passed = activate(SILU_, gate[at], slope);
  put(into + at, dout[at] * (which ? passed : up[at] * slope), add);
}
