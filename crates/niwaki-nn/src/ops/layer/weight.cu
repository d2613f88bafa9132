// Gradients of a layer's parameters, of weights in halves and of gains in f32, in tiles of 128 rows: two groups of four warps multiply, a
// half each. Of a weight, [left columns, right columns]: what the product read, transposed, times the cotangent of what it made; depth is
// rows. Of a norm's gain: its parts added up. Few blocks make all tiles, one after the other, so that what they run beside has the rest
// of the device.

#define HIGH (2 * ROWS)
#define FILLED (2 * LEFT + RIGHT)  // bytes of a stage

struct Weight {
  Map left, right;  // [member, rows, columns] of both
};

struct Tiles {
  unsigned short* out;     // 2 * `length` halves from member to member
  int first, high, width, rows;  // its first tile of all, tiles below each other, right columns, left columns
};

struct Gain {
  const float* parts;  // [member, blocks, columns]
  float* out;          // `length` from member to member
};

struct Job {
  Weight weights[4];
  Tiles tiles[4];
  Gain gains[2];
  int count, gain_count, rows, members, length, blocks, columns;
};

// The tiles of a block, one after the other.
struct Walk {
  int tile, weight, row, column, member;

  __device__ __forceinline__ Walk() : tile((int)blockIdx.x - (int)gridDim.x), weight(0) {}

  __device__ __forceinline__ bool next(const Job& job) {
    tile += gridDim.x;
    for (; weight < job.count; ++weight) {
      const Tiles& of = job.tiles[weight];
      const int wide = of.width / COLUMNS, t = tile - of.first;
      if (t >= of.high * wide * job.members) continue;
      row = t % of.high * HIGH;
      column = t / of.high % wide * COLUMNS;
      member = t / of.high / wide;
      return true;
    }
    return false;
  }
};

extern "C" __global__ void __launch_bounds__(288) layer_weights(const __grid_constant__ Job job) {
  extern __shared__ unsigned char raw[];
  __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
  const unsigned base = (shared_address(raw) + 1023) & ~1023u;
  const unsigned full = shared_address(barriers), read = full + 8 * STAGES;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, group = warp >> 2;
  const int slices = (job.rows + SLICE - 1) / SLICE;
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2 * STAGES; ++s)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(full + 8 * s), "r"(s < STAGES ? 1 : 2));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  int n = 0;  // slices so far
  if (warp == 8) {
    if (lane > 0) return;
    for (Walk at; at.next(job);) {
      const Weight& of = job.weights[at.weight];
      for (int s = 0; s < slices; ++s, ++n) {
        const unsigned to = base + n % STAGES * FILLED, barrier = full + 8 * (n % STAGES);
        if (n >= STAGES) await(read + 8 * (n % STAGES), n / STAGES + 1 & 1);
        expect(barrier, FILLED);
        // What lies behind the last row or column is zero.
        bring(to, &of.left, at.row, s * SLICE, at.member, barrier);
        bring(to + LEFT, &of.left, at.row + ROWS, s * SLICE, at.member, barrier);
#pragma unroll
        for (int a = 0; a < COLUMNS / ACROSS; ++a)
          bring(to + 2 * LEFT + a * ACROSS * SLICE * 2, &of.right, at.column + a * ACROSS, s * SLICE, at.member, barrier);
      }
    }
    return;
  }
  for (Walk walk; walk.next(job);) {
    const Tiles& of = job.tiles[walk.weight];
    float d[PARTS][KEPT];
    for (int s = 0; s < slices; ++s, ++n) {
      const unsigned at = base + n % STAGES * FILLED;
      await(full + 8 * (n % STAGES), n / STAGES & 1);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int k = 0; k < 4; ++k)
#pragma unroll
        for (int p = 0; p < PARTS; ++p)
          multiply<1, 1>(d[p], descriptor(at + group * LEFT + 2048 * k, 128, LEFT),
                         descriptor(at + 2 * LEFT + p * PART * SLICE * 2 + k * 16 * ACROSS * 2, ACROSS * 2, ACROSS * SLICE * 2), s | k);
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      await_products<1>();
      if (threadIdx.x % 128 == 0 && s > 0) arrive(read + 8 * ((n - 1) % STAGES));
    }
    finish_products(d);
    if (threadIdx.x % 128 == 0) arrive(read + 8 * ((n - 1) % STAGES));
    // The last rows of all may be a half.
    if (walk.row + group * ROWS >= of.rows) continue;
    // A lane has two columns of every eight: neighbours exchange, so that each has four of every sixteen.
    const int odd = lane & 1, column = (odd ? 8 : 0) + (lane & 2) * 2;
    unsigned short* const out = of.out + 2l * walk.member * job.length +
                                (long)(walk.row + warp * 16 + (lane >> 2)) * of.width + walk.column + column;
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int p = 0; p < PARTS; ++p)
#pragma unroll
        for (int j = 0; j < PART / 8; j += 2) {
          const unsigned low = two_halves(d[p][4 * j + 2 * h], d[p][4 * j + 2 * h + 1]);
          const unsigned high = two_halves(d[p][4 * j + 4 + 2 * h], d[p][4 * j + 5 + 2 * h]);
          const unsigned other = __shfl_xor_sync(~0u, odd ? low : high, 1);
          *(uint2*)(out + 8l * h * of.width + p * PART + 8 * j) = odd ? make_uint2(other, high) : make_uint2(low, other);
        }
  }
  for (int i = 0; i < job.gain_count; ++i) {
    const Gain& of = job.gains[i];
    for (int at = blockIdx.x * 256 + threadIdx.x; at < job.members * job.columns; at += gridDim.x * 256) {
      const int member = at / job.columns, column = at % job.columns;
      const float* from = of.parts + (long)member * job.blocks * job.columns + column;
      float sum = 0.f;
#pragma unroll 4
      for (int b = 0; b < job.blocks; ++b) sum += from[(long)b * job.columns];
      of.out[(long)member * job.length + column] = sum;
    }
  }
}
