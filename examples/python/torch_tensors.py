"""Tunes a kernel for tensors of torch: they say shapes, types, and the values to draw.

    pip install torch 'warpsmith[opencl]'
    python examples/python/torch_tensors.py --seconds 15

A tensor may lie on a GPU. Its values are read, but only the range is sent. The indices below go from 0 to the
last row of the table, so each check draws such indices, at other sizes of the table, too.
"""

import argparse
import sys

import warpsmith

try:
    import torch
except ImportError:
    sys.exit("error: torch is missing; install it with: pip install torch")

SOURCE = """
__kernel void gather(__global const float* table, __global const long* index, __global float* out,
                     int count, int width) {
  int i = get_global_id(0);
  if (i >= count) return;
  for (int j = 0; j < width; ++j) out[i * width + j] = table[index[i] * width + j];
}
"""


def main() -> int:
    """Tune, and print the kernel to launch."""
    options = argparse.ArgumentParser(description="Tune a kernel for tensors of torch.")
    options.add_argument("--seconds", type=float, default=15, help="budget of device time")
    given = options.parse_args()
    vocabulary, count, width = 1000, 300, 96
    torch.manual_seed(0)
    table = torch.randn(vocabulary, width)
    index = torch.randint(vocabulary, (count,))
    index[:2] = torch.tensor([0, vocabulary - 1])
    result = warpsmith.tune(
        SOURCE,
        {"table": table, "index": index, "out": torch.empty(count, width)},
        {"vocabulary": vocabulary, "count": count, "width": width},
        grid="ceil_div(count, 32)",
        block=32,
        seconds=given.seconds,
    )
    print(result)
    kernel = result.kernel_for(vocabulary=vocabulary, count=count, width=width)
    print(f"launch {kernel.entry} with grid {kernel.grid} and block {kernel.block}:")
    print(kernel.source)
    return 0 if result.state.value == "done" else 1


if __name__ == "__main__":
    sys.exit(main())
