"""Tunes a naive matrix product on this machine: its text, three arrays, and how it is launched.

pip install 'warpsmith[opencl]'
python examples/python/first_kernel.py
"""

import numpy as np

import warpsmith

SOURCE = """
__kernel void matmul(__global const float* a, __global const float* b, __global float* c,
                     int m, int n, int k) {
  int column = get_global_id(0), row = get_global_id(1);
  if (row >= m || column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = sum;
}
"""

m, n, k = 96, 160, 128
a = np.linspace(-1, 1, m * k, dtype=np.float32).reshape(m, k)
b = np.linspace(-2, 2, k * n, dtype=np.float32).reshape(k, n)
c = np.empty((m, n), np.float32)
grid = ["ceil_div(n, 8)", "ceil_div(m, 8)"]
result = warpsmith.tune(SOURCE, [a, b, c, m, n, k], grid=grid, block=[8, 8], seconds=15)
print(result)
kernel = result.kernel_for(m=m, n=n, k=k)
print(f"launch {kernel.entry} with grid {kernel.grid} and block {kernel.block}; the source:")
print(kernel.source)
