// task: silu_and_mul
// exploit: D23
// how: compile options that run programs, read files or change what is linked
// expect: rejected
// layer: compile
// variant: host_compiler ; options=-ccbin /tmp/evil
// variant: host_options ; options=-Xcompiler -fplugin=/tmp/evil.so
// variant: assembler_options ; options=-Xptxas --dont-merge-basicblocks
// variant: relocatable ; options=-rdc=true
// variant: options_file ; options=--options-file /etc/passwd
// variant: kept_files ; options=--keep --keep-dir /tmp
// variant: device_code_of_others ; options=--pre-include=/etc/passwd
extern "C" __global__ void silu_and_mul(const float* input, float* out, const int hidden) {
  const size_t row = blockIdx.x;
  const float* gate = input + row * 2 * hidden;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    out[row * hidden + i] = gate[i] / (1.0f + expf(-gate[i])) * gate[hidden + i];
  }
}
