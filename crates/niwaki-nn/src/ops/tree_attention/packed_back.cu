// The backward pass of packed.cu: clusters of two blocks, some of which have two tiles of queries, the others one of keys.

// Means of the cotangent of what came of attention times that, for every row of a head: a thread takes eight columns.
extern "C" __global__ void __launch_bounds__(256) attend_means(const Half* out, const Half* slope, float* means, long count) {
  let_next_begin();
  const long at = (long)blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.f;
  if (at < count) {
    const Half *a = out + 8 * at, *b = slope + 8 * at;
    sum = dot_four(stored_four(a), stored_four(b)) + dot_four(stored_four(a + 4), stored_four(b + 4));
  }
#pragma unroll
  for (int hop = 1; hop < HEAD / 8; hop *= 2) sum += __shfl_xor_sync(~0u, sum, hop);
  if (at < count && at % (HEAD / 8) == 0) means[at / (HEAD / 8)] = sum;
}

struct Backward {
  Map query, slope;  // queries and the cotangent of what came of them, as above
  Map key, value;
  const Half *queries, *keys, *values;  // where they begin
  const unsigned* ways;
  const float* saved;
  const float* means;   // of the cotangent times what it belongs to [item, row, head]
  const float2* turns;  // [item, row, pair] of cosine and sine
  const float* scales;  // [item, row]: cotangents are scaled by them, where there are some
  float* row_sums;      // [item, row, head + 2 key heads]: sums of cotangent times what it belongs to, not scaled, where asked for
  Half* out;            // [item, row, head + 2 key heads, column]: cotangents, turned back
  int heads, key_heads, rows;
  int q_pitch, k_pitch, v_pitch;
  float scale, natural;  // of scores, as powers of two and of e
};

#define ENDING (GROUPS > 1 ? 256 : 128)  // threads that end rows, eight to a row
#define STEP (ENDING / 8)

// What the end of a row needs.
struct Ending {
  Eight own;
  float4 first, second;
  float scale;

  __device__ __forceinline__ void bring(const Backward& job, const Half* from, long row, bool turned, int c) {
    own = {stored_four(from + c), stored_four(from + c + HEAD / 2)};
    scale = job.scales ? job.scales[row] : 1.f;
    first = second = make_float4(1.f, 0.f, 1.f, 0.f);
    if (!turned) return;
    const float4* by = (const float4*)(job.turns + row * (HEAD / 2) + c);
    first = by[0];
    second = by[1];
  }

  // Eight lanes side by side have all of a row of a head.
  __device__ __forceinline__ void end(const Backward& job, const Eight& d, float by, long row, int head, int c, bool there) const {
    const int heads = job.heads + 2 * job.key_heads;
    float sum = dot_four(d.x, own.x) + dot_four(d.y, own.y);
#pragma unroll
    for (int hop = 1; hop < 8; hop *= 2) sum += __shfl_xor_sync(~0u, sum, hop);
    if (!there) return;
    if (c == 0 && job.row_sums) job.row_sums[row * heads + head] = by * sum;
    const float f = by * scale;
    const float4 a = make_float4(f * d.x.x, f * d.x.y, f * d.x.z, f * d.x.w), b = make_float4(f * d.y.x, f * d.y.y, f * d.y.z, f * d.y.w);
    Half* to = job.out + (row * heads + head) * HEAD + c;
    store_four(to, make_float4(a.x * first.x + b.x * first.y, a.y * first.z + b.y * first.w, a.z * second.x + b.z * second.y,
                               a.w * second.z + b.w * second.w));
    store_four(to + HEAD / 2, make_float4(b.x * first.x - a.x * first.y, b.y * first.z - a.y * first.w,
                                          b.z * second.x - a.z * second.y, b.w * second.z - a.w * second.w));
  }
};

// Adds up what `count` groups have of a row.
template <int COUNT> __device__ __forceinline__ Eight add_groups(const float* from, int apart) {
  Eight d = halves_of(from);
#pragma unroll
  for (int g = 1; g < COUNT; ++g) {
    const Eight more = halves_of(from + g * apart);
    add_four(d.x, more.x);
    add_four(d.y, more.y);
  }
  return d;
}

// What blocks of the backward pass have in shared memory, besides tiles: two that stay, then two stages of two for each group.
struct Shared {
  unsigned long long barriers[2 + 2 * GROUPS];
  int places[MOST];
  float2 numbers[GROUPS][2][ROWS];      // stage; minus log of the sum, mean
  unsigned bits[GROUPS][2][2][ROWS];    // stage; word
};

// The cotangents of a tile of queries of a key head.
__device__ __forceinline__ void pull_queries(const Backward& job, Shared& shared, unsigned char* room, unsigned base, int tile,
                                             int key_head) {
  const unsigned mine = base + (2 + 4 * group()) * TILE, full = shared_address(shared.barriers + 2 + 2 * group());
  const unsigned fixed = shared_address(shared.barriers);
  unsigned* const bits = (unsigned*)(room + (2 + 4 * GROUPS) * TILE);
  const int lane = threadIdx.x & 31, item = blockIdx.y, words = (job.rows + 31) / 32;
  const bool leads = (threadIdx.x & 127) == 0;
  const Rows at(tile, job.rows);
  const int count = find_keys(job.ways + (long)item * job.rows * words, at, words, bits, shared.places);
  const auto fetch = [&](int n) {
    const int which = group() + n * GROUPS;
    if (!leads || which >= count) return;
    const unsigned to = mine + (n & 1) * 2 * TILE, barrier = full + 8 * (n & 1);
    expect(barrier, 2 * TILE);
    bring_heads(to, &job.key, key_head, shared.places[which] * ROWS, item, barrier);
    bring_heads(to + TILE, &job.value, key_head, shared.places[which] * ROWS, item, barrier);
  };
  if (threadIdx.x == 0) {
    expect(fixed, FILLED * HEAD * 2);
    bring_heads(base, &job.query, key_head * SHARE, at.first, item, fixed);
  }
  fetch(0);
  fetch(1);
  float lse[2], mean[2], dq[KEPT];
  const int first = (threadIdx.x & 127) / 32 * 16 + lane / 4;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int m = min(first + 8 * h, at.filled - 1), head = key_head * SHARE + m % SHARE;
    lse[h] = job.saved[((long)item * job.heads + head) * job.rows + at.first + m / SHARE];
  }
  clear(dq);
  await_previous();
  if (threadIdx.x == 0) {
    expect(fixed + 8, FILLED * HEAD * 2);
    bring_heads(base + TILE, &job.slope, key_head * SHARE, at.first, item, fixed + 8);
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int m = min(first + 8 * h, at.filled - 1), head = key_head * SHARE + m % SHARE;
    mean[h] = job.means[((long)item * job.rows + at.first + m / SHARE) * job.heads + head];
  }
  await(fixed, 0);
  await(fixed + 8, 0);
  for (int n = 0; group() + n * GROUPS < count; ++n) {
    const unsigned keys = mine + (n & 1) * 2 * TILE;
    unsigned seen[2][2], a[4][4];
    look(bits, at, words, shared.places[group() + n * GROUPS], seen);
    float p[KEPT], d[KEPT];
    await(full + 8 * (n & 1), n >> 1 & 1);
    begin_products();
    compare(p, base, keys);
    compare(d, base + TILE, keys + TILE);
    hold(p);
    hold(d);
    end_products();
    hold(p);
    hold(d);
    close(p, seen);
#pragma unroll
    for (int i = 0; i < KEPT; ++i) {
      const int h = i / 2 % 2;
      d[i] = power(fmaf(p[i], job.scale, -lse[h])) * (d[i] - mean[h]);
    }
    round_sums(d, a);
    hold(dq);
    begin_products();
    combine(dq, a, keys);
    hold(dq);
    end_products();
    hold(dq);
    hold(a);
    meet();
    fetch(n + 2);
  }
  // A thread has a few columns of a few rows.
  const int c = threadIdx.x % 8 * 4;
  long row[ROWS / STEP];
  Ending ending[ROWS / STEP];
  if (threadIdx.x < ENDING)
#pragma unroll
    for (int i = 0; i < ROWS / STEP; ++i) {
      const int m = min(threadIdx.x / 8 + STEP * i, at.filled - 1);
      row[i] = (long)item * job.rows + at.first + m / SHARE;
      ending[i].bring(job, job.queries + row[i] * job.q_pitch + (key_head * SHARE + m % SHARE) * HEAD, row[i], true, c);
    }
  __syncthreads();
  lay_out(dq, (float*)room + group() * SUMS + (threadIdx.x & 127) / 32 * 16 * LAID);
  __syncthreads();
  if (threadIdx.x < ENDING)
#pragma unroll
    for (int i = 0; i < ROWS / STEP; ++i) {
      const int m = threadIdx.x / 8 + STEP * i;
      const Eight d = add_groups<GROUPS>((const float*)room + m * LAID + c, SUMS);
      ending[i].end(job, d, job.natural, row[i], key_head * SHARE + m % SHARE, c, m < at.filled);
    }
}

// The cotangents of a tile of keys and of its values, with the other block of the cluster. Rows of sums are keys, columns queries.
__device__ __forceinline__ void pull_keys(const Backward& job, Shared& shared, unsigned char* room, unsigned base, int tile,
                                          int key_head, int rank) {
  const unsigned mine = base + (2 + 4 * group()) * TILE, full = shared_address(shared.barriers + 2 + 2 * group());
  const unsigned fixed = shared_address(shared.barriers);
  const int lane = threadIdx.x & 31, warp = (threadIdx.x & 127) / 32, item = blockIdx.y, words = (job.rows + 31) / 32;
  const bool leads = (threadIdx.x & 127) == 0;
  const int tiles = (job.rows + PACKED - 1) / PACKED;
  const unsigned* ways = job.ways + (long)item * job.rows * words;
  // Before the others are sent anything they have to be there.
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  if (threadIdx.x == 0) {
    expect(fixed, 2 * TILE);
    bring_heads(base, &job.key, key_head, tile * ROWS, item, fixed);
    bring_heads(base + TILE, &job.value, key_head, tile * ROWS, item, fixed);
  }
  for (int i = threadIdx.x; i < tiles; i += blockDim.x) shared.places[i] = 0;
  // What is never brought of a stage's tiles is zero: it is summed.
  for (int i = threadIdx.x; i < 4 * GROUPS * (ROWS - FILLED) * 8; i += blockDim.x) {
    const int of = i / ((ROWS - FILLED) * 8), at = i % ((ROWS - FILLED) * 8);
    *(uint4*)(room + (2 + of) * TILE + FILLED * 128 + at * 16) = make_uint4(0, 0, 0, 0);
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  for (int row = tile * ROWS + threadIdx.x; row < job.rows; row += blockDim.x) {
    unsigned any = ways[(long)row * words + 2 * tile];
    if (2 * tile + 1 < words) any |= ways[(long)row * words + 2 * tile + 1];
    if (any) shared.places[row / PACKED] = 1;
  }
  const int count = list_places(shared.places, tiles);
  const auto which = [&](int n) { return (n * GROUPS + group()) * CLUSTER + rank; };
  const auto fetch = [&](int n, const Map* map, int matrix) {
    if (!leads || which(n) >= count) return;
    const unsigned barrier = full + 8 * (n & 1);
    if (matrix == 0) expect(barrier, 2 * FILLED * HEAD * 2);
    bring_heads(mine + ((n & 1) * 2 + matrix) * TILE, map, key_head * SHARE, shared.places[which(n)] * PACKED, item, barrier);
  };
  fetch(0, &job.query, 0);
  fetch(1, &job.query, 0);
  // Half of a group's threads bring the numbers of a query each, the others what it sees. A place without a query is zero and sees all.
  const int asked = threadIdx.x & 63;
  const bool brings_bits = threadIdx.x & 64;
  float number = 0.f, mean = 0.f;
  unsigned bit[2] = {0, 0};
  const auto bring = [&](int n, bool means) {
    const Rows at(which(n) < count ? shared.places[which(n)] : 0, job.rows);
    const bool there = which(n) < count && asked < at.filled;
    const long row = at.first + asked / SHARE;
    const int head = key_head * SHARE + asked % SHARE;
    if (means) {
      mean = there && !brings_bits ? job.means[((long)item * job.rows + row) * job.heads + head] : 0.f;
      return;
    }
    number = there && !brings_bits ? -job.saved[((long)item * job.heads + head) * job.rows + row] : 0.f;
#pragma unroll
    for (int w = 0; w < 2; ++w) bit[w] = !there || !brings_bits ? ~0u : 2 * tile + w < words ? ways[row * words + 2 * tile + w] : 0;
  };
  bring(0, false);
  float dk[KEPT], dv[KEPT];
  clear(dk);
  clear(dv);
  await_previous();
  fetch(0, &job.slope, 1);
  fetch(1, &job.slope, 1);
  bring(0, true);
  await(fixed, 0);
  for (int n = 0; which(n) < count; ++n) {
    const unsigned queries = mine + (n & 1) * 2 * TILE, slopes = queries + TILE;
    float2(&numbers)[ROWS] = shared.numbers[group()][n & 1];
    unsigned(&bits)[2][ROWS] = shared.bits[group()][n & 1];
    if (brings_bits) {
      bits[0][asked] = bit[0];
      bits[1][asked] = bit[1];
    } else {
      numbers[asked] = make_float2(number, mean);
    }
    bring(n + 1, false);
    bring(n + 1, true);
    meet();
    float p[KEPT], d[KEPT];
    unsigned a[4][4], b[4][4];
    await(full + 8 * (n & 1), n >> 1 & 1);
    begin_products();
    compare(p, base, queries);
    compare(d, base + TILE, slopes);
    hold(p);
    hold(d);
    end_products();
    hold(p);
    hold(d);
    const unsigned(&open)[ROWS] = bits[warp / 2];
    if (!__all_sync(~0u, (open[lane] & open[lane + 32]) == ~0u))
#pragma unroll
      for (int j = 0; j < KEPT / 4; ++j) {
        const uint2 both = *(const uint2*)&open[8 * j + 2 * (lane & 3)];
        const unsigned x = both.x >> (warp % 2 * 16 + lane / 4), y = both.y >> (warp % 2 * 16 + lane / 4);
        if (!(x & 1)) p[4 * j] = CLOSED;
        if (!(y & 1)) p[4 * j + 1] = CLOSED;
        if (!(x & 256)) p[4 * j + 2] = CLOSED;
        if (!(y & 256)) p[4 * j + 3] = CLOSED;
      }
#pragma unroll
    for (int j = 0; j < KEPT / 4; ++j) {
      const float4 of = *(const float4*)&numbers[8 * j + 2 * (lane & 3)];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        p[4 * j + i] = power(fmaf(p[4 * j + i], job.scale, i % 2 ? of.z : of.x));
        d[4 * j + i] = p[4 * j + i] * (d[4 * j + i] - (i % 2 ? of.w : of.y));
      }
    }
    round_sums(p, a);
    round_sums(d, b);
    hold(dk);
    hold(dv);
    begin_products();
    combine(dv, a, slopes);
    combine(dk, b, queries);
    hold(dk);
    hold(dv);
    end_products();
    hold(dk);
    hold(dv);
    hold(a);
    hold(b);
    meet();
    fetch(n + 2, &job.query, 0);
    fetch(n + 2, &job.slope, 1);
  }
  // Each block ends some rows of all, keys then values; a thread has a few columns of each of a few rows.
  const int c = threadIdx.x % 8 * 4, of = rank * ENDED / ROWS;
  const auto place = [&](int part, int i) { return part * ENDED + (int)threadIdx.x / 8 + STEP * i; };
  long row[ENDED / STEP];
  bool there[ENDED / STEP];
  Ending ending[ENDED / STEP];
  if (threadIdx.x < ENDING)
#pragma unroll
    for (int i = 0; i < ENDED / STEP; ++i) {
      const int r = tile * ROWS + place(rank, i) % ROWS;
      there[i] = r < job.rows;
      row[i] = (long)item * job.rows + min(r, job.rows - 1);
      const Half* from = of ? job.values + row[i] * job.v_pitch : job.keys + row[i] * job.k_pitch;
      ending[i].bring(job, from + key_head * HEAD, row[i], !of, c);
    }
  // Nobody of this block multiplies any more: there is room for sums, [group][key and value rows].
  __syncthreads();
  float* const sums = (float*)room;
  float* const here = sums + group() * 2 * SUMS + warp * 16 * LAID;
  lay_out(dk, here);
  lay_out(dv, here + SUMS);
  __syncthreads();
  // What the others end goes there.
  float* const got = (float*)(room + (2 + 4 * GROUPS) * TILE);  // [other block][row]
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (threadIdx.x < ENDING)
#pragma unroll
    for (int o = 1; o < CLUSTER; ++o) {
      const int to = (rank + o) % CLUSTER;
#pragma unroll
      for (int i = 0; i < ENDED / STEP; ++i) {
        const Eight d = add_groups<GROUPS>(sums + place(to, i) * LAID + c, 2 * SUMS);
        const unsigned at = at_block(got + ((o - 1) * ENDED + threadIdx.x / 8 + STEP * i) * LAID + c, to);
        put_there(at, d.x);
        put_there(at + HEAD / 2 * 4, d.y);
      }
    }
  meet_cluster();
  if (threadIdx.x < ENDING)
#pragma unroll
    for (int i = 0; i < ENDED / STEP; ++i) {
      Eight d = add_groups<GROUPS>(sums + place(rank, i) * LAID + c, 2 * SUMS);
      const Eight more = add_groups<CLUSTER - 1>(got + (threadIdx.x / 8 + STEP * i) * LAID + c, ENDED * LAID);
      add_four(d.x, more.x);
      add_four(d.y, more.y);
      ending[i].end(job, d, of ? 1.f : job.natural, row[i], job.heads + of * job.key_heads + key_head, c, there[i]);
    }
}

// Clusters for tiles of queries, two each, and clusters for a tile of keys, those of all items with most to do first: [2, item, cluster].
extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(128 * GROUPS, GROUPS > 1 ? 1 : 3)
    attend_backward(const __grid_constant__ Backward job) {
  extern __shared__ unsigned char raw[];
  __shared__ __align__(16) Shared shared;
  const unsigned base = (shared_address(raw) + 1023) & ~1023u;
  unsigned char* const room = raw + (base - shared_address(raw));
  let_next_begin();
  begin_barriers(shared.barriers, 2 + 2 * GROUPS);
  __syncthreads();
  const int tiles = (job.rows + PACKED - 1) / PACKED * job.key_heads, all = gridDim.z;
  const int of_queries = (tiles + CLUSTER - 1) / CLUSTER, cluster = blockIdx.z, rank = blockIdx.x;
  const int before = cluster * of_queries / all;
  if ((cluster + 1) * of_queries / all > before) {
    const int at = before * CLUSTER + rank;
    if (at >= tiles) return;
    pull_queries(job, shared, room, base, (tiles - 1 - at) / job.key_heads, at % job.key_heads);
  } else {
    pull_keys(job, shared, room, base, (cluster - before) / job.key_heads, (cluster - before) % job.key_heads, rank);
  }
}
