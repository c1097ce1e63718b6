// Vectors of two to four elements, with arithmetic element by element.
#pragma once

typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned long ulong;

#define WARPSMITH_VECTOR_TYPES(name, element, align2, align4)                                    \
  struct name##1 { element x; };                                                                 \
  struct __attribute__((aligned(align2))) name##2 { element x, y; };                             \
  struct name##3 { element x, y, z; };                                                           \
  struct __attribute__((aligned(align4))) name##4 { element x, y, z, w; };                       \
  static __host__ __device__ inline name##1 make_##name##1(element x) { return {x}; }            \
  static __host__ __device__ inline name##2 make_##name##2(element x, element y) { return {x, y}; } \
  static __host__ __device__ inline name##3 make_##name##3(element x, element y, element z) {    \
    return {x, y, z};                                                                            \
  }                                                                                              \
  static __host__ __device__ inline name##4 make_##name##4(element x, element y, element z, element w) { \
    return {x, y, z, w};                                                                         \
  }

WARPSMITH_VECTOR_TYPES(char, signed char, 2, 4)
WARPSMITH_VECTOR_TYPES(uchar, unsigned char, 2, 4)
WARPSMITH_VECTOR_TYPES(short, short, 4, 8)
WARPSMITH_VECTOR_TYPES(ushort, unsigned short, 4, 8)
WARPSMITH_VECTOR_TYPES(int, int, 8, 16)
WARPSMITH_VECTOR_TYPES(uint, unsigned int, 8, 16)
WARPSMITH_VECTOR_TYPES(long, long, 16, 16)
WARPSMITH_VECTOR_TYPES(ulong, unsigned long, 16, 16)
WARPSMITH_VECTOR_TYPES(longlong, long long, 16, 16)
WARPSMITH_VECTOR_TYPES(ulonglong, unsigned long long, 16, 16)
WARPSMITH_VECTOR_TYPES(float, float, 8, 16)
WARPSMITH_VECTOR_TYPES(double, double, 16, 16)

#include <hip/vector_operators.h>
