// Attention of few rows to few keys: a block per item, a warp per head. Rows of queries, keys, values and results are qp,
// kp, vp and op scalars apart.

#define STAGE STAGE_FOR(16 * BANDS + 8 * TILES)

// One head's columns of this warp's rows, in the order of sums.
__device__ __forceinline__ void read_rows(const float* from, long pitch, const long (&row)[2], float (&c)[STEPS][4]) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int k = 0; k < STEPS; ++k)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float2 x = pair<D>(from + row[i] * pitch, 8 * k + 2 * t);
      c[k][2 * i] = x.x;
      c[k][2 * i + 1] = x.y;
    }
}

// Writes or adds one head's columns of this warp's rows, those below `rows` of the item.
__device__ __forceinline__ void write_rows(const float (&c)[STEPS][4], float* to, long pitch, const long (&row)[2], int first,
                                           int rows, int add) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int k = 0; k < STEPS; ++k)
      if (first + g + 8 * i < rows) put_pair<D>(to + row[i] * pitch, 8 * k + 2 * t, c[k][2 * i], c[k][2 * i + 1], add);
}

extern "C" __global__ void __launch_bounds__(32 * H)
    attention_few_forward(const float* query, long qp, const float* key, long kp, const float* value, long vp, float* out,
                          long op, const unsigned char* mask, int rows, float scale) {
  extern __shared__ __align__(16) float room[];
  const long item = blockIdx.x;
  const int h = threadIdx.x / 32, g = threadIdx.x % 32 / 4;
  share_rows(key + item * KEYS * kp, kp, KEYS, room);
  share_rows(value + item * KEYS * vp, vp, KEYS, room + 8 * TILES * PITCH);
  __syncthreads();
  for (int first = 0; first < rows; first += 16) {
    const long row[2] = {item * rows + min(first + g, rows - 1), item * rows + min(first + g + 8, rows - 1)};
    float q[STEPS][4], p[TILES][4], seen[STEPS][4];
    read_rows(query + h * D, qp, row, q);
    look(q, room + h * HEAD, open_bits(mask, row), scale, p, seen);
    write_rows(seen, out + h * D, op, row, first, rows, 0);
  }
}

// Shared memory: keys and values, then a stage for each warp.
extern "C" __global__ void __launch_bounds__(32 * H)
    attention_few_backward(const float* query, long qp, const float* key, long kp, const float* value, long vp,
                           const float* dout, long op, const unsigned char* mask, float* dquery, float* dkey, float* dvalue,
                           int add_query, int add_key, int add_value, int rows, float scale) {
  extern __shared__ __align__(16) float room[];
  const long item = blockIdx.x;
  const int h = threadIdx.x / 32, g = threadIdx.x % 32 / 4;
  share_rows(key + item * KEYS * kp, kp, KEYS, room);
  share_rows(value + item * KEYS * vp, vp, KEYS, room + 8 * TILES * PITCH);
  __syncthreads();
  const float* keys = room + h * HEAD;
  const float* values = keys + 8 * TILES * PITCH;
  float* stage = room + 2 * 8 * TILES * PITCH + h * 16 * STAGE;
  float key_sums[BANDS][TILES][4], value_sums[BANDS][TILES][4];
#pragma unroll
  for (int m = 0; m < BANDS; ++m) {
    clear(key_sums[m]);
    clear(value_sums[m]);
  }
  for (int first = 0; first < rows; first += 16) {
    const long row[2] = {item * rows + min(first + g, rows - 1), item * rows + min(first + g + 8, rows - 1)};
    float q[STEPS][4], p[TILES][4], seen[STEPS][4], d[STEPS][4], ds[TILES][4], dq[STEPS][4];
    read_rows(query + h * D, qp, row, q);
    look(q, keys, open_bits(mask, row), scale, p, seen);
    read_rows(dout + h * D, op, row, d);
    // Rows beyond the last one repeat it and ask for nothing.
#pragma unroll
    for (int k = 0; k < STEPS; ++k)
#pragma unroll
      for (int j = 0; j < 4; ++j) d[k][j] = first + g + 8 * (j / 2) < rows ? d[k][j] : 0.f;
    add_products(d, p, stage, STAGE, value_sums);
    pull_scores(d, seen, p, values, scale, ds);
    add_products(q, ds, stage, STAGE, key_sums);
    if (!dquery) continue;
    clear(dq);
    multiply_by_columns(dq, ds, keys);
    write_rows(dq, dquery + h * D, qp, row, first, rows, add_query);
  }
  if (dkey) give(key_sums, dkey + item * KEYS * kp + h * D, D, KEYS, 1, kp, add_key);
  if (dvalue) give(value_sums, dvalue + item * KEYS * vp + h * D, D, KEYS, 1, vp, add_value);
}
