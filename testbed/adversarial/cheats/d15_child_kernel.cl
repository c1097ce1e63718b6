// task: silu_and_mul
// exploit: D15
// how: leaves the work to a kernel that the device enqueues, outside what is timed
// expect: rejected
// layer: compile
// backends: opencl
// options: -cl-std=CL2.0
__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(hidden), ^{
    const int i = get_global_id(0);
    out[i] = input[i] / (1.0f + exp(-input[i])) * input[hidden + i];
  });
}
