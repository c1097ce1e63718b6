// Statements about the standard library that hold in NVRTC with our headers and in nvcc.
#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>
#define SAY(...) static_assert(__VA_ARGS__, #__VA_ARGS__)

SAY(sizeof(int8_t) == 1 && sizeof(uint16_t) == 2 && sizeof(int32_t) == 4 && sizeof(int64_t) == 8);
SAY(sizeof(intptr_t) == 8 && sizeof(std::uint64_t) == 8 && sizeof(std::size_t) == 8 && sizeof(uint) == 4);
SAY(INT64_MAX == 9223372036854775807 && INT64_MIN == -9223372036854775807 - 1 && UINT32_MAX == 4294967295);
SAY(INT_MAX == 2147483647 && INT_MIN == -2147483647 - 1 && UINT_MAX == 4294967295 && CHAR_BIT == 8);
SAY(SIZE_MAX == ULLONG_MAX && LONG_MAX == LLONG_MAX && SHRT_MIN == -32768 && UINT64_C(1) << 63 == 1ULL << 63);
SAY(FLT_MAX == std::numeric_limits<float>::max() && FLT_MIN == std::numeric_limits<float>::min());
SAY(DBL_MAX == std::numeric_limits<double>::max() && DBL_EPSILON == std::numeric_limits<double>::epsilon());
SAY(FLT_EPSILON == 1.0f / (1 << 23) && FLT_MAX == (2.0f - FLT_EPSILON) * 1.7014118346046923e38f);
SAY(INFINITY > FLT_MAX && -INFINITY < -FLT_MAX && HUGE_VAL > DBL_MAX && !(NAN == NAN));
SAY(std::numeric_limits<float>::infinity() == INFINITY && std::numeric_limits<float>::lowest() == -FLT_MAX);
SAY(std::numeric_limits<double>::infinity() == HUGE_VAL && std::numeric_limits<float>::denorm_min() > 0);
SAY(std::numeric_limits<int>::min() == INT_MIN && std::numeric_limits<unsigned>::max() == UINT_MAX);
SAY(std::numeric_limits<int8_t>::lowest() == -128 && std::numeric_limits<bool>::max());
SAY(std::numeric_limits<int>::digits == 31 && std::numeric_limits<int>::digits10 == 9);
SAY(std::numeric_limits<unsigned char>::digits10 == 2 && std::numeric_limits<int64_t>::digits10 == 18);
SAY(std::numeric_limits<float>::digits == 24 && !std::numeric_limits<float>::is_integer);
SAY(std::numeric_limits<const int>::is_signed && !std::numeric_limits<unsigned>::is_signed);
SAY(M_PI > 3.14159265358979 && M_PI < 3.1415926535898);

struct Empty {};
struct Base { __device__ virtual void f() {} int a; };
struct Derived : Base { int b; };
enum class Order : short { FIRST };
union Either { int a; float b; };
SAY(std::is_same_v<int, int> && !std::is_same_v<int, const int> && !std::is_same<int, float>::value);
SAY(std::is_same_v<std::remove_cv_t<const volatile int>, int>);
SAY(std::is_same_v<std::remove_cvref_t<const int&>, int> && std::is_same_v<std::decay_t<const int[3]>, const int*>);
SAY(std::is_same_v<std::decay_t<int(float)>, int (*)(float)> && std::is_same_v<std::remove_pointer_t<int* const>, int>);
SAY(std::is_same_v<std::conditional_t<true, int, float>, int> && std::is_same_v<std::enable_if_t<true, int>, int>);
SAY(std::is_same_v<std::add_lvalue_reference_t<void>, void> && std::is_same_v<std::add_pointer_t<int&>, int*>);
SAY(std::is_same_v<std::underlying_type_t<Order>, short>);
SAY(std::is_same_v<std::make_unsigned_t<const int>, const unsigned>);
SAY(std::is_same_v<std::make_signed_t<unsigned short>, short> && sizeof(std::make_signed_t<Order>) == 2);
SAY(std::is_same_v<std::common_type_t<char, int, double>, double>);
SAY(std::is_same_v<std::invoke_result_t<int (*)(float), float>, int> && std::is_invocable_v<int (*)(float), int>);
SAY(!std::is_invocable_v<int (*)(float), Empty>);
SAY(std::is_integral_v<const bool> && std::is_integral_v<unsigned long> && !std::is_integral_v<float>);
SAY(std::is_floating_point_v<double> && !std::is_floating_point_v<int> && std::is_arithmetic_v<char>);
SAY(std::is_signed_v<float> && std::is_signed_v<int> && std::is_unsigned_v<bool> && !std::is_signed_v<Empty>);
SAY(std::is_enum_v<Order> && std::is_class_v<Base> && std::is_union_v<Either> && !std::is_class_v<Either>);
SAY(std::is_empty_v<Empty> && !std::is_empty_v<Base> && std::is_polymorphic_v<Base> && std::is_void_v<const void>);
SAY(std::is_base_of_v<Base, Derived> && !std::is_base_of_v<Derived, Base>);
SAY(std::is_convertible_v<Derived*, Base*> && !std::is_convertible_v<Base*, Derived*>);
SAY(std::is_trivially_copyable_v<Empty> && std::is_standard_layout_v<Either> && std::is_pod_v<Empty>);
SAY(std::is_constructible_v<float, int> && !std::is_constructible_v<Order, int>);
SAY(std::is_default_constructible_v<Empty> && std::is_copy_constructible_v<Base> && std::is_move_assignable_v<Base>);
SAY(std::is_pointer_v<int* const> && std::is_reference_v<int&&> && std::is_array_v<int[2]> && std::is_function_v<void()>);
SAY(std::is_object_v<int> && !std::is_object_v<int&> && std::is_scalar_v<int*> && std::is_scalar_v<Order>);
SAY(std::is_const_v<const int> && !std::is_const_v<const int*> && std::is_lvalue_reference_v<int&>);
SAY(std::extent_v<int[3][5], 1> == 5 && std::rank_v<int[3][5]> == 2 && std::alignment_of_v<double> == 8);
SAY(std::conjunction_v<std::true_type, std::is_same<int, int>> && !std::conjunction_v<std::true_type, std::false_type>);
SAY(std::disjunction_v<std::false_type, std::true_type> && std::negation_v<std::false_type>);
SAY(std::integral_constant<int, 7>() == 7 && std::bool_constant<true>::value);
SAY(sizeof(std::aligned_storage_t<12, 4>) == 12 && std::is_same_v<std::void_t<int, Empty>, void>);

constexpr int values[] = {3, 1, 4, 1, 5};
SAY(std::min(2, 3) == 2 && std::max(2.0f, 3.0f) == 3.0f && std::min({4, 2, 9}) == 2 && std::max({4, 2, 9}) == 9);
SAY(std::min(2, 3, std::greater<int>()) == 3 && std::clamp(7, 0, 5) == 5 && std::clamp(-1, 0, 5) == 0);
SAY(*std::max_element(values, values + 5) == 5 && std::min_element(values, values + 5) == values + 1);
SAY(std::find(values, values + 5, 4) == values + 2 && std::find(values, values + 5, 9) == values + 5);
SAY(std::accumulate(values, values + 5, 0) == 14 && std::accumulate(values, values + 5, 1, std::multiplies<int>()) == 60);
SAY(std::gcd(12, 18) == 6 && std::lcm(4, 6) == 12);
constexpr int sorted[] = {1, 3, 3, 8};
SAY(std::lower_bound(sorted, sorted + 4, 3) == sorted + 1 && std::upper_bound(sorted, sorted + 4, 3) == sorted + 3);
SAY(std::equal(values, values + 5, values) && std::any_of(values, values + 5, [](int v) { return v == 5; }));
SAY(std::plus<>()(1, 2.5) == 3.5 && std::less<int>()(1, 2) && std::bit_xor<int>()(6, 3) == 5);
SAY(std::bit_cast<unsigned>(1.0f) == 0x3f800000);
SAY(__builtin_ctz(40) == 3 && __builtin_clz(1) == 31 && __builtin_popcount(255) == 8 && __builtin_clzll(1) == 63);

constexpr int filled() {
  std::array<int, 4> a{};
  a.fill(2);
  std::iota(a.begin(), a.end(), 5);
  int b = 1;
  std::swap(a[0], b);
  return a[0] * 1000 + a[3] * 100 + std::exchange(b, 9) * 10 + int(a.size());
}
SAY(filled() == 1854);
constexpr std::array fives{5, 5, 5};
SAY(fives.size() == 3 && std::get<1>(fives) == 5 && std::tuple_size<std::array<int, 3>>::value == 3);
constexpr int together() {
  auto [a, b] = std::make_pair(3, 4.5f);
  auto [c, d, e] = std::make_tuple(1, 'x', 2.5);
  int f = 0;
  float g = 0;
  std::tie(f, g) = std::make_tuple(7, 8.0f);
  auto added = std::apply([](int x, int y, int z) { return x * 100 + y * 10 + z; }, std::make_tuple(1, 2, 3));
  return a + int(b * 2) + c + (d == 'x') + int(e * 2) + f + int(g) + added;
}
SAY(together() == 3 + 9 + 1 + 1 + 5 + 7 + 8 + 123);
SAY(std::is_same_v<std::tuple_element_t<1, std::tuple<int, float>>, float>);
SAY(std::is_same_v<std::tuple_element<0, std::pair<char, int>>::type, char>);
SAY(std::tuple_size_v<std::tuple<int, int, int>> == 3 && std::get<1>(std::make_tuple(1, 2)) == 2);
SAY(std::make_pair(1, 2) < std::make_pair(1, 3) && std::make_pair(1, 2) == std::make_pair(1, 2));
template <std::size_t... i> constexpr std::size_t total(std::index_sequence<i...>) { return (i + ... + 0); }
SAY(total(std::make_index_sequence<10>()) == 45 && std::make_index_sequence<0>::size() == 0);
SAY(std::is_same_v<std::index_sequence_for<int, int>, std::index_sequence<0, 1>>);
SAY(std::is_same_v<std::make_integer_sequence<int, 3>, std::integer_sequence<int, 0, 1, 2>>);

struct Plain { int a; float b; };
constexpr int bound() {
  const Plain plain{1, 2.5f};
  auto [a, b] = plain;
  const auto [c, d] = std::make_pair(3, 4);
  const std::array<int, 2> two{5, 6};
  const auto& [e, f] = two;
  return a + int(b) + c + d + e + f;
}
SAY(bound() == 21);
SAY(std::tuple_size_v<const std::tuple<int, int>> == 2);
SAY(std::is_same_v<std::tuple_element_t<0, const std::pair<int, char>>, const int>);
extern "C" __global__ void f(int* p) { *p = 1; }
