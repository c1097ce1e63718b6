"""Small kernels of many forms, and the features that must be found in each of them."""

from dataclasses import dataclass

from warpsmith.domain.jobs.job import Job

FLOAT, INT, CODES = "float32", "int32", "int8"


@dataclass(frozen=True)
class FeaturedKernel:
    """An OpenCL kernel over buffers of n * n elements and integers `n`, `w`, `h`."""

    body: str
    features: list[str]
    """The features that must be found, beside `any`."""
    read: tuple[str, ...] = (FLOAT, FLOAT)
    """Types of the inputs `a`, `b` and so on."""
    written: str = FLOAT
    """Type of the output `y`."""
    before: str = ""


TILE = "const int x = get_group_id(0) * 16 + get_local_id(0), y0 = get_group_id(1) * 16 + get_local_id(1);"
KERNELS = {
    "add": FeaturedKernel("int i = get_global_id(0); if (i < n) y[i] = a[i] + b[i];", []),
    "packs_by_hand": FeaturedKernel(
        "int i = get_global_id(0); y[4 * i] = a[4 * i]; y[4 * i + 1] = a[4 * i + 1];"
        "y[4 * i + 2] = a[4 * i + 2]; y[4 * i + 3] = a[4 * i + 3];",
        [],
    ),
    "pointer_to_row": FeaturedKernel(
        "__global const float* from = &a[get_group_id(0) * n];"
        "for (int i = get_local_id(0); i < n; i += get_local_size(0)) y[get_group_id(0) * n + i] = from[i];",
        ["row"],
    ),
    "gemv": FeaturedKernel(
        "float sum = 0; int row = get_global_id(0); for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k];"
        "y[row] = sum;",
        [],
    ),
    "tree_sum": FeaturedKernel(
        "__local float s[64]; int l = get_local_id(0); s[l] = a[get_global_id(0)]; barrier(1);"
        "for (int d = 32; d > 0; d >>= 1) { if (l < d) s[l] += s[l + d]; barrier(1); }"
        "if (l == 0) y[get_group_id(0)] = s[0];",
        ["reduction"],
    ),
    "scan": FeaturedKernel(
        "__local float s[64]; int l = get_local_id(0); s[l] = a[get_global_id(0)]; barrier(1);"
        "for (int d = 1; d < 64; d <<= 1) { float t = l >= d ? s[l - d] + s[l] : s[l]; barrier(1);"
        "s[l] = t; barrier(1); } y[get_global_id(0)] = l + 1 < 64 ? s[l + 1] : s[l];",
        ["reduction"],
    ),
    "naive_transpose": FeaturedKernel(
        "int i = get_global_id(0), j = get_global_id(1); if (i < w && j < h) y[i * h + j] = a[j * w + i];",
        [],
    ),
    "tiled_transpose": FeaturedKernel(
        f"{TILE} __local float tile[16][17]; tile[get_local_id(1)][get_local_id(0)] = a[y0 * w + x];"
        "barrier(1); const int u = get_group_id(1) * 16 + get_local_id(0);"
        "const int v = get_group_id(0) * 16 + get_local_id(1);"
        "y[v * h + u] = tile[get_local_id(0)][get_local_id(1)];",
        [],
    ),
    "reused_coordinates_transpose": FeaturedKernel(
        "__local float tile[16 * 17]; uint i = get_global_id(0), j = get_global_id(1);"
        "if (i < w && j < h) { uint at = j * w + i; tile[get_local_id(1) * 17 + get_local_id(0)] = a[at]; }"
        "barrier(1); i = get_group_id(1) * 16 + get_local_id(0); j = get_group_id(0) * 16 + get_local_id(1);"
        "if (i < h && j < w) y[j * h + i] = tile[get_local_id(0) * 17 + get_local_id(1)];",
        [],
    ),
    "tiled_copy": FeaturedKernel(
        f"{TILE} __local float tile[16][16]; tile[get_local_id(1)][get_local_id(0)] = a[y0 * w + x];"
        "barrier(1); y[y0 * w + x] = tile[get_local_id(1)][get_local_id(0)];",
        [],
    ),
    "naive_product": FeaturedKernel(
        "int i = get_global_id(0), j = get_global_id(1); float sum = 0;"
        "for (int k = 0; k < n; ++k) { float p = a[j * n + k]; float q = b[k * w + i]; sum += p * q; }"
        "y[j * w + i] = sum;",
        [],
    ),
    "product_of_macros": FeaturedKernel(
        "__local float l[256]; __local float r[256]; int i = get_local_id(0), j = get_local_id(1);"
        "float sum = 0; for (int s = 0; s < n; s += 16) { L(j, i) = a[get_global_id(1) * n + s + i];"
        "R(j, i) = b[(s + j) * w + get_global_id(0)]; barrier(1);"
        "for (int k = 0; k < 16; ++k) sum += L(j, k) * R(k, i); barrier(1); }"
        "y[get_global_id(1) * w + get_global_id(0)] = sum;",
        [],
        before="#define L(i, j) l[j + i * 16]\n#define R(i, j) r[j + i * 16]\n",
    ),
    "product_in_registers": FeaturedKernel(
        "float c[8]; for (int i = 0; i < 8; ++i) c[i] = 0; __local float strip[64];"
        "int m = get_global_id(0);"
        "for (int k = 0; k < n; k += 8) { strip[get_local_id(0)] = b[k * w + get_local_id(0)]; barrier(1);"
        "for (int j = 0; j < 8; ++j) { float p = a[m + (k + j) * h];"
        "for (int i = 0; i < 8; ++i) c[i] += p * strip[j * 8 + i]; } barrier(1); }"
        "for (int i = 0; i < 8; ++i) y[m + i * h] = c[i];",
        [],
    ),
    "stencil_by_macro": FeaturedKernel(
        "int i = get_global_id(0) + 1, j = get_global_id(1) + 1; if (i < w - 1 && j < h - 1)"
        "y[AT(i, j)] = a[AT(i - 1, j)] + a[AT(i + 1, j)] + a[AT(i, j - 1)] + a[AT(i, j + 1)] - a[AT(i, j)];",
        [],
        before="#define AT(i, j) ((i) + w * (j))\n",
    ),
    "stencil_with_clamped_edges": FeaturedKernel(
        "int c = get_global_id(0); int left = c == 0 ? c : c - 1; int right = c == n - 1 ? c : c + 1;"
        "y[c] = a[left] + a[c] + a[right];",
        [],
    ),
    "embedding": FeaturedKernel(
        "int token = b[get_group_id(0)]; for (int i = get_local_id(0); i < w; i += get_local_size(0))"
        "y[get_group_id(0) * w + i] = a[token * w + i];",
        ["row"],
        read=(FLOAT, INT),
    ),
    "rotary": FeaturedKernel(
        "int t = get_group_id(0); __global const float* angles = a + b[t] * w; int i = get_global_id(1);"
        "y[t * w + i] = c[t * w + i] * angles[i] - c[t * w + i + h] * angles[i + h];",
        [],
        read=(FLOAT, INT, FLOAT),
    ),
    "sparse_row": FeaturedKernel(
        "int row = get_global_id(0); float sum = 0;"
        "for (int k = c[row]; k < c[row + 1]; ++k) sum += a[k] * d[b[k]]; y[row] = sum;",
        [],
        read=(FLOAT, INT, INT, FLOAT),
    ),
    "histogram": FeaturedKernel(
        "int i = get_global_id(0); if (i < n) atomic_inc(&y[b[i]]);", [], read=(FLOAT, INT), written=INT
    ),
    "quantised_row": FeaturedKernel(
        "__local float s[64]; int l = get_local_id(0), row = get_group_id(0); float top = 0;"
        "for (int i = l; i < n; i += 64) top = fmax(top, fabs(a[row * n + i])); s[l] = top; barrier(1);"
        "for (int d = 32; d > 0; d >>= 1) { if (l < d) s[l] = fmax(s[l], s[l + d]); barrier(1); }"
        "for (int i = l; i < n; i += 64) y[row * n + i] = convert_char_sat_rte(a[row * n + i] / s[0]);",
        ["quantisation", "reduction", "row"],
        written=CODES,
    ),
    "dequantised": FeaturedKernel(
        "int i = get_global_id(0); y[i] = b[get_group_id(0)] * a[i];", ["quantisation"], read=(CODES, FLOAT)
    ),
    "quantised_gather": FeaturedKernel(
        "int token = b[get_group_id(0)]; for (int i = get_local_id(0); i < w; i += get_local_size(0))"
        "y[get_group_id(0) * w + i] = convert_char_sat(a[token * w + i]);",
        ["quantisation", "row"],
        read=(FLOAT, INT),
        written=CODES,
    ),
    "flags": FeaturedKernel(
        "int i = get_global_id(0); y[i] = b[i] ? 0.0f : a[i];", [], read=(FLOAT, "uint8")
    ),
}

_TYPES = {FLOAT: "float", INT: "int", CODES: "char", "uint8": "uchar"}


def featured_job(name: str) -> Job:
    """The job of one of these kernels."""
    kernel = KERNELS[name]
    inputs = dict(zip("abcd", kernel.read, strict=False))
    buffers = [*((n, t, "input") for n, t in inputs.items()), ("y", kernel.written, "output")]
    declared = [f"__global {'const ' if r == 'input' else ''}{_TYPES[t]}* {n}" for n, t, r in buffers]
    declared += ["const int n", "const int w", "const int h"]
    arguments: list[dict[str, object]] = [
        {"name": n, "dtype": t, "role": r, "shape": ["n", "n"]} for n, t, r in buffers
    ]
    arguments += [{"name": n, "dtype": "int32", "role": "scalar", "value": "n"} for n in "nwh"]
    return Job.model_validate(
        {
            "name": "featured",
            "kernel": {
                "backend": "opencl",
                "source": f"{kernel.before}__kernel void f({', '.join(declared)}) {{ {kernel.body} }}",
                "entry": "f",
                "arguments": arguments,
                "launch": {"grid": ["n // 16", "n // 16"], "block": [16, 16]},
            },
            "workloads": [{"dimensions": {"n": 64}}],
        }
    )
