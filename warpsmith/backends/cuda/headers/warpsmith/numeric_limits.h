// <limits> for NVRTC: `std::numeric_limits` of the arithmetic types.
#pragma once
#include <warpsmith/integers.h>
#include <warpsmith/mathematics.h>

namespace std {
enum float_round_style { round_indeterminate = -1, round_toward_zero = 0, round_to_nearest = 1 };

namespace _warpsmith {
template <class T, T lowest_, T highest_, int bits> struct integer_limits {
  static constexpr bool is_specialized = true, is_integer = true, is_exact = true, is_bounded = true;
  static constexpr bool is_signed = T(-1) < T(0), is_modulo = !is_signed, is_iec559 = false;
  static constexpr bool has_infinity = false, has_quiet_NaN = false, has_signaling_NaN = false;
  static constexpr int digits = bits, digits10 = bits * 643 / 2136, radix = 2, max_digits10 = 0;
  static constexpr int min_exponent = 0, max_exponent = 0;
  __device__ static constexpr T min() noexcept { return lowest_; }
  __device__ static constexpr T lowest() noexcept { return lowest_; }
  __device__ static constexpr T max() noexcept { return highest_; }
  __device__ static constexpr T epsilon() noexcept { return T(0); }
  __device__ static constexpr T infinity() noexcept { return T(0); }
  __device__ static constexpr T quiet_NaN() noexcept { return T(0); }
};
template <class T> struct float_limits {
  static constexpr bool is_specialized = true, is_integer = false, is_exact = false, is_bounded = true;
  static constexpr bool is_signed = true, is_modulo = false, is_iec559 = true;
  static constexpr bool has_infinity = true, has_quiet_NaN = true, has_signaling_NaN = true;
  static constexpr int radix = 2;
  static constexpr float_round_style round_style = round_to_nearest;
};
}  // namespace _warpsmith

template <class T> struct numeric_limits {
  static constexpr bool is_specialized = false, is_integer = false, is_signed = false;
  static constexpr bool has_infinity = false, has_quiet_NaN = false, is_exact = false, is_iec559 = false;
  static constexpr int digits = 0, digits10 = 0, radix = 0;
  __device__ static constexpr T min() noexcept { return T(); }
  __device__ static constexpr T lowest() noexcept { return T(); }
  __device__ static constexpr T max() noexcept { return T(); }
};
template <class T> struct numeric_limits<const T> : numeric_limits<T> {};
#define WARPSMITH_LIMITS(T, low, high, bits) \
  template <> struct numeric_limits<T> : _warpsmith::integer_limits<T, low, high, bits> {};
WARPSMITH_LIMITS(bool, false, true, 1)
WARPSMITH_LIMITS(char, CHAR_MIN, CHAR_MAX, 7)
WARPSMITH_LIMITS(signed char, SCHAR_MIN, SCHAR_MAX, 7)
WARPSMITH_LIMITS(unsigned char, 0, UCHAR_MAX, 8)
WARPSMITH_LIMITS(short, SHRT_MIN, SHRT_MAX, 15)
WARPSMITH_LIMITS(unsigned short, 0, USHRT_MAX, 16)
WARPSMITH_LIMITS(int, INT_MIN, INT_MAX, 31)
WARPSMITH_LIMITS(unsigned, 0, UINT_MAX, 32)
WARPSMITH_LIMITS(long, LONG_MIN, LONG_MAX, 63)
WARPSMITH_LIMITS(unsigned long, 0, ULONG_MAX, 64)
WARPSMITH_LIMITS(long long, LLONG_MIN, LLONG_MAX, 63)
WARPSMITH_LIMITS(unsigned long long, 0, ULLONG_MAX, 64)
#undef WARPSMITH_LIMITS
template <> struct numeric_limits<float> : _warpsmith::float_limits<float> {
  static constexpr int digits = FLT_MANT_DIG, digits10 = FLT_DIG, max_digits10 = 9;
  static constexpr int min_exponent = FLT_MIN_EXP, max_exponent = FLT_MAX_EXP;
  __device__ static constexpr float min() noexcept { return FLT_MIN; }
  __device__ static constexpr float lowest() noexcept { return -FLT_MAX; }
  __device__ static constexpr float max() noexcept { return FLT_MAX; }
  __device__ static constexpr float epsilon() noexcept { return FLT_EPSILON; }
  __device__ static constexpr float infinity() noexcept { return INFINITY; }
  __device__ static constexpr float quiet_NaN() noexcept { return NAN; }
  __device__ static constexpr float denorm_min() noexcept { return __builtin_bit_cast(float, 1U); }
};
template <> struct numeric_limits<double> : _warpsmith::float_limits<double> {
  static constexpr int digits = DBL_MANT_DIG, digits10 = DBL_DIG, max_digits10 = 17;
  static constexpr int min_exponent = DBL_MIN_EXP, max_exponent = DBL_MAX_EXP;
  __device__ static constexpr double min() noexcept { return DBL_MIN; }
  __device__ static constexpr double lowest() noexcept { return -DBL_MAX; }
  __device__ static constexpr double max() noexcept { return DBL_MAX; }
  __device__ static constexpr double epsilon() noexcept { return DBL_EPSILON; }
  __device__ static constexpr double infinity() noexcept { return HUGE_VAL; }
  __device__ static constexpr double quiet_NaN() noexcept {
    return __builtin_bit_cast(double, 0x7ff8000000000000UL);
  }
  __device__ static constexpr double denorm_min() noexcept { return __builtin_bit_cast(double, 1UL); }
};
}  // namespace std
