// A job shop: every candidate is an operation, job after job along the routes, and starts when its job and its machine are
// free. What is decided next is the order's, a constant number: see `JobOrder`. The state: how long each machine, then each
// job, is still busy once something can start again, over `unit`; then the machine that is decided.
#define ORDER_MACHINE 0
#define ORDER_NON_DELAY 1
#define ORDER_ACTIVE 2
#define ORDER_LIST 3

__device__ __forceinline__ unsigned long long warp_least(unsigned long long x) {
#pragma unroll
  for (int hop = 16; hop; hop >>= 1) {
    const unsigned long long other = __shfl_xor_sync(~0u, x, hop);
    x = other < x ? other : x;
  }
  return x;
}

__device__ __forceinline__ unsigned long long warp_or(unsigned long long x) {
#pragma unroll
  for (int hop = 16; hop; hop >>= 1) x |= __shfl_xor_sync(~0u, x, hop);
  return x;
}

struct JobShop {
  const int* steps;   // [item, candidate, 3]: machine, time, job
  const int* starts;  // [item, job + 1]: where a job's operations begin, and the end
  const float* unit;  // [item]
  int* ends;          // [trajectory]
  int keys, machines, jobs, order;
  long item;
  int *free, *ready, *next;  // [machine]; [job] each: when it is free, and the operation that it wants next

  __device__ __forceinline__ int room() const { return machines + 2 * jobs; }

  __device__ __forceinline__ void begin(float* room, long of, Open&) {
    item = of;
    free = (int*)room;
    ready = free + machines;
    next = ready + jobs;
    for (int m = threadIdx.x % 32; m < machines; m += 32) free[m] = 0;
    for (int j = threadIdx.x % 32; j < jobs; j += 32) {
      ready[j] = 0;
      next[j] = starts[item * (jobs + 1) + j];
    }
  }

  // What the order goes by, then the machine, in one number: the least of all decides, ties by the machine's number.
  __device__ __forceinline__ unsigned long long wants(int j, int& start, int& machine) const {
    if (next[j] >= starts[item * (jobs + 1) + j + 1]) return ~0ull;
    const int* step = steps + (item * keys + next[j]) * 3;
    machine = step[0];
    start = max(ready[j], free[machine]);
    const int time = order == ORDER_MACHINE ? free[machine] : order == ORDER_ACTIVE ? start + step[1] : start;
    return (unsigned long long)time << 32 | (unsigned)machine;
  }

  __device__ __forceinline__ void look(float* state, Open& open) const {
    const int lane = threadIdx.x % 32;
    unsigned long long best = ~0ull, clock = ~0ull;
    int start, machine;
    for (int j = lane; j < jobs; j += 32) {
      const unsigned long long key = wants(j, start, machine);
      if (key == ~0ull) continue;
      best = key < best ? key : best;
      clock = start < clock ? start : clock;
    }
    best = warp_least(best);
    clock = warp_least(clock);
    unsigned long long low = 0, high = 0;
    for (int j = lane; j < jobs; j += 32) {
      const unsigned long long key = wants(j, start, machine);
      if (key == ~0ull) continue;
      bool may = key == best;
      if (order == ORDER_LIST) may = true;
      // All that can start on the machine at hand before the end that decides.
      if (order == ORDER_ACTIVE) may |= machine == (int)(unsigned)best && start < (int)(best >> 32);
      if (!may) continue;
      if (next[j] < 64) low |= 1ull << next[j]; else high |= 1ull << (next[j] - 64);
    }
    open = {warp_or(low), warp_or(high)};
    for (int i = lane; i < machines + jobs; i += 32)
      state[i] = __fdiv_rn((float)max((i < machines ? free[i] : ready[i - machines]) - (int)clock, 0), unit[item]);
    for (int m = lane; m < machines; m += 32) state[machines + jobs + m] = m == (int)(unsigned)best;
  }

  __device__ __forceinline__ void take(int chosen, Open&) {
    if (threadIdx.x % 32) return;
    const int* step = steps + (item * keys + chosen) * 3;
    const int end = max(ready[step[2]], free[step[0]]) + step[1];
    ready[step[2]] = end;
    free[step[0]] = end;
    ++next[step[2]];
  }

  __device__ __forceinline__ void end(long trajectory) const {
    if (threadIdx.x % 32) return;
    int last = 0;
    for (int j = 0; j < jobs; ++j) last = max(last, ready[j]);
    ends[trajectory] = last;
  }
};

extern "C" __global__ void __launch_bounds__(512)
    construct_job_shop(POINTER_PARAMETERS, const int* steps_of, const int* starts, const float* unit, int* ends,
                       int machines, int jobs, int order) {
  construct(POINTER, JobShop{steps_of, starts, unit, ends, keys, machines, jobs, order});
}
