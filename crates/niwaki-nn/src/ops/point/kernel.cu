// A glimpse and a pointer in one: many queries on few keys. Where the constant POINT_CONTEXT is not zero, queries are not
// read but made: known[last] + context weight + bias, so that nothing of [rows, width] goes through memory in either pass.
// Where the constant POINT_RESIDUAL is not zero, the query is added to the glimpse before it is compared.

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

// Copies an item's keys, values and pointer keys to shared memory.
__device__ __forceinline__ void share_keys(const float* glimpse, const float* key, long item, float* room) {
  share_rows(glimpse + item * KEYS * 2 * W, 2 * W, room);
  share_rows(glimpse + item * KEYS * 2 * W + W, 2 * W, room + 8 * TILES * PITCH);
  share_rows(key + item * KEYS * W, W, room + 2 * 8 * TILES * PITCH);
}

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
  for (int i = threadIdx.x; i < (8 * STATE_STEPS + KEYS + 2) * H * HEAD; i += blockDim.x) {
    const int place = i % (H * HEAD), row = i / (H * HEAD), s = row - 8 * STATE_STEPS;
    const int column = place / HEAD * D + place % HEAD;
    float x = 0.f;
    if (place % HEAD < D) {
      if (s >= 0) x = from.bias[member * from.stride + column];
      if (s >= 0 && s <= KEYS) x += from.known[(item * (KEYS + 1) + s) * W + column];
      if (row < POINT_CONTEXT) x = settled(from.weight[member * from.stride + row * W + column]);
    }
    room[row * PITCH + place] = x;
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

// Logits [item, rows, keys]; a block per item, a warp per 16 rows.
extern "C" __global__ void __launch_bounds__(256)
    point_forward(const float* query, const float* known, const int* last, const float* context, const float* weight,
                  const float* bias, long stride, int items, const float* glimpse, const float* key,
                  const unsigned char* open, float* out, int rows, float bound) {
  extern __shared__ __align__(16) float room[];
  const Queries queries = {query, known, last, context, weight, bias, stride, items};
  const long item = blockIdx.x;
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  share_keys(glimpse, key, item, room);
  if (POINT_CONTEXT) share_making(queries, item, room + MAKING);
  __syncthreads();
  const float scale = 2.f * rsqrtf((float)W);
  for (int first = threadIdx.x / 32 * 16; first < rows; first += blockDim.x / 2) {
    const long row[2] = {item * rows + min(first + g, rows - 1), item * rows + min(first + g + 8, rows - 1)};
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
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (first + g + 8 * i >= rows) continue;
#pragma unroll
      for (int n = 0; n < TILES; ++n) {
        // tanh x = 1 - 2 / (e^2x + 1).
        const float x = bound - __fdividef(2.f * bound, __expf(scale * z[n][2 * i]) + 1.f);
        const float y = bound - __fdividef(2.f * bound, __expf(scale * z[n][2 * i + 1]) + 1.f);
        put_pair<KEYS>(out + row[i] * KEYS, 8 * n + 2 * t, x, y, 0);
      }
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
// Shared memory: the keys, what makes queries, then a stage for each warp.
extern "C" __global__ void __launch_bounds__(32 * H, CROWD)
    point_backward(const float* query, const float* known, const int* last, const float* context, const float* weight,
                   const float* bias, long stride, int items, const float* glimpse, const float* key,
                   const unsigned char* open, const float* out, const float* dout, float* dquery, float* partial,
                   float* dglimpse, float* dkey, int add_query, int add_glimpse, int add_key, int rows, float bound) {
  extern __shared__ __align__(16) float room[];
  const Queries queries = {query, known, last, context, weight, bias, stride, items};
  const long item = blockIdx.x;
  const int h = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  // An item from which nothing is asked gives nothing: a group without signal costs what reading its zeros costs.
  int asked = 0;
  for (int i = threadIdx.x; i < rows * KEYS; i += blockDim.x) asked |= dout[item * rows * KEYS + i] != 0.f;
  asked = __syncthreads_or(asked);
  if (!POINT_CONTEXT && !asked && dquery && !add_query)
    for (int i = threadIdx.x; i < rows * W; i += blockDim.x) dquery[item * rows * W + i] = 0.f;
  if (asked) {
    share_keys(glimpse, key, item, room);
    if (POINT_CONTEXT) share_making(queries, item, room + MAKING);
  }
  __syncthreads();
  const float* keys = room + h * HEAD;
  const float* values = keys + 8 * TILES * PITCH;
  const float* pointer = values + 8 * TILES * PITCH;
  float* stage = room + MAKING + MADE + h * 16 * STAGE;
  const float scale = rsqrtf((float)W), inner = rsqrtf((float)D);
  float sums[3][BANDS][TILES][4], state_sums[STATE_BANDS][STEPS][4], known_sums[KNOWN_BANDS][STEPS][4];
#pragma unroll
  for (int which = 0; which < 3; ++which)
#pragma unroll
    for (int m = 0; m < BANDS; ++m) clear(sums[which][m]);
#pragma unroll
  for (int m = 0; m < STATE_BANDS; ++m) clear(state_sums[m]);
#pragma unroll
  for (int m = 0; m < KNOWN_BANDS; ++m) clear(known_sums[m]);
  for (int first = 0; asked && first < rows; first += 16) {
    const long row[2] = {item * rows + min(first + g, rows - 1), item * rows + min(first + g + 8, rows - 1)};
    const unsigned long long seen = open_bits(open, row);
    float q[STEPS][4], p[TILES][4], looked[STEPS][4], dz[TILES][4], d[STEPS][4], ds[TILES][4], dq[STEPS][4];
    State state;
    if (POINT_CONTEXT) read_state(queries, row, state);
    find_queries(queries, state, row, h, room + MAKING, q);
    look(q, keys, seen, inner, p, looked);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const bool here = first + g + 8 * i < rows;
#pragma unroll
      for (int n = 0; n < TILES; ++n) {
        const float2 y = pair<KEYS>(out + row[i] * KEYS, 8 * n + 2 * t);
        const float2 slope = pair<KEYS>(dout + row[i] * KEYS, 8 * n + 2 * t);
        dz[n][2 * i] = here ? slope.x * scale * (bound - __fdividef(y.x * y.x, bound)) : 0.f;
        dz[n][2 * i + 1] = here ? slope.y * scale * (bound - __fdividef(y.y * y.y, bound)) : 0.f;
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
          if (first + g + 8 * i < rows)
            put_pair<D>(dquery + row[i] * W + h * D, 8 * k + 2 * t, dq[k][2 * i], dq[k][2 * i + 1], add_query);
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
