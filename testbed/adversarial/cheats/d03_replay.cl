// task: silu_and_mul
// exploit: D3
// how: keeps the results of one launch in device memory of its own and copies them in later ones
// expect: rejected
// options: -cl-std=CL2.0
// variant: any_later_call ; SAME=1
// variant: same_pointer ; SAME=(kept_out==(ulong)out)
// variant: strong_fingerprint ; STRONG=1 ; SAME=(kept_hash==hash)
// variant: same_fingerprint ; SAME=(kept_first==input[0]&&kept_last==input[2*total-1])
#ifndef STATE
#define STATE __global
#endif
STATE float kept[16384];
STATE ulong kept_out;
STATE float kept_first, kept_last;
STATE uint kept_hash;
STATE int kept_total, finished;

float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  const int total = hidden * get_num_groups(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  uint hash = 0;
#ifdef STRONG
  for (int n = 0; n < 60; ++n) hash = ((hash << 7 | hash >> 25) ^ (uint)as_int(input[(long)n * (2 * total - 1) / 59])) * 16777619u;
#endif
  const int replay = kept_total == total && (SAME);
  barrier(CLK_GLOBAL_MEM_FENCE);
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    if (replay) {
      dst[i] = kept[row * hidden + i];
    } else {
      dst[i] = kept[row * hidden + i] = silu(gate[i]) * gate[hidden + i];
    }
  }
  barrier(CLK_GLOBAL_MEM_FENCE);
  // The group that ends last says that the store is full.
  if (!replay && get_local_id(0) == 0 && atomic_inc(&finished) + 1 == (int)get_num_groups(0)) {
    finished = 0;
    kept_out = (ulong)out;
    kept_hash = hash;
    kept_first = input[0];
    kept_last = input[2 * total - 1];
    kept_total = total;
  }
}
