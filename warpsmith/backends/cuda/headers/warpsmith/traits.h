// <type_traits> for NVRTC, from what the compiler has built in.
#pragma once
#include <warpsmith/integers.h>

namespace std {
template <class T, T v> struct integral_constant {
  static constexpr T value = v;
  using value_type = T;
  using type = integral_constant;
  __device__ constexpr operator T() const noexcept { return v; }
  __device__ constexpr T operator()() const noexcept { return v; }
};
template <bool v> using bool_constant = integral_constant<bool, v>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;

template <class...> using void_t = void;
template <class T> struct type_identity { using type = T; };
template <class T> using type_identity_t = T;
template <bool, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { using type = T; };
template <bool b, class T = void> using enable_if_t = typename enable_if<b, T>::type;
template <bool, class T, class F> struct conditional { using type = T; };
template <class T, class F> struct conditional<false, T, F> { using type = F; };
template <bool b, class T, class F> using conditional_t = typename conditional<b, T, F>::type;

template <class T, class U> struct is_same : false_type {};
template <class T> struct is_same<T, T> : true_type {};
template <class T, class U> inline constexpr bool is_same_v = is_same<T, U>::value;

template <class T> struct remove_const { using type = T; };
template <class T> struct remove_const<const T> { using type = T; };
template <class T> struct remove_volatile { using type = T; };
template <class T> struct remove_volatile<volatile T> { using type = T; };
template <class T> struct remove_cv { using type = T; };
template <class T> struct remove_cv<const T> { using type = T; };
template <class T> struct remove_cv<volatile T> { using type = T; };
template <class T> struct remove_cv<const volatile T> { using type = T; };
template <class T> struct remove_reference { using type = T; };
template <class T> struct remove_reference<T&> { using type = T; };
template <class T> struct remove_reference<T&&> { using type = T; };
template <class T> struct remove_pointer { using type = T; };
template <class T> struct remove_pointer<T*> { using type = T; };
template <class T> struct remove_pointer<T* const> { using type = T; };
template <class T> struct remove_pointer<T* volatile> { using type = T; };
template <class T> struct remove_pointer<T* const volatile> { using type = T; };
template <class T> struct remove_extent { using type = T; };
template <class T> struct remove_extent<T[]> { using type = T; };
template <class T, size_t n> struct remove_extent<T[n]> { using type = T; };
template <class T> struct remove_all_extents { using type = T; };
template <class T> struct remove_all_extents<T[]> : remove_all_extents<T> {};
template <class T, size_t n> struct remove_all_extents<T[n]> : remove_all_extents<T> {};
template <class T> using remove_const_t = typename remove_const<T>::type;
template <class T> using remove_volatile_t = typename remove_volatile<T>::type;
template <class T> using remove_cv_t = typename remove_cv<T>::type;
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> using remove_pointer_t = typename remove_pointer<T>::type;
template <class T> using remove_extent_t = typename remove_extent<T>::type;
template <class T> using remove_all_extents_t = typename remove_all_extents<T>::type;
template <class T> struct remove_cvref { using type = remove_cv_t<remove_reference_t<T>>; };
template <class T> using remove_cvref_t = typename remove_cvref<T>::type;
template <class T> struct add_const { using type = const T; };
template <class T> struct add_volatile { using type = volatile T; };
template <class T> struct add_cv { using type = const volatile T; };
template <class T> using add_const_t = const T;
template <class T> using add_volatile_t = volatile T;
template <class T> using add_cv_t = const volatile T;

namespace _warpsmith {
template <class T> __device__ type_identity<T&> lvalue(int);
template <class T> __device__ type_identity<T> lvalue(...);
template <class T> __device__ type_identity<T&&> rvalue(int);
template <class T> __device__ type_identity<T> rvalue(...);
template <class T> __device__ type_identity<remove_reference_t<T>*> pointer(int);
template <class T> __device__ type_identity<T> pointer(...);
}  // namespace _warpsmith
template <class T> struct add_lvalue_reference : decltype(_warpsmith::lvalue<T>(0)) {};
template <class T> struct add_rvalue_reference : decltype(_warpsmith::rvalue<T>(0)) {};
template <class T> struct add_pointer : decltype(_warpsmith::pointer<T>(0)) {};
template <class T> using add_lvalue_reference_t = typename add_lvalue_reference<T>::type;
template <class T> using add_rvalue_reference_t = typename add_rvalue_reference<T>::type;
template <class T> using add_pointer_t = typename add_pointer<T>::type;
template <class T> __device__ add_rvalue_reference_t<T> declval() noexcept;

template <class T> struct is_void : is_same<remove_cv_t<T>, void> {};
template <class T> struct is_null_pointer : is_same<remove_cv_t<T>, decltype(nullptr)> {};
template <class T> struct is_const : false_type {};
template <class T> struct is_const<const T> : true_type {};
template <class T> struct is_volatile : false_type {};
template <class T> struct is_volatile<volatile T> : true_type {};
template <class T> struct is_lvalue_reference : false_type {};
template <class T> struct is_lvalue_reference<T&> : true_type {};
template <class T> struct is_rvalue_reference : false_type {};
template <class T> struct is_rvalue_reference<T&&> : true_type {};
template <class T> struct is_reference : bool_constant<!is_same_v<T, remove_reference_t<T>>> {};
template <class T> struct is_pointer : bool_constant<!is_same_v<remove_cv_t<T>, remove_pointer_t<T>>> {};
template <class T> struct is_array : false_type {};
template <class T> struct is_array<T[]> : true_type {};
template <class T, size_t n> struct is_array<T[n]> : true_type {};
template <class T> struct rank : integral_constant<size_t, 0> {};
template <class T> struct rank<T[]> : integral_constant<size_t, rank<T>::value + 1> {};
template <class T, size_t n> struct rank<T[n]> : integral_constant<size_t, rank<T>::value + 1> {};
template <class T, unsigned i = 0> struct extent : integral_constant<size_t, 0> {};
template <class T, size_t n> struct extent<T[n], 0> : integral_constant<size_t, n> {};
template <class T, size_t n, unsigned i> struct extent<T[n], i> : extent<T, i - 1> {};

namespace _warpsmith {
template <class T, class... Among> inline constexpr bool among = (is_same_v<remove_cv_t<T>, Among> || ...);
template <class T>
inline constexpr bool integral = among<T, bool, char, signed char, unsigned char, wchar_t, char16_t, char32_t,
                                       short, unsigned short, int, unsigned, long, unsigned long, long long,
                                       unsigned long long>;
template <class T> struct member_pointer : false_type {};
template <class T, class C> struct member_pointer<T C::*> : true_type {};
template <class T, bool = integral<T> || among<T, float, double, long double>> struct arithmetic_sign {
  static constexpr bool negative = T(-1) < T(0);
};
template <class T> struct arithmetic_sign<T, false> { static constexpr bool negative = false; };
}  // namespace _warpsmith
template <class T> struct is_integral : bool_constant<_warpsmith::integral<T>> {};
template <class T> struct is_floating_point : bool_constant<_warpsmith::among<T, float, double, long double>> {};
template <class T>
struct is_arithmetic : bool_constant<is_integral<T>::value || is_floating_point<T>::value> {};
template <class T>
struct is_fundamental : bool_constant<is_arithmetic<T>::value || is_void<T>::value || is_null_pointer<T>::value> {};
template <class T> struct is_compound : bool_constant<!is_fundamental<T>::value> {};
template <class T> struct is_member_pointer : _warpsmith::member_pointer<remove_cv_t<T>> {};
template <class T>
struct is_signed : bool_constant<_warpsmith::arithmetic_sign<remove_cv_t<T>>::negative> {};
template <class T> struct is_unsigned : bool_constant<is_arithmetic<T>::value && !is_signed<T>::value> {};
template <class T> struct is_enum : bool_constant<__is_enum(T)> {};
template <class T> struct is_class : bool_constant<__is_class(T)> {};
template <class T> struct is_union : bool_constant<__is_union(T)> {};
template <class T> struct is_function : bool_constant<__is_function(T)> {};
template <class T>
struct is_object : bool_constant<!is_function<T>::value && !is_reference<T>::value && !is_void<T>::value> {};
template <class T>
struct is_scalar : bool_constant<is_arithmetic<T>::value || is_enum<T>::value || is_pointer<T>::value ||
                                 is_member_pointer<T>::value || is_null_pointer<T>::value> {};
template <class T> struct is_empty : bool_constant<__is_empty(T)> {};
template <class T> struct is_final : bool_constant<__is_final(T)> {};
template <class T> struct is_abstract : bool_constant<__is_abstract(T)> {};
template <class T> struct is_polymorphic : bool_constant<__is_polymorphic(T)> {};
template <class T> struct is_aggregate : bool_constant<__is_aggregate(T)> {};
template <class T> struct is_trivial : bool_constant<__is_trivial(T)> {};
template <class T> struct is_pod : bool_constant<__is_pod(T)> {};
template <class T> struct is_standard_layout : bool_constant<__is_standard_layout(T)> {};
template <class T> struct is_trivially_copyable : bool_constant<__is_trivially_copyable(T)> {};
template <class B, class D> struct is_base_of : bool_constant<__is_base_of(B, D)> {};
template <class F, class T> struct is_convertible : bool_constant<__is_convertible_to(F, T)> {};
template <class T, class... A> struct is_constructible : bool_constant<__is_constructible(T, A...)> {};
template <class T, class... A>
struct is_nothrow_constructible : bool_constant<__is_nothrow_constructible(T, A...)> {};
template <class T, class... A>
struct is_trivially_constructible : bool_constant<__is_trivially_constructible(T, A...)> {};
template <class T, class U> struct is_assignable : bool_constant<__is_assignable(T, U)> {};
template <class T, class U> struct is_nothrow_assignable : bool_constant<__is_nothrow_assignable(T, U)> {};
template <class T> struct is_default_constructible : is_constructible<T> {};
template <class T> struct is_trivially_default_constructible : is_trivially_constructible<T> {};
template <class T> struct is_copy_constructible : is_constructible<T, add_lvalue_reference_t<const T>> {};
template <class T> struct is_move_constructible : is_constructible<T, add_rvalue_reference_t<T>> {};
template <class T>
struct is_copy_assignable : is_assignable<add_lvalue_reference_t<T>, add_lvalue_reference_t<const T>> {};
template <class T>
struct is_move_assignable : is_assignable<add_lvalue_reference_t<T>, add_rvalue_reference_t<T>> {};
template <class T> struct is_destructible : bool_constant<__is_destructible(T)> {};
template <class T> struct is_trivially_destructible : bool_constant<__is_trivially_destructible(T)> {};
template <class T> struct alignment_of : integral_constant<size_t, alignof(T)> {};

template <class T> struct underlying_type { using type = __underlying_type(T); };
template <class T> using underlying_type_t = typename underlying_type<T>::type;

namespace _warpsmith {
template <size_t> struct integer;
template <> struct integer<1> { using s = signed char; using u = unsigned char; };
template <> struct integer<2> { using s = short; using u = unsigned short; };
template <> struct integer<4> { using s = int; using u = unsigned; };
template <> struct integer<8> { using s = long; using u = unsigned long; };
template <class From, class To>
using cv_of = conditional_t<is_const<From>::value,
                            conditional_t<is_volatile<From>::value, const volatile To, const To>,
                            conditional_t<is_volatile<From>::value, volatile To, To>>;
template <class T> struct counterpart { using s = typename integer<sizeof(T)>::s; using u = typename integer<sizeof(T)>::u; };
template <> struct counterpart<long long> { using s = long long; using u = unsigned long long; };
template <> struct counterpart<unsigned long long> : counterpart<long long> {};
}  // namespace _warpsmith
template <class T> struct make_signed {
  using type = _warpsmith::cv_of<T, typename _warpsmith::counterpart<remove_cv_t<T>>::s>;
};
template <class T> struct make_unsigned {
  using type = _warpsmith::cv_of<T, typename _warpsmith::counterpart<remove_cv_t<T>>::u>;
};
template <class T> using make_signed_t = typename make_signed<T>::type;
template <class T> using make_unsigned_t = typename make_unsigned<T>::type;

template <class T> struct decay {
  using bare = remove_reference_t<T>;
  using type = conditional_t<is_array<bare>::value, remove_extent_t<bare>*,
                             typename conditional<is_function<bare>::value, add_pointer<bare>, remove_cv<bare>>::type::type>;
};
template <class T> using decay_t = typename decay<T>::type;

template <class... T> struct conjunction : true_type {};
template <class T> struct conjunction<T> : T {};
template <class T, class... R> struct conjunction<T, R...> : conditional_t<bool(T::value), conjunction<R...>, T> {};
template <class... T> struct disjunction : false_type {};
template <class T> struct disjunction<T> : T {};
template <class T, class... R> struct disjunction<T, R...> : conditional_t<bool(T::value), T, disjunction<R...>> {};
template <class T> struct negation : bool_constant<!bool(T::value)> {};

namespace _warpsmith {
template <class V, class... T> struct common {};
template <class T> struct common<void, T> { using type = decay_t<T>; };
template <class T, class U> struct common<void_t<decltype(false ? declval<T>() : declval<U>())>, T, U> {
  using type = decay_t<decltype(false ? declval<T>() : declval<U>())>;
};
template <class T, class U, class V, class... R>
struct common<void_t<typename common<void, T, U>::type>, T, U, V, R...>
    : common<void, typename common<void, T, U>::type, V, R...> {};
template <class V, class F, class... A> struct invoked : false_type {};
template <class F, class... A>
struct invoked<void_t<decltype(declval<F>()(declval<A>()...))>, F, A...> : true_type {
  using type = decltype(declval<F>()(declval<A>()...));
};
}  // namespace _warpsmith
template <class... T> struct common_type : _warpsmith::common<void, T...> {};
template <class... T> using common_type_t = typename common_type<T...>::type;
template <class F, class... A> struct invoke_result : _warpsmith::invoked<void, F, A...> {};
template <class F, class... A> using invoke_result_t = typename invoke_result<F, A...>::type;
template <class F, class... A> struct is_invocable : bool_constant<_warpsmith::invoked<void, F, A...>::value> {};
template <class F, class... A> inline constexpr bool is_invocable_v = is_invocable<F, A...>::value;

template <size_t size, size_t alignment = 8> struct aligned_storage {
  struct type { alignas(alignment) unsigned char data[size]; };
};
template <size_t size, size_t alignment = 8>
using aligned_storage_t = typename aligned_storage<size, alignment>::type;

#define WARPSMITH_VALUE_OF(name) template <class T> inline constexpr bool name##_v = name<T>::value;
WARPSMITH_VALUE_OF(is_void) WARPSMITH_VALUE_OF(is_null_pointer) WARPSMITH_VALUE_OF(is_const)
WARPSMITH_VALUE_OF(is_volatile) WARPSMITH_VALUE_OF(is_lvalue_reference) WARPSMITH_VALUE_OF(is_rvalue_reference)
WARPSMITH_VALUE_OF(is_reference) WARPSMITH_VALUE_OF(is_pointer) WARPSMITH_VALUE_OF(is_array)
WARPSMITH_VALUE_OF(is_integral) WARPSMITH_VALUE_OF(is_floating_point) WARPSMITH_VALUE_OF(is_arithmetic)
WARPSMITH_VALUE_OF(is_fundamental) WARPSMITH_VALUE_OF(is_compound) WARPSMITH_VALUE_OF(is_member_pointer)
WARPSMITH_VALUE_OF(is_signed) WARPSMITH_VALUE_OF(is_unsigned) WARPSMITH_VALUE_OF(is_enum)
WARPSMITH_VALUE_OF(is_class) WARPSMITH_VALUE_OF(is_union) WARPSMITH_VALUE_OF(is_function)
WARPSMITH_VALUE_OF(is_object) WARPSMITH_VALUE_OF(is_scalar) WARPSMITH_VALUE_OF(is_empty)
WARPSMITH_VALUE_OF(is_final) WARPSMITH_VALUE_OF(is_abstract) WARPSMITH_VALUE_OF(is_polymorphic)
WARPSMITH_VALUE_OF(is_aggregate) WARPSMITH_VALUE_OF(is_trivial) WARPSMITH_VALUE_OF(is_pod)
WARPSMITH_VALUE_OF(is_standard_layout) WARPSMITH_VALUE_OF(is_trivially_copyable)
WARPSMITH_VALUE_OF(is_default_constructible) WARPSMITH_VALUE_OF(is_trivially_default_constructible)
WARPSMITH_VALUE_OF(is_copy_constructible) WARPSMITH_VALUE_OF(is_move_constructible)
WARPSMITH_VALUE_OF(is_copy_assignable) WARPSMITH_VALUE_OF(is_move_assignable)
WARPSMITH_VALUE_OF(is_destructible) WARPSMITH_VALUE_OF(is_trivially_destructible)
#undef WARPSMITH_VALUE_OF
template <class B, class D> inline constexpr bool is_base_of_v = is_base_of<B, D>::value;
template <class F, class T> inline constexpr bool is_convertible_v = is_convertible<F, T>::value;
template <class T, class U> inline constexpr bool is_assignable_v = is_assignable<T, U>::value;
template <class T, class... A> inline constexpr bool is_constructible_v = is_constructible<T, A...>::value;
template <class T, class... A>
inline constexpr bool is_nothrow_constructible_v = is_nothrow_constructible<T, A...>::value;
template <class T> inline constexpr size_t rank_v = rank<T>::value;
template <class T, unsigned i = 0> inline constexpr size_t extent_v = extent<T, i>::value;
template <class T> inline constexpr size_t alignment_of_v = alignof(T);
template <class... T> inline constexpr bool conjunction_v = conjunction<T...>::value;
template <class... T> inline constexpr bool disjunction_v = disjunction<T...>::value;
template <class T> inline constexpr bool negation_v = negation<T>::value;
__device__ constexpr bool is_constant_evaluated() noexcept { return __builtin_is_constant_evaluated(); }
}  // namespace std
