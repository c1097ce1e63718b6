// Accelerations of n bodies (x, y, z, mass) by all others, softened: ITEMS bodies a thread, the others
// shared out over SPLIT rows of threads.
#define INFLUENCE(other)                                                        \
  _Pragma("unroll") for (int i = 0; i < ITEMS; ++i) {                           \
    const float dx = (other).x - mine[i].x;                                     \
    const float dy = (other).y - mine[i].y;                                     \
    const float dz = (other).z - mine[i].z;                                     \
    const float squared = dx * dx + dy * dy + dz * dz + 0.01f;                  \
    const float inverse = FAST ? rsqrtf(squared) : 1.0f / sqrtf(squared);       \
    const float pull = (other).w * inverse * inverse * inverse;                 \
    sums[i].x += dx * pull;                                                     \
    sums[i].y += dy * pull;                                                     \
    sums[i].z += dz * pull;                                                     \
  }

constexpr int kUnroll = UNROLL;

extern "C" __global__ void __launch_bounds__(BLOCK * SPLIT)
nbody(const float4* __restrict__ bodies, float* __restrict__ pulls, int n) {
  __shared__ float4 near[SPLIT][STAGED ? BLOCK : 1];
  __shared__ float3 parts[SPLIT > 1 ? SPLIT : 1][SPLIT > 1 ? BLOCK : 1];
  const int tx = threadIdx.x, ty = threadIdx.y;
  float4 mine[ITEMS];
  float3 sums[ITEMS];
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int index = (blockIdx.x * ITEMS + i) * BLOCK + tx;
    mine[i] = bodies[min(index, n - 1)];
    sums[i] = make_float3(0.0f, 0.0f, 0.0f);
  }

#if STAGED
  // Every row of threads takes every SPLIT-th chunk of BLOCK bodies.
  for (int start = 0; start < n; start += BLOCK * SPLIT) {
    const int from = start + ty * BLOCK + tx;
    near[ty][tx] = from < n ? bodies[from] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    __syncthreads();
#pragma unroll kUnroll
    for (int j = 0; j < BLOCK; ++j) {
      const float4 other = near[ty][j];
      INFLUENCE(other)
    }
    __syncthreads();
  }
#else
#pragma unroll kUnroll
  for (int j = ty; j < n; j += SPLIT) {
    const float4 other = bodies[j];
    INFLUENCE(other)
  }
#endif

#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    float3 total = sums[i];
#if SPLIT > 1
    __syncthreads();
    parts[ty][tx] = total;
    __syncthreads();
    if (ty == 0) {
      for (int s = 1; s < SPLIT; ++s) {
        total.x += parts[s][tx].x;
        total.y += parts[s][tx].y;
        total.z += parts[s][tx].z;
      }
    }
#endif
    const int index = (blockIdx.x * ITEMS + i) * BLOCK + tx;
    if (ty == 0 && index < n) {
      pulls[3 * index] = total.x;
      pulls[3 * index + 1] = total.y;
      pulls[3 * index + 2] = total.z;
    }
  }
}
