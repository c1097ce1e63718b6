// Vectors of one to four elements. Those of two and four are aligned as a whole, those of three as an element.
#pragma once

#define WARPSMITH_MAKERS(type, element)                                                                      \
  struct type##1 {                                                                                           \
    element x;                                                                                               \
    type##1() = default;                                                                                     \
    __host__ __device__ constexpr type##1(element x) : x(x) {}                                               \
  };                                                                                                         \
  struct __attribute__((aligned(2 * sizeof(element)))) type##2 {                                             \
    element x, y;                                                                                            \
    type##2() = default;                                                                                     \
    __host__ __device__ constexpr type##2(element a) : x(a), y(a) {}                                         \
    __host__ __device__ constexpr type##2(element x, element y) : x(x), y(y) {}                              \
  };                                                                                                         \
  struct type##3 {                                                                                           \
    element x, y, z;                                                                                         \
    type##3() = default;                                                                                     \
    __host__ __device__ constexpr type##3(element a) : x(a), y(a), z(a) {}                                   \
    __host__ __device__ constexpr type##3(element x, element y, element z) : x(x), y(y), z(z) {}             \
  };                                                                                                         \
  struct __attribute__((aligned(4 * sizeof(element)))) type##4 {                                             \
    element x, y, z, w;                                                                                      \
    type##4() = default;                                                                                     \
    __host__ __device__ constexpr type##4(element a) : x(a), y(a), z(a), w(a) {}                             \
    __host__ __device__ constexpr type##4(element x, element y, element z, element w)                        \
        : x(x), y(y), z(z), w(w) {}                                                                          \
  };                                                                                                         \
  __host__ __device__ constexpr type##1 make_##type##1(element x) { return type##1(x); }                     \
  __host__ __device__ constexpr type##2 make_##type##2(element x, element y) { return type##2(x, y); }       \
  __host__ __device__ constexpr type##3 make_##type##3(element x, element y, element z) {                    \
    return type##3(x, y, z);                                                                                 \
  }                                                                                                          \
  __host__ __device__ constexpr type##4 make_##type##4(element x, element y, element z, element w) {         \
    return type##4(x, y, z, w);                                                                              \
  }

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
WARPSMITH_MAKERS(char, signed char)
WARPSMITH_MAKERS(uchar, unsigned char)
WARPSMITH_MAKERS(short, short)
WARPSMITH_MAKERS(ushort, unsigned short)
WARPSMITH_MAKERS(int, int)
WARPSMITH_MAKERS(uint, unsigned int)
WARPSMITH_MAKERS(long, long)
WARPSMITH_MAKERS(ulong, unsigned long)
WARPSMITH_MAKERS(longlong, long long)
WARPSMITH_MAKERS(ulonglong, unsigned long long)
WARPSMITH_MAKERS(float, float)
WARPSMITH_MAKERS(double, double)

#include <hip/vector_operators.h>
