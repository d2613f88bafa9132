// LayerNorm and RMSNorm, a warp per row with the row in registers: P floats per access, V accesses per lane.
// Statistics saved per row: (mean, s) for LayerNorm, s for RMSNorm. The operand and its cotangent are stored as X, the result and its
// cotangent as Y.

typedef Choose<NORM_X>::Scalar X;
typedef Choose<NORM_Y>::Scalar Y;

template <int V, int P>
struct Row {
  float v[V * P];
  template <typename T> __device__ __forceinline__ void load(const T* row, int width) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const int c = (lane + 32 * i) * P;
      if (P == 4) {
        const float4 x = c < width ? stored_four(row + c) : make_float4(0.f, 0.f, 0.f, 0.f);
        v[i * P] = x.x; v[i * P + 1 % P] = x.y; v[i * P + 2 % P] = x.z; v[i * P + 3 % P] = x.w;
      } else {
        v[i] = c < width ? stored(row[c]) : 0.f;
      }
    }
  }
  template <typename T> __device__ __forceinline__ void put(T* row, int width) const {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const int c = (lane + 32 * i) * P;
      if (c >= width) continue;
      if (P == 4)
        store_four(row + c, make_float4(v[i * P], v[i * P + 1 % P], v[i * P + 2 % P], v[i * P + 3 % P]));
      else
        store(row + c, v[i]);
    }
  }
};

template <int V, int P>
__device__ __forceinline__ void norm_forward(const X* x, long x_pitch, Y* out, long out_pitch, float* stats,
                                             long stats_pitch, const float* gain, const float* bias, long stride,
                                             int rows, int rows_per_member, int width, float epsilon) {
  const int r = blockIdx.x * 8 + (threadIdx.x >> 5), lane = threadIdx.x & 31;
  if (r >= rows) return;
  Row<V, P> a, g, b;
  a.load(x + r * x_pitch, width);
  const long member = (long)(r / rows_per_member) * stride;
  g.load(gain + member, width);
  if (bias) b.load(bias + member, width);
  const float share = 1.f / width;
  float mean = 0.f, square = 0.f;
  if (bias) {
#pragma unroll
    for (int i = 0; i < V * P; ++i) mean += a.v[i];
    mean = warp_sum(mean) * share;
  }
#pragma unroll
  for (int i = 0; i < V * P; ++i) {
    const bool inside = (lane + 32 * (i / P)) * P < width;
    const float d = inside ? a.v[i] - mean : 0.f;
    a.v[i] = d;
    square += d * d;
  }
  const float s = rsqrtf(warp_sum(square) * share + epsilon);
#pragma unroll
  for (int i = 0; i < V * P; ++i) a.v[i] = a.v[i] * s * g.v[i] + (bias ? b.v[i] : 0.f);
  a.put(out + r * out_pitch, width);
  if (stats && lane == 0) {
    if (bias) *(float2*)(stats + r * stats_pitch) = make_float2(mean, s);
    else stats[r * stats_pitch] = s;
  }
}

// P scalars side by side, as they are stored.
template <int P, typename T> struct Piece;
template <> struct Piece<4, float> {
  float4 x;
  __device__ __forceinline__ void load(const float* from) { x = *(const float4*)from; }
  __device__ __forceinline__ void open(float (&v)[4]) const { v[0] = x.x; v[1] = x.y; v[2] = x.z; v[3] = x.w; }
};
template <> struct Piece<4, Half> {
  uint2 x;
  __device__ __forceinline__ void load(const Half* from) { x = *(const uint2*)from; }
  __device__ __forceinline__ void open(float (&v)[4]) const {
    const float4 y = four_floats(x);
    v[0] = y.x; v[1] = y.y; v[2] = y.z; v[3] = y.w;
  }
};
template <typename T> struct Piece<1, T> {
  T x;
  __device__ __forceinline__ void load(const T* from) { x = *from; }
  __device__ __forceinline__ void open(float (&v)[1]) const { v[0] = stored(x); }
};

// Rows in blocks of `per_block`, one block of one member per thread block; sums for gain and bias leave as partials
// [member, block, 3, width] (RMSNorm: no second third). WHOLE: this is the last part of dx; its own column sums,
// the bias gradient of what made x, are the last third. Rows stay as they are stored until they are needed, so that registers are left
// for many warps.
template <int V, int P, bool LAYER, bool WHOLE>
__device__ __forceinline__ void norm_backward(const Y* dy, const X* x, const float* stats, const float* gain,
                                              long stride, X* dx, int add, float* partial, int per_block, int rows_per_member,
                                              int width) {
  extern __shared__ float scratch[];  // [8 warps][width]
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, member = blockIdx.y;
  const int first = blockIdx.x * per_block, last = min(first + per_block, rows_per_member);
  const float share = 1.f / width;
  gain += member * stride;
  Row<V, P> dgain, dbias, dsum;
#pragma unroll
  for (int i = 0; i < V * P; ++i) dgain.v[i] = dbias.v[i] = dsum.v[i] = 0.f;
#pragma unroll (V * P <= 8 ? 2 : 1)
  for (int r = first + warp; r < last; r += 8) {
    const long row = (long)member * rows_per_member + r;
    Piece<P, Y> d[V];
    Piece<P, X> a[V], old[V];
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const int c = (lane + 32 * i) * P;
      if (c >= width) continue;
      d[i].load(dy + row * width + c);
      a[i].load(x + row * width + c);
      if (add) old[i].load(dx + row * width + c);
    }
    float mean = 0.f, s;
    if (LAYER) {
      const float2 both = *(const float2*)(stats + row * 2);
      mean = both.x; s = both.y;
    } else {
      s = stats[row];
    }
    float m1 = 0.f, m2 = 0.f;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const int c = (lane + 32 * i) * P;
      if (c >= width) continue;
      float slope[P], n[P], g[P];
      Piece<P, float> gains;
      gains.load(gain + c);
      gains.open(g);
      d[i].open(slope);
      a[i].open(n);
#pragma unroll
      for (int p = 0; p < P; ++p) {
        n[p] = (n[p] - mean) * s;
        dgain.v[i * P + p] += slope[p] * n[p];
        if (LAYER) dbias.v[i * P + p] += slope[p];
        const float t = slope[p] * g[p];
        if (LAYER) m1 += t;
        m2 += t * n[p];
      }
    }
    m1 = LAYER ? warp_sum(m1) * share : 0.f;
    m2 = warp_sum(m2) * share;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const int c = (lane + 32 * i) * P;
      if (c >= width) continue;
      float slope[P], n[P], g[P], before[P];
      Piece<P, float> gains;
      gains.load(gain + c);
      gains.open(g);
      d[i].open(slope);
      a[i].open(n);
      if (add) old[i].open(before);
#pragma unroll
      for (int p = 0; p < P; ++p) {
        slope[p] = s * (slope[p] * g[p] - m1 - (n[p] - mean) * s * m2) + (add ? before[p] : 0.f);
        if (WHOLE) dsum.v[i * P + p] += slope[p];
      }
      if (!dx) continue;
      if (P == 4) store_four(dx + row * width + c, make_float4(slope[0], slope[1 % P], slope[2 % P], slope[3 % P]));
      else store(dx + row * width + c, slope[0]);
    }
  }
  partial += ((long)member * gridDim.x + blockIdx.x) * 3 * width;
  for (int third = 0; third < 3; ++third) {
    if ((third == 1 && !LAYER) || (third == 2 && !WHOLE)) continue;
    if (third == 0) dgain.put(scratch + warp * width, width);
    if (third == 1) dbias.put(scratch + warp * width, width);
    if (third == 2) dsum.put(scratch + warp * width, width);
    __syncthreads();
    for (int c = threadIdx.x; c < width; c += 256) {
      float sum = 0.f;
#pragma unroll
      for (int w = 0; w < 8; ++w) sum += scratch[w * width + c];
      partial[third * width + c] = sum;
    }
    __syncthreads();
  }
}

// Blocks for which a multiprocessor has registers.
#define KEPT (NORM_V * NORM_P * (1 + NORM_LAYER))
#define BLOCKS (KEPT <= 8 ? 4 : KEPT <= 20 ? 3 : 1)

// The engine compiles this file once for each (V, P, X, Y) that its program needs, for LayerNorm or RMSNorm.
extern "C" __global__ void __launch_bounds__(256)
    norm_forward_rows(const X* x, long x_pitch, Y* out, long out_pitch, float* stats, long stats_pitch,
                      const float* gain, const float* bias, long stride, int rows, int rows_per_member, int width,
                      float epsilon) {
  norm_forward<NORM_V, NORM_P>(x, x_pitch, out, out_pitch, stats, stats_pitch, gain, bias, stride, rows,
                               rows_per_member, width, epsilon);
}

extern "C" __global__ void __launch_bounds__(256, BLOCKS)
    norm_backward_rows(const Y* dy, const X* x, const float* stats, const float* gain, long stride, X* dx,
                       int add, float* partial, int per_block, int rows_per_member, int width) {
  norm_backward<NORM_V, NORM_P, NORM_LAYER, false>(dy, x, stats, gain, stride, dx, add, partial, per_block, rows_per_member, width);
}

extern "C" __global__ void __launch_bounds__(256)
    norm_backward_whole(const Y* dy, const X* x, const float* stats, const float* gain, long stride, X* dx,
                        int add, float* partial, int per_block, int rows_per_member, int width) {
  norm_backward<NORM_V, NORM_P, NORM_LAYER, true>(dy, x, stats, gain, stride, dx, add, partial, per_block, rows_per_member, width);
}
