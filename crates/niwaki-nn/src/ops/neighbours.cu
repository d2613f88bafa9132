// Whether an operation that counts has a neighbour after it (which 2) or before it (1) in its state, by its bits and its place there.
__device__ __forceinline__ bool beside(int bits, int place, int operations, int which) {
  return bits >= 0 && (bits & which) && (which == 1 ? place > 0 : place + 1 < operations);
}

// The same for a row.
__device__ __forceinline__ bool has(const int* neighbours, long row, int operations, int which) {
  return beside(neighbours[row], (int)(row % operations), operations, which);
}
