// <algorithm>, <numeric>, <functional> and <bit> for NVRTC, as far as kernels use them.
#pragma once
#include <warpsmith/containers.h>

__device__ constexpr int __builtin_popcountll(unsigned long long value) {
  int n = 0;
  for (; value != 0; value &= value - 1) ++n;
  return n;
}
__device__ constexpr int __builtin_ctzll(unsigned long long value) {
  return __builtin_popcountll((value & (0 - value)) - 1);
}
__device__ constexpr int __builtin_clzll(unsigned long long value) {
  int n = 64;
  for (; value != 0; value >>= 1) --n;
  return n;
}
__device__ constexpr int __builtin_popcount(unsigned value) { return __builtin_popcountll(value); }
__device__ constexpr int __builtin_ctz(unsigned value) { return __builtin_ctzll(value); }
__device__ constexpr int __builtin_clz(unsigned value) { return __builtin_clzll(value) - 32; }

namespace std {
template <class T> __device__ constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T> __device__ constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T, class C> __device__ constexpr const T& min(const T& a, const T& b, C less) {
  return less(b, a) ? b : a;
}
template <class T, class C> __device__ constexpr const T& max(const T& a, const T& b, C less) {
  return less(a, b) ? b : a;
}
template <class T> __device__ constexpr T min(initializer_list<T> values) {
  T best = *values.begin();
  for (const T& v : values) if (v < best) best = v;
  return best;
}
template <class T> __device__ constexpr T max(initializer_list<T> values) {
  T best = *values.begin();
  for (const T& v : values) if (best < v) best = v;
  return best;
}
template <class T> __device__ constexpr const T& clamp(const T& v, const T& low, const T& high) {
  return v < low ? low : high < v ? high : v;
}
template <class I, class T> __device__ constexpr void fill(I first, I last, const T& value) {
  for (; first != last; ++first) *first = value;
}
template <class I, class N, class T> __device__ constexpr I fill_n(I first, N n, const T& value) {
  for (N i = 0; i < n; ++i, ++first) *first = value;
  return first;
}
template <class I, class O> __device__ constexpr O copy(I first, I last, O to) {
  for (; first != last; ++first, ++to) *to = *first;
  return to;
}
template <class I, class N, class O> __device__ constexpr O copy_n(I first, N n, O to) {
  for (N i = 0; i < n; ++i, ++first, ++to) *to = *first;
  return to;
}
template <class I, class F> __device__ constexpr F for_each(I first, I last, F f) {
  for (; first != last; ++first) f(*first);
  return f;
}
template <class I, class T> __device__ constexpr I find(I first, I last, const T& value) {
  for (; first != last; ++first) if (*first == value) break;
  return first;
}
template <class I, class P> __device__ constexpr I find_if(I first, I last, P holds) {
  for (; first != last; ++first) if (holds(*first)) break;
  return first;
}
template <class I, class P> __device__ constexpr bool any_of(I first, I last, P holds) {
  return find_if(first, last, holds) != last;
}
template <class I, class P> __device__ constexpr bool all_of(I first, I last, P holds) {
  for (; first != last; ++first) if (!holds(*first)) return false;
  return true;
}
template <class I> __device__ constexpr I max_element(I first, I last) {
  I best = first;
  for (; first != last; ++first) if (*best < *first) best = first;
  return best;
}
template <class I> __device__ constexpr I min_element(I first, I last) {
  I best = first;
  for (; first != last; ++first) if (*first < *best) best = first;
  return best;
}
template <class I, class T> __device__ constexpr I lower_bound(I first, I last, const T& value) {
  auto n = last - first;
  while (n > 0) {
    auto half = n / 2;
    if (first[half] < value) { first += half + 1; n -= half + 1; } else n = half;
  }
  return first;
}
template <class I, class T> __device__ constexpr I upper_bound(I first, I last, const T& value) {
  auto n = last - first;
  while (n > 0) {
    auto half = n / 2;
    if (!(value < first[half])) { first += half + 1; n -= half + 1; } else n = half;
  }
  return first;
}
template <class I, class J> __device__ constexpr bool equal(I first, I last, J other) {
  for (; first != last; ++first, ++other) if (!(*first == *other)) return false;
  return true;
}
template <class I> __device__ constexpr auto distance(I first, I last) -> decltype(last - first) {
  return last - first;
}

template <class I, class T> __device__ constexpr T accumulate(I first, I last, T sum) {
  for (; first != last; ++first) sum = sum + *first;
  return sum;
}
template <class I, class T, class F> __device__ constexpr T accumulate(I first, I last, T sum, F f) {
  for (; first != last; ++first) sum = f(sum, *first);
  return sum;
}
template <class I, class T> __device__ constexpr void iota(I first, I last, T value) {
  for (; first != last; ++first, ++value) *first = value;
}
template <class T, class U> __device__ constexpr common_type_t<T, U> gcd(T a, U b) {
  common_type_t<T, U> x = a < 0 ? -a : a, y = b < 0 ? -b : b;
  while (y != 0) { auto r = x % y; x = y; y = r; }
  return x;
}
template <class T, class U> __device__ constexpr common_type_t<T, U> lcm(T a, U b) {
  return a == 0 || b == 0 ? 0 : a / gcd(a, b) * b;
}

#define WARPSMITH_OPERATION(name, result, expression)                                      \
  template <class T = void> struct name {                                                  \
    __device__ constexpr result operator()(const T& a, const T& b) const { return expression; } \
  };                                                                                       \
  template <> struct name<void> {                                                          \
    template <class A, class B> __device__ constexpr auto operator()(A&& a, B&& b) const { return expression; } \
  };
WARPSMITH_OPERATION(plus, T, a + b)
WARPSMITH_OPERATION(minus, T, a - b)
WARPSMITH_OPERATION(multiplies, T, a * b)
WARPSMITH_OPERATION(divides, T, a / b)
WARPSMITH_OPERATION(modulus, T, a % b)
WARPSMITH_OPERATION(bit_and, T, a & b)
WARPSMITH_OPERATION(bit_or, T, a | b)
WARPSMITH_OPERATION(bit_xor, T, a ^ b)
WARPSMITH_OPERATION(equal_to, bool, a == b)
WARPSMITH_OPERATION(not_equal_to, bool, a != b)
WARPSMITH_OPERATION(less, bool, a < b)
WARPSMITH_OPERATION(greater, bool, a > b)
WARPSMITH_OPERATION(less_equal, bool, a <= b)
WARPSMITH_OPERATION(greater_equal, bool, a >= b)
WARPSMITH_OPERATION(logical_and, bool, a && b)
WARPSMITH_OPERATION(logical_or, bool, a || b)
#undef WARPSMITH_OPERATION
struct identity {
  template <class T> __device__ constexpr T&& operator()(T&& value) const noexcept { return static_cast<T&&>(value); }
};
template <class To, class From> __device__ constexpr To bit_cast(const From& value) noexcept {
  static_assert(sizeof(To) == sizeof(From), "std::bit_cast needs two types of one size");
  return __builtin_bit_cast(To, value);
}
}  // namespace std
