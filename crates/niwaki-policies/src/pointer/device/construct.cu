// Whole constructions on the device: a policy points, a shop moves on. CONSTRUCT_WIDTH, CONSTRUCT_HEADS and
// CONSTRUCT_RESIDUAL, whether the query joins its glimpse, are constants of the file. A shop's own file follows this one: a struct with what a trajectory keeps (see `construct`), and a kernel
// that takes POINTER_PARAMETERS first, its own tables after them, and calls `construct` with both.

#define W CONSTRUCT_WIDTH
#define H CONSTRUCT_HEADS
#define D (W / H)

// Four sums side by side: one alone would wait for itself at every step.
__device__ __forceinline__ float dot(const float* a, const float* b, int width) {
  float sums[4] = {0.f, 0.f, 0.f, 0.f};
#pragma unroll
  for (int i = 0; i < width; ++i) sums[i % 4] = fmaf(a[i], b[i], sums[i % 4]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Which keys a row may see, as bits: a point takes no more keys than these.
struct Open {
  unsigned long long low, high;
  __device__ __forceinline__ bool operator[](int s) const { return (s < 64 ? low >> s : high >> (s - 64)) & 1; }
  __device__ __forceinline__ int count() const { return __popcll(low) + __popcll(high); }
  // The open key that `before` others precede; 128 where there is none.
  __device__ __forceinline__ int nth(int before) const {
    unsigned long long a = low, b = high;
    for (int i = 0; i < before; ++i) {
      if (a) a &= a - 1; else b &= b - 1;
    }
    return a ? __ffsll(a) - 1 : b ? 63 + __ffsll(b) : 128;
  }
};

// The policy, and where its trajectories go: the inputs of a scoring pass, ready to be scored. `weight` and `bias` are
// the first member's, members are `stride` apart; without uniforms the likeliest candidate is taken. A `bound` of zero is
// none: scores are logits.
struct Pointer {
  const float *known, *glimpse, *key, *weight, *bias;
  long stride;
  const float* uniforms;
  int *actions, *last;
  float* context;
  unsigned char* open;
  int items, group, steps, keys, inputs;
  float bound;
};

#define POINTER_PARAMETERS                                                                                              \
  const float *known, const float *glimpse, const float *key, const float *weight, const float *bias, long stride,      \
      const float *uniforms, int *actions, int *last, float *context, unsigned char *open, int items, int group,        \
      int steps, int keys, int inputs, float bound
#define POINTER                                                                                                         \
  Pointer { known, glimpse, key, weight, bias, stride, uniforms, actions, last, context, open, items, group, steps,     \
            keys, inputs, bound }

// Rows of keys are padded in shared memory so that lanes read them from different banks.
#define GLIMPSE_PITCH (2 * W + 4)
#define KEY_PITCH (W + 4)

// The weight of a candidate of this score, up to a factor that all share. Logits with a bound need no maximum, others lose `top`.
__device__ __forceinline__ float weigh(float score, float bound, float top) {
  return __expf(bound > 0.f ? bound * (tanhf(score) - 1.f) : score - top);
}

// The choice of a warp from the query `q`: the first open candidate at which the running sum of probabilities exceeds the
// uniform, the likeliest where rounding leaves none or where there is no uniform. `g` [W] and `p` [H, keys] are room.
__device__ __forceinline__ int draw(const float* kv, const float* pointer, const float* q, float* g, float* p, int keys,
                                    float bound, const Open& seen, const float* uniform) {
  const int lane = threadIdx.x % 32;
  const float scale = rsqrtf((float)W), inner = rsqrtf((float)D);
#pragma unroll
  for (int h = 0; h < H; ++h) {
    float top = -3.0e38f, total = 0.f;
    for (int s = lane; s < keys; s += 32) {
      const float score = inner * dot(q + h * D, kv + s * GLIMPSE_PITCH + h * D, D);
      p[h * keys + s] = score;
      if (seen[s]) top = fmaxf(top, score);
    }
    top = warp_max(top);
    for (int s = lane; s < keys; s += 32) {
      const float e = seen[s] ? __expf(p[h * keys + s] - top) : 0.f;
      p[h * keys + s] = e;
      total += e;
    }
    const float share = __fdividef(1.f, warp_sum(total));
    for (int s = lane; s < keys; s += 32) p[h * keys + s] *= share;
  }
  __syncwarp();
  for (int c = lane; c < W; c += 32) {
    const float* mine = p + c / D * keys;
    float sum = 0.f;
    for (int s = 0; s < keys; ++s) sum = fmaf(mine[s], kv[s * GLIMPSE_PITCH + W + c], sum);
    g[c] = CONSTRUCT_RESIDUAL ? sum + q[c] : sum;
  }
  __syncwarp();
  // The weights' room serves again.
  float total = 0.f, most = -1.f, top = -3.0e38f;
  int likeliest = keys;
  for (int s = lane; s < keys; s += 32) {
    const float score = scale * dot(g, pointer + s * KEY_PITCH, W);
    p[s] = score;
    if (seen[s]) top = fmaxf(top, score);
  }
  if (!(bound > 0.f)) top = warp_max(top);
  for (int s = lane; s < keys; s += 32) {
    const float e = seen[s] ? weigh(p[s], bound, top) : 0.f;
    p[s] = e;
    total += e;
    if (seen[s] && e > most) { most = e; likeliest = s; }
  }
  total = warp_sum(total);
  const float largest = warp_max(most);
  int chosen = most == largest ? likeliest : keys;
#pragma unroll
  for (int hop = 16; hop; hop >>= 1) chosen = min(chosen, __shfl_xor_sync(~0u, chosen, hop));
  if (uniform) {
    const float target = *uniform * total;
    float carried = 0.f;
    for (int first = 0; first < keys; first += 32) {
      const int s = first + lane;
      float sum = s < keys ? p[s] : 0.f;
#pragma unroll
      for (int hop = 1; hop < 32; hop <<= 1) {
        const float other = __shfl_up_sync(~0u, sum, hop);
        if (lane >= hop) sum += other;
      }
      sum += carried;
      const unsigned past = __ballot_sync(~0u, s < keys && seen[s] && sum > target);
      if (past) { chosen = first + __ffs(past) - 1; break; }
      carried = __shfl_sync(~0u, sum, 31);
    }
  }
  return chosen;
}

// So many open candidates, or fewer, share a warp with all heads.
#define FEW (32 / H)

// As `draw`, with a lane for each head of each open candidate: closed ones cost nothing. At most FEW of them are open.
__device__ __forceinline__ int draw_few(const float* kv, const float* pointer, const float* q, float* g, float bound,
                                        const Open& seen, int count, const float* uniform) {
  const int lane = threadIdx.x % 32, head = lane % H, s = seen.nth(lane / H);
  const bool mine = lane / H < count;
  float top = mine ? rsqrtf((float)D) * dot(q + head * D, kv + s * GLIMPSE_PITCH + head * D, D) : -3.0e38f;
  const float score = top;
#pragma unroll
  for (int hop = H; hop < 32; hop <<= 1) top = fmaxf(top, __shfl_xor_sync(~0u, top, hop));
  const float share = mine ? __expf(score - top) : 0.f;
  float total = share;
#pragma unroll
  for (int hop = H; hop < 32; hop <<= 1) total += __shfl_xor_sync(~0u, total, hop);
  const float weight = __fdividef(share, total);
#pragma unroll
  for (int first = 0; first < W; first += 32) {
    const int c = min(first + lane, W - 1);
    float sum = 0.f;
    for (int slot = 0; slot < count; ++slot) {
      const int key = __shfl_sync(~0u, s, slot * H);
      sum = fmaf(__shfl_sync(~0u, weight, slot * H + c / D), kv[key * GLIMPSE_PITCH + W + c], sum);
    }
    g[c] = CONSTRUCT_RESIDUAL ? sum + q[c] : sum;
  }
  __syncwarp();
  float z = mine ? dot(g + head * D, pointer + s * KEY_PITCH + head * D, D) : 0.f;
#pragma unroll
  for (int hop = 1; hop < H; hop <<= 1) z += __shfl_xor_sync(~0u, z, hop);
  z *= rsqrtf((float)W);
  float highest = mine ? z : -3.0e38f;
  if (!(bound > 0.f))
#pragma unroll
    for (int hop = H; hop < 32; hop <<= 1) highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, hop));
  const float e = mine ? weigh(z, bound, highest) : 0.f;
  float sum = e, largest = e;
#pragma unroll
  for (int hop = H; hop < 32; hop <<= 1) {
    const float other = __shfl_up_sync(~0u, sum, hop);
    if (lane >= hop) sum += other;
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, hop));
  }
  total = __shfl_sync(~0u, sum, 31);
  unsigned wanted = __ballot_sync(~0u, mine && e == largest);
  if (uniform) {
    const unsigned past = __ballot_sync(~0u, mine && sum > *uniform * total);
    if (past) wanted = past;
  }
  return __shfl_sync(~0u, s, __ffs(wanted) - 1);
}

// A block per item, a warp per trajectory, a lane per key or column. A shop is what a warp keeps of its own trajectory:
//   int room() const                                scalars of shared memory that it needs for each trajectory
//   void begin(float* room, long item, Open& open)  before the first step
//   void look(float* state, Open& open) const       the state in numbers, `inputs` of them, and what is open
//   void take(int chosen, Open& open)               the choice of a step
//   void end(long trajectory) const                 after the last
// All lanes call them together, and what one lane wrote into room or state the others see after the call.
template <class Shop>
__device__ __forceinline__ void construct(const Pointer& by, Shop shop) {
  extern __shared__ __align__(16) float room[];
  const long item = blockIdx.x, member = item / by.items;
  const int keys = by.keys, inputs = by.inputs, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  float* kv = room;                              // [keys, GLIMPSE_PITCH]
  float* pointer = kv + keys * GLIMPSE_PITCH;    // [keys, KEY_PITCH]
  float* base = pointer + keys * KEY_PITCH;      // [keys + 1, W]
  float* w = base + (keys + 1) * W;              // [inputs, W]
  float* b = w + inputs * W;                     // [W]
  // Of this warp: query, glimpse, weights [H, keys], state, the shop's own.
  float* q = b + W + threadIdx.x / 32 * (2 * W + H * keys + inputs + shop.room());
  float* g = q + W;
  float* p = g + W;
  float* state = p + H * keys;
  for (int i = threadIdx.x; i < keys * 2 * W; i += blockDim.x)
    kv[i / (2 * W) * GLIMPSE_PITCH + i % (2 * W)] = by.glimpse[item * keys * 2 * W + i];
  for (int i = threadIdx.x; i < keys * W; i += blockDim.x) pointer[i / W * KEY_PITCH + i % W] = by.key[item * keys * W + i];
  for (int i = threadIdx.x; i < (keys + 1) * W; i += blockDim.x) base[i] = by.known[item * (keys + 1) * W + i];
  for (int i = threadIdx.x; i < inputs * W; i += blockDim.x) w[i] = by.weight[member * by.stride + i];
  for (int i = threadIdx.x; i < W; i += blockDim.x) b[i] = by.bias[member * by.stride + i];
  __syncthreads();
  for (int place = threadIdx.x / 32; place < by.group; place += warps) {
    const long trajectory = item * by.group + place, row = trajectory * by.steps;
    Open seen;
    int before = keys;
    shop.begin(state + inputs, item, seen);
    __syncwarp();
    for (int step = 0; step < by.steps; ++step) {
      shop.look(state, seen);
      if (lane == 0) by.last[row + step] = before;
      for (int s = lane; s < keys; s += 32) by.open[(row + step) * keys + s] = seen[s];
      __syncwarp();
      for (int i = lane; i < inputs; i += 32) by.context[(row + step) * inputs + i] = state[i];
      // Where one candidate is left there is nothing to compare.
      const int count = seen.count();
      int chosen = seen.nth(0);
      if (count > 1) {
        for (int c = lane; c < W; c += 32) {
          float sum = base[before * W + c] + b[c];
          for (int i = 0; i < inputs; ++i) sum = fmaf(state[i], w[i * W + c], sum);
          q[c] = sum;
        }
        __syncwarp();
        const float* uniform = by.uniforms ? by.uniforms + row + step : nullptr;
        chosen = 32 % H == 0 && count <= FEW
                     ? draw_few(kv, pointer, q, g, by.bound, seen, count, uniform)
                     : draw(kv, pointer, q, g, p, keys, by.bound, seen, uniform);
      }
      if (lane == 0) by.actions[row + step] = chosen;
      shop.take(chosen, seen);
      before = chosen;
      __syncwarp();
    }
    shop.end(trajectory);
    __syncwarp();
  }
}
