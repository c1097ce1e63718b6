// <utility>, <tuple> and <array> for NVRTC. `std::move` and `std::forward` are built in.
#pragma once
#include <warpsmith/traits.h>

namespace std {
struct in_place_t { explicit in_place_t() = default; };
struct piecewise_construct_t { explicit piecewise_construct_t() = default; };
template <class T> __device__ constexpr T* addressof(T& value) noexcept { return __builtin_addressof(value); }
template <class T> __device__ constexpr const T& as_const(T& value) noexcept { return value; }
template <class T> __device__ constexpr void swap(T& a, T& b) {
  T kept = static_cast<T&&>(a);
  a = static_cast<T&&>(b);
  b = static_cast<T&&>(kept);
}
template <class T, size_t n> __device__ constexpr void swap(T (&a)[n], T (&b)[n]) {
  for (size_t i = 0; i < n; ++i) swap(a[i], b[i]);
}
template <class T, class U = T> __device__ constexpr T exchange(T& place, U&& value) {
  T kept = static_cast<T&&>(place);
  place = static_cast<U&&>(value);
  return kept;
}

template <class T, T... values> struct integer_sequence {
  using value_type = T;
  __device__ static constexpr size_t size() noexcept { return sizeof...(values); }
};
template <size_t... values> using index_sequence = integer_sequence<size_t, values...>;
namespace _warpsmith {
template <class T, class A, class B> struct joined;
template <class T, T... a, T... b> struct joined<T, integer_sequence<T, a...>, integer_sequence<T, b...>> {
  using type = integer_sequence<T, a..., T(sizeof...(a) + b)...>;
};
template <class T, size_t n> struct counted
    : joined<T, typename counted<T, n / 2>::type, typename counted<T, n - n / 2>::type> {};
template <class T> struct counted<T, 0> { using type = integer_sequence<T>; };
template <class T> struct counted<T, 1> { using type = integer_sequence<T, T(0)>; };
}  // namespace _warpsmith
template <class T, T n> using make_integer_sequence = typename _warpsmith::counted<T, size_t(n)>::type;
template <size_t n> using make_index_sequence = make_integer_sequence<size_t, n>;
template <class... T> using index_sequence_for = make_index_sequence<sizeof...(T)>;

// Declared as libcu++ declares them if it is compiled with NVRTC.
template <class... T> struct tuple_size;
template <size_t i, class... T> struct tuple_element;
template <class T> inline constexpr size_t tuple_size_v = tuple_size<T>::value;
template <size_t i, class T> using tuple_element_t = typename tuple_element<i, T>::type;

template <class A, class B> struct pair {
  using first_type = A;
  using second_type = B;
  A first;
  B second;
  __device__ constexpr pair() : first(), second() {}
  template <class T, class U>
  __device__ constexpr pair(T&& a, U&& b) : first(static_cast<T&&>(a)), second(static_cast<U&&>(b)) {}
  template <class T, class U>
  __device__ constexpr pair(const pair<T, U>& other) : first(other.first), second(other.second) {}
};
template <class A, class B> pair(A, B) -> pair<A, B>;
template <class A, class B> __device__ constexpr pair<decay_t<A>, decay_t<B>> make_pair(A&& a, B&& b) {
  return {static_cast<A&&>(a), static_cast<B&&>(b)};
}
template <class A, class B> __device__ constexpr bool operator==(const pair<A, B>& x, const pair<A, B>& y) {
  return x.first == y.first && x.second == y.second;
}
template <class A, class B> __device__ constexpr bool operator<(const pair<A, B>& x, const pair<A, B>& y) {
  return x.first < y.first || (!(y.first < x.first) && x.second < y.second);
}
template <class A, class B> struct tuple_size<pair<A, B>> : integral_constant<size_t, 2> {};
template <class A, class B> struct tuple_element<0, pair<A, B>> { using type = A; };
template <class A, class B> struct tuple_element<1, pair<A, B>> { using type = B; };
template <size_t i, class A, class B> __device__ constexpr auto& get(pair<A, B>& p) noexcept {
  if constexpr (i == 0) return p.first; else return p.second;
}
template <size_t i, class A, class B> __device__ constexpr const auto& get(const pair<A, B>& p) noexcept {
  if constexpr (i == 0) return p.first; else return p.second;
}
template <size_t i, class A, class B> __device__ constexpr auto&& get(pair<A, B>&& p) noexcept {
  return static_cast<tuple_element_t<i, pair<A, B>>&&>(get<i>(p));
}

template <class T, size_t n> struct array {
  using value_type = T;
  using size_type = size_t;
  using iterator = T*;
  using const_iterator = const T*;
  T items[n == 0 ? 1 : n];
  __device__ constexpr T& operator[](size_t i) { return items[i]; }
  __device__ constexpr const T& operator[](size_t i) const { return items[i]; }
  __device__ constexpr T& at(size_t i) { return items[i]; }
  __device__ constexpr const T& at(size_t i) const { return items[i]; }
  __device__ constexpr T* data() noexcept { return items; }
  __device__ constexpr const T* data() const noexcept { return items; }
  __device__ constexpr T* begin() noexcept { return items; }
  __device__ constexpr const T* begin() const noexcept { return items; }
  __device__ constexpr T* end() noexcept { return items + n; }
  __device__ constexpr const T* end() const noexcept { return items + n; }
  __device__ constexpr T& front() { return items[0]; }
  __device__ constexpr const T& front() const { return items[0]; }
  __device__ constexpr T& back() { return items[n - 1]; }
  __device__ constexpr const T& back() const { return items[n - 1]; }
  __device__ static constexpr size_t size() noexcept { return n; }
  __device__ static constexpr bool empty() noexcept { return n == 0; }
  __device__ constexpr void fill(const T& value) {
    for (size_t i = 0; i < n; ++i) items[i] = value;
  }
};
template <class T, class... R> array(T, R...) -> array<T, 1 + sizeof...(R)>;
template <class T, size_t n> struct tuple_size<array<T, n>> : integral_constant<size_t, n> {};
template <size_t i, class T, size_t n> struct tuple_element<i, array<T, n>> { using type = T; };
template <size_t i, class T, size_t n> __device__ constexpr T& get(array<T, n>& a) noexcept { return a[i]; }
template <size_t i, class T, size_t n> __device__ constexpr const T& get(const array<T, n>& a) noexcept {
  return a[i];
}
template <size_t i, class T, size_t n> __device__ constexpr T&& get(array<T, n>&& a) noexcept {
  return static_cast<T&&>(a[i]);
}

namespace _warpsmith {
template <size_t i, class T> struct leaf { T value; };
template <class Numbers, class... T> struct leaves;
template <size_t... i, class... T> struct leaves<index_sequence<i...>, T...> : leaf<i, T>... {
  constexpr leaves() = default;
  template <class... U> __device__ constexpr leaves(in_place_t, U&&... values)
      : leaf<i, T>{static_cast<U&&>(values)}... {}
};
template <size_t i, class T> __device__ constexpr T& leaf_of(leaf<i, T>& l) noexcept { return l.value; }
template <size_t i, class T> __device__ constexpr const T& leaf_of(const leaf<i, T>& l) noexcept {
  return l.value;
}
template <size_t i, class T> __device__ type_identity<T> type_at(const leaf<i, T>&);
}  // namespace _warpsmith
template <class... T> struct tuple : _warpsmith::leaves<index_sequence_for<T...>, T...> {
  using base = _warpsmith::leaves<index_sequence_for<T...>, T...>;
  constexpr tuple() = default;
  template <class... U, class = enable_if_t<sizeof...(U) == sizeof...(T) && (is_constructible_v<T, U> && ...)>>
  __device__ constexpr tuple(U&&... values) : base(in_place_t{}, static_cast<U&&>(values)...) {}
  template <class... U> __device__ constexpr tuple& operator=(const tuple<U...>& other) {
    assign(other, index_sequence_for<T...>{});
    return *this;
  }
 private:
  template <class O, size_t... i> __device__ constexpr void assign(const O& other, index_sequence<i...>) {
    ((_warpsmith::leaf_of<i>(*this) = _warpsmith::leaf_of<i>(other)), ...);
  }
};
template <class... T> tuple(T...) -> tuple<T...>;
template <class... T> struct tuple_size<tuple<T...>> : integral_constant<size_t, sizeof...(T)> {};
template <size_t i, class... T> struct tuple_element<i, tuple<T...>> {
  using type = typename decltype(_warpsmith::type_at<i>(declval<const tuple<T...>&>()))::type;
};
template <class A, class B> struct tuple_size<const pair<A, B>> : integral_constant<size_t, 2> {};
template <class T, size_t n> struct tuple_size<const array<T, n>> : integral_constant<size_t, n> {};
template <class... T> struct tuple_size<const tuple<T...>> : integral_constant<size_t, sizeof...(T)> {};
template <size_t i, class T> struct tuple_element<i, const T> {
  using type = const typename tuple_element<i, T>::type;
};
template <size_t i, class... T> __device__ constexpr auto& get(tuple<T...>& t) noexcept {
  return _warpsmith::leaf_of<i>(t);
}
template <size_t i, class... T> __device__ constexpr const auto& get(const tuple<T...>& t) noexcept {
  return _warpsmith::leaf_of<i>(t);
}
template <size_t i, class... T> __device__ constexpr auto&& get(tuple<T...>&& t) noexcept {
  return static_cast<tuple_element_t<i, tuple<T...>>&&>(_warpsmith::leaf_of<i>(t));
}
template <class... T> __device__ constexpr tuple<decay_t<T>...> make_tuple(T&&... values) {
  return tuple<decay_t<T>...>(static_cast<T&&>(values)...);
}
template <class... T> __device__ constexpr tuple<T&...> tie(T&... values) noexcept { return tuple<T&...>(values...); }
template <class... T> __device__ constexpr tuple<T&&...> forward_as_tuple(T&&... values) noexcept {
  return tuple<T&&...>(static_cast<T&&>(values)...);
}
namespace _warpsmith {
template <class F, class T, size_t... i>
__device__ constexpr decltype(auto) applied(F&& f, T&& t, index_sequence<i...>) {
  return static_cast<F&&>(f)(get<i>(static_cast<T&&>(t))...);
}
}  // namespace _warpsmith
template <class F, class T> __device__ constexpr decltype(auto) apply(F&& f, T&& t) {
  return _warpsmith::applied(static_cast<F&&>(f), static_cast<T&&>(t),
                             make_index_sequence<tuple_size<remove_cvref_t<T>>::value>{});
}
template <class C> __device__ constexpr auto size(const C& c) -> decltype(c.size()) { return c.size(); }
template <class T, size_t n> __device__ constexpr size_t size(const T (&)[n]) noexcept { return n; }
template <class C> __device__ constexpr auto begin(C& c) -> decltype(c.begin()) { return c.begin(); }
template <class C> __device__ constexpr auto end(C& c) -> decltype(c.end()) { return c.end(); }
template <class T, size_t n> __device__ constexpr T* begin(T (&a)[n]) noexcept { return a; }
template <class T, size_t n> __device__ constexpr T* end(T (&a)[n]) noexcept { return a + n; }
template <class C> __device__ constexpr auto data(C& c) -> decltype(c.data()) { return c.data(); }
}  // namespace std
