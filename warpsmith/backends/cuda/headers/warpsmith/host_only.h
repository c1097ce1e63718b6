// Classes of the standard library that only a host has, for NVRTC, so that it can read the host functions of a
// header. A kernel that uses one fails to link: what they do is never defined, or, in templates, defined by a
// function that is not. (A template's argument can be a local type, of which no function may be undefined.)
#pragma once
#include <warpsmith/algorithms.h>
#include <warpsmith/library.h>
#include <warpsmith/numeric_limits.h>

#define WARPSMITH_GIVES(...) { return *static_cast<__VA_ARGS__*>(::warpsmith_of_a_host()); }
#define WARPSMITH_DOES { ::warpsmith_of_a_host(); }

namespace std {
template <class T> struct allocator {};
template <class T> struct hash { __device__ size_t operator()(const T&) const WARPSMITH_GIVES(size_t) };
struct nullopt_t {};
inline constexpr nullopt_t nullopt{};
struct defer_lock_t {};

template <class T, class A = allocator<T>> struct vector {
  using value_type = T;
  using size_type = size_t;
  using iterator = T*;
  using const_iterator = const T*;
  __device__ constexpr vector() {}
  __device__ explicit vector(size_t) WARPSMITH_DOES
  __device__ vector(size_t, const T&) WARPSMITH_DOES
  __device__ vector(initializer_list<T>) WARPSMITH_DOES
  template <class I> __device__ vector(I, I) WARPSMITH_DOES
  __device__ T& operator[](size_t) WARPSMITH_GIVES(T)
  __device__ const T& operator[](size_t) const WARPSMITH_GIVES(T)
  __device__ T& at(size_t) WARPSMITH_GIVES(T)
  __device__ const T& at(size_t) const WARPSMITH_GIVES(T)
  __device__ T& front() WARPSMITH_GIVES(T)
  __device__ const T& front() const WARPSMITH_GIVES(T)
  __device__ T& back() WARPSMITH_GIVES(T)
  __device__ const T& back() const WARPSMITH_GIVES(T)
  __device__ T* data() WARPSMITH_GIVES(T*)
  __device__ const T* data() const WARPSMITH_GIVES(T*)
  __device__ T* begin() WARPSMITH_GIVES(T*)
  __device__ const T* begin() const WARPSMITH_GIVES(T*)
  __device__ T* end() WARPSMITH_GIVES(T*)
  __device__ const T* end() const WARPSMITH_GIVES(T*)
  __device__ size_t size() const WARPSMITH_GIVES(size_t)
  __device__ bool empty() const WARPSMITH_GIVES(bool)
  __device__ void clear() WARPSMITH_DOES
  __device__ void resize(size_t) WARPSMITH_DOES
  __device__ void resize(size_t, const T&) WARPSMITH_DOES
  __device__ void reserve(size_t) WARPSMITH_DOES
  __device__ void push_back(const T&) WARPSMITH_DOES
  __device__ void pop_back() WARPSMITH_DOES
  template <class... U> __device__ T& emplace_back(U&&...) WARPSMITH_GIVES(T)
  template <class... U> __device__ T* insert(U&&...) WARPSMITH_GIVES(T*)
  template <class... U> __device__ T* erase(U&&...) WARPSMITH_GIVES(T*)
  template <class... U> __device__ void assign(U&&...) WARPSMITH_DOES
};
template <class I> vector(I, I) -> vector<remove_cvref_t<decltype(*declval<I>())>>;

struct string {
  static constexpr size_t npos = ~size_t(0);
  __device__ constexpr string() {}
  __device__ string(const char*);
  __device__ string(const char*, size_t);
  __device__ string(size_t, char);
  __device__ const char* c_str() const;
  __device__ const char* data() const;
  __device__ const char* begin() const;
  __device__ const char* end() const;
  __device__ size_t size() const;
  __device__ size_t length() const;
  __device__ bool empty() const;
  __device__ char& operator[](size_t);
  __device__ const char& operator[](size_t) const;
  __device__ string& operator+=(const string&);
  __device__ string& append(const string&);
  __device__ size_t find(const string&, size_t = 0) const;
  __device__ string substr(size_t, size_t = npos) const;
};
using string_view = string;
__device__ string operator+(const string&, const string&);
__device__ bool operator==(const string&, const string&);
__device__ bool operator!=(const string&, const string&);
__device__ bool operator<(const string&, const string&);
template <class T> __device__ string to_string(T) WARPSMITH_GIVES(string)
__device__ int stoi(const string&);

struct ostream {};
struct endl_t {};
inline constexpr endl_t endl{}, flush{}, hex{}, dec{}, boolalpha{}, fixed{};
inline constexpr ostream cout{}, cerr{}, clog{};
template <class T> __device__ const ostream& operator<<(const ostream&, const T&) WARPSMITH_GIVES(ostream)
struct ostringstream : ostream {
  __device__ ostringstream();
  __device__ explicit ostringstream(const string&);
  __device__ string str() const;
  __device__ void str(const string&);
};
using stringstream = ostringstream;
__device__ endl_t setw(int);
__device__ endl_t setprecision(int);

struct exception {
  __device__ exception() noexcept;
  __device__ virtual ~exception();
  __device__ virtual const char* what() const noexcept;
};
#define WARPSMITH_EXCEPTION(name, of)        \
  struct name : of {                         \
    __device__ explicit name(const string&); \
    __device__ explicit name(const char*);   \
  };
WARPSMITH_EXCEPTION(runtime_error, exception)
WARPSMITH_EXCEPTION(logic_error, exception)
WARPSMITH_EXCEPTION(invalid_argument, logic_error)
WARPSMITH_EXCEPTION(out_of_range, logic_error)
WARPSMITH_EXCEPTION(domain_error, logic_error)
WARPSMITH_EXCEPTION(length_error, logic_error)
WARPSMITH_EXCEPTION(overflow_error, runtime_error)
#undef WARPSMITH_EXCEPTION

template <class K, class V, class... R> struct map {
  using value_type = pair<const K, V>;
  using iterator = value_type*;
  using const_iterator = const value_type*;
  __device__ constexpr map() {}
  __device__ map(initializer_list<value_type>) WARPSMITH_DOES
  __device__ V& operator[](const K&) WARPSMITH_GIVES(V)
  __device__ V& at(const K&) WARPSMITH_GIVES(V)
  __device__ const V& at(const K&) const WARPSMITH_GIVES(V)
  __device__ iterator find(const K&) WARPSMITH_GIVES(iterator)
  __device__ const_iterator find(const K&) const WARPSMITH_GIVES(iterator)
  __device__ iterator begin() WARPSMITH_GIVES(iterator)
  __device__ const_iterator begin() const WARPSMITH_GIVES(iterator)
  __device__ iterator end() WARPSMITH_GIVES(iterator)
  __device__ const_iterator end() const WARPSMITH_GIVES(iterator)
  __device__ size_t count(const K&) const WARPSMITH_GIVES(size_t)
  __device__ size_t size() const WARPSMITH_GIVES(size_t)
  __device__ bool empty() const WARPSMITH_GIVES(bool)
  __device__ size_t erase(const K&) WARPSMITH_GIVES(size_t)
  __device__ void clear() WARPSMITH_DOES
  template <class... U> __device__ pair<iterator, bool> emplace(U&&...) WARPSMITH_GIVES(pair<iterator, bool>)
  template <class... U> __device__ pair<iterator, bool> try_emplace(U&&...) WARPSMITH_GIVES(pair<iterator, bool>)
  __device__ pair<iterator, bool> insert(const value_type&) WARPSMITH_GIVES(pair<iterator, bool>)
};
template <class K, class V, class... R> using unordered_map = map<K, V, R...>;
template <class K, class... R> struct set {
  __device__ constexpr set() {}
  __device__ set(initializer_list<K>) WARPSMITH_DOES
  __device__ const K* begin() const WARPSMITH_GIVES(K*)
  __device__ const K* end() const WARPSMITH_GIVES(K*)
  __device__ const K* find(const K&) const WARPSMITH_GIVES(K*)
  __device__ size_t count(const K&) const WARPSMITH_GIVES(size_t)
  __device__ size_t size() const WARPSMITH_GIVES(size_t)
  __device__ pair<const K*, bool> insert(const K&) WARPSMITH_GIVES(pair<const K*, bool>)
};
template <class K, class... R> using unordered_set = set<K, R...>;
template <class K, class... R> using multiset = set<K, R...>;

template <class T> struct optional {
  using value_type = T;
  __device__ constexpr optional() {}
  __device__ constexpr optional(nullopt_t) {}
  template <class U, class = enable_if_t<is_constructible_v<T, U>>> __device__ optional(U&&) WARPSMITH_DOES
  __device__ explicit operator bool() const WARPSMITH_GIVES(bool)
  __device__ bool has_value() const WARPSMITH_GIVES(bool)
  __device__ T& value() WARPSMITH_GIVES(T)
  __device__ const T& value() const WARPSMITH_GIVES(T)
  __device__ T& operator*() WARPSMITH_GIVES(T)
  __device__ const T& operator*() const WARPSMITH_GIVES(T)
  __device__ T* operator->() WARPSMITH_GIVES(T*)
  __device__ const T* operator->() const WARPSMITH_GIVES(T*)
  template <class U> __device__ T value_or(U&&) const WARPSMITH_GIVES(T)
};

template <class T> struct default_delete {};
template <class T, class D = default_delete<T>> struct unique_ptr {
  using element = remove_extent_t<T>;
  __device__ constexpr unique_ptr() {}
  __device__ constexpr unique_ptr(decltype(nullptr)) {}
  __device__ explicit unique_ptr(element*) WARPSMITH_DOES
  template <class U> __device__ unique_ptr(element*, U&&) WARPSMITH_DOES
  __device__ element& operator*() const WARPSMITH_GIVES(element)
  __device__ element* operator->() const WARPSMITH_GIVES(element*)
  __device__ element& operator[](size_t) const WARPSMITH_GIVES(element)
  __device__ element* get() const WARPSMITH_GIVES(element*)
  __device__ element* release() WARPSMITH_GIVES(element*)
  __device__ void reset(element* = nullptr) WARPSMITH_DOES
  __device__ explicit operator bool() const WARPSMITH_GIVES(bool)
  __device__ bool operator==(decltype(nullptr)) const WARPSMITH_GIVES(bool)
  __device__ bool operator!=(decltype(nullptr)) const WARPSMITH_GIVES(bool)
};
template <class T> using shared_ptr = unique_ptr<T>;
template <class T> using weak_ptr = unique_ptr<T>;
template <class T, class... A> __device__ unique_ptr<T> make_unique(A&&...) WARPSMITH_GIVES(unique_ptr<T>)
template <class T, class... A> __device__ unique_ptr<T> make_shared(A&&...) WARPSMITH_GIVES(unique_ptr<T>)

template <class F> struct function;
template <class R, class... A> struct function<R(A...)> {
  __device__ constexpr function() {}
  __device__ constexpr function(decltype(nullptr)) {}
  template <class F> __device__ function(F) WARPSMITH_DOES
  __device__ R operator()(A...) const { return static_cast<R (*)()>(::warpsmith_of_a_host())(); }
  __device__ explicit operator bool() const WARPSMITH_GIVES(bool)
};

struct mutex {
  __device__ void lock();
  __device__ void unlock();
};
using recursive_mutex = mutex;
using shared_mutex = mutex;
template <class M = mutex> struct lock_guard { __device__ explicit lock_guard(M&) WARPSMITH_DOES };
template <class M = mutex> struct unique_lock { __device__ explicit unique_lock(M&) WARPSMITH_DOES };
template <class M = mutex> struct scoped_lock { __device__ explicit scoped_lock(M&) WARPSMITH_DOES };
struct once_flag {};
template <class F, class... A> __device__ void call_once(once_flag&, F&&, A&&...) WARPSMITH_DOES

enum memory_order {
  memory_order_relaxed, memory_order_consume, memory_order_acquire, memory_order_release, memory_order_acq_rel,
  memory_order_seq_cst
};
template <class T> struct atomic {
  __device__ constexpr atomic() {}
  __device__ constexpr atomic(T) {}
  __device__ T load(memory_order = memory_order_seq_cst) const WARPSMITH_GIVES(T)
  __device__ void store(T, memory_order = memory_order_seq_cst) WARPSMITH_DOES
  __device__ T exchange(T, memory_order = memory_order_seq_cst) WARPSMITH_GIVES(T)
  __device__ T fetch_add(T, memory_order = memory_order_seq_cst) WARPSMITH_GIVES(T)
  __device__ operator T() const WARPSMITH_GIVES(T)
  __device__ T operator=(T) WARPSMITH_GIVES(T)
  __device__ T operator++() WARPSMITH_GIVES(T)
  __device__ T operator++(int) WARPSMITH_GIVES(T)
};

template <class I> __device__ void sort(I, I) WARPSMITH_DOES
template <class I, class C> __device__ void sort(I, I, C) WARPSMITH_DOES
template <class I, class J> __device__ bool is_permutation(I, I, J) WARPSMITH_GIVES(bool)
template <class C> __device__ C* back_inserter(C&) WARPSMITH_GIVES(C*)
__device__ void* align(size_t, size_t, void*&, size_t&);
}  // namespace std
