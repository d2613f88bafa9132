// Which rows of a tree see which, as bits; all rows of an item lie one after the other, ancestors first.

// Rows of a block, 16 of each warp.
#ifdef TREE_MANY
#define MANY TREE_MANY
#else
#define MANY 64
#endif
#define WORD 32  // rows of a tile: bits of a word

// Bits of the rows that each row sees, [item, rows, words]; then, as bits too, the tiles of rows that the rows of each block see,
// and the tiles whose rows see rows of each block, [item, blocks, halves] both. All is zero before. A warp per row goes up 32 rows at a
// time, as long as each is the parent of the next.
extern "C" __global__ void tree_ways(const int* parent, unsigned* ways, unsigned* seen, unsigned* seeing, int rows, int words,
                                     int blocks, int halves, int count) {
  const long at = ((long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (at >= count) return;
  const long item = at / rows;
  const int* parents = parent + item * rows;
  const int from = (int)(at % rows);
  int word = from / WORD;
  unsigned bits = 0;
  const auto leave = [&] {
    if (lane) return;
    ways[at * words + word] = bits;
    atomicOr(seen + (item * blocks + from / MANY) * halves + word / 32, 1u << word % 32);
    atomicOr(seeing + (item * blocks + word * WORD / MANY) * halves + from / WORD / 32, 1u << from / WORD % 32);
  };
  for (int row = from; row >= 0;) {
    const int mine = row - lane, up = mine >= 0 ? parents[mine] : -1;
    const unsigned straight = __ballot_sync(~0u, mine > 0 && up == mine - 1);
    // The first lane from which the way does not lead to the next one.
    const int turn = min(__ffs(~straight) - 1u, 31u), end = row - turn;
    const int next = __shfl_sync(~0u, up, turn);
    for (int w = row / WORD; w >= end / WORD; --w) {
      if (w != word) {
        leave();
        word = w;
        bits = 0;
      }
      const int top = min(row, w * WORD + WORD - 1), bottom = max(end, w * WORD);
      bits |= ~0u >> (31 - top % WORD) & ~0u << bottom % WORD;
    }
    row = next < end ? next : -1;
  }
  leave();
}

// The first tile from `tile` on whose bit is set; `tiles` if none is.
__device__ __forceinline__ int next_tile(const unsigned* bits, int tile, int tiles) {
  for (int w = tile / 32; 32 * w < tiles; ++w) {
    const unsigned set = bits[w] & (w == tile / 32 ? ~0u << tile % 32 : ~0u);
    if (set) return 32 * w + __ffs(set) - 1;
  }
  return tiles;
}
