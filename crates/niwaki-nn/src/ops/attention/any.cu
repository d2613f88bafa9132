// Attention over the rows of one item for every shape that shared memory holds; the probabilities are saved. Queries, keys, values
// and their cotangents are stored as In, results and theirs as Out.

typedef Choose<ATTENTION_IN>::Scalar In;
typedef Choose<ATTENTION_OUT>::Scalar Out;

// A block per (item, query head). Rows `first .. first + count` of the queries; saved = p [heads, query rows, key rows].
// visible: 0 all, 1 causal, 2 by mask [query rows, key rows].
extern "C" __global__ void __launch_bounds__(128) attention_any_forward(
    const In* query, long q_pitch, const In* key, long k_pitch, const In* value, long v_pitch, Out* out,
    long out_pitch, float* saved, const unsigned char* mask, int visible, int heads, int key_heads, int width,
    int query_rows, int key_rows, int first, int count, float scale) {
  extern __shared__ float shared[];
  const int head = blockIdx.y, item = blockIdx.x, pitch = width + 1;
  const int key_head = head / (heads / key_heads);
  const int keys_seen = visible == 1 ? min(key_rows, first + count) : key_rows;
  float* k = shared;                           // [key rows][pitch]
  float* v = k + key_rows * pitch;             // [key rows][pitch]
  float* q = v + key_rows * pitch;             // [count][pitch]
  float* p = q + count * pitch;                // [count][key rows]
  for (int e = threadIdx.x; e < keys_seen * width; e += 128) {
    const int s = e / width, c = e % width;
    const long row = (long)item * key_rows + s;
    k[s * pitch + c] = stored(key[row * k_pitch + key_head * width + c]);
    v[s * pitch + c] = stored(value[row * v_pitch + key_head * width + c]);
  }
  for (int e = threadIdx.x; e < count * width; e += 128) {
    const int r = e / width, c = e % width;
    q[r * pitch + c] = stored(query[((long)item * query_rows + first + r) * q_pitch + head * width + c]);
  }
  __syncthreads();
  for (int e = threadIdx.x; e < count * keys_seen; e += 128) {
    const int r = e / keys_seen, s = e % keys_seen;
    float dot = 0.f;
    for (int c = 0; c < width; ++c) dot = fmaf(q[r * pitch + c], k[s * pitch + c], dot);
    bool seen = true;
    if (visible == 1) seen = s <= first + r;
    if (visible == 2) seen = mask[((long)item * query_rows + first + r) * key_rows + s] != 0;
    p[r * key_rows + s] = seen ? dot * scale : -3.0e38f;
  }
  __syncthreads();
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  for (int r = warp; r < count; r += 4) {
    float top = -3.0e38f, total = 0.f;
    for (int s = lane; s < keys_seen; s += 32) top = fmaxf(top, p[r * key_rows + s]);
    top = warp_max(top);
    for (int s = lane; s < keys_seen; s += 32) {
      const float x = p[r * key_rows + s];
      const float e = x > -2.9e38f ? expf(x - top) : 0.f;
      p[r * key_rows + s] = e;
      total += e;
    }
    total = warp_sum(total);
    const float share = total > 0.f ? 1.f / total : 0.f;
    for (int s = lane; s < keys_seen; s += 32) p[r * key_rows + s] *= share;
    if (saved) {
      float* keep = saved + (((long)item * heads + head) * query_rows + first + r) * key_rows;
      for (int s = lane; s < key_rows; s += 32) keep[s] = s < keys_seen ? p[r * key_rows + s] : 0.f;
    }
  }
  __syncthreads();
  for (int e = threadIdx.x; e < count * width; e += 128) {
    const int r = e / width, c = e % width;
    float sum = 0.f;
    for (int s = 0; s < keys_seen; ++s) sum = fmaf(p[r * key_rows + s], v[s * pitch + c], sum);
    store(out + ((long)item * query_rows + first + r) * out_pitch + head * width + c, sum);
  }
}

// Row `row` of each item against keys 0 .. row, the softmax taken on the way; nothing is saved: rows are only run forward.
// Heads of 32 columns: a warp per (item, query head), eight keys at a time, four lanes with eight columns each.
extern "C" __global__ void __launch_bounds__(256) attention_row_32(
    const In* query, long q_pitch, const In* key, long k_pitch, const In* value, long v_pitch, Out* out,
    long out_pitch, int heads, int key_heads, int width, int rows, int row, int items, float scale) {
  const long unit = ((long)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
  const int lane = threadIdx.x & 31, piece = (lane & 3) * 8, group = lane >> 2;
  if (unit >= (long)items * heads) return;
  const long item = unit / heads;
  const int head = unit % heads, key_head = head / (heads / key_heads);
  const long at = item * rows + row;
  float q[8], sum[8], top = -3.0e38f, total = 0.f;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    q[i] = stored(query[at * q_pitch + head * width + piece + i]);
    sum[i] = 0.f;
  }
  for (int start = 0; start <= row; start += 8) {
    const int s = start + group;
    const bool seen = s <= row;
    const long there = item * rows + (seen ? s : row);
    const In* k = key + there * k_pitch + key_head * width + piece;
    const In* v = value + there * v_pitch + key_head * width + piece;
    float dot = 0.f;
#pragma unroll
    for (int i = 0; i < 8; ++i) dot = fmaf(q[i], stored(k[i]), dot);
    dot += __shfl_xor_sync(~0u, dot, 1);
    dot += __shfl_xor_sync(~0u, dot, 2);
    dot = seen ? dot * scale : -3.0e38f;
    const float higher = fmaxf(top, warp_max(dot)), shrink = expf(top - higher);
    const float e = seen ? expf(dot - higher) : 0.f;
    top = higher;
    // Every key is held by four lanes.
    total = fmaf(total, shrink, 0.25f * warp_sum(e));
#pragma unroll
    for (int i = 0; i < 8; ++i) sum[i] = fmaf(sum[i], shrink, e * stored(v[i]));
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    sum[i] += __shfl_xor_sync(~0u, sum[i], 4);
    sum[i] += __shfl_xor_sync(~0u, sum[i], 8);
    sum[i] += __shfl_xor_sync(~0u, sum[i], 16);
    if (group == i) store(out + at * out_pitch + head * width + piece + i, sum[i] / total);
  }
}

// Other widths, up to 128: a warp per (item, query head), a lane per column (up to four), key by key.
extern "C" __global__ void __launch_bounds__(256) attention_row(
    const In* query, long q_pitch, const In* key, long k_pitch, const In* value, long v_pitch, Out* out,
    long out_pitch, int heads, int key_heads, int width, int rows, int row, int items, float scale) {
  const long unit = ((long)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
  const int lane = threadIdx.x & 31;
  if (unit >= (long)items * heads) return;
  const long item = unit / heads;
  const int head = unit % heads, key_head = head / (heads / key_heads);
  const long at = item * rows + row;
  float q[4], sum[4] = {0.f, 0.f, 0.f, 0.f}, top = -3.0e38f, total = 0.f;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int c = lane + 32 * i;
    q[i] = c < width ? stored(query[at * q_pitch + head * width + c]) : 0.f;
  }
  for (int s = 0; s <= row; ++s) {
    const In* k = key + (item * rows + s) * k_pitch + key_head * width;
    const In* v = value + (item * rows + s) * v_pitch + key_head * width;
    float dot = 0.f;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (lane + 32 * i < width) dot = fmaf(q[i], stored(k[lane + 32 * i]), dot);
    dot = warp_sum(dot) * scale;
    const float higher = fmaxf(top, dot), shrink = expf(top - higher), e = expf(dot - higher);
    top = higher;
    total = fmaf(total, shrink, e);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (lane + 32 * i < width) sum[i] = fmaf(sum[i], shrink, e * stored(v[lane + 32 * i]));
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (lane + 32 * i < width) store(out + at * out_pitch + head * width + lane + 32 * i, sum[i] / total);
}

// A block per (item, key head); an absent cotangent is not computed. Every query head that reads it, one after the other.
extern "C" __global__ void __launch_bounds__(128) attention_any_backward(
    const In* query, long q_pitch, const In* key, long k_pitch, const In* value, long v_pitch,
    const Out* dout, long out_pitch, const float* saved, In* dquery, In* dkey, In* dvalue, int add_q,
    int add_k, int add_v, int heads, int key_heads, int width, int query_rows, int key_rows, float scale) {
  extern __shared__ float shared[];
  const int key_head = blockIdx.y, item = blockIdx.x, pitch = width + 1, share = heads / key_heads;
  float* k = shared;
  float* v = k + key_rows * pitch;
  float* dk = v + key_rows * pitch;
  float* dv = dk + key_rows * pitch;
  float* q = dv + key_rows * pitch;
  float* d = q + query_rows * pitch;
  float* ds = d + query_rows * pitch;  // [query rows][key rows]
  for (int e = threadIdx.x; e < key_rows * width; e += 128) {
    const int s = e / width, c = e % width;
    const long row = (long)item * key_rows + s;
    k[s * pitch + c] = stored(key[row * k_pitch + key_head * width + c]);
    v[s * pitch + c] = stored(value[row * v_pitch + key_head * width + c]);
    dk[s * pitch + c] = dv[s * pitch + c] = 0.f;
  }
  for (int h = 0; h < share; ++h) {
    const int head = key_head * share + h;
    const float* p = saved + ((long)item * heads + head) * query_rows * key_rows;
    __syncthreads();
    for (int e = threadIdx.x; e < query_rows * width; e += 128) {
      const int r = e / width, c = e % width;
      const long row = (long)item * query_rows + r;
      q[r * pitch + c] = stored(query[row * q_pitch + head * width + c]);
      d[r * pitch + c] = stored(dout[row * out_pitch + head * width + c]);
    }
    __syncthreads();
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    for (int r = warp; r < query_rows; r += 4) {
      float mean = 0.f;
      for (int s = lane; s < key_rows; s += 32) {
        float dot = 0.f;
        for (int c = 0; c < width; ++c) dot = fmaf(d[r * pitch + c], v[s * pitch + c], dot);
        ds[r * key_rows + s] = dot;
        mean = fmaf(p[r * key_rows + s], dot, mean);
      }
      mean = warp_sum(mean);
      for (int s = lane; s < key_rows; s += 32)
        ds[r * key_rows + s] = p[r * key_rows + s] * (ds[r * key_rows + s] - mean) * scale;
    }
    __syncthreads();
    for (int e = threadIdx.x; dquery && e < query_rows * width; e += 128) {
      const int r = e / width, c = e % width;
      float sum = 0.f;
      for (int s = 0; s < key_rows; ++s) sum = fmaf(ds[r * key_rows + s], k[s * pitch + c], sum);
      In* to = dquery + ((long)item * query_rows + r) * q_pitch + head * width + c;
      store(to, add_q ? stored(*to) + sum : sum);
    }
    for (int e = threadIdx.x; e < key_rows * width; e += 128) {
      const int s = e / width, c = e % width;
      float sum_k = 0.f, sum_v = 0.f;
      for (int r = 0; r < query_rows; ++r) {
        sum_k = fmaf(ds[r * key_rows + s], q[r * pitch + c], sum_k);
        sum_v = fmaf(p[r * key_rows + s], d[r * pitch + c], sum_v);
      }
      dk[s * pitch + c] += sum_k;
      dv[s * pitch + c] += sum_v;
    }
  }
  for (int e = threadIdx.x; e < key_rows * width; e += 128) {
    const int s = e / width, c = e % width;
    const long row = (long)item * key_rows + s;
    In* to_k = dkey + row * k_pitch + key_head * width + c;
    In* to_v = dvalue + row * v_pitch + key_head * width + c;
    if (dkey) store(to_k, add_k ? stored(*to_k) + dk[s * pitch + c] : dk[s * pitch + c]);
    if (dvalue) store(to_v, add_v ? stored(*to_v) + dv[s * pitch + c] : dv[s * pitch + c]);
  }
}
