// out[r, s] = scale query[r] . key[s] within the item: rows counts query rows, width counts key rows; a warp per entry.
extern "C" __global__ void score_forward(const float* query, const float* key, float* out, int query_rows, int depth,
                                         float scale, int rows, int width) {
  const unsigned entry = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (entry >= (unsigned)rows * (unsigned)width) return;
  const unsigned r = entry / (unsigned)width, c = entry % (unsigned)width;
  const float* q = query + (long)r * depth;
  const float* k = key + ((long)(r / query_rows) * width + c) * depth;
  float sum = 0.f;
#pragma unroll 4
  for (int i = lane; i < depth; i += 32) sum = fmaf(q[i], k[i], sum);
  sum = warp_sum(sum);
  if (lane == 0) out[entry] = sum * scale;
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
