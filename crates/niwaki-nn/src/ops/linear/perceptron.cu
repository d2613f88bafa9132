// A perceptron of three layers in one kernel each way: act(act(x W1 + b1) W2 + b2) W3 + b3, with few inputs and outputs. What is
// N wide stays in registers and shared memory; the backward pass computes it anew. Behind products.cu. Constants:
// PERCEPTRON_IN, PERCEPTRON_HIDDEN (64 or 128), PERCEPTRON_OUT (at most 8), PERCEPTRON_ACTIVATION (one whose slope follows from
// its result).

#define IN PERCEPTRON_IN
#define N PERCEPTRON_HIDDEN
#define OUT PERCEPTRON_OUT
#define KIND PERCEPTRON_ACTIVATION
#define STEPS ((IN + 7) / 8)  // of eight inputs
#define TILES (N / 8)         // of eight hidden columns
#define THREADS 256

// Where an entry of a weight lies in shared memory. Groups of eight columns are exchanged, so that the lanes of a warp find
// eight rows of one column group, or two columns of eight rows, in different banks.
__device__ __forceinline__ int place(int row, int column) { return row * N + (column ^ 8 * ((row ^ (row & 7) >> 2) & 3)); }

__device__ __forceinline__ float activated(float z) {
  if (KIND == ELU_) {
    // e^z - 1 loses digits near 0, where its series does not.
    const float near = z * fmaf(z, fmaf(z, fmaf(z, fmaf(z, fmaf(z, 1.f / 720, 1.f / 120), 1.f / 24), 1.f / 6), 0.5f), 1.f);
    return z > 0.f ? z : z > -0.25f ? near : __expf(z) - 1.f;
  }
  float slope;
  return activate(KIND, z, slope);
}

// What both passes keep in shared memory: W1 [8 STEPS, N], W2 [N, N], W3 transposed [8, N], and the biases of the hidden layers.
struct Shared {
  float *first, *second, *third, *bias, *rest;
};

__device__ __forceinline__ Shared share_weights(float* room, const float* w1, const float* b1, const float* w2, const float* b2,
                                                const float* w3) {
  const Shared s = {room, room + 8 * STEPS * N, room + (8 * STEPS + N) * N, room + (8 * STEPS + N + 8) * N,
                    room + (8 * STEPS + N + 10) * N};
  for (int i = threadIdx.x; i < 8 * STEPS * N; i += THREADS) s.first[place(i / N, i % N)] = i < IN * N ? settled(w1[i]) : 0.f;
#pragma unroll 8
  for (int i = threadIdx.x; i < N * N; i += THREADS) s.second[place(i / N, i % N)] = settled(w2[i]);
  for (int i = threadIdx.x; i < 8 * N; i += THREADS) s.third[place(i % 8, i / 8)] = i % 8 < OUT ? settled(w3[i / 8 * OUT + i % 8]) : 0.f;
  for (int i = threadIdx.x; i < 2 * N; i += THREADS) s.bias[i] = i < N ? b1[i] : b2[i - N];
  return s;
}

// A right operand: eight rows of a weight from `row` on, eight columns.
__device__ __forceinline__ void take_down(const float* weight, int row, int column, Piece (&b)[2]) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  b[0] = piece(weight[place(row + 2 * t, column + g)]);
  b[1] = piece(weight[place(row + 2 * t + 1, column + g)]);
}

// The same of the transposed weight: eight of its rows are the columns of the operand.
__device__ __forceinline__ void take_across(const float* weight, int row, int column, Piece (&b)[2]) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const float2 x = *(const float2*)(weight + place(row + g, column + 2 * t));
  b[0] = piece(x.x);
  b[1] = piece(x.y);
}

// Sums that are settled, as a left operand.
__device__ __forceinline__ void take_settled(const float (&c)[4], Piece (&a)[4]) {
  a[0] = piece(c[0]);
  a[1] = piece(c[2]);
  a[2] = piece(c[1]);
  a[3] = piece(c[3]);
}

// Sixteen rows and eight columns of settled numbers in shared memory, as a left operand.
__device__ __forceinline__ void take_rows(const float* from, int pitch, Piece (&a)[4]) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const float2 x = *(const float2*)(from + g * pitch + 2 * t), y = *(const float2*)(from + (g + 8) * pitch + 2 * t);
  a[0] = piece(x.x);
  a[1] = piece(y.x);
  a[2] = piece(x.y);
  a[3] = piece(y.y);
}

// Eight rows and sixteen columns of them (or eight, and zeros), transposed, as a left operand.
__device__ __forceinline__ void take_columns(const float* from, int pitch, bool all, Piece (&a)[4]) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const float* at = from + t * pitch + g;
  a[0] = piece(at[0]);
  a[1] = piece(all ? at[8] : 0.f);
  a[2] = piece(at[4 * pitch]);
  a[3] = piece(all ? at[4 * pitch + 8] : 0.f);
}

// z = act(z + bias), for `M` tiles of columns.
template <int M> __device__ __forceinline__ void finish(float (&z)[M][4], const float* bias) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < M; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) z[n][i] = settled(activated(z[n][i] + bias[8 * n + 2 * t + i % 2]));
}

// A warp takes sixteen rows at a time, with all columns. Weights are [member, stride] apart.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    perceptron_forward(const float* x, const float* w1, const float* b1, const float* w2, const float* b2, const float* w3,
                       const float* b3, long stride, float* out, int rows_per_member) {
  extern __shared__ float room[];
  const long member = blockIdx.y * stride;
  const Shared s = share_weights(room, w1 + member, b1 + member, w2 + member, b2 + member, w3 + member);
  b3 += member;
  x += (long)blockIdx.y * rows_per_member * IN;
  out += (long)blockIdx.y * rows_per_member * OUT;
  __syncthreads();
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, warps = THREADS / 32;
  for (int top = 16 * (blockIdx.x * warps + threadIdx.x / 32); top < rows_per_member; top += 16 * warps * gridDim.x) {
    float h[TILES][4];
    clear(h);
    const int row[2] = {top + g, top + g + 8};
#pragma unroll
    for (int k = 0; k < STEPS; ++k) {
      float2 u[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        u[i] = row[i] < rows_per_member ? pair<IN>(x + (long)row[i] * IN, 8 * k + 2 * t) : make_float2(0.f, 0.f);
      const Piece a[4] = {piece(settled(u[0].x)), piece(settled(u[1].x)), piece(settled(u[0].y)), piece(settled(u[1].y))};
#pragma unroll
      for (int n = 0; n < TILES; ++n) {
        Piece b[2];
        take_down(s.first, 8 * k, 8 * n, b);
        multiply(h[n], a, b);
      }
    }
    finish(h, s.bias);
    float y[1][4];
    clear(y);
    // Four tiles of the second layer at a time, each at once a step of the third.
#pragma unroll 1
    for (int column = 0; column < N; column += 32) {
      float z[4][4];
      clear(z);
#pragma unroll
      for (int k = 0; k < TILES; ++k) {
        Piece a[4];
        take_settled(h[k], a);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          Piece b[2];
          take_down(s.second, 8 * k, column + 8 * n, b);
          multiply(z[n], a, b);
        }
      }
      finish(z, s.bias + N + column);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        Piece a[4], b[2];
        take_settled(z[n], a);
        take_across(s.third, 0, column + 8 * n, b);
        multiply(y[0], a, b);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = 2 * t + i % 2;
      if (column < OUT && row[i / 2] < rows_per_member) out[(long)row[i / 2] * OUT + column] = y[0][i] + b3[column];
    }
  }
}

// The backward pass: a block takes ROWS rows at a time, warps in four bands of rows and two halves of the hidden columns.
#define ROWS 64
#define HALF (TILES / 2)
#define PITCH (N + 8)
// Eight or twenty-four banks from row to row.
#define IN_PITCH (8 * (STEPS | 1))
#define BANDS_IN ((STEPS + 1) / 2)
#define DOWN (N / 64)     // tiles of sixteen rows of dW2 for each of four warps
#define ALONG (TILES / 8)  // tiles of columns of dW1 for each warp
#define PARTS (THREADS / N)

__device__ __forceinline__ float column_total(const float* from) {
  const int column = threadIdx.x % N, part = threadIdx.x / N;
  float sum = 0.f;
#pragma unroll 8
  for (int r = part * (ROWS / PARTS); r < (part + 1) * (ROWS / PARTS); ++r) sum += from[r * PITCH + column];
  return sum;
}

// partial[member, block]: dW1, db1, dW2, db2, dW3, db3 of the block's rows. dx (+)= where it is asked for.
extern "C" __global__ void __launch_bounds__(THREADS)
    perceptron_backward(const float* x, const float* dy, const float* w1, const float* b1, const float* w2, const float* b2,
                        const float* w3, long stride, float* dx, int add, float* partial, int rows_per_member) {
  extern __shared__ float room[];
  const long member = blockIdx.y * stride;
  const Shared s = share_weights(room, w1 + member, b1 + member, w2 + member, b2 + member, w3 + member);
  float *h = s.rest, *z = h + ROWS * PITCH, *inputs = z + ROWS * PITCH, *given = inputs + ROWS * IN_PITCH;
  x += (long)blockIdx.y * rows_per_member * IN;
  dy += (long)blockIdx.y * rows_per_member * OUT;
  if (dx) dx += (long)blockIdx.y * rows_per_member * IN;
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, warp = threadIdx.x / 32;
  const int top = 16 * (warp % 4), left = 8 * HALF * (warp / 4);
  float sum1[BANDS_IN][ALONG][4], sum2[DOWN][HALF][4], sum3[1][1][4];
#pragma unroll
  for (int m = 0; m < BANDS_IN; ++m) clear(sum1[m]);
#pragma unroll
  for (int m = 0; m < DOWN; ++m) clear(sum2[m]);
  clear(sum3[0]);
  float total1 = 0.f, total2 = 0.f, total3 = 0.f;

#pragma unroll 1
  for (int start = blockIdx.x * ROWS; start < rows_per_member; start += gridDim.x * ROWS) {
    for (int i = threadIdx.x; i < ROWS * 8 * STEPS; i += THREADS) {
      const int r = i / (8 * STEPS), c = i % (8 * STEPS);
      const bool there = c < IN && start + r < rows_per_member;
      inputs[r * IN_PITCH + c] = there ? settled(x[(long)(start + r) * IN + c]) : 0.f;
    }
#pragma unroll
    for (int i = threadIdx.x; i < ROWS * 8; i += THREADS) {
      const int r = i / 8, c = i % 8;
      const float d = c < OUT && start + r < rows_per_member ? dy[(long)(start + r) * OUT + c] : 0.f;
      given[i] = settled(d);
      total3 += d;
    }
    __syncthreads();
    float y[HALF][4];
    clear(y);
#pragma unroll
    for (int k = 0; k < STEPS; ++k) {
      Piece a[4];
      take_rows(inputs + top * IN_PITCH + 8 * k, IN_PITCH, a);
#pragma unroll
      for (int n = 0; n < HALF; ++n) {
        Piece b[2];
        take_down(s.first, 8 * k, left + 8 * n, b);
        multiply(y[n], a, b);
      }
    }
    finish(y, s.bias + left);
    put_away(y, h + top * PITCH + left, PITCH);
    __syncthreads();
    clear(y);
#pragma unroll 4
    for (int k = 0; k < TILES; ++k) {
      Piece a[4];
      take_rows(h + top * PITCH + 8 * k, PITCH, a);
#pragma unroll
      for (int n = 0; n < HALF; ++n) {
        Piece b[2];
        take_down(s.second, 8 * k, left + 8 * n, b);
        multiply(y[n], a, b);
      }
    }
    finish(y, s.bias + N + left);
    put_away(y, z + top * PITCH + left, PITCH);
    {
      Piece a[4];
      take_rows(given + top * 8, 8, a);
#pragma unroll
      for (int n = 0; n < HALF; ++n) {
        Piece b[2];
        float d[4] = {0.f, 0.f, 0.f, 0.f};
        take_down(s.third, 0, left + 8 * n, b);
        multiply(d, a, b);
#pragma unroll
        for (int i = 0; i < 4; ++i) y[n][i] = d[i] * slope_from(KIND, y[n][i]);
      }
    }
    __syncthreads();
    // dW3, while z holds the second layer.
    if (warp < N / 16)
#pragma unroll
      for (int k = 0; k < ROWS / 8; ++k) {
        Piece a[4], b[2];
        take_columns(z + 8 * k * PITCH + 16 * warp, PITCH, true, a);
        take_transposed(given, 8, k, 0, b);
        multiply(sum3[0][0], a, b);
      }
    __syncthreads();
    put_away(y, z + top * PITCH + left, PITCH);
    __syncthreads();
    // dW2 and db2, while z holds the second layer's cotangent.
    total2 += column_total(z);
#pragma unroll 2
    for (int k = 0; k < ROWS / 8; ++k) {
      Piece a[DOWN][4];
#pragma unroll
      for (int m = 0; m < DOWN; ++m) take_columns(h + 8 * k * PITCH + 16 * (DOWN * (warp % 4) + m), PITCH, true, a[m]);
#pragma unroll
      for (int n = 0; n < HALF; ++n) {
        Piece b[2];
        take_transposed(z, PITCH, k, left + 8 * n, b);
#pragma unroll
        for (int m = 0; m < DOWN; ++m) multiply(sum2[m][n], a[m], b);
      }
    }
    clear(y);
#pragma unroll 4
    for (int k = 0; k < TILES; ++k) {
      Piece a[4];
      take_rows(z + top * PITCH + 8 * k, PITCH, a);
#pragma unroll
      for (int n = 0; n < HALF; ++n) {
        Piece b[2];
        take_across(s.second, left + 8 * n, 8 * k, b);
        multiply(y[n], a, b);
      }
    }
#pragma unroll
    for (int n = 0; n < HALF; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        y[n][i] *= slope_from(KIND, h[(top + g + 8 * (i / 2)) * PITCH + left + 8 * n + 2 * t + i % 2]);
    __syncthreads();
    put_away(y, z + top * PITCH + left, PITCH);
    __syncthreads();
    // dW1, db1 and dx, while z holds the first layer's cotangent.
    total1 += column_total(z);
#pragma unroll 2
    for (int k = 0; k < ROWS / 8; ++k) {
      Piece b[ALONG][2];
#pragma unroll
      for (int n = 0; n < ALONG; ++n) take_transposed(z, PITCH, k, 8 * (ALONG * warp + n), b[n]);
#pragma unroll
      for (int m = 0; m < BANDS_IN; ++m) {
        Piece a[4];
        take_columns(inputs + 8 * k * IN_PITCH + 16 * m, IN_PITCH, 2 * m + 1 < STEPS, a);
#pragma unroll
        for (int n = 0; n < ALONG; ++n) multiply(sum1[m][n], a, b[n]);
      }
    }
    if (dx)
      for (int step = warp / 4; step < STEPS; step += 2) {
        float d[4] = {0.f, 0.f, 0.f, 0.f};
#pragma unroll 4
        for (int k = 0; k < TILES; ++k) {
          Piece a[4], b[2];
          take_rows(z + top * PITCH + 8 * k, PITCH, a);
          take_across(s.first, 8 * step, 8 * k, b);
          multiply(d, a, b);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int r = start + top + g + 8 * (i / 2), c = 8 * step + 2 * t + i % 2;
          if (r < rows_per_member && c < IN) {
            float* to = dx + (long)r * IN + c;
            *to = add ? *to + d[i] : d[i];
          }
        }
      }
    __syncthreads();
  }

  constexpr int second = IN * N + N, third = second + N * N + N, all = third + N * OUT + OUT;
  partial += ((long)blockIdx.y * gridDim.x + blockIdx.x) * all;
  give(sum1, partial + 8 * ALONG * warp, IN, 8 * ALONG, N, 1, 0);
  give(sum2, partial + second + 16 * DOWN * (warp % 4) * N + left, 16 * DOWN, 8 * HALF, N, 1, 0);
  if (warp < N / 16) give(sum3, partial + third + 16 * warp * OUT, 16, OUT, OUT, 1, 0);
  z[threadIdx.x] = total1;
  z[THREADS + threadIdx.x] = total2;
  z[2 * THREADS + threadIdx.x] = total3;
  __syncthreads();
  if (threadIdx.x < N) {
    float sums[2] = {0.f, 0.f};
#pragma unroll
    for (int part = 0; part < PARTS; ++part)
#pragma unroll
      for (int i = 0; i < 2; ++i) sums[i] += z[i * THREADS + part * N + threadIdx.x];
    partial[IN * N + threadIdx.x] = sums[0];
    partial[second + N * N + threadIdx.x] = sums[1];
  }
  if (threadIdx.x < OUT) {
    float sum = 0.f;
    for (int i = threadIdx.x; i < THREADS; i += 8) sum += z[2 * THREADS + i];
    partial[third + N * OUT + threadIdx.x] = sum;
  }
}
