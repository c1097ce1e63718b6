// Where a thread is: `threadIdx` and the others, whose members call the compiler's builtins.
#pragma once

struct dim3 {
  unsigned int x, y, z;
  __host__ __device__ constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
};

#define WARPSMITH_COORDINATE(name, of_x, of_y, of_z)                                  \
  struct warpsmith_##name {                                                           \
    __declspec(property(get = get_x)) unsigned int x;                                 \
    __declspec(property(get = get_y)) unsigned int y;                                 \
    __declspec(property(get = get_z)) unsigned int z;                                 \
    static __device__ inline __attribute__((always_inline)) unsigned int get_x() { return of_x; } \
    static __device__ inline __attribute__((always_inline)) unsigned int get_y() { return of_y; } \
    static __device__ inline __attribute__((always_inline)) unsigned int get_z() { return of_z; } \
    __device__ operator dim3() const { return dim3(get_x(), get_y(), get_z()); }      \
    __device__ operator uint3() const { return uint3(get_x(), get_y(), get_z()); }    \
  };                                                                                  \
  extern const __device__ __attribute__((weak)) warpsmith_##name name;

WARPSMITH_COORDINATE(threadIdx, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
                     __builtin_amdgcn_workitem_id_z())
WARPSMITH_COORDINATE(blockIdx, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
                     __builtin_amdgcn_workgroup_id_z())
WARPSMITH_COORDINATE(blockDim, __builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(),
                     __builtin_amdgcn_workgroup_size_z())
WARPSMITH_COORDINATE(gridDim, __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(),
                     __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y(),
                     __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z())
#include <hip/coordinate_names.h>
