// A forward pass of small items in one kernel: a block has an item, all whose values are in shared memory, and goes through all ops.
// lower/fused.rs writes the program down, in stages; a stage that reads what others have written, or writes where they read, waits for
// the block. Rows of `width` scalars lie pitch(width) apart; integers and masks lie as they come. Products run on the tensor cores.

#define WORDS 500
#define NOTHING 0xffff
#define WARPS_ 16

struct Program {
  unsigned long long words[WORDS];
};

extern __shared__ float values[];

// Four numbers of sixteen bits.
struct Four {
  int a, b, c, d;
  __device__ __forceinline__ Four(unsigned long long word)
      : a((int)(word & 0xffff)), b((int)(word >> 16 & 0xffff)), c((int)(word >> 32 & 0xffff)), d((int)(word >> 48)) {}
};

// An odd multiple of eight: eight rows' pairs of scalars then lie in different banks.
__device__ __forceinline__ int pitch(int width) { return (width + 7) / 16 * 16 + 8; }

__device__ __forceinline__ const int* integers(int at) { return (const int*)(values + at); }
__device__ __forceinline__ const unsigned char* bytes(int at) { return (const unsigned char*)(values + at); }

__device__ __forceinline__ float ended(int kind, float x) {
  float slope;
  return activate(kind, x, slope);
}

// A warp has a row, a lane some of its columns.
#define EACH_ROW(rows) for (int r = threadIdx.x >> 5; r < (rows); r += WARPS_)
#define EACH_COLUMN(width) for (int c = threadIdx.x & 31; c < (width); c += 32)

// sums += x w for up to 32 summed columns of x, for 16 rows and 8 TILES columns that a warp has. In the fragments of a product lane 4 g + t has rows
// g and g + 8 of the left operand and column g of the right one; the summed index goes up by two from t to t. `columns` are this lane's.
template <int TILES, bool WHOLE>
__device__ __forceinline__ void add_products(float (&sums)[TILES][4], const float* const (&left)[2], const float* weight,
                                             const int (&columns)[TILES], int width, int in) {
  const int t = threadIdx.x & 3;
  // All of the weights are on their way before the first is used.
  float right[4][TILES][2];
#pragma unroll
  for (int k = 0; k < 4; ++k)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = 8 * k + 2 * t + i;
      const float* row = weight + (WHOLE ? r : min(r, in - 1)) * width;
#pragma unroll
      for (int n = 0; n < TILES; ++n) right[k][n][i] = row[columns[n]];
    }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (!WHOLE && 8 * k >= in) break;
    float2 upper = *(const float2*)(left[0] + 8 * k), lower = *(const float2*)(left[1] + 8 * k);
    // Behind a row's end there may be anything.
    if (!WHOLE && 8 * k + 2 * t >= in) upper.x = lower.x = 0.f;
    if (!WHOLE && 8 * k + 2 * t + 1 >= in) upper.y = lower.y = 0.f;
    const Piece a[4] = {piece(settled(upper.x)), piece(settled(lower.x)), piece(settled(upper.y)), piece(settled(lower.y))};
#pragma unroll
    for (int n = 0; n < TILES; ++n) {
      const Piece b[2] = {piece(settled(right[k][n][0])), piece(settled(right[k][n][1]))};
      multiply(sums[n], a, b);
    }
  }
}

// out = activation(x w + bias) + residual. A warp has 16 rows and 8 TILES columns.
template <int TILES>
__device__ __forceinline__ void product(const float* x, const float* weight, const float* bias, const float* residual,
                                        float* out, int rows, int in, int width, int kind) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const int groups = (width + 8 * TILES - 1) / (8 * TILES), from = pitch(in), to = pitch(width);
  for (int task = threadIdx.x >> 5; task < (rows + 15) / 16 * groups; task += WARPS_) {
    const int first = task / groups * 16 + g, column = task % groups * 8 * TILES;
    const float* left[2] = {x + min(first, rows - 1) * from + 2 * t, x + min(first + 8, rows - 1) * from + 2 * t};
    int columns[TILES];
    float sums[TILES][4];
    clear(sums);
#pragma unroll
    for (int n = 0; n < TILES; ++n) columns[n] = min(column + 8 * n + g, width - 1);
    int start = 0;
    for (; start + 32 <= in; start += 32, left[0] += 32, left[1] += 32)
      add_products<TILES, true>(sums, left, weight + start * width, columns, width, 32);
    if (start < in) add_products<TILES, false>(sums, left, weight + start * width, columns, width, in - start);
#pragma unroll
    for (int n = 0; n < TILES; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int c = column + 8 * n + 2 * t + i;
        if (c >= width) continue;
        const float begin = bias ? bias[c] : 0.f;
        if (first < rows) out[first * to + c] = sums[n][i] + begin;
        if (first + 8 < rows) out[(first + 8) * to + c] = sums[n][2 + i] + begin;
      }
    if (kind == NONE_ && !residual) continue;
    // What this lane wrote, once more.
#pragma unroll 1
    for (int n = 0; n < 4 * TILES; ++n) {
      const int r = first + (n & 2) * 4, c = column + (n >> 2) * 8 + 2 * t + (n & 1);
      if (r >= rows || c >= width) continue;
      const float y = ended(kind, out[r * to + c]);
      out[r * to + c] = residual ? y + residual[r * to + c] : y;
    }
  }
}

// Attention of machines to the operations at their arcs: ops/arcs/mod.rs has the formula.
__device__ __forceinline__ void attend(const float* of, const float* on, const float* times, const unsigned char* present,
                                       const float* along, const float* source, const float* target, float* out, float* room,
                                       int operations, int machines, int states, int width) {
  const int lane = threadIdx.x & 31, rows = states * operations, others = states * machines, apart = pitch(width);
  // Each row along its vector; of machines, weights of operations and their own; sums of weights and of times.
  float *scores = room, *weights = room + rows + others, *totals = weights + others * operations;
  // Rows have at most 64 columns.
  float s[2] = {0.f, 0.f}, d[2] = {0.f, 0.f}, unit = 0.f;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (lane + 32 * i >= width) continue;
    s[i] = source[lane + 32 * i];
    d[i] = target[lane + 32 * i];
    unit = fmaf(s[i], along[lane + 32 * i], unit);
  }
  unit = warp_sum(unit);
  EACH_ROW(rows + others) {
    const float* row = r < rows ? of + r * apart : on + (r - rows) * apart;
    float score = 0.f;
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (lane + 32 * i < width) score = fmaf(r < rows ? s[i] : d[i], row[lane + 32 * i], score);
    score = warp_sum(score);
    if (lane == 0) scores[r] = score;
  }
  __syncthreads();
  EACH_ROW(others) {
    const int state = r / machines, m = r - state * machines;
    const float score = scores[rows + r], loop = leaky(2.f * score);
    const float *mine = times + state * operations * pitch(machines) + m, *theirs = scores + state * operations;
    const unsigned char* there = present + state * operations * machines + m;
    float top = loop;
    for (int o = lane; o < operations; o += 32)
      if (there[o * machines]) top = fmaxf(top, leaky(theirs[o] + mine[o * pitch(machines)] * unit + score));
    top = warp_max(top);
    float total = 0.f, spent = 0.f;
    for (int o = lane; o < operations; o += 32) {
      float e = 0.f;
      if (there[o * machines]) {
        const float time = mine[o * pitch(machines)];
        e = expf(leaky(theirs[o] + time * unit + score) - top);
        spent = fmaf(e, time, spent);
      }
      weights[r * operations + o] = e;
      total += e;
    }
    total = warp_sum(total);
    spent = warp_sum(spent);
    const float own = expf(loop - top);
    if (lane == 0) {
      totals[3 * r] = own;
      totals[3 * r + 1] = spent;
      totals[3 * r + 2] = total + own;
    }
  }
  __syncthreads();
  const int groups = (width + 31) / 32;
  for (int task = threadIdx.x >> 5; task < others * groups; task += WARPS_) {
    const int r = task / groups, c = task % groups * 32 + lane;
    if (c >= width) continue;
    const float *weight = weights + r * operations, *rest = totals + 3 * r, *row = of + r / machines * operations * apart + c;
    float sum = rest[0] * on[r * apart + c];
#pragma unroll 8
    for (int o = 0; o < operations; ++o) {
      const float e = weight[o], x = row[o * apart];
      sum = e != 0.f ? fmaf(e, x, sum) : sum;
    }
    out[r * apart + c] = (sum + rest[1] * along[c]) / rest[2];
  }
}

// The sum of a row's machines, on top of what there is.
__device__ __forceinline__ float over_arcs(float sum, const float* machine, const unsigned char* arcs, int machines, int apart) {
#pragma unroll 4
  for (int m = 0; m < machines; ++m) {
    const float x = machine[m * apart];
    sum += arcs[m] ? x : 0.f;
  }
  return sum;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS_) fused_forward(const __grid_constant__ Program program) {
  const int stages = (int)program.words[1];
  const long item = blockIdx.x, member = (long)(blockIdx.x / (unsigned)program.words[0]) * (long)program.words[2];
  for (int stage = 0, at = 3; stage < stages; ++stage) {
    const unsigned long long* const words = program.words + at;
    const unsigned head = (unsigned)words[0];
    at += head >> 8 & 0xff;
    if (head >> 16) __syncthreads();
    switch (head & 0xff) {
      case 0: {  // an input
        const Four s(words[2]);
        const int size = s.b * s.c;
        if (s.d == 0) {
          const float* from = (const float*)words[1] + item * size;
          float* to = values + s.a;
          EACH_ROW(s.b) EACH_COLUMN(s.c) to[r * pitch(s.c) + c] = from[r * s.c + c];
        } else if (s.d == 1) {
          for (int i = threadIdx.x; i < size; i += 32 * WARPS_) ((int*)(values + s.a))[i] = ((const int*)words[1])[item * size + i];
        } else {
          for (int i = threadIdx.x; i < size; i += 32 * WARPS_)
            ((unsigned char*)(values + s.a))[i] = ((const unsigned char*)words[1])[item * size + i];
        }
        break;
      }
      case 1: {  // an output
        const Four s(words[2]);
        float* to = (float*)words[1] + item * s.b * s.c;
        const float* from = values + s.a;
        EACH_ROW(s.b) EACH_COLUMN(s.c) to[r * s.c + c] = from[r * pitch(s.c) + c];
        break;
      }
      case 2: {  // linear
        const Four s(words[3]), size(words[4]);
        const float *x = values + s.a, *weight = (const float*)words[1] + member;
        const float* bias = words[2] ? (const float*)words[2] + member : 0;
        const float* residual = s.c == NOTHING ? 0 : values + s.c;
        float* out = values + s.b;
        const int rows = size.a, in = size.b, width = size.c, high = (rows + 15) / 16;
        // As many columns for a warp as leave all of them something to do.
        if (high * ((width + 31) / 32) >= WARPS_) product<4>(x, weight, bias, residual, out, rows, in, width, s.d);
        else if (high * ((width + 15) / 16) >= WARPS_) product<2>(x, weight, bias, residual, out, rows, in, width, s.d);
        else product<1>(x, weight, bias, residual, out, rows, in, width, s.d);
        break;
      }
      case 3: {  // activation of factor a, a + b, a b, from a column on
        const Four s(words[1]), size(words[2]);
        const float *a = values + s.a, *b = values + s.b, factor = __uint_as_float((unsigned)words[3]);
        float* out = values + s.c + size.d;
        const int from = pitch(size.b), to = pitch(size.c), what = s.d & 0xff;
        EACH_ROW(size.a) EACH_COLUMN(size.b) {
          const float x = a[r * from + c], y = b[r * from + c];
          out[r * to + c] = ended(s.d >> 8, what == 0 ? factor * x : what == 1 ? x + y : x * y);
        }
        break;
      }
      case 4: {  // the same entries in other rows
        const Four s(words[1]), size(words[2]);
        EACH_ROW(size.a) EACH_COLUMN(size.b) {
          const int entry = r * size.b + c, row = entry / size.c;
          values[s.b + row * pitch(size.c) + entry - row * size.c] = values[s.a + r * pitch(size.b) + c];
        }
        break;
      }
      case 5: {  // attention along arcs
        const Four s(words[4]), size(words[5]), more(words[6]);
        attend(values + s.a, values + s.b, values + s.c, bytes(s.d), (const float*)words[1] + member,
               (const float*)words[2] + member, (const float*)words[3] + member, values + more.a, values + more.b, size.a, size.b,
               size.c, size.d);
        break;
      }
      case 6: {  // activation of the sum of what stands around operations
        const Four s(words[1]), more(words[2]), size(words[3]);
        const int operations = size.a, machines = size.b, width = size.d, apart = pitch(width), wide = pitch(2 * width);
        const float *own = values + s.a, *next = values + s.b, *on = values + s.c;
        const unsigned char* arcs = bytes(s.d);
        float* out = values + more.b;
        EACH_ROW(size.c * operations) {
          const int bits = integers(more.a)[r], state = r / operations, place = r - state * operations;
          const bool after = beside(bits, place, operations, 2), before = beside(bits, place, operations, 1);
          EACH_COLUMN(width) {
            float sum = 0.f;
            if (bits >= 0) {
              sum = own[r * apart + c];
              if (after) sum += next[(r + 1) * wide + c];
              if (before) sum += next[(r - 1) * wide + width + c];
              sum = over_arcs(sum, on + state * machines * apart + c, arcs + r * machines, machines, apart);
            }
            out[r * apart + c] = ended(more.c, sum);
          }
        }
        break;
      }
      case 7: {  // machines at the arcs
        const Four s(words[1]), size(words[2]);
        const int operations = size.a, machines = size.b, apart = pitch(size.d);
        EACH_ROW(size.c * operations) EACH_COLUMN(size.d)
          values[s.c + r * apart + c] =
              over_arcs(0.f, values + s.a + r / operations * machines * apart + c, bytes(s.b) + r * machines, machines, apart);
        break;
      }
      case 8: {  // neighbours
        const Four s(words[1]), size(words[2]);
        const int apart = pitch(size.c), step = s.d == 2 ? apart : -apart;
        EACH_ROW(size.b) {
          const bool there = beside(integers(s.b)[r], r % size.a, size.a, s.d);
          EACH_COLUMN(size.c) values[s.c + r * apart + c] = there ? values[s.a + r * apart + c + step] : 0.f;
        }
        break;
      }
      case 9: {  // pairs
        const Four s(words[1]), more(words[2]), size(words[3]);
        const int machines = size.b, width = more.c, apart = pitch(width);
        EACH_ROW(size.d * size.c * machines) {
          const int job = r / machines, m = r - job * machines, state = job / size.c, next = integers(s.d)[job];
          const bool open = bytes(more.a)[r];
          EACH_COLUMN(width) {
            float sum = 0.f;
            if (open) {
              sum = values[s.b + (state * machines + m) * apart + c] + values[s.c + state * apart + c];
              if (next >= 0) sum += values[s.a + (state * size.a + next) * apart + c];
              sum = tanhf(sum);
            }
            values[more.b + r * apart + c] = sum;
          }
        }
        break;
      }
      case 10: {  // sums and means of groups
        const Four s(words[1]), size(words[2]);
        const int group = size.b, width = size.c, apart = pitch(width), groups = (width + 31) / 32;
        for (int task = threadIdx.x >> 5; task < size.a * groups; task += WARPS_) {
          const int r = task / groups, c = task % groups * 32 + (threadIdx.x & 31);
          const float* row = values + s.a + r * group * apart + min(c, width - 1);
          float sum = 0.f;
          int count = 0;
#pragma unroll 8
          for (int j = 0; j < group; ++j) {
            const float x = row[j * apart];
            const bool counts = s.b == NOTHING || bytes(s.b)[r * group + j];
            sum += counts ? x : 0.f;
            count += counts;
          }
          if (c < width) values[s.c + r * apart + c] = s.d ? (count ? sum / count : 0.f) : sum;
        }
        break;
      }
    }
  }
}
