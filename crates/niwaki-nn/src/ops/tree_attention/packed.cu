// Tree attention in tiles of 64 rows on Hopper's tensor cores, heads of 64 columns stored in halves. The query heads that share a key
// head are packed: a tile of queries has PACKED rows of the pass with SHARE heads each, so that keys and values are brought once for all
// of them, and sums over heads are the product's own. Groups of four warps share out a block's tiles; what they have is added up in the
// end. Sums have one order: same bits every time. What the kernel before has not made is on its way before that one has ended.
// Constants, besides those of a tile: PACKED_SHARE, the query heads of a key head; PACKED_GROUPS, of warps; PACKED_CLUSTER, the blocks
// that share a tile of keys on the way back.

#define SHARE PACKED_SHARE
#define PACKED (ROWS / SHARE)    // rows of the pass in a tile of queries
#define HEAD 64
#define TILE (ROWS * HEAD * 2)   // bytes of a tile
#define FILLED (PACKED * SHARE)  // rows of a tile of queries
#define LAID (HEAD + 8)          // floats of a row of sums: four rows start in different banks
#define SUMS (ROWS * LAID)
#define CLOSED __int_as_float(0xff800000)  // minus infinity
#define GROUPS PACKED_GROUPS
#define CLUSTER PACKED_CLUSTER
#define ENDED (2 * ROWS / CLUSTER)  // rows of cotangents of keys and values that each of them ends
#define MOST 1024                // rows of a pass, and so of tiles

__device__ __forceinline__ void bring_heads(unsigned to, const Map* map, int head, int row, int item, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
      "l"(map), "r"(0), "r"(head), "r"(row), "r"(item), "r"(barrier)
      : "memory");
}

// d[64, 64] += a[64, 16] b[16, 64], a in registers, b in shared memory with the summed axis across.
__device__ __forceinline__ void multiply_held(float (&d)[KEPT], const unsigned (&a)[4], unsigned long long b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" BY32 "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
               : F16(0), F16(16)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void end_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  await_products<0>();
}

// Keeps values from being moved over this place.
__device__ __forceinline__ void hold(float (&d)[KEPT]) {
#pragma unroll
  for (int i = 0; i < KEPT; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

__device__ __forceinline__ void hold(unsigned (&a)[4][4]) {
#pragma unroll
  for (int i = 0; i < 16; ++i) asm volatile("" : "+r"(a[i / 4][i % 4])::"memory");
}

// d = a b^T of two tiles.
__device__ __forceinline__ void compare(float (&d)[KEPT], unsigned a, unsigned b) {
#pragma unroll
  for (int k = 0; k < 4; ++k) multiply<0, 0>(d, descriptor(a, 128, 16) + 2 * k, descriptor(b, 128, 16) + 2 * k, k);
}

// d += a b, b a tile.
__device__ __forceinline__ void combine(float (&d)[KEPT], const unsigned (&a)[4][4], unsigned b) {
#pragma unroll
  for (int k = 0; k < 4; ++k) multiply_held(d, a[k], descriptor(b, 128, TILE) + 128 * k);
}

// Sums as left operands.
__device__ __forceinline__ void round_sums(const float (&d)[KEPT], unsigned (&a)[4][4]) {
#pragma unroll
  for (int i = 0; i < 16; ++i) a[i / 4][i % 4] = two_halves(d[2 * i], d[2 * i + 1]);
}

// Over the four lanes that share a row.
__device__ __forceinline__ float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ __forceinline__ int group() { return GROUPS > 1 ? threadIdx.x >> 7 : 0; }

// Waits for all threads of this group.
__device__ __forceinline__ void meet() { asm volatile("bar.sync %0, 128;" ::"r"(group() + 1) : "memory"); }

__device__ __forceinline__ void begin_barriers(unsigned long long* barriers, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barriers + i)));
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void clear(float (&d)[KEPT]) {
#pragma unroll
  for (int i = 0; i < KEPT; ++i) d[i] = 0.f;
}

// Two to the power of x.
__device__ __forceinline__ float power(float x) {
  asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
  return x;
}

// Closes what a lane's two rows do not see of a tile.
__device__ __forceinline__ void close(float (&d)[KEPT], const unsigned (&seen)[2][2]) {
  if (__all_sync(~0u, (seen[0][0] & seen[0][1] & seen[1][0] & seen[1][1]) == ~0u)) return;
  const int t = 2 * (threadIdx.x & 3);
#pragma unroll
  for (int i = 0; i < KEPT; ++i)
    if (!(seen[i / 2 % 2][i / 16] >> t & 1u << (i / 4 % 4 * 8 + i % 2))) d[i] = CLOSED;
}

// The place in another block of the cluster.
__device__ __forceinline__ unsigned at_block(const void* mine, int rank) {
  unsigned at;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(shared_address(mine)), "r"(rank));
  return at;
}

__device__ __forceinline__ void put_there(unsigned to, float4 x) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w) : "memory");
}

// Waits for all threads of the cluster.
__device__ __forceinline__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Lays out this lane's sums, row by row; `to` is where the first row of its warp goes.
__device__ __forceinline__ void lay_out(const float (&d)[KEPT], float* to) {
  const int lane = threadIdx.x & 31;
  to += lane / 4 * LAID + 2 * (lane & 3);
#pragma unroll
  for (int i = 0; i < KEPT; i += 2) *(float2*)(to + i / 2 % 2 * 8 * LAID + i / 4 * 8) = make_float2(d[i], d[i + 1]);
}

__device__ __forceinline__ void add_four(float4& x, float4 y) {
  x.x += y.x; x.y += y.y; x.z += y.z; x.w += y.w;
}

__device__ __forceinline__ void add_four(float4& x, float f, float4 y) {
  x.x = fmaf(f, y.x, x.x); x.y = fmaf(f, y.y, x.y); x.z = fmaf(f, y.z, x.z); x.w = fmaf(f, y.w, x.w);
}

__device__ __forceinline__ float dot_four(float4 x, float4 y) { return x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w; }

// A few columns of a row, and as many of the other half.
struct Eight {
  float4 x, y;
};

__device__ __forceinline__ Eight halves_of(const float* from) { return {*(const float4*)from, *(const float4*)(from + HEAD / 2)}; }

// Where a tile of queries lies.
struct Rows {
  int first, filled;  // rows of the pass; rows of the tile
  __device__ __forceinline__ Rows(int tile, int rows) : first(tile * PACKED), filled(min(PACKED, rows - tile * PACKED) * SHARE) {}
};

// Finds the tiles of keys that rows of a tile of queries see, and keeps what each row sees: [PACKED, words].
__device__ __forceinline__ int find_keys(const unsigned* ways, const Rows& at, int words, unsigned* bits, int* places) {
  const int tiles = (words + 1) / 2;
  for (int i = threadIdx.x; i < tiles; i += blockDim.x) places[i] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < at.filled / SHARE * words; i += blockDim.x) {
    bits[i] = ways[(long)at.first * words + i];
    if (bits[i]) places[i % words / 2] = 1;
  }
  return list_places(places, tiles);
}

// What this lane's two rows of a tile of queries see of a tile of keys.
__device__ __forceinline__ void look(const unsigned* bits, const Rows& at, int words, int tile, unsigned (&seen)[2][2]) {
  const int first = (threadIdx.x & 127) / 32 * 16 + (threadIdx.x & 31) / 4;
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int w = 0; w < 2; ++w) {
      const int m = first + 8 * i, word = 2 * tile + w;
      // A place without a row sees all, whatever comes of it.
      seen[i][w] = m >= at.filled ? ~0u : word < words ? bits[m / SHARE * words + word] : 0;
    }
}

struct Forward {
  Map query;       // [item, row, head, column], tiles of PACKED rows and SHARE heads
  Map key, value;  // the same with key heads, tiles of 64 rows
  const unsigned* ways;  // [item, row, words]: the rows that each one sees, as bits
  float* saved;    // log of the sum [item, head, row], to base two, where it is asked for
  Half* out;       // [item, row, head, column]
  int heads, rows;
  float scale;     // of scores, as powers of two
};

// Block: a tile of queries of a key head of an item.
extern "C" __global__ void __launch_bounds__(128 * GROUPS)
    attend_forward(const __grid_constant__ Forward job) {
  extern __shared__ unsigned char raw[];
  __shared__ __align__(8) unsigned long long barriers[1 + 2 * GROUPS];
  __shared__ __align__(8) float2 stats[GROUPS][ROWS];  // highest and sum
  __shared__ int places[MOST / ROWS];
  const unsigned base = (shared_address(raw) + 1023) & ~1023u;
  unsigned char* const room = raw + (base - shared_address(raw));
  unsigned* const bits = (unsigned*)(room + (1 + 4 * GROUPS) * TILE);
  const unsigned mine = base + (1 + 4 * group()) * TILE, full = shared_address(barriers + 1 + 2 * group());
  const int lane = threadIdx.x & 31, warp = (threadIdx.x & 127) / 32, key_head = blockIdx.y, item = blockIdx.z;
  const int words = (job.rows + 31) / 32;
  const bool leads = (threadIdx.x & 127) == 0;
  const Rows at(blockIdx.x, job.rows);
  let_next_begin();
  begin_barriers(barriers, 1 + 2 * GROUPS);
  const int count = find_keys(job.ways + (long)item * job.rows * words, at, words, bits, places);
  const auto which = [&](int n) { return n * GROUPS + group(); };
  const auto fetch = [&](int n) {
    if (!leads || which(n) >= count) return;
    const unsigned to = mine + (n & 1) * 2 * TILE, barrier = full + 8 * (n & 1);
    expect(barrier, 2 * TILE);
    bring_heads(to, &job.key, key_head, places[which(n)] * ROWS, item, barrier);
    bring_heads(to + TILE, &job.value, key_head, places[which(n)] * ROWS, item, barrier);
  };
  await_previous();
  if (threadIdx.x == 0) {
    expect(shared_address(barriers), FILLED * HEAD * 2);
    bring_heads(base, &job.query, key_head * SHARE, at.first, item, shared_address(barriers));
  }
  fetch(0);
  fetch(1);
  float sum[KEPT], top[2] = {-1.0e30f, -1.0e30f}, total[2] = {0.f, 0.f};
  clear(sum);
  await(shared_address(barriers), 0);
  for (int n = 0; which(n) < count; ++n) {
    const unsigned keys = mine + (n & 1) * 2 * TILE;
    unsigned seen[2][2], a[4][4];
    look(bits, at, words, places[which(n)], seen);
    float p[KEPT];
    await(full + 8 * (n & 1), n >> 1 & 1);
    begin_products();
    compare(p, base, keys);
    hold(p);
    end_products();
    hold(p);
    close(p, seen);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float high = CLOSED, part = 0.f;
#pragma unroll
      for (int i = 0; i < KEPT; ++i)
        if (i / 2 % 2 == h) high = fmaxf(high, p[i]);
      high = fmaxf(row_max(high) * job.scale, top[h]);
      const float shrink = power(top[h] - high);
      top[h] = high;
#pragma unroll
      for (int i = 0; i < KEPT; ++i)
        if (i / 2 % 2 == h) {
          p[i] = power(fmaf(p[i], job.scale, -high));
          part += p[i];
          sum[i] *= shrink;
        }
      total[h] = fmaf(total[h], shrink, part);
    }
    round_sums(p, a);
    hold(sum);
    begin_products();
    combine(sum, a, keys + TILE);
    hold(sum);
    end_products();
    hold(sum);
    hold(a);
    meet();
    fetch(n + 2);
  }
  // Nobody multiplies any more: there is room for sums.
  __syncthreads();
  const int groups = min(count, GROUPS);
  if (group() < groups) {
    lay_out(sum, (float*)room + group() * SUMS + warp * 16 * LAID);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float all = row_sum(total[h]);
      if ((lane & 3) == 0) stats[group()][warp * 16 + lane / 4 + 8 * h] = make_float2(top[h], all);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < ROWS * (HEAD / 8); i += blockDim.x) {
    const int m = i / (HEAD / 8), c = i % (HEAD / 8) * 4, head = key_head * SHARE + m % SHARE;
    if (m >= at.filled) continue;
    const long row = at.first + m / SHARE;
    float high = -1.0e30f, all = 0.f;
#pragma unroll
    for (int g = 0; g < GROUPS; ++g)
      if (g < groups) high = fmaxf(high, stats[g][m].x);
    Eight d = {make_float4(0.f, 0.f, 0.f, 0.f), make_float4(0.f, 0.f, 0.f, 0.f)};
#pragma unroll
    for (int g = 0; g < GROUPS; ++g)
      if (g < groups) {
        const float2 of = stats[g][m];
        const float factor = power(of.x - high);
        const Eight more = halves_of((const float*)room + g * SUMS + m * LAID + c);
        all = fmaf(factor, of.y, all);
        add_four(d.x, factor, more.x);
        add_four(d.y, factor, more.y);
      }
    const float by = __fdividef(1.f, all);
    if (c == 0 && job.saved) job.saved[((long)item * job.heads + head) * job.rows + row] = high + __log2f(all);
    Half* out = job.out + (((long)item * job.rows + row) * job.heads + head) * HEAD + c;
    store_four(out, make_float4(by * d.x.x, by * d.x.y, by * d.x.z, by * d.x.w));
    store_four(out + HEAD / 2, make_float4(by * d.y.x, by * d.y.y, by * d.y.z, by * d.y.w));
  }
}
