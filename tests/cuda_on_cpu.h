// CUDA's words for a processor: one block at a time, each of its threads a fiber, so that barriers and shuffles
// mean what they mean on a device. A thread that waits for ever ends the program with status 3.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <type_traits>
#include <ucontext.h>
#include <vector>
using std::max;
using std::min;
#define __global__
#define __device__
#define __constant__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __shared__ static
#define __syncthreads() cpu::barrier()
#define __syncwarp(...) cpu::warp_barrier()
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
static dim3 threadIdx, blockIdx, blockDim, gridDim;
static const int warpSize = 32;
template <typename T> T __ldg(const T* p) { return *p; }
template <typename T> T __ldcs(const T* p) { return *p; }
template <typename T> void __stcs(T* p, T v) { *p = v; }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
#define __expf expf
static inline float fdividef(float a, float b) { return a / b; }
static inline float __fdividef(float a, float b) { return a / b; }

namespace cpu {
struct Meeting {
  int arrived = 0, members = 0;
  unsigned turn = 0;
};
struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  dim3 index;
  int number = 0;
  bool ended = false;
};
static std::vector<Fiber> fibers;
static std::vector<Meeting> warps;
static Meeting block;
static ucontext_t scheduler;
static Fiber* current;
static std::function<void()> body;
static double slots[1024];
static long steps;

static void pass() {
  Fiber* me = current;
  if (++steps > 20000000) exit(3);
  swapcontext(&me->context, &scheduler);
  threadIdx = me->index;
}
static void release(Meeting& m) {
  if (m.members > 0 && m.arrived == m.members) {
    m.arrived = 0;
    ++m.turn;
  }
}
static void meet(Meeting& m) {
  const unsigned turn = m.turn;
  ++m.arrived;
  release(m);
  while (m.turn == turn) pass();
}
static void barrier() { meet(block); }
static void warp_barrier() { meet(warps[current->number / warpSize]); }
static void run() {
  body();
  Meeting& warp = warps[current->number / warpSize];
  current->ended = true;
  --warp.members;
  release(warp);
  --block.members;
  release(block);
  swapcontext(&current->context, &scheduler);
}
template <typename T> T shuffled(T value, int source) {
  const int base = current->number / warpSize * warpSize;
  std::memcpy(&slots[current->number], &value, sizeof(T));
  warp_barrier();
  if (source < 0 || source >= warpSize || base + source >= (int)fibers.size()) source = current->number - base;
  T found;
  std::memcpy(&found, &slots[base + source], sizeof(T));
  warp_barrier();
  return found;
}
static void launch(dim3 grid, dim3 threads, std::function<void()> kernel) {
  const int count = threads.x * threads.y * threads.z;
  body = kernel;
  gridDim = grid;
  blockDim = threads;
  fibers.resize(count);
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        block = {0, count, 0};
        warps.assign((count + warpSize - 1) / warpSize, Meeting());
        for (int n = 0; n < count; ++n) {
          Fiber& f = fibers[n];
          f.stack.resize(32768);
          f.number = n;
          f.ended = false;
          f.index = {n % threads.x, n / threads.x % threads.y, n / (threads.x * threads.y)};
          ++warps[n / warpSize].members;
          getcontext(&f.context);
          f.context.uc_stack.ss_sp = f.stack.data();
          f.context.uc_stack.ss_size = f.stack.size();
          makecontext(&f.context, run, 0);
        }
        for (int left = count; left > 0;) {
          for (Fiber& f : fibers) {
            if (f.ended) continue;
            current = &f;
            threadIdx = f.index;
            swapcontext(&scheduler, &f.context);
            left -= f.ended;
          }
        }
      }
}
static int lane() { return current->number % warpSize; }
static int begin(int width) { return lane() / width * width; }
static int inside(int source, int width) { return source >= begin(width) + width ? lane() : source; }
template <typename T> T by_index(T v, int from, int width = warpSize) {
  return shuffled(v, begin(width) + (from & (width - 1)));
}
template <typename T> T by_xor(T v, int mask, int width = warpSize) {
  return shuffled(v, inside(lane() ^ mask, width));
}
template <typename T> T by_down(T v, unsigned delta, int width = warpSize) {
  return shuffled(v, inside(lane() + (int)delta, width));
}
}  // namespace cpu
#define __shfl_sync(mask, ...) cpu::by_index(__VA_ARGS__)
#define __shfl_xor_sync(mask, ...) cpu::by_xor(__VA_ARGS__)
#define __shfl_down_sync(mask, ...) cpu::by_down(__VA_ARGS__)
