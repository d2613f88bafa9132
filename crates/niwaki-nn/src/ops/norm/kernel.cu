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

// Rows in blocks of `per_block`, one block of one member per thread block; sums for gain and bias leave as partials
// [member, block, 3, width] (RMSNorm: no second third). With `whole` this is the last part of dx: its own column sums,
// the bias gradient of what made x, are the last third.
template <int V, int P>
__device__ __forceinline__ void norm_backward(const Y* dy, const X* x, const float* stats, const float* gain,
                                              long stride, X* dx, int add, float* partial, int layer_norm,
                                              int whole, int per_block, int rows_per_member, int width) {
  extern __shared__ float scratch[];  // [8 warps][width]
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, member = blockIdx.y;
  const int first = blockIdx.x * per_block, last = min(first + per_block, rows_per_member);
  const float share = 1.f / width;
  Row<V, P> g, dgain, dbias, dsum;
  g.load(gain + member * stride, width);
#pragma unroll
  for (int i = 0; i < V * P; ++i) dgain.v[i] = dbias.v[i] = dsum.v[i] = 0.f;
#pragma unroll 2
  for (int r = first + warp; r < last; r += 8) {
    const long row = (long)member * rows_per_member + r;
    Row<V, P> d, a, old;
    d.load(dy + row * width, width);
    a.load(x + row * width, width);
    if (add) old.load(dx + row * width, width);
    float mean = 0.f, s;
    if (layer_norm) {
      const float2 both = *(const float2*)(stats + row * 2);
      mean = both.x; s = both.y;
    } else {
      s = stats[row];
    }
    float m1 = 0.f, m2 = 0.f;
#pragma unroll
    for (int i = 0; i < V * P; ++i) {
      const bool inside = (lane + 32 * (i / P)) * P < width;
      const float n = inside ? (a.v[i] - mean) * s : 0.f;
      dgain.v[i] += d.v[i] * n;
      dbias.v[i] += d.v[i];
      const float t = d.v[i] * g.v[i];
      m1 += t;
      m2 += t * n;
      a.v[i] = n;
      d.v[i] = t;
    }
    m1 = layer_norm ? warp_sum(m1) * share : 0.f;
    m2 = warp_sum(m2) * share;
#pragma unroll
    for (int i = 0; i < V * P; ++i) {
      d.v[i] = s * (d.v[i] - m1 - a.v[i] * m2) + (add ? old.v[i] : 0.f);
      dsum.v[i] += d.v[i];
    }
    if (dx) d.put(dx + row * width, width);
  }
  partial += ((long)member * gridDim.x + blockIdx.x) * 3 * width;
  for (int third = 0; third < 3; ++third) {
    if ((third == 1 && !layer_norm) || (third == 2 && !whole)) continue;
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

// The engine compiles this file once for each (V, P, X, Y) that its program needs.
extern "C" __global__ void __launch_bounds__(256)
    norm_forward_rows(const X* x, long x_pitch, Y* out, long out_pitch, float* stats, long stats_pitch,
                      const float* gain, const float* bias, long stride, int rows, int rows_per_member, int width,
                      float epsilon) {
  norm_forward<NORM_V, NORM_P>(x, x_pitch, out, out_pitch, stats, stats_pitch, gain, bias, stride, rows,
                               rows_per_member, width, epsilon);
}

extern "C" __global__ void __launch_bounds__(256)
    norm_backward_rows(const Y* dy, const X* x, const float* stats, const float* gain, long stride, X* dx,
                       int add, float* partial, int layer_norm, int whole, int per_block, int rows_per_member, int width) {
  norm_backward<NORM_V, NORM_P>(dy, x, stats, gain, stride, dx, add, partial, layer_norm, whole, per_block,
                                rows_per_member, width);
}
