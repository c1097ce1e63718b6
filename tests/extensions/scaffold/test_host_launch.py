"""Launches as host code has them: what follows from it, and what stays unknown."""

import time

import pytest

from testbed.deadlines import stretched
from warpsmith.domain.expressions import Expression
from warpsmith.extensions.scaffold.indices.index_space import BLOCK, GRID, IndexSpace
from warpsmith.extensions.scaffold.launches.host_launch import HostLaunch, host_launches, launched
from warpsmith.source.kernels.kernel_definitions import Dialect, KernelDefinition, find_kernels

KERNEL = "__global__ void k(float* x, const float* y, int rows, int cols) { x[0] = y[0]; }\n"
DEVICE = "__kernel void blur(__global float* x, int w, int h) { x[0] = w + h; }\n"


def kernel_of(text: str, dialect: Dialect = Dialect.CUDA, at: int = 0) -> KernelDefinition:
    return find_kernels(text, dialect)[at]


def launches(body: str, before: str = "", kernel: str = KERNEL) -> tuple[HostLaunch, ...]:
    """Launches in a function with the parameters `n` and `m`."""
    text = f"{kernel}{before}\nvoid run(float* x, float* y, int n, int m, cudaStream_t s) {{\n{body}\n}}\n"
    return host_launches({"a.cu": text}, kernel_of(kernel), Dialect.CUDA, {"TILE": 32})


def the_grid(expression: str, before: str = "") -> tuple[str, ...]:
    found = launches(f"k<<<{expression}, 64>>>(x, y, n, m);", before)
    return found[0].grid


def opencl(body: str, before: str = "") -> tuple[HostLaunch, ...]:
    host = f"{before}\nvoid run(int width, int height) {{\n{body}\n}}\n"
    texts = {"blur.cl": DEVICE, "main.cpp": host}
    return host_launches(texts, kernel_of(DEVICE, Dialect.OPENCL), Dialect.OPENCL, {})


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("(n + 15) / 16", "ceil_div(rows, 16)"),
        ("(n + 15) >> 4", "ceil_div(rows, 16)"),
        ("1 + (n - 1) / 16", "ceil_div(rows, 16)"),
        ("n / 16 + (n % 16 != 0)", "ceil_div(rows, 16)"),
        ("n % 16 == 0 ? n / 16 : n / 16 + 1", "ceil_div(rows, 16)"),
        ("std::ceil(n / (float) 16)", "ceil_div(rows, 16)"),
        ("(int) ceil((double) n / 16.0)", "ceil_div(rows, 16)"),
        ("ceil(n / 16)", "rows // 16"),
        ("n / 16", "rows // 16"),
        ("(n + 14) / 16", "(rows + 14) // 16"),
        ("static_cast<int>(n) * m", "rows * cols"),
        ("std::min<int>(n, 1024)", "min(rows, 1024)"),
        ("max(n, m)", "max(rows, cols)"),
        ("n < 4 ? 1 : m", "(1 if rows < 4 else cols)"),
        ("(n - m) * 2 - (m - 1)", "(rows - cols) * 2 - (cols - 1)"),
        ("cdiv(n, 16)", "ceil_div(rows, 16)"),
        ("TILE * 2", "64"),
    ],
)
def test_an_expression_names_the_kernels_arguments(written: str, meant: str) -> None:
    assert the_grid(written) == (meant,)
    Expression(meant)


@pytest.mark.parametrize(
    "written",
    [
        "blocks_for(n)",
        "props.count",
        "(n + 1.5f) / 2",
        "sqrt(n)",
        "n & m",
        "0",
        "missing",
        "n ? : 1",
        "ceil(n * 0.3)",
    ],
)
def test_what_does_not_follow_is_unknown(written: str) -> None:
    assert the_grid(written) == ()


@pytest.mark.parametrize(
    "before",
    [
        "#define BLOCKS(a, b) (((a) + (b) - 1) / (b))",
        "static inline int BLOCKS(int a, int b) { return (a % b) ? a / b + 1 : a / b; }",
        "int BLOCKS(float a, int b) { return ceil(a / b); }",
        "template <typename T> T BLOCKS(T a, T b) { return (a - 1) / b + 1; }",
    ],
)
def test_functions_and_macros_of_the_text_are_followed(before: str) -> None:
    assert the_grid("BLOCKS(n, 16)", before) == ("ceil_div(rows, 16)",)


def test_two_meanings_of_a_macro_are_none() -> None:
    two = "#ifdef A\n#define BLOCKS 4\n#else\n#define BLOCKS 8\n#endif"
    assert the_grid("BLOCKS", two) == ()
    assert the_grid("BLOCKS", "#define BLOCKS 4") == ("4",)


@pytest.mark.parametrize(
    "body",
    [
        "dim3 g((n + 31) / 32, m); dim3 b(32, 4);",
        "dim3 g, b; g.x = (n + 31) / 32; g.y = m; b.x = 32; b.y = 4;",
        "dim3 b = {32, 4}; const dim3 g{(n + b.x - 1) / b.x, (unsigned) m, 1};",
        "int t = 32; auto b = dim3(t, 4); dim3 g = dim3(ceil((float) n / t), m);",
    ],
)
def test_extents_are_followed_through_variables(body: str) -> None:
    found = launches(f"{body} k<<<g, b, 2 * b.x * sizeof(float), s>>>(x, y, n, m);")[0]
    assert (found.grid, found.block) == (("ceil_div(rows, 32)", "cols"), ("32", "4"))
    assert found.shared_bytes == "256"


@pytest.mark.parametrize(
    ("body", "grid"),
    [
        ("int g = 4; if (n > 9) g = 8;", ()),
        ("int g; if (n > 9) { g = 8; } else { g = 8; }", ("8",)),
        ("int g; if (n > 9) { g = 8; } else { g = 4; }", ()),
        ("int g = 4; for (int i = 0; i < 3; i++) g *= 2;", ()),
        ("int g = 4; g *= 2;", ("8",)),
        ("int g = 4; g++;", ()),
        ("int g = 4; query(&g);", ()),
        ("int g = 4; std::cin >> g;", ()),
        ("int g = 4; choose(g);", ()),
        ("int g = 4; cudaMemcpy(&g, x, sizeof(int), cudaMemcpyDeviceToHost);", ()),
        ("int g = 4; cudaMemcpyToSymbol(symbol, &g, sizeof(int));", ("4",)),
        ("int g = n; n = 5;", ()),
        ("n = 5; int g = n;", ("rows",)),
        ("int g = 4; { int g = 8; }", ("4",)),
        ("int g;\n#ifdef A\ng = 4;\n#else\ng = 8;\n#endif\n", ()),
        ("int g; switch (n) { case 1: g = 4; break; default: g = 8; }", ()),
    ],
)
def test_a_variable_has_the_value_that_reaches_the_launch(body: str, grid: tuple[str, ...]) -> None:
    choose = "void choose(int& g) { g = 9; }"
    assert launches(f"{body} k<<<g, 64>>>(x, y, n, m);", choose)[0].grid == grid


def test_a_loop_changes_what_was_computed_before_it() -> None:
    before = launches("int g = n; for (int i = 0; i < 3; i++) { k<<<g, 64>>>(x, y, n, i); n /= 2; }")[0]
    assert (before.grid, before.sizes) == ((), {})
    inside = launches("for (int i = 0; i < 3; i++) { int g = n; k<<<g, 64>>>(x, y, n, i); n /= 2; }")[0]
    assert inside.grid == ("rows",)


def test_arguments_may_be_expressions_and_numbers() -> None:
    found = launches("int total = n * m; const int c = 7;\nk<<<(total + 63) / 64, 64>>>(x, y, n * m, c);")[0]
    assert found.grid == ("ceil_div(rows, 64)",)
    assert (dict(found.sizes), found.line, found.origin) == ({"cols": 7}, 5, "a.cu")


def test_an_argument_that_is_only_equal_by_chance_names_nothing() -> None:
    assert launches("k<<<128, 64>>>(x, y, 128, 64);")[0].grid == ("128",)


def test_a_launch_in_a_lambda_or_a_macro_counts() -> None:
    kernel = "template <typename T, int N> __global__ void k(T* x, int rows, int cols) {}\n"
    body = "DISPATCH(t, [&] { k<scalar_t, 4><<<n, 64>>>(x, n, m); });\nLAUNCH(float, 8);"
    found = launches(body, "#define LAUNCH(T, N) \\\n  k<T, N><<<n / N, 8 * N>>>(x, n, m)", kernel)
    assert [f.template_arguments for f in found] == [("scalar_t", "4"), ("float", "8")]
    assert [(f.grid, f.block) for f in found] == [(("rows",), ("64",)), (("rows // 8",), ("64",))]


def test_a_macro_that_is_defined_anew_launches_nothing_for_sure() -> None:
    first = "#define LAUNCH k<<<n, 64>>>(x, y, n, m)"
    assert len(launches("LAUNCH;", first)) == 1
    assert launches("LAUNCH;", f"{first}\n#undef LAUNCH\n#define LAUNCH other<<<n, 64>>>(x, y, n, m)") == ()


def test_calls_of_a_runtime_launch_too() -> None:
    body = """
    hipLaunchKernelGGL((k), dim3(n, m), dim3(64), 0, s, x, y, n, m);
    void* args[] = {&x, &y, (void*) &n, &m};
    cudaLaunchKernel((void*) k, dim3(n), dim3(8, 8), args, 0, s);
    """
    assert [(f.grid, f.block) for f in launches(body)] == [
        (("rows", "cols"), ("64",)),
        (("rows",), ("8", "8")),
    ]


def test_the_launch_of_an_overload_is_not_the_kernels() -> None:
    kernels = (
        "template <typename T> __global__ void k(T* x, int n) { x[0] = n; }\n"
        "__global__ void k(half2* x, int n) { }\n"
    )
    host = (
        "void run(float* x, int n) {\n"
        "k<<<1, n / 2>>>((half2*) x, n);\n"
        "k<float><<<2, n>>>(x, n);\n"
        "k<<<3, n>>>(x, n); }"
    )
    texts = {"a.cu": kernels + host}
    grids = [
        [f.grid for f in host_launches(texts, kernel, Dialect.CUDA, {})]
        for kernel in find_kernels(kernels, Dialect.CUDA)
    ]
    assert grids == [[("2",)], [("1",)]]


def test_another_files_kernel_of_the_name_has_its_own_launches() -> None:
    other = (
        "__global__ void k(float* x, float* y, int a, long b) {}\nvoid f(int n) { k<<<n, 1>>>(x, y, n, 1); }"
    )
    run = "void run(int n) { k<<<n, 64>>>(x, y, n, 2); }"
    found = host_launches({"b.cu": other, "a.cu": KERNEL + run}, kernel_of(KERNEL), Dialect.CUDA, {})
    assert [(f.origin, f.grid) for f in found] == [("a.cu", ("rows",))]


SET = """
cl_kernel kernel = clCreateKernel(program, "blur", &err);
int a = 0;
err |= clSetKernelArg(kernel, a++, sizeof(cl_mem), &buffer);
err |= clSetKernelArg(kernel, a++, sizeof(int), (void*)&width);
err |= clSetKernelArg(kernel, a++, sizeof(int), &height);
"""


@pytest.mark.parametrize(
    "sizes",
    [
        "size_t local[2] = {16, 8}; size_t global[2] = {RoundUp(16, width), RoundUp(8, height)};",
        "size_t local[2] = {16, 8}; size_t global[2];"
        " global[0] = (width + 15) / 16 * 16; global[1] = local[1] * ((height + local[1] - 1) / local[1]);",
        "const size_t local[] = {16, 8}, global[] = {(size_t) width, (size_t) height};",
    ],
)
def test_opencl_counts_work_groups(sizes: str) -> None:
    up = "int RoundUp(int g, int n) { int r = n % g; if (r == 0) return n; return n + g - r; }"
    body = f"{SET}{sizes} clEnqueueNDRangeKernel(q, kernel, 2, NULL, global, local, 0, NULL, NULL);"
    found = opencl(body, up)[0]
    assert (found.grid, found.block) == (("ceil_div(w, 16)", "ceil_div(h, 8)"), ("16", "8"))


def test_opencl_of_another_kernel_or_without_a_local_size_is_left_out() -> None:
    other = SET.replace('"blur"', '"sharpen"')
    body = "size_t l = 64; clEnqueueNDRangeKernel(q, kernel, 1, NULL, &l, &l, 0, NULL, NULL);"
    assert opencl(other + body) == ()
    assert opencl(SET + body)[0].block == ("64",)
    assert opencl(SET + body.replace("&l, &l", "&l, NULL")) == ()


def test_opencl_arguments_count_where_they_are_set() -> None:
    body = f"{SET} width = 5; size_t l = 64, g = width * 64;"
    body += "clEnqueueNDRangeKernel(q, kernel, 1, NULL, &g, &l, 0, NULL, NULL);"
    assert opencl(body)[0].grid == ("5",)


@pytest.mark.parametrize(("call", "sizes"), [("fill(range)", {}), ("printf(text, n)", {"w": 7, "h": 8})])
def test_a_call_may_fill_an_array(call: str, sizes: dict[str, int]) -> None:
    body = f"""
    cl_kernel kernel = clCreateKernel(program, "blur", &err);
    int range[2] = {{7, 8}}; {call};
    clSetKernelArg(kernel, 1, sizeof(int), &range[0]);
    clSetKernelArg(kernel, 2, sizeof(int), &range[1]);
    size_t l = 64; clEnqueueNDRangeKernel(q, kernel, 1, NULL, &l, &l, 0, NULL, NULL);"""
    assert opencl(body)[0].sizes == sizes


def test_the_wrapper_of_opencl_is_read() -> None:
    body = """cl::Kernel blur(program, "blur");
    blur.setArg(0, buffer); blur.setArg(1, width); blur.setArg(2, 9);
    queue.enqueueNDRangeKernel(blur, cl::NullRange, cl::NDRange(width, 64), cl::NDRange(16, 16));
    """
    found = opencl(body)[0]
    assert (found.grid, found.block) == (("ceil_div(w, 16)", "4"), ("16", "16"))
    assert found.sizes == {"h": 9}


def test_facts_are_those_of_the_first_launch_that_is_known() -> None:
    body = "k<<<unknown(), 64>>>(x, y, n, 3);\nk<<<(n + 63) / 64, 64>>>(x, y, n, 3);"
    known = launched(IndexSpace(), launches(body), kernel_of(KERNEL))
    assert (known.grid, known.block) == (("ceil_div(rows, 64)",), ("64",))
    assert known.reasons[GRID] == "as a.cu line 5 launches it" and {GRID, BLOCK} <= known.sure
    assert launched(IndexSpace(), (), kernel_of(KERNEL)).grid == ()


def test_facts_name_dimensions_alone() -> None:
    kernel = "__global__ void k(float* x, int rows, int offset) { x[offset] = rows; }\n"
    run = "k<<<(n + c - 1) / c, c>>>(x, n, c);"
    assert launched(IndexSpace(), launches(run, "#define c 32", kernel), kernel_of(kernel)).block == ("32",)
    assert launched(IndexSpace(), launches(f"int c = m; {run}", "", kernel), kernel_of(kernel)).block == ()


@pytest.mark.parametrize(
    "body",
    [
        "k<<<" + "(" * 5000 + "n" + ")" * 5000 + ", 64>>>(x, y, n, m);",
        "k<<<n, 64>>>(x, y, n, m);\n" * 3000,
        "int a = n; " + "a = a + a; " * 3000 + "k<<<a, 64>>>(x, y, n, m);",
        "if (n) " * 3000 + "k<<<n, 64>>>(x, y, n, m);",
        "k<<<" * 3000,
        "{" * 3000 + "k<<<n, 64>>>(x, y, n, m);",
    ],
)
def test_hostile_code_takes_bounded_work(body: str) -> None:
    began = time.process_time()
    assert launches(body) is not None and time.process_time() - began < stretched(30)
