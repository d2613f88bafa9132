// Attention along a tree of rows: a row sees itself and its ancestors. Plain and right, for heads of up to 256 columns: a
// lane of a warp has columns lane, lane + 32, ...; the way up is walked row by row. Sums have one order: same bits every time.

#define PIECES 8

__device__ __forceinline__ int before(const int* parent, int row) {
  const int up = parent[row];
  return up < row ? up : -1;
}

__device__ __forceinline__ float dot_row(const float* a, const float* b, int width, int lane) {
  float sum = 0.f;
  for (int c = lane; c < width; c += 32) sum = fmaf(a[c], b[c], sum);
  return warp_sum(sum);
}

// A warp per (item, query head, row of first .. first + count); saved = log of the sum [item, heads, rows].
extern "C" __global__ void __launch_bounds__(128) tree_forward(
    const float* query, long q_pitch, const float* key, long k_pitch, const float* value, long v_pitch, float* out,
    long out_pitch, float* saved, const int* parent, int heads, int key_heads, int width, int rows, int first, int count,
    int items, float scale) {
  const long unit = ((long)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
  const int lane = threadIdx.x & 31;
  if (unit >= (long)items * heads * count) return;
  const int row = first + (int)(unit % count), head = (int)(unit / count % heads);
  const long item = unit / count / heads, base = item * rows;
  const int key_head = head / (heads / key_heads);
  const float* q = query + (base + row) * q_pitch + head * width;
  float sum[PIECES], top = -3.0e38f, total = 0.f;
#pragma unroll
  for (int i = 0; i < PIECES; ++i) sum[i] = 0.f;
  for (int s = row; s >= 0; s = before(parent + base, s)) {
    const float score = scale * dot_row(q, key + (base + s) * k_pitch + key_head * width, width, lane);
    const float* v = value + (base + s) * v_pitch + key_head * width;
    const float higher = fmaxf(top, score), shrink = expf(top - higher), e = expf(score - higher);
    top = higher;
    total = fmaf(total, shrink, e);
#pragma unroll
    for (int i = 0; i < PIECES; ++i)
      if (lane + 32 * i < width) sum[i] = fmaf(sum[i], shrink, e * v[lane + 32 * i]);
  }
#pragma unroll
  for (int i = 0; i < PIECES; ++i)
    if (lane + 32 * i < width) out[(base + row) * out_pitch + head * width + lane + 32 * i] = sum[i] / total;
  if (saved && lane == 0) saved[(item * heads + head) * rows + row] = top + logf(total);
}

// A warp per (item, query head, row): sum of p dp into `means [item, heads, rows]`, and the query's cotangent if wanted.
extern "C" __global__ void __launch_bounds__(128) tree_backward_query(
    const float* query, long q_pitch, const float* key, long k_pitch, const float* value, long v_pitch,
    const float* dout, long out_pitch, const float* saved, const int* parent, float* means, float* dquery, int add,
    int heads, int key_heads, int width, int rows, int items, float scale) {
  const long unit = ((long)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
  const int lane = threadIdx.x & 31;
  if (unit >= (long)items * heads * rows) return;
  const int row = (int)(unit % rows), head = (int)(unit / rows % heads);
  const long item = unit / rows / heads, base = item * rows;
  const int key_head = head / (heads / key_heads);
  const float* q = query + (base + row) * q_pitch + head * width;
  const float* d = dout + (base + row) * out_pitch + head * width;
  const float lse = saved[unit];
  // dq = scale (sum p dp k - mean sum p k), both sums in one walk.
  float with[PIECES], plain[PIECES], mean = 0.f;
#pragma unroll
  for (int i = 0; i < PIECES; ++i) with[i] = plain[i] = 0.f;
  for (int s = row; s >= 0; s = before(parent + base, s)) {
    const float* k = key + (base + s) * k_pitch + key_head * width;
    const float p = expf(scale * dot_row(q, k, width, lane) - lse);
    const float dp = dot_row(d, value + (base + s) * v_pitch + key_head * width, width, lane);
    mean = fmaf(p, dp, mean);
#pragma unroll
    for (int i = 0; i < PIECES; ++i)
      if (lane + 32 * i < width) {
        with[i] = fmaf(p * dp, k[lane + 32 * i], with[i]);
        plain[i] = fmaf(p, k[lane + 32 * i], plain[i]);
      }
  }
  if (lane == 0) means[unit] = mean;
  if (!dquery) return;
#pragma unroll
  for (int i = 0; i < PIECES; ++i)
    if (lane + 32 * i < width) {
      float* to = dquery + (base + row) * q_pitch + head * width + lane + 32 * i;
      const float x = scale * (with[i] - mean * plain[i]);
      *to = add ? *to + x : x;
    }
}

// A block of one warp per (item, key head, key row): every row below it in order, which shared memory keeps account of.
extern "C" __global__ void __launch_bounds__(32) tree_backward_key(
    const float* query, long q_pitch, const float* key, long k_pitch, const float* value, long v_pitch,
    const float* dout, long out_pitch, const float* saved, const int* parent, const float* means, float* dkey,
    float* dvalue, int add_k, int add_v, int heads, int key_heads, int width, int rows, float scale) {
  extern __shared__ unsigned char below[];
  const int s = blockIdx.x % rows, key_head = blockIdx.x / rows % key_heads, lane = threadIdx.x;
  const long item = blockIdx.x / rows / key_heads, base = item * rows;
  const int share = heads / key_heads;
  const float* k = key + (base + s) * k_pitch + key_head * width;
  const float* v = value + (base + s) * v_pitch + key_head * width;
  float dk[PIECES], dv[PIECES];
#pragma unroll
  for (int i = 0; i < PIECES; ++i) dk[i] = dv[i] = 0.f;
  for (int row = s; row < rows; ++row) {
    const int up = before(parent + base, row);
    const bool under = row == s || (up >= s && below[up - s]);
    if (lane == 0) below[row - s] = under;
    __syncwarp();
    if (!under) continue;
    for (int h = 0; h < share; ++h) {
      const int head = key_head * share + h;
      const long at = (item * heads + head) * rows + row;
      const float* q = query + (base + row) * q_pitch + head * width;
      const float* d = dout + (base + row) * out_pitch + head * width;
      const float p = expf(scale * dot_row(q, k, width, lane) - saved[at]);
      const float ds = scale * p * (dot_row(d, v, width, lane) - means[at]);
#pragma unroll
      for (int i = 0; i < PIECES; ++i)
        if (lane + 32 * i < width) {
          dk[i] = fmaf(ds, q[lane + 32 * i], dk[i]);
          dv[i] = fmaf(p, d[lane + 32 * i], dv[i]);
        }
    }
  }
#pragma unroll
  for (int i = 0; i < PIECES; ++i)
    if (lane + 32 * i < width) {
      const long at = key_head * width + lane + 32 * i;
      float* to_k = dkey + (base + s) * k_pitch + at;
      float* to_v = dvalue + (base + s) * v_pitch + at;
      if (dkey) *to_k = add_k ? *to_k + dk[i] : dk[i];
      if (dvalue) *to_v = add_v ? *to_v + dv[i] : dv[i];
    }
}
