// Atomic operations, relaxed, on the scope of the device; those that end in _block on that of the block.
#pragma once

template <class T> struct warpsmith_same { typedef T type; };
#define WARPSMITH_ATOMIC(name, builtin)                                                                        \
  template <class T> __device__ inline T name(T* where, typename warpsmith_same<T>::type value) {              \
    return builtin(where, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);                                  \
  }                                                                                                            \
  template <class T> __device__ inline T name##_block(T* where, typename warpsmith_same<T>::type value) {      \
    return builtin(where, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);                              \
  }                                                                                                            \
  template <class T> __device__ inline T name##_system(T* where, typename warpsmith_same<T>::type value) {     \
    return builtin(where, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);                                 \
  }
#define WARPSMITH_SUBTRACT(where, value, order, scope) __hip_atomic_fetch_add(where, -value, order, scope)
WARPSMITH_ATOMIC(atomicAdd, __hip_atomic_fetch_add)
WARPSMITH_ATOMIC(atomicSub, WARPSMITH_SUBTRACT)
WARPSMITH_ATOMIC(atomicMin, __hip_atomic_fetch_min)
WARPSMITH_ATOMIC(atomicMax, __hip_atomic_fetch_max)
WARPSMITH_ATOMIC(atomicAnd, __hip_atomic_fetch_and)
WARPSMITH_ATOMIC(atomicOr, __hip_atomic_fetch_or)
WARPSMITH_ATOMIC(atomicXor, __hip_atomic_fetch_xor)
WARPSMITH_ATOMIC(atomicExch, __hip_atomic_exchange)

template <class T>
__device__ inline T atomicCAS(T* where, typename warpsmith_same<T>::type expected, typename warpsmith_same<T>::type value) {
  __hip_atomic_compare_exchange_strong(where, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}
__device__ inline unsigned int atomicInc(unsigned int* where, unsigned int most) {
  return __builtin_amdgcn_atomic_inc32(where, most, __ATOMIC_RELAXED, "agent");
}
__device__ inline unsigned int atomicDec(unsigned int* where, unsigned int most) {
  return __builtin_amdgcn_atomic_dec32(where, most, __ATOMIC_RELAXED, "agent");
}
template <class T> __device__ inline T unsafeAtomicAdd(T* where, typename warpsmith_same<T>::type value) {
  return atomicAdd(where, value);
}
template <class T> __device__ inline T safeAtomicAdd(T* where, typename warpsmith_same<T>::type value) {
  return atomicAdd(where, value);
}
template <class T> __device__ inline void atomicAddNoRet(T* where, typename warpsmith_same<T>::type value) {
  atomicAdd(where, value);
}
