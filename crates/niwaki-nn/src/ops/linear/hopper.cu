// Products on Hopper's tensor cores with what follows them fused in: bias, GELU and its derivative, and the
// column sums that a bias gradient needs. One block: 128 rows x 128 columns of one member; operands stream through
// three stages of shared memory in slices of 128 bytes along the summed axis. Both operands have the summed axis contiguous
// (tf32 knows no other arrangement), so forward products read weights transposed beforehand. With HOPPER_HALVES operands and
// results are halves and products bf16's.

#define TILE 128
typedef Choose<HOPPER_HALVES>::Scalar Scalar;
#define SLICE (128 / (int)sizeof(Scalar))
#define PIECE (16 / (int)sizeof(Scalar))
#define STAGES 3
#define STAGE (2 * TILE * SLICE)
// Row pitch of the result tile: 8 banks from row to row keeps the accumulators' pairs free of conflicts.
#define PITCH (TILE + 8)

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// 16 bytes from global to shared memory, zeros where `take` is false.
__device__ __forceinline__ void copy16(Scalar* to, const Scalar* from, bool take) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(take ? 16 : 0));
}

// Descriptor of a tile with rows of 128 bytes in the 128-byte swizzle: groups of 8 rows lie 1024 bytes apart.
__device__ __forceinline__ unsigned long long descriptor(const Scalar* tile) {
  unsigned long long d = (shared_address(tile) & 0x3FFFFu) >> 4;
  return d | (1ull << 16) | (64ull << 32) | (1ull << 62);
}

#define F4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define F16(i) F4(i), F4(i + 4), F4(i + 8), F4(i + 12)

#if HOPPER_HALVES
#define PRODUCT "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
#define PLAIN ", 0, 0"
#else
#define PRODUCT "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 "
#define PLAIN ""
#endif

// d[64 x 128] = a[64 x 32 bytes] . b[128 x 32 bytes]^T (+ d where `onto` is not 0), both operands in shared memory.
__device__ __forceinline__ void multiply(float (&d)[64], unsigned long long a, unsigned long long b, int onto) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %66, 0; " PRODUCT
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,"
      "%62,%63}, %64, %65, p, 1, 1" PLAIN ";}"
      : F16(0), F16(16), F16(32), F16(48)
      : "l"(a), "l"(b), "r"(onto));
}

// Both operands of one slice into a stage; thread t copies 16-byte piece t%8 of rows t/8, t/8 + 32, ...
__device__ __forceinline__ void load_slice(Scalar* stage, const Scalar* a, long lda, int rows, const Scalar* b, long ldb,
                                           int columns, int depth, int at) {
  const int piece = threadIdx.x & 7, first = threadIdx.x >> 3;
  const bool inside = at + piece * PIECE < depth;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int r = first + 32 * i;
    const int place = r * SLICE + (piece ^ (r & 7)) * PIECE;
    const bool ok_a = inside && r < rows, ok_b = inside && r < columns;
    copy16(stage + place, ok_a ? a + r * lda + at + piece * PIECE : a, ok_a);
    copy16(stage + TILE * SLICE + place, ok_b ? b + r * ldb + at + piece * PIECE : b, ok_b);
  }
  asm volatile("cp.async.commit_group;");
}

// out[row, column] = f(sum_k a[row, k] b[column, k]) per member.
//   GELU   z = sum + bias; out = gelu(z), saved = gelu'(z)
//   SLOPE  out = sum * saved; partial[row tile, column] = sum of out over the tile's rows
// A slope lies between -0.13 and 1.13, where a half has the ten bits of mantissa that tf32 leaves of every operand: it is
// saved in 16 bits where only SLOPE will read it.
#define GELU 0
#define SLOPE 1

__device__ __forceinline__ float4 from_halves(uint2 packed) {
  float4 v;
  asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}" : "=f"(v.x), "=f"(v.y) : "r"(packed.x));
  asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}" : "=f"(v.z), "=f"(v.w) : "r"(packed.y));
  return v;
}

__device__ __forceinline__ uint2 to_halves(float4 v) {
  uint2 packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed.x) : "f"(v.y), "f"(v.x));
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed.y) : "f"(v.w), "f"(v.z));
  return packed;
}

template <int KIND>
__device__ __forceinline__ void product(const Scalar* __restrict__ a, long a_pitch, long a_stride,
                                        const Scalar* __restrict__ b, long b_pitch, long b_stride,
                                        Scalar* __restrict__ out, long out_pitch, long out_stride,
                                        const float* __restrict__ bias, long bias_stride, void* __restrict__ saved,
                                        int short_slopes, float* __restrict__ partial, int rows, int columns, int depth) {
  extern __shared__ unsigned char raw[];
  Scalar* shared = (Scalar*)(((unsigned long long)raw + 1023) & ~1023ull);
  const int member = blockIdx.z, row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
  const int tile_rows = rows - row0, tile_columns = columns - column0;
  a += member * a_stride + row0 * a_pitch;
  b += member * b_stride + column0 * b_pitch;
  const int slices = (depth + SLICE - 1) / SLICE;

#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < slices)
      load_slice(shared + s * STAGE, a, a_pitch, tile_rows, b, b_pitch, tile_columns, depth, s * SLICE);
    else
      asm volatile("cp.async.commit_group;");
  }
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, group = threadIdx.x >> 7;
  // A warp will finish whole rows warp, warp + 8, ...: this lane has the same four columns in each.
  const int c = lane * 4;
  const bool take = c < tile_columns;
  const long base = member * out_stride + (long)row0 * out_pitch + column0 + c;
  float4 shift = make_float4(0.f, 0.f, 0.f, 0.f);
  if (KIND == GELU && bias && take) shift = *(const float4*)(bias + member * bias_stride + column0 + c);
  // The slopes that the tile will be multiplied by, on their way while the product runs.
  uint2 slopes[16];
  if (KIND == SLOPE) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int r = warp + 8 * i;
      slopes[i] = make_uint2(0, 0);
      if (take && r < tile_rows) slopes[i] = *(const uint2*)((const unsigned short*)saved + base + (long)r * out_pitch);
    }
  }
  float d[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) d[i] = 0.f;

  for (int s = 0; s < slices; ++s) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
    asm volatile("wgmma.wait_group.sync.aligned 0;");
    asm volatile("fence.proxy.async.shared::cta;");
    __syncthreads();
    const int next = s + STAGES - 1;
    if (next < slices)
      load_slice(shared + (next % STAGES) * STAGE, a, a_pitch, tile_rows, b, b_pitch, tile_columns, depth, next * SLICE);
    else
      asm volatile("cp.async.commit_group;");
    const Scalar* stage = shared + (s % STAGES) * STAGE;
    const unsigned long long left = descriptor(stage + group * 64 * SLICE), right = descriptor(stage + TILE * SLICE);
    asm volatile("wgmma.fence.sync.aligned;");
#pragma unroll
    for (int k = 0; k < 4; ++k) multiply(d, left + 2 * k, right + 2 * k, s | k);
    asm volatile("wgmma.commit_group.sync.aligned;");
  }
#pragma unroll
  for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(d[i])::"memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;");
#pragma unroll
  for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(d[i])::"memory");

  // The tile goes through shared memory, so that a warp then handles whole rows with 16-byte accesses.
  __syncthreads();
  float* tile = (float*)shared;  // [128 rows][PITCH]
  {
    float* mine = tile + (warp * 16 + (lane >> 2)) * PITCH + (lane & 3) * 2;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      *(float2*)(mine + 8 * j) = make_float2(d[4 * j], d[4 * j + 1]);
      *(float2*)(mine + 8 * PITCH + 8 * j) = make_float2(d[4 * j + 2], d[4 * j + 3]);
    }
  }
  __syncthreads();
  float4 sums = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll(KIND == GELU ? 2 : 16)
  for (int i = 0; i < 16; ++i) {
    const int r = warp + 8 * i;
    if (!take || r >= tile_rows) continue;
    float4 v = *(const float4*)(tile + r * PITCH + c);
    const long at = base + (long)r * out_pitch;
    if (KIND == GELU) {
      float4 slope;
      v.x = gelu_with_slope(v.x + shift.x, slope.x);
      v.y = gelu_with_slope(v.y + shift.y, slope.y);
      v.z = gelu_with_slope(v.z + shift.z, slope.z);
      v.w = gelu_with_slope(v.w + shift.w, slope.w);
      if (saved && short_slopes) *(uint2*)((unsigned short*)saved + at) = to_halves(slope);
      else if (saved) store_four((Scalar*)saved + at, slope);
    } else {
      const float4 slope = from_halves(slopes[i]);
      v.x *= slope.x; v.y *= slope.y; v.z *= slope.z; v.w *= slope.w;
      sums.x += v.x; sums.y += v.y; sums.z += v.z; sums.w += v.w;
    }
    store_four(out + at, v);
  }
  if (KIND == SLOPE && partial) {
    __syncthreads();
    *(float4*)(tile + warp * TILE + c) = sums;
    __syncthreads();
    if (threadIdx.x < TILE && (int)threadIdx.x < tile_columns) {
      float total = 0.f;
#pragma unroll
      for (int w = 0; w < 8; ++w) total += tile[w * TILE + threadIdx.x];
      partial[((long)member * gridDim.y + blockIdx.y) * columns + column0 + threadIdx.x] = total;
    }
  }
}

#define PRODUCT_ARGUMENTS                                                                                                \
  const Scalar *a, long a_pitch, long a_stride, const Scalar *b, long b_pitch, long b_stride, Scalar *out, long out_pitch, \
      long out_stride, const float *bias, long bias_stride, void *saved, int short_slopes, float *partial, int rows,       \
      int columns, int depth
#define PRODUCT_PASS                                                                                                    \
  a, a_pitch, a_stride, b, b_pitch, b_stride, out, out_pitch, out_stride, bias, bias_stride, saved, short_slopes, partial, rows, \
      columns, depth

extern "C" __global__ void __launch_bounds__(256, 2) product_gelu(PRODUCT_ARGUMENTS) { product<GELU>(PRODUCT_PASS); }
extern "C" __global__ void __launch_bounds__(256, 2) product_slope(PRODUCT_ARGUMENTS) { product<SLOPE>(PRODUCT_PASS); }
