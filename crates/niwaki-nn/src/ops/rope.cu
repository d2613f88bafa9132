// Row r of a launch is row `first + r * step` of its value, so the same kernels serve all rows (first 0, step 1) and one
// row of every item.

// Cosine and sine by which pair i of `pairs` turns at a place: place times the pair's frequency, base^(-i/pairs), stretched as Rotary
// says.
__device__ __forceinline__ float2 turn(int place, int i, int pairs, double base, double factor, double low, double high,
                                       double original) {
  const double plain = pow(base, -(double)i / pairs);
  const double kept = fmin(fmax((original * plain / 6.283185307179586 - low) / (high - low), 0.0), 1.0);
  double sine, cosine;
  sincos(place * (plain * ((1.0 - kept) / factor + kept)), &sine, &cosine);
  return make_float2((float)cosine, (float)sine);
}

// Columns (i, i + half) of each head turn by their position; `sign` -1 turns back. A thread turns pair i of all heads: width = half.
extern "C" __global__ void rope(const ARRAY* in, long in_pitch, const int* position, ARRAY* out, long out_pitch,
                                int first, int step, int heads, double base, double factor, double low, double high,
                                double original, float sign, int add, int rows, int width,
                                int half_in, int half_out) {
  ENTRY
  const long row = first + r * step;
  const int place = position[row] < 0 ? 0 : position[row];
  const float2 by = turn(place, c, width, base, factor, low, high, original);
  const float s = sign * by.y, k = by.x;
  long from = row * in_pitch + c, to = row * out_pitch + c;
#pragma unroll 4
  for (int h = 0; h < heads; ++h, from += 2 * width, to += 2 * width) {
    const float a = TAKE(in, from, half_in), b = TAKE(in, from + width, half_in);
    PUT(out, to, a * k - b * s, add, half_out);
    PUT(out, to + width, a * s + b * k, add, half_out);
  }
}

// The turns of all rows, [row, pair]; width = pairs.
extern "C" __global__ void rope_turns(const int* position, float2* turns, double base, double factor, double low, double high,
                                      double original, int rows, int width) {
  ENTRY
  turns[entry] = turn(position[r] < 0 ? 0 : position[r], c, width, base, factor, low, high, original);
}

// From halves to halves, all rows: a thread turns pairs i to i + 3 of one head, i a multiple of four; `fours` of them make a head, width =
// heads * fours.
extern "C" __global__ void rope_halves(const Half* in, long in_pitch, const float2* turns, Half* out, long out_pitch, int fours,
                                       float sign, int add, int rows, int width) {
  ENTRY
  const int head = c / fours, i = c % fours * 4, half = 4 * fours, column = head * 2 * half + i;
  const float4* by = (const float4*)(turns + (long)r * half + i);
  const float4 first = by[0], second = by[1];
  const Half* from = in + r * in_pitch + column;
  Half* to = out + r * out_pitch + column;
  // Entries i to i + 3 of the first half of the head and of the second.
  const float4 x = stored_four(from), y = stored_four(from + half);
  float4 a = make_float4(x.x * first.x - y.x * sign * first.y, x.y * first.z - y.y * sign * first.w,
                         x.z * second.x - y.z * sign * second.y, x.w * second.z - y.w * sign * second.w);
  float4 b = make_float4(x.x * sign * first.y + y.x * first.x, x.y * sign * first.w + y.y * first.z,
                         x.z * sign * second.y + y.z * second.x, x.w * sign * second.w + y.w * second.z);
  if (add) {
    const float4 old = stored_four(to), more = stored_four(to + half);
    a.x += old.x; a.y += old.y; a.z += old.z; a.w += old.w;
    b.x += more.x; b.y += more.y; b.z += more.z; b.w += more.w;
  }
  store_four(to, a);
  store_four(to + half, b);
}
