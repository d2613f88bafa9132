// Row r of a launch is row `first + r * step` of its value, so the same kernels serve all rows (first 0, step 1) and one
// row of every item.

// Columns (i, i + half) of each head rotate by position times the pair's frequency, base^(-2i/head width), stretched as Rotary
// says; `sign` -1 rotates back. A thread turns pair i of all heads: width = half.
extern "C" __global__ void rope(const ARRAY* in, long in_pitch, const int* position, ARRAY* out, long out_pitch,
                                int first, int step, int heads, double base, double factor, double low, double high,
                                double original, float sign, int add, int rows, int width,
                                int half_in, int half_out) {
  ENTRY
  const long row = first + r * step;
  const int place = position[row] < 0 ? 0 : position[row];
  const double plain = pow(base, -(double)c / width);
  const double kept = fmin(fmax((original * plain / 6.283185307179586 - low) / (high - low), 0.0), 1.0);
  double sine, cosine;
  sincos(place * (plain * ((1.0 - kept) / factor + kept)), &sine, &cosine);
  const float s = sign * (float)sine, k = (float)cosine;
  long from = row * in_pitch + c, to = row * out_pitch + c;
#pragma unroll 4
  for (int h = 0; h < heads; ++h, from += 2 * width, to += 2 * width) {
    const float a = TAKE(in, from, half_in), b = TAKE(in, from + width, half_in);
    PUT(out, to, a * k - b * s, add, half_out);
    PUT(out, to + width, a * s + b * k, add, half_out);
  }
}
