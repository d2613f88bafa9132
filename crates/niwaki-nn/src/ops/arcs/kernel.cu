// Attention of machines to the operations at their arcs: mod.rs has the formula. Backward a thread has a row, its width in
// registers. Blocks are [rows of a member, member], so that sums over rows belong to one member.

struct Vectors {
  float along[ARCS_WIDTH], source[ARCS_WIDTH], target[ARCS_WIDTH], unit;
  __device__ __forceinline__ void load(const float* a, const float* s, const float* t, long member) {
    unit = 0.f;
#pragma unroll
    for (int i = 0; i < ARCS_WIDTH; ++i) {
      along[i] = a[member + i];
      source[i] = s[member + i];
      target[i] = t[member + i];
      unit = fmaf(source[i], along[i], unit);
    }
  }
};

__device__ __forceinline__ float along_row(const float* vector, const float* row) {
  float sum = 0.f;
#pragma unroll
  for (int i = 0; i < ARCS_WIDTH; ++i) sum = fmaf(vector[i], row[i], sum);
  return sum;
}

// Sums a number over the block's threads; the result is the first thread's.
__device__ __forceinline__ float block_sum(float x) {
  __shared__ float warps[4];
  x = warp_sum(x);
  if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = x;
  __syncthreads();
  x = warps[0] + warps[1] + warps[2] + warps[3];
  __syncthreads();
  return x;
}

#define ARC(o) (((s * operations + (o)) * machines) + m)

// Columns of a lane where a warp has a row.
#define COLUMNS_ ((ARCS_WIDTH + 31) / 32)
#define EACH_COLUMN                \
  _Pragma("unroll") for (int c = 0; c < COLUMNS_; ++c) \
    if (lane + 32 * c < ARCS_WIDTH)

// Each lane has a part of 2 HOP sums; gives it the whole of the one that has its number. They are added as warp_sum adds one, but a lane hands
// on the half of them that it will not have.
template <int HOP> __device__ __forceinline__ float sum_of_mine(float (&parts)[32]) {
  const bool upper = threadIdx.x & HOP;
#pragma unroll
  for (int j = 0; j < HOP; ++j) {
    const float mine = upper ? parts[j + HOP] : parts[j], other = upper ? parts[j] : parts[j + HOP];
    parts[j] = mine + __shfl_xor_sync(~0u, other, HOP);
  }
  if constexpr (HOP > 1) return sum_of_mine<HOP / 2>(parts);
  return parts[0];
}

// A warp has a row. Operations come 32 at a time: a lane has the weight of one of them, and then some columns of their sum, which
// shrinks where a higher score follows.
extern "C" __global__ void __launch_bounds__(128)
    arcs_forward(const float* of, const float* on, const float* times, const unsigned char* present, const float* along,
                 const float* source, const float* target, long stride, float* out, int operations, int machines,
                 int rows) {
  const int own = blockIdx.x * 4 + (threadIdx.x >> 5), lane = threadIdx.x & 31;
  if (own >= rows) return;
  const long r = (long)blockIdx.y * rows + own, s = r / machines, member = blockIdx.y * stride;
  const int m = (int)(r - s * machines);
  float a[COLUMNS_], v[COLUMNS_], sum[COLUMNS_], score = 0.f, unit = 0.f;
  EACH_COLUMN {
    a[c] = along[member + lane + 32 * c];
    v[c] = source[member + lane + 32 * c];
    sum[c] = on[r * ARCS_WIDTH + lane + 32 * c];
    score = fmaf(target[member + lane + 32 * c], sum[c], score);
    unit = fmaf(v[c], a[c], unit);
  }
  score = warp_sum(score);
  unit = warp_sum(unit);
  float top = leaky(2.f * score), total = 1.f, spent = 0.f;
  for (int first = 0; first < operations; first += 32) {
    const int o = first + lane, last = min(32, operations - first) - 1;
    const bool arc = o < operations && present[ARC(o)];
    if (!__ballot_sync(~0u, arc)) continue;
    const float time = arc ? times[ARC(o)] : 0.f;
    const float* block = of + (s * operations + first) * ARCS_WIDTH + lane;
    float dots[32];
#pragma unroll
    for (int j = 0; j < 32; ++j) {
      const float* row = block + min(j, last) * ARCS_WIDTH;
      dots[j] = 0.f;
      EACH_COLUMN dots[j] = fmaf(v[c], row[32 * c], dots[j]);
    }
    const float z = leaky(sum_of_mine<16>(dots) + time * unit + score);
    const float higher = fmaxf(top, warp_max(arc ? z : top)), shrink = expf(top - higher);
    const float e = arc ? expf(z - higher) : 0.f;
    top = higher;
    total = fmaf(total, shrink, warp_sum(e));
    spent = fmaf(spent, shrink, warp_sum(e * time));
    EACH_COLUMN sum[c] *= shrink;
#pragma unroll 8
    for (int j = 0; j < 32; ++j) {
      const float weight = __shfl_sync(~0u, e, j);
      const float* row = block + min(j, last) * ARCS_WIDTH;
      EACH_COLUMN {
        const float x = row[32 * c];
        sum[c] = weight != 0.f ? fmaf(weight, x, sum[c]) : sum[c];
      }
    }
  }
  EACH_COLUMN out[r * ARCS_WIDTH + lane + 32 * c] = (sum[c] + spent * a[c]) / total;
}

// Rows are machines. stats = (log-sum-exp, mean of the pulled cotangents); partial = sums for `target`.
extern "C" __global__ void __launch_bounds__(128)
    arcs_backward_machines(const float* of, const float* on, const float* times, const unsigned char* present,
                           const float* along, const float* source, const float* target, long stride, const float* dout,
                           float* stats, float* into, int add, float* partial, int operations, int machines, int rows) {
  const int own = blockIdx.x * 128 + threadIdx.x;
  const bool there = own < rows;
  const long r = (long)blockIdx.y * rows + (there ? own : 0), s = r / machines;
  const int m = (int)(r - s * machines);
  Vectors v;
  v.load(along, source, target, blockIdx.y * stride);
  float mine[ARCS_WIDTH], d[ARCS_WIDTH];
#pragma unroll
  for (int i = 0; i < ARCS_WIDTH; ++i) {
    mine[i] = on[r * ARCS_WIDTH + i];
    d[i] = dout[r * ARCS_WIDTH + i];
  }
  const float score = along_row(v.target, mine), loop = leaky(2.f * score);
  const float d_time = along_row(d, v.along), d_own = along_row(d, mine);
  float top = loop;
  for (int o = 0; o < operations; ++o)
    if (present[ARC(o)])
      top = fmaxf(top, leaky(along_row(v.source, of + (s * operations + o) * ARCS_WIDTH) + times[ARC(o)] * v.unit + score));
  float total = expf(loop - top), mean = total * d_own;
  for (int o = 0; o < operations; ++o) {
    if (!present[ARC(o)]) continue;
    const float* row = of + (s * operations + o) * ARCS_WIDTH;
    const float time = times[ARC(o)], e = expf(leaky(along_row(v.source, row) + time * v.unit + score) - top);
    total += e;
    mean = fmaf(e, along_row(d, row) + time * d_time, mean);
  }
  mean /= total;
  const float weight = expf(loop - top) / total;
  float x = 2.f * weight * (d_own - mean) * slope_of(score);
  for (int o = 0; o < operations; ++o) {
    if (!present[ARC(o)]) continue;
    const float* row = of + (s * operations + o) * ARCS_WIDTH;
    const float time = times[ARC(o)], z = along_row(v.source, row) + time * v.unit + score;
    x += expf(leaky(z) - top) / total * (along_row(d, row) + time * d_time - mean) * slope_of(z);
  }
  if (there) {
    *(float2*)(stats + r * 2) = make_float2(top + logf(total), mean);
    if (into)
#pragma unroll
      for (int i = 0; i < ARCS_WIDTH; ++i) put(into + r * ARCS_WIDTH + i, weight * d[i] + x * v.target[i], add);
  }
  partial += ((long)blockIdx.y * gridDim.x + blockIdx.x) * ARCS_WIDTH;
#pragma unroll
  for (int i = 0; i < ARCS_WIDTH; ++i) {
    const float sum = block_sum(there ? x * mine[i] : 0.f);
    if (threadIdx.x == 0) partial[i] = sum;
  }
}

// Rows are operations; partial = sums for `along`, then for `source`. Reads what the kernel above left in stats.
extern "C" __global__ void __launch_bounds__(128)
    arcs_backward_operations(const float* of, const float* on, const float* times, const unsigned char* present,
                             const float* along, const float* source, const float* target, long stride,
                             const float* dout, const float* stats, float* into, int add, float* into_times,
                             int add_times, float* partial, int operations, int machines, int rows) {
  const int own = blockIdx.x * 128 + threadIdx.x;
  const bool there = own < rows;
  const long r = (long)blockIdx.y * rows + (there ? own : 0), s = r / operations;
  Vectors v;
  v.load(along, source, target, blockIdx.y * stride);
  float row[ARCS_WIDTH], sum[ARCS_WIDTH], to_along[ARCS_WIDTH], scored = 0.f, timed = 0.f;
#pragma unroll
  for (int i = 0; i < ARCS_WIDTH; ++i) {
    row[i] = of[r * ARCS_WIDTH + i];
    sum[i] = to_along[i] = 0.f;
  }
  const float score = along_row(v.source, row);
  for (int m = 0; m < machines; ++m) {
    const long arc = r * machines + m, other = s * machines + m;
    float d_arc = 0.f;
    if (present[arc]) {
      const float* d = dout + other * ARCS_WIDTH;
      const float2 both = *(const float2*)(stats + other * 2);
      const float time = times[arc], z = score + time * v.unit + along_row(v.target, on + other * ARCS_WIDTH);
      const float weight = expf(leaky(z) - both.x), d_time = along_row(v.along, d);
      const float x = weight * (along_row(row, d) + time * d_time - both.y) * slope_of(z);
      scored += x;
      timed = fmaf(x, time, timed);
      d_arc = weight * d_time + x * v.unit;
#pragma unroll
      for (int i = 0; i < ARCS_WIDTH; ++i) {
        sum[i] = fmaf(weight, d[i], sum[i]);
        to_along[i] = fmaf(weight * time, d[i], to_along[i]);
      }
    }
    if (there && into_times) put(into_times + arc, d_arc, add_times);
  }
  if (there && into)
#pragma unroll
    for (int i = 0; i < ARCS_WIDTH; ++i) put(into + r * ARCS_WIDTH + i, sum[i] + scored * v.source[i], add);
  partial += ((long)blockIdx.y * gridDim.x + blockIdx.x) * 2 * ARCS_WIDTH;
#pragma unroll
  for (int i = 0; i < ARCS_WIDTH; ++i) {
    const float first = block_sum(there ? to_along[i] + timed * v.source[i] : 0.f);
    const float second = block_sum(there ? scored * row[i] + timed * v.along[i] : 0.f);
    if (threadIdx.x == 0) {
      partial[i] = first;
      partial[ARCS_WIDTH + i] = second;
    }
  }
}
