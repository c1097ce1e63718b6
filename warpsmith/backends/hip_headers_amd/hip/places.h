// Coordinates of a thread, and what joins the threads of a block.
#pragma once

struct dim3 {
  unsigned int x, y, z;
  __host__ __device__ constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
};

#define WARPSMITH_PLACE(name, read)                                                  \
  struct warpsmith_##name {                                                          \
    __declspec(property(get = get_x)) unsigned int x;                                \
    __declspec(property(get = get_y)) unsigned int y;                                \
    __declspec(property(get = get_z)) unsigned int z;                                \
    static __device__ __forceinline__ unsigned int get_x() { return read(x); }       \
    static __device__ __forceinline__ unsigned int get_y() { return read(y); }       \
    static __device__ __forceinline__ unsigned int get_z() { return read(z); }       \
    __device__ __forceinline__ operator dim3() const { return dim3(read(x), read(y), read(z)); } \
  };                                                                                 \
  static const __device__ warpsmith_##name name __attribute__((unused)) = {};
#define WARPSMITH_THREAD(axis) __builtin_amdgcn_workitem_id_##axis()
#define WARPSMITH_BLOCK(axis) __builtin_amdgcn_workgroup_id_##axis()
#define WARPSMITH_BLOCK_SIZE(axis) ((unsigned int)__builtin_amdgcn_workgroup_size_##axis())
#define WARPSMITH_GRID(axis) (__builtin_amdgcn_grid_size_##axis() / WARPSMITH_BLOCK_SIZE(axis))

WARPSMITH_PLACE(threadIdx, WARPSMITH_THREAD)
WARPSMITH_PLACE(blockIdx, WARPSMITH_BLOCK)
WARPSMITH_PLACE(blockDim, WARPSMITH_BLOCK_SIZE)
WARPSMITH_PLACE(gridDim, WARPSMITH_GRID)

#define hipThreadIdx_x threadIdx.x
#define hipThreadIdx_y threadIdx.y
#define hipThreadIdx_z threadIdx.z
#define hipBlockIdx_x blockIdx.x
#define hipBlockIdx_y blockIdx.y
#define hipBlockIdx_z blockIdx.z
#define hipBlockDim_x blockDim.x
#define hipBlockDim_y blockDim.y
#define hipBlockDim_z blockDim.z
#define hipGridDim_x gridDim.x
#define hipGridDim_y gridDim.y
#define hipGridDim_z gridDim.z

#define warpSize __builtin_amdgcn_wavefrontsize()

static __device__ __forceinline__ void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
static __device__ __forceinline__ void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
static __device__ __forceinline__ void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
static __device__ __forceinline__ void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }
