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
