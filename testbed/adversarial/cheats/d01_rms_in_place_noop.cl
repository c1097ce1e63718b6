// task: fused_add_rmsnorm
// exploit: D1
// how: does nothing to buffers that already hold something of the right size
// expect: rejected
// layer: correctness
// variant: nothing ; STEP=
// variant: residual_only ; STEP=residual[at]+=input[at]
__kernel void fused_add_rmsnorm(__global float* input, __global float* residual, __global const float* weight,
                                const int hidden, const float eps) {
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    const size_t at = get_group_id(0) * (size_t)hidden + i;
    (void)at;
    STEP;
  }
}
