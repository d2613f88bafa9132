// Which rows of a tree see which, as bits; all rows of an item lie one after the other, ancestors first.

#define MANY 64  // rows of a block, 16 of each warp
#define WORD 32  // rows of a tile: bits of a word

// Bits of the rows that each row sees, [item, rows, words]; then, as bits too, the tiles of rows that the rows of each block see,
// and the tiles whose rows see rows of each block, [item, blocks, halves] both. All is zero before; a thread per row.
extern "C" __global__ void tree_ways(const int* parent, unsigned* ways, unsigned* seen, unsigned* seeing, int rows, int words,
                                     int blocks, int halves, int count) {
  const long at = (long)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= count) return;
  const long item = at / rows;
  const int* parents = parent + item * rows;
  unsigned* way = ways + at * words;
  const int from = (int)(at % rows);
  int last = -1;
  for (int row = from; row >= 0;) {
    way[row / WORD] |= 1u << row % WORD;
    if (row / WORD != last) {
      last = row / WORD;
      atomicOr(seen + (item * blocks + from / MANY) * halves + last / 32, 1u << last % 32);
      atomicOr(seeing + (item * blocks + row / MANY) * halves + from / WORD / 32, 1u << from / WORD % 32);
    }
    const int up = parents[row];
    row = up < row ? up : -1;
  }
}

// The first tile from `tile` on whose bit is set; `tiles` if none is.
__device__ __forceinline__ int next_tile(const unsigned* bits, int tile, int tiles) {
  for (int w = tile / 32; 32 * w < tiles; ++w) {
    const unsigned set = bits[w] & (w == tile / 32 ? ~0u << tile % 32 : ~0u);
    if (set) return 32 * w + __ffs(set) - 1;
  }
  return tiles;
}
