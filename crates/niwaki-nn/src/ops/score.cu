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
