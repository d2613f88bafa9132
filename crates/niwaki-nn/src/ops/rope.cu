// Row r of a launch is row `first + r * step` of its value, so the same kernels serve all rows (first 0, step 1) and one
// row of every item.

// Columns (i, i + half) of each head rotate by position times the pair's frequency, base^(-2i/head width), stretched as Rotary
// says; `sign` -1 rotates back. A thread turns pair i of all heads: width = half.
extern "C" __global__ void rope(const float* in, long in_pitch, const int* position, float* out, long out_pitch,
                                int first, int step, int heads, double base, double factor, double low, double high,
                                double original, float sign, int add, int rows, int width) {
  ENTRY
  const long row = first + r * step;
  const int place = position[row] < 0 ? 0 : position[row];
  const double plain = pow(base, -(double)c / width);
  const double kept = fmin(fmax((original * plain / 6.283185307179586 - low) / (high - low), 0.0), 1.0);
  double sine, cosine;
  sincos(place * (plain * ((1.0 - kept) / factor + kept)), &sine, &cosine);
  const float s = sign * (float)sine, k = (float)cosine;
  in += row * in_pitch + c;
  out += row * out_pitch + c;
#pragma unroll 4
  for (int h = 0; h < heads; ++h, in += 2 * width, out += 2 * width) {
    const float a = in[0], b = in[width];
    put(out, a * k - b * s, add);
    put(out + width, a * s + b * k, add);
  }
}
