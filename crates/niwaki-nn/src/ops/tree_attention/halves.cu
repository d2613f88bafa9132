// The attention of kernel.cu where all is stored in halves: the same tiles, products of bf16 with sums in f32. A block's threads are
// groups: each takes every so manyth of the tiles, and their sums are added up in the end. Its backward pass is one launch: blocks for
// the queries' cotangents, and beside them blocks for the keys' and values'. Sums have one order: same bits every time.
// With `turns`, [row, pair] of cosine and sine, queries and keys were turned before: their cotangents are turned back. Constants:
// TREE_DEPTH, the columns of a head, a multiple of 16; TREE_MANY, the rows of a block: 32 where so few blocks share the device that
// groups are worth it, else 64.

#define D TREE_DEPTH
#define PITCH (D + 8)      // of a tile's rows: eight of them start in different banks
#define STEPS (D / 16)     // of sixteen columns
#define COLUMNS (D / 8)    // of eight columns
#define TILES (WORD / 8)   // of eight rows of a tile
#define MATRIX (WORD * PITCH * 2)  // bytes of a tile's rows
#define AHEAD 2            // tiles that are there or on their way
#define GROUP (2 * MANY)   // threads that work together
#define FORWARD_GROUPS (MANY == 64 ? 1 : D <= 64 ? 4 : 2)  // most that a block has
#define BACKWARD_GROUPS (MANY == 64 ? 1 : 2)
#define KEPT (COLUMNS * 4) // sums of a thread
#define SHARES (GROUP / WORD)  // threads that share a row of a tile

__device__ __forceinline__ int group() { return threadIdx.x / GROUP; }
__device__ __forceinline__ int groups() { return blockDim.x / GROUP; }

// Waits for all threads of this group.
__device__ __forceinline__ void meet() { asm volatile("bar.sync %0, %1;" ::"r"(group() + 1), "n"(GROUP) : "memory"); }

__device__ __forceinline__ unsigned two_halves(float low, float high) {
  unsigned both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

__device__ __forceinline__ float low_half(unsigned both) { return __uint_as_float(both << 16); }
__device__ __forceinline__ float high_half(unsigned both) { return __uint_as_float(both & 0xffff0000u); }

// Over the four lanes that share a row.
__device__ __forceinline__ float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ __forceinline__ float row_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// Four 8 x 8 matrices of shared memory, eight rows of 16 bytes each; lane 8 i + r names row r of matrix i. Lane 4 g + t gets
// entries 2 t and 2 t + 1 of row g.
__device__ __forceinline__ void read_matrices(unsigned (&x)[4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(row));
}

// The same transposed.
__device__ __forceinline__ void read_transposed(unsigned (&x)[4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(row));
}

// c += a b, [16, 8] += [16, 16] [16, 8]. Lane 4 g + t holds the sums of rows g and g + 8, columns 2 t and 2 t + 1.
__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <int N> __device__ __forceinline__ void clear(float (&c)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) c[n][i] = 0.f;
}

// c = rows m^T, m a tile in shared memory.
__device__ __forceinline__ void compare(const unsigned (&rows)[STEPS][4], unsigned m, float (&c)[TILES][4]) {
  const int lane = threadIdx.x % 32;
  m += ((lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 8) * 2;
  clear(c);
#pragma unroll
  for (int k = 0; k < STEPS; ++k)
#pragma unroll
    for (int n = 0; n < TILES; n += 2) {
      unsigned b[4];
      read_matrices(b, m + (8 * n * PITCH + 16 * k) * 2);
      multiply(c[n], rows[k], b[0], b[1]);
      multiply(c[n + 1], rows[k], b[2], b[3]);
    }
}

// c += left m, m a tile in shared memory.
__device__ __forceinline__ void combine_rows(float (&c)[COLUMNS][4], const float (&left)[TILES][4], unsigned m) {
  const int lane = threadIdx.x % 32;
  m += ((lane / 8 % 2 * 8 + lane % 8) * PITCH + lane / 16 * 8) * 2;
#pragma unroll
  for (int k = 0; k < TILES; k += 2) {
    const unsigned a[4] = {two_halves(left[k][0], left[k][1]), two_halves(left[k][2], left[k][3]),
                           two_halves(left[k + 1][0], left[k + 1][1]), two_halves(left[k + 1][2], left[k + 1][3])};
#pragma unroll
    for (int n = 0; n < COLUMNS; n += 2) {
      unsigned b[4];
      read_transposed(b, m + (8 * k * PITCH + 8 * n) * 2);
      multiply(c[n], a, b[0], b[1]);
      multiply(c[n + 1], a, b[2], b[3]);
    }
  }
}

// A head's columns of this lane's two rows, as left operands.
__device__ __forceinline__ void take_rows(const Half* from, long pitch, const int (&row)[2], unsigned (&to)[STEPS][4]) {
#pragma unroll
  for (int k = 0; k < STEPS; ++k)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      to[k][j] = *(const unsigned*)(from + row[j % 2] * pitch + 16 * k + j / 2 * 8 + 2 * (threadIdx.x % 4));
}

__device__ __forceinline__ void put_two(Half* to, float x, float y, int add) {
  unsigned* place = (unsigned*)to;
  if (add) {
    const unsigned old = *place;
    x += low_half(old);
    y += high_half(old);
  }
  *place = two_halves(x, y);
}

// Tiles of N matrices: the one that is worked on and the next ones.
template <int N> struct Stages {
  const Half* from[N];
  long pitch[N];
  unsigned room;  // [AHEAD][N][WORD, PITCH]
  int rows;

  // Where a matrix of a stage lies.
  __device__ __forceinline__ unsigned at(int which, int matrix) const { return room + (which * N + matrix) * MATRIX; }

  // Starts to copy a head's columns of a tile of rows, zero behind the last: one commit, empty where there is no such tile.
  __device__ __forceinline__ void fetch(int tile, int which) const {
    const int start = tile * WORD;
    if (start < rows) {
#pragma unroll
      for (int m = 0; m < N; ++m)
#pragma unroll
        for (int i = threadIdx.x % GROUP; i < WORD * COLUMNS; i += GROUP) {
          const int s = i / COLUMNS, c = i % COLUMNS * 8;
          const bool there = start + s < rows;
          asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at(which, m) + (s * PITCH + c) * 2),
                       "l"(from[m] + (there ? (start + s) * pitch[m] + c : 0)), "r"(there ? 16 : 0));
        }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }

  // Waits until all threads have all tiles but the last.
  __device__ __forceinline__ void await() const {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    meet();
  }
};

// Bytes of a group's stages of so many matrices.
constexpr __device__ int stages(int matrices) { return AHEAD * matrices * MATRIX; }

// Puts a thread's sums where its group had its stages, number by number, and waits for all groups. What was there before is no longer
// read. Groups lie `apart` floats from each other.
__device__ __forceinline__ void lay_out(const float (&from)[COLUMNS][4], float* room, int apart) {
  float* mine = room + group() * apart + threadIdx.x % GROUP;
#pragma unroll
  for (int n = 0; n < COLUMNS; ++n)
#pragma unroll
    for (int j = 0; j < 4; ++j) mine[(4 * n + j) * GROUP] = from[n][j];
  __syncthreads();
}

// A sum of this thread's place over all groups, each times its factor.
__device__ __forceinline__ float over_groups(const float* room, int n, int j, const float (&factor)[FORWARD_GROUPS]) {
  const float* from = room + (4 * n + j) * GROUP + threadIdx.x % GROUP;
  float sum = 0.f;
#pragma unroll
  for (int g = 0; g < FORWARD_GROUPS; ++g)
    if (g < groups()) sum = fmaf(factor[g], from[g * (stages(2) / 4)], sum);
  return sum;
}

// The same in the backward pass, where no factors are.
__device__ __forceinline__ float over_groups(const float* room, int n, int j) {
  const float* from = room + (4 * n + j) * GROUP + threadIdx.x % GROUP;
  float sum = 0.f;
#pragma unroll
  for (int g = 0; g < BACKWARD_GROUPS; ++g)
    if (g < groups()) sum += from[g * (stages(3) / 4)];
  return sum;
}

// Whether the bit of a sum's column is set.
__device__ __forceinline__ bool sees(unsigned bits, int n, int j) {
  return bits >> (8 * n + 2 * (threadIdx.x % 4) + j % 2) & 1;
}

// The rows of a block, of which this lane has two, and the tiles that concern them.
struct Block {
  int head, key_head, words, row[2];
  bool there[2];
  long item, base;
  const unsigned* todo;

  __device__ __forceinline__ Block(int block, int blocks, const unsigned* tiles_of, int heads, int key_heads, int rows)
      : head(blockIdx.y), key_head(head / (heads / key_heads)), words((rows + WORD - 1) / WORD), item(blockIdx.z),
        base(item * rows), todo(tiles_of + (item * blocks + block) * ((words + 31) / 32)) {
    const int first = block * MANY + threadIdx.x % GROUP / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      there[i] = first + 8 * i < rows;
      row[i] = min(first + 8 * i, rows - 1);
    }
  }

  // Which rows of a tile this lane's two rows see.
  __device__ __forceinline__ void look(const unsigned* ways, int tile, unsigned (&seen)[2]) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) seen[i] = there[i] && tile < words ? ways[(base + row[i]) * words + tile] : 0;
  }
};

// The set ones of a block's tiles, one after the other.
struct Walk {
  const unsigned* bits;
  int tiles, word;
  unsigned left;

  __device__ __forceinline__ explicit Walk(const Block& b) : bits(b.todo), tiles(b.words), word(0), left(b.todo[0]) {}

  // The next but `skipped`; `tiles` where none is left.
  __device__ __forceinline__ int next(int skipped) {
    for (;; --skipped) {
      while (!left) {
        if (32 * ++word >= tiles) return tiles;
        left = bits[word];
      }
      const int tile = 32 * word + __ffs(left) - 1;
      left &= left - 1;
      if (skipped == 0) return tile;
    }
  }
};

#define TREE_OPERANDS                                                                                                   \
  const Half *query, long q_pitch, const Half *key, long k_pitch, const Half *value, long v_pitch

// Block: MANY rows of a head of an item. saved = log of the sum [item, heads, rows].
extern "C" __global__ void __launch_bounds__(GROUP * FORWARD_GROUPS, D <= 64 ? 512 / (GROUP * FORWARD_GROUPS) : 1)
    tree_forward(TREE_OPERANDS, Half* out, long out_pitch, float* saved, const unsigned* ways, const unsigned* seen_tiles,
                 int heads, int key_heads, int rows, float scale) {
  extern __shared__ __align__(16) unsigned char room[];
  const Block b(blockIdx.x, gridDim.x, seen_tiles, heads, key_heads, rows);
  const Stages<2> tiles = {{key + b.base * k_pitch + b.key_head * D, value + b.base * v_pitch + b.key_head * D},
                           {k_pitch, v_pitch},
                           (unsigned)__cvta_generic_to_shared(room) + group() * stages(2),
                           rows};
  Walk walk(b);
  int tile = walk.next(group());
  tiles.fetch(tile, 0);
  unsigned seen[2], later[2], q[STEPS][4];
  b.look(ways, tile, seen);
  float sum[COLUMNS][4], top[2] = {-3.0e38f, -3.0e38f}, total[2] = {0.f, 0.f};
  take_rows(query + b.base * q_pitch + b.head * D, q_pitch, b.row, q);
  clear(sum);
  for (int which = 0; tile < b.words; which ^= 1) {
    tile = walk.next(groups() - 1);
    tiles.fetch(tile, which ^ 1);
    b.look(ways, tile, later);
    tiles.await();
    if (__any_sync(~0u, seen[0] | seen[1])) {
      float p[TILES][4];
      compare(q, tiles.at(which, 0), p);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float high = top[i], part = 0.f;
#pragma unroll
        for (int n = 0; n < TILES; ++n)
#pragma unroll
          for (int j = 2 * i; j < 2 * i + 2; ++j) {
            p[n][j] *= scale;
            high = fmaxf(high, sees(seen[i], n, j) ? p[n][j] : -3.0e38f);
          }
        high = row_max(high);
        const float shrink = __expf(top[i] - high);
        top[i] = high;
#pragma unroll
        for (int n = 0; n < TILES; ++n)
#pragma unroll
          for (int j = 2 * i; j < 2 * i + 2; ++j) {
            p[n][j] = sees(seen[i], n, j) ? __expf(p[n][j] - high) : 0.f;
            part += p[n][j];
          }
        total[i] = fmaf(total[i], shrink, row_sum(part));
#pragma unroll
        for (int n = 0; n < COLUMNS; ++n)
#pragma unroll
          for (int j = 2 * i; j < 2 * i + 2; ++j) sum[n][j] *= shrink;
      }
      combine_rows(sum, p, tiles.at(which, 1));
    }
    meet();
    seen[0] = later[0];
    seen[1] = later[1];
  }
  float* mine = (float*)room + group() * (stages(2) / 4) + KEPT * GROUP + threadIdx.x % GROUP;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    mine[i * GROUP] = top[i];
    mine[(2 + i) * GROUP] = total[i];
  }
  lay_out(sum, (float*)room, stages(2) / 4);
  float factor[2][FORWARD_GROUPS];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float* stats = (const float*)room + (KEPT + i) * GROUP + threadIdx.x % GROUP;
    float high = -3.0e38f, all = 0.f;
    for (int g = 0; g < groups(); ++g) high = fmaxf(high, stats[g * (stages(2) / 4)]);
#pragma unroll
    for (int g = 0; g < FORWARD_GROUPS; ++g) {
      factor[i][g] = 0.f;
      if (g >= groups()) continue;
      factor[i][g] = __expf(stats[g * (stages(2) / 4)] - high);
      all = fmaf(factor[i][g], stats[g * (stages(2) / 4) + 2 * GROUP], all);
    }
    if (saved && b.there[i] && threadIdx.x % 4 == 0 && group() == 0)
      saved[(b.item * heads + b.head) * rows + b.row[i]] = high + logf(all);
#pragma unroll
    for (int g = 0; g < FORWARD_GROUPS; ++g) factor[i][g] /= all;
  }
  for (int n = group(); n < COLUMNS; n += groups())
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (!b.there[i]) continue;
      const float x = over_groups((const float*)room, n, 2 * i, factor[i]), y = over_groups((const float*)room, n, 2 * i + 1, factor[i]);
      put_two(out + (b.base + b.row[i]) * out_pitch + b.head * D + 8 * n + 2 * (threadIdx.x % 4), x, y, 0);
    }
}

// The cotangent of a block's queries.
__device__ __forceinline__ void pull_queries(TREE_OPERANDS, const Half* out, const Half* dout, long out_pitch,
                                             const float* saved, const unsigned* ways, const float2* turns, Half* dquery,
                                             long dq_pitch, int add, int heads,
                                             int rows, float scale, const Block& b, unsigned char* all) {
  const Stages<2> tiles = {{key + b.base * k_pitch + b.key_head * D, value + b.base * v_pitch + b.key_head * D},
                           {k_pitch, v_pitch},
                           (unsigned)__cvta_generic_to_shared(all) + group() * stages(3),
                           rows};
  Walk walk(b);
  int tile = walk.next(group());
  tiles.fetch(tile, 0);
  unsigned seen[2], later[2], q[STEPS][4], d[STEPS][4];
  b.look(ways, tile, seen);
  float dq[COLUMNS][4], mean[2] = {0.f, 0.f}, lse[2];
  take_rows(out + b.base * out_pitch + b.head * D, out_pitch, b.row, q);
  take_rows(dout + b.base * out_pitch + b.head * D, out_pitch, b.row, d);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int k = 0; k < STEPS; ++k)
#pragma unroll
      for (int j = i; j < 4; j += 2) {
        mean[i] = fmaf(low_half(q[k][j]), low_half(d[k][j]), mean[i]);
        mean[i] = fmaf(high_half(q[k][j]), high_half(d[k][j]), mean[i]);
      }
    mean[i] = row_sum(mean[i]);
    lse[i] = saved[(b.item * heads + b.head) * rows + b.row[i]];
  }
  take_rows(query + b.base * q_pitch + b.head * D, q_pitch, b.row, q);
  clear(dq);
  for (int which = 0; tile < b.words; which ^= 1) {
    tile = walk.next(groups() - 1);
    tiles.fetch(tile, which ^ 1);
    b.look(ways, tile, later);
    tiles.await();
    if (__any_sync(~0u, seen[0] | seen[1])) {
      float p[TILES][4], dp[TILES][4];
      compare(q, tiles.at(which, 0), p);
      compare(d, tiles.at(which, 1), dp);
#pragma unroll
      for (int n = 0; n < TILES; ++n)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float weight = sees(seen[j / 2], n, j) ? __expf(fmaf(scale, p[n][j], -lse[j / 2])) : 0.f;
          dp[n][j] = scale * weight * (dp[n][j] - mean[j / 2]);
        }
      combine_rows(dq, dp, tiles.at(which, 0));
    }
    meet();
    seen[0] = later[0];
    seen[1] = later[1];
  }
  lay_out(dq, (float*)all, stages(3) / 4);
  for (int n = group(); n < COLUMNS / 2; n += groups())
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (!b.there[i]) continue;
      const int c = 8 * n + 2 * (threadIdx.x % 4), m = n + COLUMNS / 2;
      const float4 by = turns ? *(const float4*)(turns + (b.base + b.row[i]) * (D / 2) + c) : make_float4(1.f, 0.f, 1.f, 0.f);
      const float2 x = make_float2(over_groups((const float*)all, n, 2 * i), over_groups((const float*)all, n, 2 * i + 1));
      const float2 y = make_float2(over_groups((const float*)all, m, 2 * i), over_groups((const float*)all, m, 2 * i + 1));
      Half* to = dquery + (b.base + b.row[i]) * dq_pitch + b.head * D + c;
      put_two(to, x.x * by.x + y.x * by.y, x.y * by.z + y.y * by.w, add);
      put_two(to + D / 2, y.x * by.x - x.x * by.y, y.y * by.z - x.y * by.w, add);
    }
}

// Adds up what the groups have and puts it where a row has 2 D places.
__device__ __forceinline__ void put_part(const float (&from)[COLUMNS][4], float* room, float* to, const Block& b) {
  lay_out(from, room, stages(3) / 4);
  for (int n = group(); n < COLUMNS; n += groups())
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (b.there[i])
        *(float2*)(to + (long)b.row[i] * 2 * D + 8 * n + 2 * (threadIdx.x % 4)) =
            make_float2(over_groups(room, n, 2 * i), over_groups(room, n, 2 * i + 1));
}

// A part of the cotangents of a block's keys and values: from every `parts`th of the tiles of queries that see them, the `part`th
// first. To [rows, 2, D]. Rows of sums are keys here, columns are queries.
__device__ __forceinline__ void pull_keys(TREE_OPERANDS, const Half* out, const Half* dout, long out_pitch, const float* saved,
                                          const unsigned* ways, float* to, int part, int parts, int block, int heads, int rows,
                                          float scale, const Block& b, unsigned char* all) {
  __shared__ __align__(16) float numbers_of[BACKWARD_GROUPS][2][WORD];  // log of the sum and mean
  __shared__ __align__(16) unsigned bits_of[BACKWARD_GROUPS][MANY / WORD][WORD];
  float(&numbers)[2][WORD] = numbers_of[group()];
  unsigned(&bits)[MANY / WORD][WORD] = bits_of[group()];
  const int warp = threadIdx.x % GROUP / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const long first = b.base * out_pitch + b.head * D;
  const Stages<3> tiles = {{query + b.base * q_pitch + b.head * D, dout + first, out + first},
                           {q_pitch, out_pitch, out_pitch},
                           (unsigned)__cvta_generic_to_shared(all) + group() * stages(3),
                           rows};
  // A few threads share a query of a tile: they take its mean together; the first brings the log of the sum, the next ones a word of
  // bits each.
  const int asked = threadIdx.x % GROUP / SHARES, share = threadIdx.x % SHARES, word = block * (MANY / WORD) + share - 1;
  float number = 0.f;
  unsigned bit = 0;
  const auto bring = [&](int tile) {
    const int r = tile * WORD + asked;
    number = 0.f;
    bit = 0;
    if (r >= rows) return;
    if (share == 0) number = saved[(b.item * heads + b.head) * rows + r];
    if (share > 0 && share <= MANY / WORD && word < b.words) bit = ways[(b.base + r) * b.words + word];
  };
  const int skipped = parts * groups() - 1;
  Walk walk(b);
  int tile = walk.next(part * groups() + group());
  tiles.fetch(tile, 0);
  bring(tile);
  unsigned k[STEPS][4], v[STEPS][4];
  float dk[COLUMNS][4], dv[COLUMNS][4];
  take_rows(key + b.base * k_pitch + b.key_head * D, k_pitch, b.row, k);
  take_rows(value + b.base * v_pitch + b.key_head * D, v_pitch, b.row, v);
  clear(dk);
  clear(dv);
  for (int which = 0; tile < b.words; which ^= 1) {
    if (share == 0) numbers[0][asked] = number;
    if (share > 0 && share <= MANY / WORD) bits[share - 1][asked] = bit;
    tile = walk.next(skipped);
    tiles.fetch(tile, which ^ 1);
    bring(tile);
    tiles.await();
    const unsigned queries = tiles.at(which, 0), slopes = tiles.at(which, 1);
    const Half* mine = (const Half*)(all + group() * stages(3) + (which * 3 + 1) * MATRIX) + asked * PITCH + share * (D / SHARES);
    float mean = 0.f;
#pragma unroll
    for (int i = 0; i < D / SHARES; i += 4) {
      const float4 x = stored_four(mine + i), y = stored_four(mine + MATRIX / 2 + i);
      mean = fmaf(x.x, y.x, mean); mean = fmaf(x.y, y.y, mean);
      mean = fmaf(x.z, y.z, mean); mean = fmaf(x.w, y.w, mean);
    }
#pragma unroll
    for (int hop = 1; hop < SHARES; hop *= 2) mean += __shfl_xor_sync(~0u, mean, hop);
    if (share == 0) numbers[1][asked] = mean;
    meet();
    if (__any_sync(~0u, bits[warp / 2][lane] >> warp % 2 * 16 & 0xffff)) {
      float p[TILES][4], ds[TILES][4];
      compare(k, queries, p);
      compare(v, slopes, ds);
#pragma unroll
      for (int n = 0; n < TILES; ++n) {
        const float2 lse = *(const float2*)&numbers[0][8 * n + 2 * t], middle = *(const float2*)&numbers[1][8 * n + 2 * t];
        const uint2 both = *(const uint2*)&bits[warp / 2][8 * n + 2 * t];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float weight = __expf(fmaf(scale, p[n][j], j % 2 ? -lse.y : -lse.x));
          p[n][j] = (j % 2 ? both.y : both.x) >> (warp % 2 * 16 + g + 8 * (j / 2)) & 1 ? weight : 0.f;
          ds[n][j] = scale * p[n][j] * (ds[n][j] - (j % 2 ? middle.y : middle.x));
        }
      }
      combine_rows(dv, p, slopes);
      combine_rows(dk, ds, queries);
    }
    meet();
  }
  put_part(dk, (float*)all, to, b);
  __syncthreads();
  put_part(dv, (float*)all, to + D, b);
}

// Of `1 + parts` sets of blocks the first takes queries, if their cotangent is wanted, the others share out the keys' and values'
// work: sums [item, heads, parts, rows, 2, D].
extern "C" __global__ void __launch_bounds__(GROUP * BACKWARD_GROUPS, D <= 64 ? 384 / (GROUP * BACKWARD_GROUPS) : 1)
    tree_backward(TREE_OPERANDS, const Half* out, const Half* dout, long out_pitch, const float* saved, const unsigned* ways,
                  const unsigned* seen_tiles, const unsigned* seeing_tiles, const float2* turns, Half* dquery, long dq_pitch,
                  int add, float* sums, int parts, int heads, int key_heads, int rows, float scale) {
  extern __shared__ __align__(16) unsigned char room[];
  const int blocks = gridDim.x / (1 + parts), block = blockIdx.x % blocks, set = blockIdx.x / blocks;
  if (set == 0) {
    if (!dquery) return;
    const Block b(block, blocks, seen_tiles, heads, key_heads, rows);
    pull_queries(query, q_pitch, key, k_pitch, value, v_pitch, out, dout, out_pitch, saved, ways, turns, dquery, dq_pitch,
                 add, heads, rows, scale, b, room);
    return;
  }
  const Block b(block, blocks, seeing_tiles, heads, key_heads, rows);
  float* to = sums + ((b.item * heads + b.head) * parts + set - 1) * rows * 2 * D;
  pull_keys(query, q_pitch, key, k_pitch, value, v_pitch, out, dout, out_pitch, saved, ways, to, set - 1, parts, block, heads,
            rows, scale, b, room);
}

// Adds up the parts of the query heads that share a key head; a thread per (item, row, key head, key or value, four columns and
// four of the other half).
extern "C" __global__ void tree_gather(const float* sums, const float2* turns, Half* dkey, long k_pitch, Half* dvalue, long v_pitch,
                                       int add_k, int add_v, int parts, int heads, int key_heads, int rows, long count) {
  const long at = (long)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= count) return;
  const int c = at % (D / 8) * 4, of = at / (D / 8) % 2, key_head = at / (D / 4) % key_heads, share = heads / key_heads;
  const long row = at / (D / 4) / key_heads, item = row / rows;
  Half* to = of ? dvalue : dkey;
  if (!to) return;
  to += row * (of ? v_pitch : k_pitch) + key_head * D + c;
  const float* from = sums + (((item * heads + key_head * share) * parts * rows + row % rows) * 2 + of) * D + c;
  float4 x = make_float4(0.f, 0.f, 0.f, 0.f), y = x;
#pragma unroll 4
  for (int h = 0; h < share * parts; ++h, from += (long)rows * 2 * D) {
    const float4 a = *(const float4*)from, b = *(const float4*)(from + D / 2);
    x.x += a.x; x.y += a.y; x.z += a.z; x.w += a.w;
    y.x += b.x; y.y += b.y; y.z += b.z; y.w += b.w;
  }
  if (turns && !of) {
    const float4* by = (const float4*)(turns + row * (D / 2) + c);
    const float4 first = by[0], second = by[1], a = x, b = y;
    x = make_float4(a.x * first.x + b.x * first.y, a.y * first.z + b.y * first.w, a.z * second.x + b.z * second.y,
                    a.w * second.z + b.w * second.w);
    y = make_float4(b.x * first.x - a.x * first.y, b.y * first.z - a.y * first.w, b.z * second.x - a.z * second.y,
                    b.w * second.z - a.w * second.w);
  }
  if (of ? add_v : add_k) {
    const float4 a = stored_four(to), b = stored_four(to + D / 2);
    x.x += a.x; x.y += a.y; x.z += a.z; x.w += a.w;
    y.x += b.x; y.y += b.y; y.z += b.z; y.w += b.w;
  }
  store_four(to, x);
  store_four(to + D / 2, y);
}
