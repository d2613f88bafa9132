// Attention of one row of every item to itself and its ancestors, whose keys and values lie there from earlier steps. Eight
// lanes share a key, so that a warp meets four keys at once; of the columns of a head lane `i` of the eight has i, i + 8, ...,
// TREE_PIECES of them, a constant of the file. TREE_HALVES: whether all is stored in halves.

typedef Choose<TREE_HALVES>::Scalar Scalar;

#define PIECES TREE_PIECES
// Rows of a way up that are found at once.
#define WAY 128

__device__ __forceinline__ int before(const int* parent, int row) {
  const int up = parent[row];
  return up < row ? up : -1;
}

// Notes the rows from `row` on up, at most WAY; how many. Then `row` is the next one, negative where the way has ended.
// Rows mostly follow their parents, so a warp looks at 32 of them together.
__device__ __forceinline__ int walk(const int* parent, int& row, int* way) {
  const int lane = threadIdx.x % 32;
  int count = 0;
  __syncwarp();
  while (row >= 0 && count < WAY) {
    const int at = row - lane;
    const unsigned all = __ballot_sync(~0u, lane == 0 || (at >= 0 && parent[at + 1] == at));
    const int run = min(all == ~0u ? 32 : __ffs(~all) - 1, WAY - count);
    if (lane < run) way[count + lane] = at;
    count += run;
    row = before(parent, row - run + 1);
  }
  __syncwarp();
  return count;
}

// This lane's columns of a head, zero beyond its end.
__device__ __forceinline__ void take_head(const Scalar* from, int width, float (&to)[PIECES]) {
#pragma unroll
  for (int i = 0; i < PIECES; ++i) {
    const int c = threadIdx.x % 8 + 8 * i;
    to[i] = c < width ? stored(from[c]) : 0.f;
  }
}

__device__ __forceinline__ float dot_head(const float (&a)[PIECES], const float (&b)[PIECES]) {
  float sum = 0.f;
#pragma unroll
  for (int i = 0; i < PIECES; ++i) sum = fmaf(a[i], b[i], sum);
#pragma unroll
  for (int hop = 4; hop; hop >>= 1) sum += __shfl_xor_sync(~0u, sum, hop);
  return sum;
}

// Over the four keys that a warp meets at once.
__device__ __forceinline__ float sum_keys(float x) {
  x += __shfl_xor_sync(~0u, x, 8);
  return x + __shfl_xor_sync(~0u, x, 16);
}

// A warp per item and query head.
extern "C" __global__ void __launch_bounds__(128) tree_row(
    const Scalar* query, long q_pitch, const Scalar* key, long k_pitch, const Scalar* value, long v_pitch, Scalar* out,
    long out_pitch, const int* parent, int heads, int key_heads, int width, int rows, int row, int items, float scale) {
  __shared__ int ways[4][WAY];
  const long unit = ((long)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
  const int lane = threadIdx.x % 32, which = lane / 8;
  if (unit >= (long)items * heads) return;
  const int head = (int)(unit % heads);
  const long base = unit / heads * rows;
  const int key_head = head / (heads / key_heads);
  int* way = ways[threadIdx.x / 32];
  float q[PIECES], k[PIECES], v[PIECES], sum[PIECES], top = -3.0e38f, total = 0.f;
  take_head(query + (base + row) * q_pitch + head * width, width, q);
#pragma unroll
  for (int i = 0; i < PIECES; ++i) sum[i] = 0.f;
  for (int next = row; next >= 0;) {
    const int found = walk(parent + base, next, way);
    for (int step = which; step - which < found; step += 4) {
      const long s = base + way[min(step, found - 1)];
      take_head(key + s * k_pitch + key_head * width, width, k);
      take_head(value + s * v_pitch + key_head * width, width, v);
      const float product = scale * dot_head(q, k), score = step < found ? product : -3.0e38f;
      const float higher = fmaxf(top, score), shrink = expf(top - higher);
      const float e = step < found ? expf(score - higher) : 0.f;
      top = higher;
      total = fmaf(total, shrink, e);
#pragma unroll
      for (int i = 0; i < PIECES; ++i) sum[i] = fmaf(sum[i], shrink, e * v[i]);
    }
  }
  float highest = fmaxf(top, __shfl_xor_sync(~0u, top, 8));
  highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, 16));
  const float share = expf(top - highest);
  total = sum_keys(total * share);
#pragma unroll
  for (int i = 0; i < PIECES; ++i) {
    const float x = sum_keys(sum[i] * share) / total;
    const int c = lane % 8 + 8 * i;
    if (which == i % 4 && c < width) store(out + (base + row) * out_pitch + head * width + c, x);
  }
}
