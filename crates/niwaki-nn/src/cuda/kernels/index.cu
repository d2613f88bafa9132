// Ops steered by integers and masks: embed, gather, pool, score, rope and pick. Row r of a launch is row
// `first + r * step` of its value, so the same kernels serve all rows (first 0, step 1) and one row of every item.

// A thread per entry; the engine keeps rows * width below 2^31, so that the division is a cheap one.
#define ENTRY                                                        \
  const unsigned entry = blockIdx.x * blockDim.x + threadIdx.x;      \
  if (entry >= (unsigned)rows * (unsigned)width) return;             \
  const unsigned r = entry / (unsigned)width;                        \
  const int c = (int)(entry - r * (unsigned)width);

__device__ __forceinline__ void put(float* to, float x, int add) { *to = add ? *to + x : x; }

extern "C" __global__ void embed_forward(const float* table, long stride, const int* index, float* out, int first,
                                         int step, int rows, int rows_per_member, int width) {
  ENTRY
  const long row = first + r * step;
  const int at = index[row];
  out[row * width + c] = at < 0 ? 0.f : table[(long)(r / rows_per_member) * stride + (long)at * width + c];
}

// Two tables at once: out[r] = left[left index] + right[right index]. width counts quads of columns.
extern "C" __global__ void embed_pair_forward(const float4* left, const int* left_index, const float4* right,
                                              const int* right_index, long stride, float4* out, int first, int step,
                                              int rows, int rows_per_member, int width) {
  ENTRY
  const long row = first + r * step, member = (long)(r / rows_per_member) * stride;
  const int at = left_index[row], to = right_index[row];
  float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
  if (at >= 0) sum = left[member + (long)at * width + c];
  if (to >= 0) {
    const float4 other = right[member + (long)to * width + c];
    sum.x += other.x; sum.y += other.y; sum.z += other.z; sum.w += other.w;
  }
  out[row * width + c] = sum;
}

// A small table's gradient: 64 rows per block into a copy of the table in shared memory, a thread per column; partials
// [member, block, entries * width].
extern "C" __global__ void __launch_bounds__(128)
    embed_backward_small(const float* dout, const int* index, float* partial, int rows_per_member, int entries, int width) {
  extern __shared__ float table[];
  const int member = blockIdx.y, first = blockIdx.x * 64, last = min(first + 64, rows_per_member);
  for (int c = threadIdx.x; c < width; c += 128) {
    for (int e = 0; e < entries; ++e) table[e * width + c] = 0.f;
#pragma unroll 4
    for (int r = first; r < last; ++r) {
      const long row = (long)member * rows_per_member + r;
      const int at = index[row];
      const float d = dout[row * width + c];
      if (at >= 0) table[at * width + c] += d;
    }
    for (int e = 0; e < entries; ++e)
      partial[((long)member * gridDim.x + blockIdx.x) * entries * width + e * width + c] = table[e * width + c];
  }
}

// A large table's: each entry of dout added where it belongs (the gradient starts at zero or holds earlier uses).
extern "C" __global__ void embed_backward_large(const float* dout, const int* index, float* gradient, long stride,
                                                int rows, int rows_per_member, int width) {
  ENTRY
  const int at = index[r];
  if (at >= 0) atomicAdd(gradient + (long)(r / rows_per_member) * stride + (long)at * width + c, dout[r * width + c]);
}

extern "C" __global__ void gather_forward(const float* in, const int* index, float* out, int in_rows, int out_rows,
                                          int rows, int width) {
  ENTRY
  const int at = index[r];
  out[r * width + c] = at < 0 ? 0.f : in[((long)(r / out_rows) * in_rows + at) * width + c];
}

// The same in quads of columns.
extern "C" __global__ void gather_forward_4(const float4* in, const int* index, float4* out, int in_rows, int out_rows,
                                            int rows, int width) {
  ENTRY
  const int at = index[r];
  out[r * width + c] = at < 0 ? make_float4(0.f, 0.f, 0.f, 0.f) : in[((long)(r / out_rows) * in_rows + at) * width + c];
}

// A thread per (item, column) walks the item's rows in order; `din` was zeroed or holds earlier parts.
extern "C" __global__ void gather_backward(const float* dout, const int* index, float* din, int in_rows, int out_rows,
                                           int rows, int width) {
  ENTRY
  for (int j = 0; j < out_rows; ++j) {
    const int at = index[(long)r * out_rows + j];
    if (at >= 0) din[((long)r * in_rows + at) * width + c] += dout[((long)r * out_rows + j) * width + c];
  }
}

// rows counts results; mean = 1 divides by the rows that count.
extern "C" __global__ void pool_forward(const float* in, const unsigned char* mask, float* out, int group, int mean,
                                        int rows, int width) {
  ENTRY
  float sum = 0.f;
  int count = 0;
  for (int j = 0; j < group; ++j) {
    const long row = (long)r * group + j;
    if (mask && !mask[row]) continue;
    sum += in[row * width + c];
    ++count;
  }
  out[r * width + c] = mean ? (count ? sum / count : 0.f) : sum;
}

extern "C" __global__ void pool_backward(const float* dout, const unsigned char* mask, float* din, int group, int mean,
                                         int add, int rows, int width) {
  ENTRY
  int count = group;
  if (mask) {
    count = 0;
    for (int j = 0; j < group; ++j) count += mask[(long)r * group + j] != 0;
  }
  const float share = mean ? (count ? dout[r * width + c] / count : 0.f) : dout[r * width + c];
  for (int j = 0; j < group; ++j) {
    const long row = (long)r * group + j;
    put(din + row * width + c, mask && !mask[row] ? 0.f : share, add);
  }
}

// out[r, s] = scale query[r] . key[s] within the item: rows counts query rows, width counts key rows.
extern "C" __global__ void score_forward(const float* query, const float* key, float* out, int query_rows, int depth,
                                         float scale, int rows, int width) {
  ENTRY
  const float* q = query + (long)r * depth;
  const float* k = key + ((long)(r / query_rows) * width + c) * depth;
  float sum = 0.f;
  for (int i = 0; i < depth; ++i) sum = fmaf(q[i], k[i], sum);
  out[r * width + c] = sum * scale;
}

// rows counts query rows, width is the depth.
extern "C" __global__ void score_backward_query(const float* dout, const float* key, float* dquery, int add,
                                                int query_rows, int key_rows, float scale, int rows, int width) {
  ENTRY
  const float* k = key + (long)(r / query_rows) * key_rows * width + c;
  float sum = 0.f;
  for (int s = 0; s < key_rows; ++s) sum = fmaf(dout[(long)r * key_rows + s], k[(long)s * width], sum);
  put(dquery + r * width + c, sum * scale, add);
}

// rows counts key rows, width is the depth.
extern "C" __global__ void score_backward_key(const float* dout, const float* query, float* dkey, int add,
                                              int query_rows, int key_rows, float scale, int rows, int width) {
  ENTRY
  const long item = r / key_rows;
  const int s = (int)(r % key_rows);
  float sum = 0.f;
  for (int q = 0; q < query_rows; ++q)
    sum = fmaf(dout[(item * query_rows + q) * key_rows + s], query[(item * query_rows + q) * width + c], sum);
  put(dkey + r * width + c, sum * scale, add);
}

// Columns (i, i + half) of each head turn by position * base^(-2i/head width); `sign` -1 turns back. width = heads * half.
extern "C" __global__ void rope(const float* in, long in_pitch, const int* position, float* out, long out_pitch,
                                int first, int step, int half, double base, float sign, int add, int rows, int width) {
  ENTRY
  const long row = first + r * step;
  const int i = c % half, at = c / half * 2 * half + i;
  const int place = position[row] < 0 ? 0 : position[row];
  double sine, cosine;
  sincos(place * pow(base, -(double)i / half), &sine, &cosine);
  const float a = in[row * in_pitch + at], b = in[row * in_pitch + at + half];
  const float s = sign * (float)sine, k = (float)cosine;
  put(out + row * out_pitch + at, a * k - b * s, add);
  put(out + row * out_pitch + at + half, a * s + b * k, add);
}

// Masked log-softmax of a row, the chosen entry and the entropy; saved = (lse, entropy). LANES threads share a row.
template <int LANES>
__device__ __forceinline__ float shared_sum(float x) { return LANES == 32 ? warp_sum(x) : x; }
template <int LANES>
__device__ __forceinline__ float shared_max(float x) { return LANES == 32 ? warp_max(x) : x; }

template <int LANES>
__device__ __forceinline__ void pick(const float* logits, const int* action, const unsigned char* mask, float* log_prob,
                                     float* entropy, float* saved, int first, int step, int rows, int choices) {
  const long r = ((long)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
  const int lane = threadIdx.x % LANES;
  if (r >= rows) return;
  const long row = first + r * step;
  const float* x = logits + row * choices;
  const unsigned char* seen = mask ? mask + row * choices : 0;
  float top = -3.0e38f, total = 0.f, weighted = 0.f;
  for (int j = lane; j < choices; j += LANES)
    if (!seen || seen[j]) top = fmaxf(top, x[j]);
  top = shared_max<LANES>(top);
  for (int j = lane; j < choices; j += LANES)
    if (!seen || seen[j]) {
      const float e = expf(x[j] - top);
      total += e;
      weighted += e * (x[j] - top);
    }
  total = shared_sum<LANES>(total);
  weighted = shared_sum<LANES>(weighted);
  if (lane) return;
  const float lse = top + logf(total), spread = logf(total) - weighted / total;
  const int chosen = action[row];
  const bool idle = chosen < 0;
  log_prob[row] = idle ? 0.f : (seen && !seen[chosen]) ? __int_as_float(0xff800000) : x[chosen] - lse;
  entropy[row] = idle ? 0.f : spread;
  if (saved) *(float2*)(saved + row * 2) = make_float2(lse, spread);
}

extern "C" __global__ void pick_few(const float* logits, const int* action, const unsigned char* mask, float* log_prob,
                                    float* entropy, float* saved, int first, int step, int rows, int choices) {
  pick<1>(logits, action, mask, log_prob, entropy, saved, first, step, rows, choices);
}
extern "C" __global__ void pick_many(const float* logits, const int* action, const unsigned char* mask, float* log_prob,
                                     float* entropy, float* saved, int first, int step, int rows, int choices) {
  pick<32>(logits, action, mask, log_prob, entropy, saved, first, step, rows, choices);
}

// Either cotangent may be absent, which counts as zero.
extern "C" __global__ void pick_backward(const float* logits, const int* action, const unsigned char* mask,
                                         const float* saved, const float* dlog_prob, const float* dentropy, float* dlogits,
                                         int add, int rows, int width) {
  ENTRY
  const int chosen = action[r];
  float d = 0.f;
  if (chosen >= 0 && (!mask || mask[r * width + c])) {
    const float2 both = *(const float2*)(saved + r * 2);
    const float q = logits[r * width + c] - both.x, p = expf(q);
    if (dlog_prob) d += dlog_prob[r] * ((c == chosen ? 1.f : 0.f) - p);
    if (dentropy) d -= dentropy[r] * p * (q + both.y);
  }
  put(dlogits + r * width + c, d, add);
}

// Chooses one entry of each item's row: the first at which the running sum of probabilities exceeds the item's uniform,
// the likeliest where rounding leaves none. The choice becomes the row's action and, where there is a next row, its token.
extern "C" __global__ void choose_row(const float* logits, const float* uniforms, int* actions, int* tokens, int row,
                                      int horizon, int rows, int choices) {
  const int item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= rows) return;
  const long place = (long)item * horizon + row;
  const float* x = logits + place * choices;
  int likeliest = 0;
  for (int j = 1; j < choices; ++j)
    if (x[j] > x[likeliest]) likeliest = j;
  float total = 0.f;
  for (int j = 0; j < choices; ++j) total += expf(x[j] - x[likeliest]);
  const float target = uniforms[place] * total;
  int chosen = likeliest;
  float sum = 0.f;
  for (int j = 0; j < choices; ++j) {
    sum += expf(x[j] - x[likeliest]);
    if (target < sum) { chosen = j; break; }
  }
  actions[place] = chosen;
  if (row + 1 < horizon) tokens[place + 1] = chosen;
}
