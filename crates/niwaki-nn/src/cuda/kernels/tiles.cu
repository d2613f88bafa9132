// Tiles of a product on Hopper's tensor cores: brought by the copy engine into stages of shared memory, multiplied there. A block makes
// 64 rows x COLUMNS columns; one warp brings slices of 64 along the summed axis, the others multiply. Constants: TILE_COLUMNS,
// TILE_STAGES.

#define COLUMNS TILE_COLUMNS
#define STAGES TILE_STAGES
#define ROWS 64
#define SLICE 64
#define PART (COLUMNS % 96 == 0 ? 96 : 64)   // columns of an instruction
#define PARTS (COLUMNS / PART)
#define ACROSS (PART == 64 ? 64 : 32)        // columns of a factor [depth, columns] that are brought side by side
#define LEFT (ROWS * SLICE * 2)              // bytes of a slice
#define RIGHT (COLUMNS * SLICE * 2)
#define STAGE (LEFT + RIGHT)
#define KEPT (PART / 2)                      // sums of a thread in a part

struct __align__(64) Map {
  unsigned long long words[16];
};

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void expect(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void await(unsigned barrier, int parity) {
  asm volatile(
      "{.reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra AGAIN; DONE: }" ::"r"(
          barrier),
      "r"(parity)
      : "memory");
}

__device__ __forceinline__ void bring_rows(unsigned to, const Map* map, int column, int row, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}

__device__ __forceinline__ void bring(unsigned to, const Map* map, int x, int y, int member, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(member), "r"(barrier)
      : "memory");
}

// Descriptor of an operand in shared memory: rows of 128 or 64 bytes, swizzled; `apart` bytes to the next such rows.
__device__ __forceinline__ unsigned long long descriptor(unsigned at, int bytes, int apart) {
  return (unsigned long long)((at & 0x3ffff) >> 4) | (unsigned long long)(apart >> 4) << 16 |
         (unsigned long long)(8 * bytes >> 4) << 32 | (bytes == 128 ? 1ull : 2ull) << 62;
}

#define F4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define F16(i) F4(i), F4(i + 4), F4(i + 8), F4(i + 12)
#define BY32 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define BY48 BY32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"

// d[64, PART] (+)= a[64, 16] b[16, PART], both in shared memory; an operand that is turned has the summed axis across.
template <int LEFT_TURNED, int RIGHT_TURNED>
__device__ __forceinline__ void multiply(float (&d)[KEPT], unsigned long long a, unsigned long long b, int onto) {
#if TILE_COLUMNS % 96 == 0
  asm volatile("{.reg .pred p; setp.ne.b32 p, %50, 0; wgmma.mma_async.sync.aligned.m64n96k16.f32.bf16.bf16 {" BY48
               "}, %48, %49, p, 1, 1, %51, %52;}"
               : F16(0), F16(16), F16(32)
               : "l"(a), "l"(b), "r"(onto), "n"(LEFT_TURNED), "n"(RIGHT_TURNED));
#else
  asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" BY32
               "}, %32, %33, p, 1, 1, %35, %36;}"
               : F16(0), F16(16)
               : "l"(a), "l"(b), "r"(onto), "n"(LEFT_TURNED), "n"(RIGHT_TURNED));
#endif
}

// Waits for the products that were begun, but for so many groups that are still open.
template <int OPEN> __device__ __forceinline__ void await_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(OPEN) : "memory");
}

// Waits for all products and keeps what they write from being read before.
__device__ __forceinline__ void finish_products(float (&d)[PARTS][KEPT]) {
#pragma unroll
  for (int p = 0; p < PARTS; ++p)
#pragma unroll
    for (int i = 0; i < KEPT; ++i) asm volatile("" : "+f"(d[p][i])::"memory");
  await_products<0>();
#pragma unroll
  for (int p = 0; p < PARTS; ++p)
#pragma unroll
    for (int i = 0; i < KEPT; ++i) asm volatile("" : "+f"(d[p][i])::"memory");
}

__device__ __forceinline__ unsigned two_halves(float low, float high) {
  unsigned both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

// Over the four lanes that share a row.
__device__ __forceinline__ float row_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}
