// Whole constructions on the device: a policy points, a line of stations moves on. CONSTRUCT_WIDTH and CONSTRUCT_HEADS
// are constants of the file.

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
};

// A warp each: a line of stations that every candidate passes in the order of its choice. A block
// per item, a warp per trajectory, a lane per key or column. Trajectories choose by their uniforms (the first candidate
// at which the running sum of probabilities exceeds it, the likeliest where rounding leaves none) or, without uniforms,
// the likeliest. What a scoring pass reads of the steps is written beside the choices: last choices, states, open
// candidates. Rows of keys are padded in shared memory so that lanes read them from different banks.
#define GLIMPSE_PITCH (2 * W + 4)
#define KEY_PITCH (W + 4)

extern "C" __global__ void __launch_bounds__(512)
    point_construct(const float* known, const float* glimpse, const float* key, const float* weight, const float* bias,
                    long stride, const int* times, const float* whole, const float* unit, const float* uniforms,
                    int* actions, int* last, float* context, unsigned char* open, int* ends, int items, int group,
                    int keys, int stations, float bound) {
  extern __shared__ __align__(16) float room[];
  const long item = blockIdx.x, member = item / items;
  const int inputs = 2 * stations, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  float* kv = room;                              // [keys, GLIMPSE_PITCH]
  float* pointer = kv + keys * GLIMPSE_PITCH;    // [keys, KEY_PITCH]
  float* base = pointer + keys * KEY_PITCH;      // [keys + 1, W]
  float* w = base + (keys + 1) * W;              // [inputs, W]
  float* b = w + inputs * W;                     // [W]
  // Of this warp: query, glimpse, weights [H, keys], state, when each station is done.
  float* q = b + W + threadIdx.x / 32 * (2 * W + H * keys + inputs + stations);
  float* g = q + W;
  float* p = g + W;
  float* state = p + H * keys;
  int* done = (int*)(state + inputs);
  for (int i = threadIdx.x; i < keys * 2 * W; i += blockDim.x)
    kv[i / (2 * W) * GLIMPSE_PITCH + i % (2 * W)] = glimpse[item * keys * 2 * W + i];
  for (int i = threadIdx.x; i < keys * W; i += blockDim.x) pointer[i / W * KEY_PITCH + i % W] = key[item * keys * W + i];
  for (int i = threadIdx.x; i < (keys + 1) * W; i += blockDim.x) base[i] = known[item * (keys + 1) * W + i];
  for (int i = threadIdx.x; i < inputs * W; i += blockDim.x) w[i] = weight[member * stride + i];
  for (int i = threadIdx.x; i < W; i += blockDim.x) b[i] = bias[member * stride + i];
  __syncthreads();
  const float scale = rsqrtf((float)W), inner = rsqrtf((float)D);
  for (int place = threadIdx.x / 32; place < group; place += warps) {
    const long row = (item * group + place) * keys;
    Open seen = {~0ull, ~0ull};
    int before = keys;
    for (int m = lane; m < stations; m += 32) done[m] = 0;
    __syncwarp();
    for (int step = 0; step < keys; ++step) {
      for (int m = lane; m < stations; m += 32) {
        state[m] = __fdiv_rn((float)done[m], whole[item]);
        state[stations + m] = __fdiv_rn((float)(done[m] - done[m ? m - 1 : 0]), unit[item]);
      }
      if (lane == 0) last[row + step] = before;
      for (int s = lane; s < keys; s += 32) open[(row + step) * keys + s] = seen[s];
      __syncwarp();
      for (int i = lane; i < inputs; i += 32) context[(row + step) * inputs + i] = state[i];
      for (int c = lane; c < W; c += 32) {
        float sum = base[before * W + c] + b[c];
        for (int i = 0; i < inputs; ++i) sum = fmaf(state[i], w[i * W + c], sum);
        q[c] = sum;
      }
      __syncwarp();
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
        g[c] = sum;
      }
      __syncwarp();
      // Logits are bounded, so their exponentials need no maximum. The weights' room serves again.
      float total = 0.f, most = -1.f;
      int likeliest = keys;
      for (int s = lane; s < keys; s += 32) {
        const float e = seen[s] ? __expf(bound * (tanhf(scale * dot(g, pointer + s * KEY_PITCH, W)) - 1.f)) : 0.f;
        p[s] = e;
        total += e;
        if (seen[s] && e > most) { most = e; likeliest = s; }
      }
      total = warp_sum(total);
      const float largest = warp_max(most);
      int chosen = most == largest ? likeliest : keys;
#pragma unroll
      for (int hop = 16; hop; hop >>= 1) chosen = min(chosen, __shfl_xor_sync(~0u, chosen, hop));
      if (uniforms) {
        const float target = uniforms[row + step] * total;
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
      if (lane == 0) {
        actions[row + step] = chosen;
        int ready = 0;
        for (int m = 0; m < stations; ++m) {
          ready = max(ready, done[m]) + times[(item * keys + chosen) * stations + m];
          done[m] = ready;
        }
      }
      before = chosen;
      if (chosen < 64) seen.low &= ~(1ull << chosen); else seen.high &= ~(1ull << (chosen - 64));
      __syncwarp();
    }
    if (lane == 0) ends[item * group + place] = done[stations - 1];
    __syncwarp();
  }
}
