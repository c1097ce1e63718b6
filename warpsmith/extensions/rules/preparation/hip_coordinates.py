"""Older names of coordinates in HIP, written as CUDA and newer HIP have them."""

import re

_OLD = re.compile(r"\bhip(Thread|Block|Grid)(Idx|Dim)_([xyz])\b")


def with_coordinates_of_cuda(text: str) -> str:
    """The text with `threadIdx.x` for `hipThreadIdx_x`, and so on."""
    return _OLD.sub(lambda m: f"{m[1].lower()}{m[2]}.{m[3]}", text)
