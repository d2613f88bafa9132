// A permutation flow shop: stations that every candidate passes in the order of its choice, each done with one at
// max(its own last, the station before) + time. The state: when each station is done over `whole`, then how long after
// the one before over `unit`.
struct FlowShop {
  const int* times;           // [item, candidate, station]
  const float *whole, *unit;  // [item]
  int* ends;                  // [trajectory]: when the last station is done
  int keys, stations;
  long item;
  int* done;                  // [station]

  __device__ __forceinline__ int room() const { return stations; }

  __device__ __forceinline__ void begin(float* room, long of, Open& open) {
    item = of;
    done = (int*)room;
    open = {~0ull, ~0ull};
    for (int m = threadIdx.x % 32; m < stations; m += 32) done[m] = 0;
  }

  __device__ __forceinline__ void look(float* state, Open&) const {
    for (int m = threadIdx.x % 32; m < stations; m += 32) {
      state[m] = __fdiv_rn((float)done[m], whole[item]);
      state[stations + m] = __fdiv_rn((float)(done[m] - done[m ? m - 1 : 0]), unit[item]);
    }
  }

  __device__ __forceinline__ void take(int chosen, Open& open) {
    if (threadIdx.x % 32 == 0) {
      int ready = 0;
      for (int m = 0; m < stations; ++m) {
        ready = max(ready, done[m]) + times[(item * keys + chosen) * stations + m];
        done[m] = ready;
      }
    }
    if (chosen < 64) open.low &= ~(1ull << chosen); else open.high &= ~(1ull << (chosen - 64));
  }

  __device__ __forceinline__ void end(long trajectory) const {
    if (threadIdx.x % 32 == 0) ends[trajectory] = done[stations - 1];
  }
};

extern "C" __global__ void __launch_bounds__(512)
    construct_flow_shop(POINTER_PARAMETERS, const int* times, const float* whole, const float* unit, int* ends,
                        int stations) {
  construct(POINTER, FlowShop{times, whole, unit, ends, keys, stations});
}
