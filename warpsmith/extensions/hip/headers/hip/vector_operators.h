// Arithmetic of vectors, element by element, which HIP has and CUDA has not.
#pragma once

#define WARPSMITH_EACH2(a, b, sign) a.x sign b.x, a.y sign b.y
#define WARPSMITH_EACH3(a, b, sign) WARPSMITH_EACH2(a, b, sign), a.z sign b.z
#define WARPSMITH_EACH4(a, b, sign) WARPSMITH_EACH3(a, b, sign), a.w sign b.w
#define WARPSMITH_ALL1(s) s
#define WARPSMITH_ALL2(s) s, s
#define WARPSMITH_ALL3(s) s, s, s
#define WARPSMITH_ALL4(s) s, s, s, s
#define WARPSMITH_OPERATOR(type, element, n, sign)                                                          \
  __device__ inline type operator sign(type a, type b) { return type{WARPSMITH_EACH##n(a, b, sign)}; }       \
  __device__ inline type operator sign(type a, element b) { return a sign type{WARPSMITH_ALL##n(b)}; }       \
  __device__ inline type operator sign(element a, type b) { return type{WARPSMITH_ALL##n(a)} sign b; }       \
  __device__ inline type& operator sign##=(type& a, type b) { return a = a sign b; }                         \
  __device__ inline type& operator sign##=(type& a, element b) { return a = a sign b; }
#define WARPSMITH_VECTOR(type, element, n) \
  WARPSMITH_OPERATOR(type, element, n, +)  \
  WARPSMITH_OPERATOR(type, element, n, -)  \
  WARPSMITH_OPERATOR(type, element, n, *)  \
  WARPSMITH_OPERATOR(type, element, n, /)
#define WARPSMITH_VECTORS(name, element) \
  WARPSMITH_VECTOR(name##2, element, 2)  \
  WARPSMITH_VECTOR(name##3, element, 3)  \
  WARPSMITH_VECTOR(name##4, element, 4)

WARPSMITH_VECTORS(float, float)
WARPSMITH_VECTORS(double, double)
WARPSMITH_VECTORS(int, int)
WARPSMITH_VECTORS(uint, unsigned int)
