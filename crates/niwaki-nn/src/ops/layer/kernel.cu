// A decoder's layer on Hopper's tensor cores: its products with what stands around them. A norm is applied where its product ends:
// the maker of a row of the stream stores it times the gain too, which is what the product reads, and the sums of squares by which
// the product's result is scaled. Backward, the norm's mean over a row is that of result times cotangent, which the maker of the
// cotangent knows.
//
// LAYER_SPLIT blocks share out the summed axis, and each ends a part of the columns. Kernels begin while the one before them ends:
// weights are then on their way. Constants, besides those of a tile: LAYER_ENDING, LAYER_SPLIT, and LAYER_GIVEN, a quarter of the
// parts in which sums over a row come.

// What becomes of the sums:
#define TURN 0   // queries, keys and values: scaled by the norm; what belongs to queries and keys is turned
#define ONTO 1   // added to the stream; that times the next norm's gain, and its squares' sums
#define GATE 2   // gate and up: scaled by the norm, and SwiGLU of them
#define SLOPE 3  // SwiGLU's cotangents, scaled by the norm, and the sums of cotangent times result
#define NORM 4   // the norm's cotangent, added to the stream's, and the gain's
#define PLAIN 5  // stored, and the sums of cotangent times what it belongs to: of a head, whose columns are a tile

#define ENDING LAYER_ENDING
#define SPLIT LAYER_SPLIT

#define FORWARD (ENDING <= GATE)                          // weights lie as [depth, columns], backward as [columns, depth]
#define ENDED ((ENDING == GATE ? PART : COLUMNS) / SPLIT)  // columns that a block ends
#define EIGHTS (ENDED / 8)
#define SUM(j, i) x[4 * (j) / (KEPT / SPLIT)][4 * (j) % (KEPT / SPLIT) + (i)]  // of the j-th eight columns
#define PITCH (ENDED * 2 + 16)                            // bytes of a row on its way out: eight start in different banks

struct Job {
  Map left;             // [all rows, depth]
  Map right;            // [member, depth, columns], backward [member, columns, depth]
  const Half* stream;   // ONTO, NORM: the stream [rows, columns]; PLAIN: what the cotangent belongs to
  const Half* other;    // SLOPE: gate and up [rows, 2 columns]; NORM: the stream's cotangent so far
  const float* gain;    // of the norm that reads or read the stream, `length` from member to member
  const float* turns;   // [row, pair] of cosine and sine
  const float* given;   // [row, given_parts]: parts of a sum over a row: TURN, GATE squares; NORM result times cotangent
  float* scales;        // [row]: what the norm scales by; TURN and GATE find it
  Half* out;            // [rows, out_pitch]
  Half* second;         // TURN: where values go; ONTO: the stream times gain; GATE: what passes
  float* sums;          // [row, blocks]: such parts for who follows
  float* partial;       // NORM: [member, row tile, columns], the gain's
  int rows, columns, depth, given_parts, out_pitch, turned, length;
  float epsilon;
};

__device__ __forceinline__ float2 two_floats(unsigned both) {
  return make_float2(__uint_as_float(both << 16), __uint_as_float(both & 0xffff0000u));
}

// Over the eight lanes that share a column.
__device__ __forceinline__ float column_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 4);
  x += __shfl_xor_sync(~0u, x, 8);
  return x + __shfl_xor_sync(~0u, x, 16);
}

// Sixteen rows of a warp, [eight columns][row and the eighth after it] as its lanes hold them, go out in pieces of 16 bytes.
__device__ __forceinline__ void put(unsigned char* room, const unsigned (&x)[EIGHTS][2], Half* out, long pitch, int rows) {
  const int lane = threadIdx.x & 31;
  __syncwarp();
#pragma unroll
  for (int j = 0; j < EIGHTS; ++j)
#pragma unroll
    for (int h = 0; h < 2; ++h) *(unsigned*)(room + ((lane >> 2) + 8 * h) * PITCH + 16 * j + 4 * (lane & 3)) = x[j][h];
  __syncwarp();
#pragma unroll
  for (int i = 0; i < EIGHTS / 2; ++i) {
    const int r = (lane + 32 * i) / EIGHTS, piece = (lane + 32 * i) % EIGHTS;
    if (r < rows) *(uint4*)(out + r * pitch + 8 * piece) = *(const uint4*)(room + r * PITCH + 16 * piece);
  }
}

// What a first product needs of a stream that no product made: the stream times gain and its squares' sums, a warp for each row.
extern "C" __global__ void __launch_bounds__(256)
    layer_start(const Half* stream, const float* gain, Half* out, float* sums, int all, int rows, int columns, int length) {
  let_next_begin();
  const int row = blockIdx.x * 8 + (threadIdx.x >> 5);
  if (row >= all) return;
  float total = 0.f;
  for (int c = (threadIdx.x & 31) * 4; c < columns; c += 128) {
    const float4 x = stored_four(stream + (long)row * columns + c), g = *(const float4*)(gain + (long)(row / rows) * length + c);
    total += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
    store_four(out + (long)row * columns + c, make_float4(x.x * g.x, x.y * g.y, x.z * g.z, x.w * g.w));
  }
  total = warp_sum(total);
  if ((threadIdx.x & 31) == 0) sums[row] = total;
}

extern "C" __global__ void __cluster_dims__(SPLIT, 1, 1) __launch_bounds__(160) layer_product(const __grid_constant__ Job job) {
  extern __shared__ unsigned char raw[];
  __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
  const unsigned base = (shared_address(raw) + 1023) & ~1023u;
  const unsigned full = shared_address(barriers), read = full + 8 * STAGES;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, member = blockIdx.z;
  const int tile = blockIdx.x / SPLIT, split = blockIdx.x % SPLIT;
  const int slices = job.depth / SLICE, each = (slices + SPLIT - 1) / SPLIT;
  const int begin = split * each, count = min(each, slices - begin);
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2 * STAGES; ++s) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(full + 8 * s));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (SPLIT > 1) {
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
  } else {
    __syncthreads();
  }
  let_next_begin();

  if (warp == 4) {
    if (lane > 0) return;
    const auto right = [&](int s) {
      const unsigned to = base + s % STAGES * STAGE + LEFT, barrier = full + 8 * (s % STAGES);
      const int k = (begin + s) * SLICE;
      if (!FORWARD) {
        bring(to, &job.right, k, tile * COLUMNS, member, barrier);
        return;
      }
#pragma unroll
      for (int i = 0; i < COLUMNS / ACROSS; ++i) {
        // Half of a gated tile's columns are gates, half what passes.
        const int column = ENDING != GATE ? tile * COLUMNS + i * ACROSS
                           : i < COLUMNS / ACROSS / 2 ? tile * (COLUMNS / 2) + i * ACROSS
                                                   : job.columns + tile * (COLUMNS / 2) + i * ACROSS - COLUMNS / 2;
        bring(to + i * ACROSS * SLICE * 2, &job.right, column, k, member, barrier);
      }
    };
    const auto left = [&](int s) {
      const unsigned to = base + s % STAGES * STAGE, barrier = full + 8 * (s % STAGES);
      const int k = (begin + s) * SLICE, row = blockIdx.y * ROWS;
      bring_rows(to, &job.left, k, member * job.rows + row, barrier);
    };
    const int first = min(count, STAGES);
    for (int s = 0; s < first; ++s) {
      expect(full + 8 * s, STAGE);
      right(s);
    }
    await_previous();
    for (int s = 0; s < first; ++s) left(s);
    for (int s = first; s < count; ++s) {
      await(read + 8 * (s % STAGES), s / STAGES + 1 & 1);
      expect(full + 8 * (s % STAGES), STAGE);
      left(s);
      right(s);
    }
    return;
  }

  // This lane has two rows, and of every eight columns two.
  const int row0 = blockIdx.y * ROWS + warp * 16 + (lane >> 2);
  const int ended = ENDING == GATE ? COLUMNS / 2 : COLUMNS;
  const int column0 = tile * ended + split * ENDED + (lane & 3) * 2;
  bool there[2];
  long row[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    there[h] = row0 + 8 * h < job.rows;
    row[h] = (long)member * job.rows + min(row0 + 8 * h, job.rows - 1);
  }
  // What the ending reads is on its way while the product runs.
  float2 gain[EIGHTS];
  if ((ENDING == ONTO || ENDING == NORM) && job.gain)
#pragma unroll
    for (int j = 0; j < EIGHTS; ++j) gain[j] = *(const float2*)(job.gain + (long)member * job.length + column0 + 8 * j);
  await_previous();
  unsigned old[EIGHTS][2], other[EIGHTS][2];
  float given[2][LAYER_GIVEN], scale[2] = {1.f, 1.f};
  float4 by[EIGHTS / 2][2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (ENDING == TURN || ENDING == GATE || ENDING == NORM)
#pragma unroll
      for (int i = 0; i < LAYER_GIVEN; ++i) {
        const int part = (lane & 3) + 4 * i;
        given[h][i] = part < job.given_parts ? job.given[row[h] * job.given_parts + part] : 0.f;
      }
    if (ENDING == SLOPE || ENDING == NORM) scale[h] = job.scales[row[h]];
#pragma unroll
    for (int j = 0; j < EIGHTS; ++j) {
      const int column = column0 + 8 * j;
      if (ENDING == ONTO || ENDING == PLAIN) old[j][h] = *(const unsigned*)(job.stream + row[h] * job.columns + column);
      if (ENDING == NORM) {
        old[j][h] = *(const unsigned*)(job.other + row[h] * job.columns + column);
        other[j][h] = *(const unsigned*)(job.stream + row[h] * job.columns + column);
      }
      if (ENDING == SLOPE) {
        old[j][h] = *(const unsigned*)(job.other + row[h] * 2 * job.columns + column);
        other[j][h] = *(const unsigned*)(job.other + row[h] * 2 * job.columns + job.columns + column);
      }
    }
    if (ENDING == TURN && tile < job.turned)
#pragma unroll
      for (int j = 0; j < EIGHTS / 2; ++j)
        by[j][h] = *(const float4*)(job.turns + (row[h] * (COLUMNS / 2) + 8 * j + (lane & 3) * 2) * 2);
  }

  float d[PARTS][KEPT];
#pragma unroll
  for (int p = 0; p < PARTS; ++p)
#pragma unroll
    for (int i = 0; i < KEPT; ++i) d[p][i] = 0.f;
  for (int s = 0; s < count; ++s) {
    const unsigned at = base + s % STAGES * STAGE;
    await(full + 8 * (s % STAGES), s / STAGES & 1);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const unsigned long long a = descriptor(at + 32 * k, 128, 16);
#pragma unroll
      for (int p = 0; p < PARTS; ++p) {
        const unsigned b = at + LEFT + p * PART * SLICE * 2;
        multiply<0, FORWARD ? 1 : 0>(d[p], a, FORWARD ? descriptor(b + k * 16 * ACROSS * 2, ACROSS * 2, ACROSS * SLICE * 2) : descriptor(b + 32 * k, 128, 16), s | k);
      }
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    // The slice before this one has been read.
    await_products<1>();
    if (threadIdx.x == 0 && s > 0)
      arrive(read + 8 * ((s - 1) % STAGES));
  }
  finish_products(d);

  // Each block ends its part of the columns with the sums that the other has of them.
  float x[PARTS][KEPT / SPLIT];
  if (SPLIT == 2) {
    const unsigned room = base + STAGES * STAGE + threadIdx.x * 16;
    unsigned there_room;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there_room) : "r"(room), "r"(split ^ 1));
#pragma unroll
    for (int i = 0; i < KEPT / 2; i += 4)
      asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(there_room + i / 4 * 2048),
                   "f"(split ? d[0][i] : d[0][KEPT / 2 + i]), "f"(split ? d[0][i + 1] : d[0][KEPT / 2 + i + 1]),
                   "f"(split ? d[0][i + 2] : d[0][KEPT / 2 + i + 2]), "f"(split ? d[0][i + 3] : d[0][KEPT / 2 + i + 3])
                   : "memory");
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#pragma unroll
    for (int i = 0; i < KEPT / 2; i += 4) {
      float4 got;
      asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(got.x), "=f"(got.y), "=f"(got.z), "=f"(got.w) : "r"(room + i / 4 * 2048) : "memory");
      const float mine[4] = {split ? d[0][KEPT / 2 + i] : d[0][i], split ? d[0][KEPT / 2 + i + 1] : d[0][i + 1],
                             split ? d[0][KEPT / 2 + i + 2] : d[0][i + 2], split ? d[0][KEPT / 2 + i + 3] : d[0][i + 3]};
      x[0][i] = mine[0] + got.x;
      x[0][i + 1] = mine[1] + got.y;
      x[0][i + 2] = mine[2] + got.z;
      x[0][i + 3] = mine[3] + got.w;
    }
  } else {
#pragma unroll
    for (int p = 0; p < PARTS; ++p)
#pragma unroll
      for (int i = 0; i < KEPT; ++i) x[p][i % (KEPT / SPLIT)] = d[p][i];
  }

  float mean[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float sum = 0.f;
    if (ENDING == TURN || ENDING == GATE || ENDING == NORM)
#pragma unroll
      for (int i = 0; i < LAYER_GIVEN; ++i) sum += given[h][i];
    mean[h] = row_sum(sum) / (ENDING == NORM ? job.columns : job.depth);
    if (ENDING == TURN || ENDING == GATE) {
      scale[h] = rsqrtf(mean[h] + job.epsilon);
      if (tile == 0 && (lane & 3) == 0 && there[h]) job.scales[row[h]] = scale[h];
    }
  }
  float total[2] = {0.f, 0.f};
  float2 column[EIGHTS];
#pragma unroll
  for (int j = 0; j < EIGHTS; ++j) column[j] = make_float2(0.f, 0.f);
  unsigned first[EIGHTS][2], second[EIGHTS][2], third[EIGHTS][2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int j = 0; j < EIGHTS; ++j) {
      const float a = SUM(j, 2 * h), b = SUM(j, 2 * h + 1);
      if (ENDING == PLAIN) {
        first[j][h] = two_halves(a, b);
        const float2 stored = two_floats(first[j][h]), own = two_floats(old[j][h]);
        total[h] += stored.x * own.x + stored.y * own.y;
      }
      if (ENDING == TURN) {
        // Columns j and j + EIGHTS / 2 turn together.
        const int k = (j + EIGHTS / 2) % EIGHTS;
        const float c = SUM(k, 2 * h), e = SUM(k, 2 * h + 1), s = j < EIGHTS / 2 ? -scale[h] : scale[h];
        const float4 turn = tile < job.turned ? by[j % (EIGHTS / 2)][h] : make_float4(1.f, 0.f, 1.f, 0.f);
        first[j][h] = two_halves(a * scale[h] * turn.x + c * s * turn.y, b * scale[h] * turn.z + e * s * turn.w);
      }
      if (ENDING == ONTO) {
        const float2 before = two_floats(old[j][h]);
        first[j][h] = two_halves(before.x + a, before.y + b);
        const float2 now = two_floats(first[j][h]);
        total[h] += now.x * now.x + now.y * now.y;
        second[j][h] = two_halves(now.x * gain[j].x, now.y * gain[j].y);
      }
      if (ENDING == GATE) {
        first[j][h] = two_halves(a * scale[h], b * scale[h]);
        second[j][h] = two_halves(x[PARTS - 1][4 * j + 2 * h] * scale[h], x[PARTS - 1][4 * j + 2 * h + 1] * scale[h]);
        const float2 g = two_floats(first[j][h]), u = two_floats(second[j][h]);
        float slope;
        third[j][h] = two_halves(quick_silu(g.x, slope) * u.x, quick_silu(g.y, slope) * u.y);
      }
      if (ENDING == SLOPE) {
        const float2 g = two_floats(old[j][h]), u = two_floats(other[j][h]);
        float2 slope;
        const float dux = a * quick_silu(g.x, slope.x), duy = b * quick_silu(g.y, slope.y);
        const float dgx = a * u.x * slope.x, dgy = b * u.y * slope.y;
        total[h] += g.x * dgx + g.y * dgy + u.x * dux + u.y * duy;
        first[j][h] = two_halves(dgx * scale[h], dgy * scale[h]);
        second[j][h] = two_halves(dux * scale[h], duy * scale[h]);
      }
      if (ENDING == NORM) {
        const float2 before = two_floats(old[j][h]), s = two_floats(other[j][h]);
        const float m = scale[h] * scale[h] * mean[h];
        if (there[h]) {
          column[j].x += a * s.x;
          column[j].y += b * s.y;
        }
        first[j][h] = two_halves(before.x + gain[j].x * a - s.x * m, before.y + gain[j].y * b - s.y * m);
      }
    }
    if (ENDING == ONTO || ENDING == SLOPE || ENDING == PLAIN) {
      total[h] = row_sum(total[h]);
      if ((lane & 3) == 0 && there[h]) job.sums[row[h] * gridDim.x + blockIdx.x] = total[h];
    }
  }
  // Once all warps' products are over the stages have room for rows.
  asm volatile("bar.sync 1, 128;" ::: "memory");
  unsigned char* const room = raw + (base - shared_address(raw)) + warp * (16 * PITCH);
  const int start = blockIdx.y * ROWS + warp * 16, rows = job.rows - start;
  const long from = (long)member * job.rows + start;
  const int at = tile * ended + split * ENDED;
  if (ENDING == TURN && tile >= job.turned)
    put(room, first, job.second + from * job.columns + at, job.columns, rows);
  else
    put(room, first, job.out + from * job.out_pitch + at, job.out_pitch, rows);
  if (ENDING == ONTO && job.gain) put(room, second, job.second + from * job.out_pitch + at, job.out_pitch, rows);
  if (ENDING == GATE || ENDING == SLOPE) put(room, second, job.out + from * job.out_pitch + job.columns + at, job.out_pitch, rows);
  if (ENDING == GATE) put(room, third, job.second + from * job.columns + at, job.columns, rows);
  if (ENDING == NORM) {
    // [4 warps][columns]
    float* sums = (float*)(raw + (base - shared_address(raw)) + 64 * PITCH);
#pragma unroll
    for (int j = 0; j < EIGHTS; ++j) {
      const float a = column_sum(column[j].x), b = column_sum(column[j].y);
      if (lane < 4) *(float2*)(sums + warp * ENDED + 8 * j + 2 * lane) = make_float2(a, b);
    }
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (threadIdx.x < ENDED)
      job.partial[((long)member * gridDim.y + blockIdx.y) * job.columns + at + threadIdx.x] =
          (sums[threadIdx.x] + sums[ENDED + threadIdx.x]) + (sums[2 * ENDED + threadIdx.x] + sums[3 * ENDED + threadIdx.x]);
  }
}
