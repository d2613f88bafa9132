// Whether a row counts and has a neighbour after it (which 2) or before it (1) in its state.
__device__ __forceinline__ bool has(const int* neighbours, long row, int operations, int which) {
  const int bits = neighbours[row], place = (int)(row % operations);
  return bits >= 0 && (bits & which) && (which == 1 ? place > 0 : place + 1 < operations);
}
