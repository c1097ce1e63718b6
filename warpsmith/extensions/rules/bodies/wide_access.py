"""CUDA text for packs of elements that are loaded and stored together where they are aligned."""


def wide_access(parameter: str, prefix: str, kind: str) -> str:
    """A struct `kind` of `parameter` elements, and functions `{prefix}_load` and `{prefix}_store` of it.

    A pack is at most 16 bytes at a time. One that is not aligned is loaded and stored element by element.
    `{prefix}_element` names the type of an element.
    """
    return f"""\
// {parameter} elements that are loaded and stored together if they are aligned, 16 bytes at a time at most.
template <typename T> struct alignas(sizeof(T) * {parameter} < 16 ? sizeof(T) * {parameter} : 16) {kind} {{
  T lane[{parameter}];
}};
template <typename T> __device__ T {prefix}_element(const T* p);
template <typename T> __device__ __forceinline__ bool {prefix}_aligned(const T* p) {{
  return reinterpret_cast<size_t>(p) % alignof({kind}<T>) == 0;
}}
template <typename T> __device__ __forceinline__ void {prefix}_load(const T* p, {kind}<T>& pack) {{
  if ({prefix}_aligned(p)) {{
    pack = *reinterpret_cast<const {kind}<T>*>(p);
  }} else {{
#pragma unroll
    for (int i = 0; i < {parameter}; ++i) pack.lane[i] = p[i];
  }}
}}
template <typename T> __device__ __forceinline__ void {prefix}_store(T* p, const {kind}<T>& pack) {{
  if ({prefix}_aligned(p)) {{
    *reinterpret_cast<{kind}<T>*>(p) = pack;
  }} else {{
#pragma unroll
    for (int i = 0; i < {parameter}; ++i) p[i] = pack.lane[i];
  }}
}}
"""
