// A glimpse and a pointer in one: many queries on few keys. Where the constant POINT_CONTEXT is not zero, queries are not
// read but made: known[last] + context weight + bias, so that nothing of [rows, width] goes through memory in either pass.
// Where the constant POINT_RESIDUAL is not zero, the query is added to the glimpse before it is compared. Where
// POINT_PICKED is not zero, a row's choice is picked here too, so that cotangents of logits go through no memory. A `bound`
// of zero is none: scores are logits.

// Of a step's context, and a one that the bias is the weight of.
#define STATES (POINT_CONTEXT + 1)
#define STATE_STEPS ((STATES + 7) / 8)
#define STATE_BANDS ((STATES + 15) / 16)
#define KNOWN_BANDS ((KEYS + 16) / 16)  // of a row for each key, and one for none
#define TRANSPOSED_KEYS STAGE_FOR(16 * BANDS + 8 * TILES)
#define TRANSPOSED_STATES (POINT_CONTEXT ? STAGE_FOR(16 * STATE_BANDS + 8 * STEPS) : 0)
#define STAGE (TRANSPOSED_KEYS > TRANSPOSED_STATES ? TRANSPOSED_KEYS : TRANSPOSED_STATES)
// Blocks of the backward pass that share a multiprocessor: 16 warps where their sums leave registers for that many.
#define CROWD (KEYS <= 24 && H <= 16 ? 16 / H : 1)
// Where what makes queries begins in shared memory: behind keys, values and pointer keys.
#define MAKING (3 * 8 * TILES * PITCH)
#define MADE (POINT_CONTEXT ? (8 * STATE_STEPS + KEYS + 2) * PITCH : 0)

// Rows that are sorted out at once.
#define WINDOW 1024

// Whether a row has something to decide: a single open key is certain, whatever its logit.
__device__ __forceinline__ bool has_choice(const unsigned char* open, long row) {
  int count = 0;
  if (KEYS % 4 == 0) {
    const unsigned* words = (const unsigned*)(open + row * KEYS);
#pragma unroll
    for (int i = 0; i < KEYS / 4; ++i) count += __popc(__vsetne4(words[i], 0));
  } else {
#pragma unroll
    for (int s = 0; s < KEYS; ++s) count += open[row * KEYS + s] != 0;
  }
  return count > 1;
}

// Copies an item's keys, values and pointer keys to shared memory.
__device__ __forceinline__ void share_keys(const float* glimpse, const float* key, long item, float* room) {
  share_rows(glimpse + item * KEYS * 2 * W, 2 * W, KEYS, room);
  share_rows(glimpse + item * KEYS * 2 * W + W, 2 * W, KEYS, room + 8 * TILES * PITCH);
  share_rows(key + item * KEYS * W, W, KEYS, room + 2 * 8 * TILES * PITCH);
}

// Where choices are picked: what was chosen, negative where a row is idle, and log of the sum and entropy of each row
// with a choice.
struct Picked {
  const int* action;     // [item, rows]
  float* log_prob;       // [item, rows]
  float* entropy;        // [item, rows]
  float2* saved;         // [item, rows]; absent where nothing is pulled back
};

// Where queries come from: read, or made of what follows.
struct Queries {
  const float* query;    // [item, rows, W]
  const float* known;    // [item, KEYS + 1, W]
  const int* last;       // [item, rows]
  const float* context;  // [item, rows, POINT_CONTEXT]
  const float* weight;   // [member, stride]: [POINT_CONTEXT, W]
  const float* bias;     // [member, stride]: [W]
  long stride;
  int items;             // of a member
};

// What two rows of this lane read of their steps: the last choice, and the context in the order of sums.
struct State {
  int last[2];
  float context[STATE_STEPS][4];
};

// Copies what makes queries to shared memory: weights [8 * STATE_STEPS, PITCH], then known rows, bias included, and the
// bias alone, for rows that have none.
__device__ __forceinline__ void share_making(const Queries& from, long item, float* room) {
  const long member = item / from.items;
  for (int first = threadIdx.x; first < (8 * STATE_STEPS + KEYS + 2) * H * HEAD; first += AHEAD * blockDim.x) {
    float x[AHEAD];
#pragma unroll
    for (int j = 0; j < AHEAD; ++j) {
      const int i = first + j * blockDim.x, place = i % (H * HEAD), row = i / (H * HEAD), s = row - 8 * STATE_STEPS;
      const int column = place / HEAD * D + place % HEAD;
      x[j] = 0.f;
      if (place % HEAD >= D || s >= KEYS + 2) continue;
      if (s >= 0) x[j] = from.bias[member * from.stride + column];
      if (s >= 0 && s <= KEYS) x[j] += from.known[(item * (KEYS + 1) + s) * W + column];
      if (row < POINT_CONTEXT) x[j] = settled(from.weight[member * from.stride + row * W + column]);
    }
#pragma unroll
    for (int j = 0; j < AHEAD; ++j) {
      const int i = first + j * blockDim.x;
      if (i < (8 * STATE_STEPS + KEYS + 2) * H * HEAD) room[i / (H * HEAD) * PITCH + i % (H * HEAD)] = x[j];
    }
  }
}

__device__ __forceinline__ void read_state(const Queries& from, const long (&row)[2], State& state) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int last = from.last[row[i]];
    state.last[i] = last < 0 ? KEYS + 1 : last;
#pragma unroll
    for (int k = 0; k < STATE_STEPS; ++k) {
      const int place = 8 * k + 2 * t;
      const float2 x = pair<POINT_CONTEXT>(from.context + row[i] * POINT_CONTEXT, place);
      state.context[k][2 * i] = place == POINT_CONTEXT ? 1.f : x.x;
      state.context[k][2 * i + 1] = place + 1 == POINT_CONTEXT ? 1.f : x.y;
    }
  }
}

// One head's queries of this warp's rows.
__device__ __forceinline__ void find_queries(const Queries& from, const State& state, const long (&row)[2], int head,
                                             const float* making, float (&q)[STEPS][4]) {
  const int t = threadIdx.x % 4;
  clear(q);
  if (POINT_CONTEXT) multiply_by_columns(q, state.context, making + head * HEAD);
#pragma unroll
  for (int k = 0; k < STEPS; ++k)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float* known = making + (8 * STATE_STEPS + state.last[i]) * PITCH + head * HEAD;
      const float2 x = POINT_CONTEXT ? *(const float2*)(known + 8 * k + 2 * t)
                                     : pair<D>(from.query + row[i] * W + head * D, 8 * k + 2 * t);
      q[k][2 * i] += x.x;
      q[k][2 * i + 1] += x.y;
    }
}

// to += from.
__device__ __forceinline__ void add_pieces(const float (&from)[STEPS][4], float (&to)[STEPS][4]) {
#pragma unroll
  for (int k = 0; k < STEPS; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i) to[k][i] += from[k][i];
}

// Log-probability of the choice and entropy of this lane's two rows, from their logits.
__device__ __forceinline__ void pick_rows(const Picked& to, const float (&z)[TILES][4], unsigned long long open,
                                          const long (&row)[2], const bool (&there)[2]) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int chosen = to.action[row[i]];
    float top = -3.0e38f, total = 0.f, weighted = 0.f, mine = 0.f;
    bool may = false;
#pragma unroll
    for (int n = 0; n < TILES; ++n)
#pragma unroll
      for (int j = 2 * i; j < 2 * i + 2; ++j) top = fmaxf(top, open >> (4 * n + j) & 1 ? z[n][j] : -3.0e38f);
    top = row_max(top);
#pragma unroll
    for (int n = 0; n < TILES; ++n)
#pragma unroll
      for (int j = 2 * i; j < 2 * i + 2; ++j) {
        const bool seen = open >> (4 * n + j) & 1, here = seen && 8 * n + 2 * t + j % 2 == chosen;
        const float x = z[n][j] - top, e = seen ? __expf(x) : 0.f;
        total += e;
        weighted = fmaf(e, x, weighted);
        mine = here ? x : mine;
        may |= here;
      }
    total = row_sum(total);
    weighted = row_sum(weighted);
    mine = row_sum(mine);
    may = row_sum(may) > 0.f;
    if (t != 0 || !there[i]) continue;
    const float log_total = __logf(total), spread = log_total - __fdividef(weighted, total);
    to.log_prob[row[i]] = chosen < 0 ? 0.f : may ? mine - log_total : __int_as_float(0xff800000);
    to.entropy[row[i]] = chosen < 0 ? 0.f : spread;
    if (to.saved) to.saved[row[i]] = make_float2(top + log_total, spread);
  }
}

// Logits [item, rows, keys], zero in rows without a choice; a block per item, a warp per 16 of the other rows. Shared
// memory: the keys, what makes queries, then the places of rows.
extern "C" __global__ void __launch_bounds__(256, 2)
    point_forward(const float* query, const float* known, const int* last, const float* context, const float* weight,
                  const float* bias, long stride, int items, const float* glimpse, const float* key,
                  const unsigned char* open, float* out, const int* action, float* log_prob, float* entropy,
                  float2* saved, int rows, float bound) {
  extern __shared__ __align__(16) float room[];
  const Queries queries = {query, known, last, context, weight, bias, stride, items};
  const long item = blockIdx.x;
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  share_keys(glimpse, key, item, room);
  if (POINT_CONTEXT) share_making(queries, item, room + MAKING);
  __syncthreads();
  const float scale = 2.f * rsqrtf((float)W);
  int* places = (int*)(room + MAKING + MADE);
  for (int start = 0; start < rows; start += WINDOW) {
    const int here = min(rows - start, WINDOW);
    const long before = item * rows + start;
    __syncthreads();
    for (int r = threadIdx.x; r < here; r += blockDim.x) places[r] = has_choice(open, before + r);
    __syncthreads();
    for (int i = threadIdx.x; i < here * KEYS; i += blockDim.x)
      if (!places[i / KEYS]) out[before * KEYS + i] = 0.f;
    if (POINT_PICKED)
      for (int r = threadIdx.x; r < here; r += blockDim.x) {
        if (places[r]) continue;
        const int chosen = action[before + r];
        const bool may = chosen < 0 || open[(before + r) * KEYS + chosen];
        log_prob[before + r] = may ? 0.f : __int_as_float(0xff800000);
        entropy[before + r] = 0.f;
      }
    const int count = list_places(places, here);
    for (int first = threadIdx.x / 32 * 16; first < count; first += blockDim.x / 2) {
      const long row[2] = {before + places[min(first + g, count - 1)], before + places[min(first + g + 8, count - 1)]};
      const unsigned long long seen = open_bits(open, row);
      float z[TILES][4];
      clear(z);
      State state;
      if (POINT_CONTEXT) read_state(queries, row, state);
#pragma unroll 2
      for (int h = 0; h < H; ++h) {
        float q[STEPS][4], p[TILES][4], looked[STEPS][4];
        find_queries(queries, state, row, h, room + MAKING, q);
        look(q, room + h * HEAD, seen, rsqrtf((float)D), p, looked);
        if (POINT_RESIDUAL) add_pieces(q, looked);
#pragma unroll
        for (int k = 0; k < STEPS; ++k) {
          Piece a[4];
          take_left(looked[k], a);
          multiply_by_keys(z, a, room + 2 * 8 * TILES * PITCH + h * HEAD + 8 * k);
        }
      }
      const bool there[2] = {first + g < count, first + g + 8 < count};
#pragma unroll
      for (int n = 0; n < TILES; ++n) {
        // tanh x = 1 - 2 / (e^2x + 1).
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float twice = scale * z[n][j];
          z[n][j] = bound > 0.f ? bound - __fdividef(2.f * bound, __expf(twice) + 1.f) : .5f * twice;
        }
#pragma unroll
        for (int i = 0; i < 2; ++i)
          if (there[i]) put_pair<KEYS>(out + row[i] * KEYS, 8 * n + 2 * t, z[n][2 * i], z[n][2 * i + 1], 0);
      }
      if (POINT_PICKED) pick_rows({action, log_prob, entropy, saved}, z, seen, row, there);
    }
  }
}

// sums[s, j] += the sum of right[row, j] over those of this warp's rows whose last choice was s; what `add_products` has
// just put away is the right side.
__device__ __forceinline__ void add_by_last(const int (&last)[2], const float* stage, float (&sums)[KNOWN_BANDS][STEPS][4]) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const int one = __shfl_sync(~0u, last[k], 4 * t), two = __shfl_sync(~0u, last[k], 4 * t + 16);
#pragma unroll
    for (int m = 0; m < KNOWN_BANDS; ++m) {
      const int s = 16 * m + g;
      const Piece a[4] = {piece(one == s), piece(one == s + 8), piece(two == s), piece(two == s + 8)};
#pragma unroll
      for (int n = 0; n < STEPS; ++n) {
        Piece b[2];
        take_transposed(stage, STAGE, k, 16 * STATE_BANDS + 8 * n, b);
        multiply(sums[m][n], a, b);
      }
    }
  }
}

// Cotangents of queries and keys, written or added; a block per item, a warp per head. Where queries are made, `dquery` is
// the cotangent of the known rows, and `partial` [item, STATES, W] takes the item's part of those of weight and bias.
// Rows without a choice and rows from which nothing is asked give nothing and cost what reading their zeros costs. What is
// asked are the cotangents of logits, or, where choices are picked, those of log-probability and entropy, which may be absent.
// Shared memory: the keys, what makes queries, a stage for each warp, then the places of rows.
extern "C" __global__ void __launch_bounds__(32 * H, CROWD)
    point_backward(const float* query, const float* known, const int* last, const float* context, const float* weight,
                   const float* bias, long stride, int items, const float* glimpse, const float* key,
                   const unsigned char* open, const float* out, const float* dout, const int* action,
                   const float2* saved, const float* dlog_prob, const float* dentropy, float* dquery, float* partial,
                   float* dglimpse, float* dkey, int add_query, int add_glimpse, int add_key, int rows, float bound) {
  extern __shared__ __align__(16) float room[];
  const Queries queries = {query, known, last, context, weight, bias, stride, items};
  const long item = blockIdx.x;
  const int h = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const float* keys = room + h * HEAD;
  const float* values = keys + 8 * TILES * PITCH;
  const float* pointer = values + 8 * TILES * PITCH;
  float* stage = room + MAKING + MADE + h * 16 * STAGE;
  int* places = (int*)(room + MAKING + MADE + H * 16 * STAGE);
  const float scale = rsqrtf((float)W), inner = rsqrtf((float)D);
  // bound tanh' = bound - out^2 / bound; a score that is its own logit has a slope of one.
  const float steepest = bound > 0.f ? bound : 1.f, rate = bound > 0.f ? 1.f / bound : 0.f;
  float sums[3][BANDS][TILES][4], state_sums[STATE_BANDS][STEPS][4], known_sums[KNOWN_BANDS][STEPS][4];
#pragma unroll
  for (int which = 0; which < 3; ++which)
#pragma unroll
    for (int m = 0; m < BANDS; ++m) clear(sums[which][m]);
#pragma unroll
  for (int m = 0; m < STATE_BANDS; ++m) clear(state_sums[m]);
#pragma unroll
  for (int m = 0; m < KNOWN_BANDS; ++m) clear(known_sums[m]);
  bool ready = false;
  for (int start = 0; start < rows; start += WINDOW) {
    const int here = min(rows - start, WINDOW);
    const long before = item * rows + start;
    __syncthreads();
    if (!POINT_PICKED) {
      for (int r = threadIdx.x; r < here; r += blockDim.x) places[r] = 0;
      __syncthreads();
      for (int i = threadIdx.x; i < here * KEYS; i += blockDim.x)
        if (dout[before * KEYS + i] != 0.f) places[i / KEYS] = 1;
      __syncthreads();
    }
    for (int r = threadIdx.x; r < here; r += blockDim.x) {
      const long at = before + r;
      const bool asked = !POINT_PICKED ? places[r]
                                       : action[at] >= 0 && ((dlog_prob && dlog_prob[at] != 0.f) ||
                                                             (dentropy && dentropy[at] != 0.f));
      places[r] = asked && has_choice(open, at);
    }
    if (!POINT_CONTEXT && dquery && !add_query) {
      __syncthreads();
      for (int i = threadIdx.x; i < here * W; i += blockDim.x)
        if (!places[i / W]) dquery[before * W + i] = 0.f;
    }
    const int count = list_places(places, here);
    if (count && !ready) {
      share_keys(glimpse, key, item, room);
      if (POINT_CONTEXT) share_making(queries, item, room + MAKING);
      __syncthreads();
      ready = true;
    }
    for (int first = 0; first < count; first += 16) {
      const long row[2] = {before + places[min(first + g, count - 1)], before + places[min(first + g + 8, count - 1)]};
      const unsigned long long seen = open_bits(open, row);
      float q[STEPS][4], p[TILES][4], looked[STEPS][4], dz[TILES][4], d[STEPS][4], ds[TILES][4], dq[STEPS][4];
      State state;
      if (POINT_CONTEXT) read_state(queries, row, state);
      find_queries(queries, state, row, h, room + MAKING, q);
      look(q, keys, seen, inner, p, looked);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float weight = first + g + 8 * i < count ? scale : 0.f;
        int chosen = -1;
        float log_total = 0.f, spread = 0.f, dl = 0.f, de = 0.f;
        if (POINT_PICKED) {
          chosen = action[row[i]];
          log_total = saved[row[i]].x;
          spread = saved[row[i]].y;
          if (dlog_prob) dl = dlog_prob[row[i]];
          if (dentropy) de = dentropy[row[i]];
        }
#pragma unroll
        for (int n = 0; n < TILES; ++n) {
          const float2 two = pair<KEYS>(out + row[i] * KEYS, 8 * n + 2 * t);
          const float2 given = POINT_PICKED ? two : pair<KEYS>(dout + row[i] * KEYS, 8 * n + 2 * t);
          const float y[2] = {two.x, two.y};
          float slope[2] = {given.x, given.y};
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            if (POINT_PICKED) {
              const float q = y[j] - log_total, p = __expf(q);
              const float all = dl * ((8 * n + 2 * t + j == chosen) - p) - de * p * (q + spread);
              slope[j] = seen >> (4 * n + 2 * i + j) & 1 ? all : 0.f;
            }
            dz[n][2 * i + j] = slope[j] * weight * fmaf(-rate * y[j], y[j], steepest);
          }
        }
      }
      // The pointer's keys were compared with the sum, the glimpse alone is what its own weights make.
      if (POINT_RESIDUAL) {
        float compared[STEPS][4];
        clear(compared);
        add_pieces(looked, compared);
        add_pieces(q, compared);
        add_products(compared, dz, stage, STAGE, sums[2]);
      } else {
        add_products(looked, dz, stage, STAGE, sums[2]);
      }
      clear(d);
      multiply_by_columns(d, dz, pointer);
      add_products(d, p, stage, STAGE, sums[1]);
      pull_scores(d, looked, p, values, inner, ds);
      add_products(q, ds, stage, STAGE, sums[0]);
      if (!POINT_CONTEXT && !dquery) continue;
      clear(dq);
      multiply_by_columns(dq, ds, keys);
      if (POINT_RESIDUAL) add_pieces(d, dq);
      if (POINT_CONTEXT) {
        add_products(state.context, dq, stage, STAGE, state_sums);
        add_by_last(state.last, stage, known_sums);
      } else {
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
          for (int k = 0; k < STEPS; ++k)
            if (first + g + 8 * i < count)
              put_pair<D>(dquery + row[i] * W + h * D, 8 * k + 2 * t, dq[k][2 * i], dq[k][2 * i + 1], add_query);
      }
    }
  }
  if (dglimpse) {
    float* to = dglimpse + item * KEYS * 2 * W + h * D;
    give(sums[0], to, D, KEYS, 1, 2 * W, add_glimpse);
    give(sums[1], to + W, D, KEYS, 1, 2 * W, add_glimpse);
  }
  if (dkey) give(sums[2], dkey + item * KEYS * W + h * D, D, KEYS, 1, W, add_key);
  if (POINT_CONTEXT) {
    give(state_sums, partial + item * STATES * W + h * D, STATES, D, W, 1, 0);
    if (dquery) give(known_sums, dquery + item * (KEYS + 1) * W + h * D, KEYS + 1, D, W, 1, add_query);
  }
}
