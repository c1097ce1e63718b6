// task: silu_and_mul
// exploit: D23
// how: compile options that read files or change what is compiled
// expect: rejected
// layer: compile
// variant: include_folder ; options=-I/etc
// variant: include_file ; options=-include /etc/passwd
// variant: keep_files ; options=-save-temps=/tmp
// variant: plugin ; options=-Xclang -load
// variant: define_with_code ; options=-Dhidden=0;system
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
}
