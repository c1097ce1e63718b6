"""Mistakes that people make in their first job, each a change of one job that is right."""

from dataclasses import dataclass

SOURCE_NAME = "addk.cl"
SOURCE = """\
__kernel void addk(__global const float *a, __global const float *b, __global float *y, const int n)
{
    const int i = get_global_id(0);
    if (i < n) {
        y[i] = a[i] + 2.0f * b[i];
    }
}
"""
JOB = """\
name: addk
kernel:
  backend: opencl
  source_file: addk.cl
  entry: addk
  options: []
  arguments:
    - {name: a, dtype: float32, role: input, shape: [n]}
    - {name: b, dtype: float32, role: input, shape: [n]}
    - {name: y, dtype: float32, role: output, shape: [n]}
    - {name: n, dtype: int32, role: scalar, value: n}
  launch: {grid: ["ceil_div(n, 64)"], block: [64]}
workloads:
  - dimensions: {n: 100000}
reference:
  kind: numpy
  source: |
    def reference(inputs, dims):
        total = inputs["a"] + 2.0 * inputs["b"]
        return {"y": total}
tolerances:
  y: {rtol: 1.0e-4, atol: 1.0e-5}
budget: {trials: 20, seconds: 30}
"""


@dataclass(frozen=True)
class Mistake:
    """One mistake and what is said of it."""

    title: str
    old: str = ""
    """Text of the job that is replaced; empty: `new` is the whole file."""
    new: str = ""
    says: str = ""
    """A part of the message."""
    at: str = ""
    """Text of the line that the message names; empty: the first line."""
    compiles: bool = False
    """True if only `validate --compile` sees it."""
    in_source: bool = False
    """The change is one of the kernel's source."""
    is_error: bool = True

    def job(self) -> str:
        """The job file with the mistake."""
        if self.in_source:
            return JOB
        return self._changed(JOB) if self.old else self.new

    def source(self) -> str:
        """The kernel with the mistake."""
        return self._changed(SOURCE) if self.in_source else SOURCE

    def line(self) -> int:
        """The line that the message names, from 1."""
        return self.job()[: self.job().index(self.at)].count("\n") + 1

    def _changed(self, text: str) -> str:
        if text.count(self.old) != 1:
            raise ValueError(f"{self.title}: {self.old!r} must be there once")
        return text.replace(self.old, self.new)


_TOTAL = '        total = inputs["a"] + 2.0 * inputs["b"]\n'
_RETURN = '        return {"y": total}\n'
_DOUBLED = "n, dtype: int32, role: scalar, value: n}\n"
_B = "    - {name: b, dtype: float32, role: input, shape: [n]}\n"
_Y = "    - {name: y, dtype: float32, role: output, shape: [n]}\n"
_STORE = "y[i] = a[i] + 2.0f * b[i];"

MISTAKES = (
    Mistake(
        "a misspelt field (`worklods`)", "workloads:", "worklods:", "did you mean 'workloads'?", "worklods"
    ),
    Mistake(
        "a misspelt field of an argument (`rol`)",
        "{name: a, dtype: float32, role:",
        "{name: a, dtype: float32, rol:",
        "did you mean 'role'?",
        "rol:",
    ),
    Mistake(
        "`[n, 2]` for a vector",
        "role: output, shape: [n]",
        "role: output, shape: [n, 2]",
        "'y' has shape",
        "  source: |",
    ),
    Mistake(
        "an unknown dimension",
        "role: output, shape: [n]",
        "role: output, shape: [m]",
        "unknown name 'm' (known: n",
        "shape: [m]",
    ),
    Mistake(
        "float16 for a `float *`",
        "{name: y, dtype: float32",
        "{name: y, dtype: float16",
        "argument y is float16 here, and float32 in the kernel",
        "float16",
    ),
    Mistake(
        "`fp32`",
        "{name: b, dtype: float32",
        "{name: b, dtype: fp32",
        "argument b: 'fp32': did you mean 'float32'?",
        "fp32",
    ),
    Mistake(
        "a missing brace",
        "    }\n}",
        "    }\n",
        "'{' in line 2 is never closed",
        "source_file",
        in_source=True,
    ),
    Mistake("a reference that raises", _TOTAL, '        total = xx["a"]\n', "'xx' is not defined", "xx["),
    Mistake(
        "a reference with a syntax error",
        _RETURN,
        '        return {"y": total\n',
        "'{' was never closed",
        '{"y": total\n',
    ),
    Mistake(
        "a reference that returns another name",
        _RETURN,
        '        return {"out": total}\n',
        "the function returned no 'y'",
        'return {"out"',
    ),
    Mistake(
        "a reference that returns an array",
        _RETURN,
        "        return total\n",
        "returned ndarray, not a dict of arrays",
        "  source: |",
    ),
    Mistake(
        "tolerances of 0",
        "rtol: 1.0e-4, atol: 1.0e-5",
        "rtol: 0, atol: 0",
        "rtol and atol are 0",
        "rtol: 0",
        is_error=False,
    ),
    Mistake("24 GB of buffers on a smaller device", "{n: 100000}", "{n: 2000000000}", "24 GB", "2000000000"),
    Mistake("800 GB of buffers", "{n: 100000}", "{n: 66666666667}", "800 GB", "66666666667"),
    Mistake(
        "a budget of no seconds",
        "seconds: 30",
        "seconds: 0",
        "budget.seconds: Input should be greater than 0",
        "seconds: 0",
    ),
    Mistake(
        "a budget of no trials",
        "trials: 20",
        "trials: 0",
        "budget.trials: Input should be greater than or equal to 1",
        "trials: 0",
    ),
    Mistake(
        "an unknown back end",
        "backend: opencl",
        "backend: metal",
        "Input should be 'cuda', 'opencl'",
        "metal",
    ),
    Mistake(
        "an option of CUDA's compiler",
        "options: []",
        "options: [--use_fast_math]",
        "'--use_fast_math' not allowed",
        "--use_fast_math",
    ),
    Mistake(
        "CUDA on a machine without it",
        "backend: opencl",
        "backend: cuda",
        "`tune` cannot run it here: cuda",
        "cuda",
        is_error=False,
    ),
    Mistake(
        "a file that is no YAML", "  entry: addk\n", "  entry: [addk\n", "expected ',' or ']'", "  options"
    ),
    Mistake("a binary file", new="\x7fELF\x02\x01\x01\x00\x00job", says="is not allowed in YAML"),
    Mistake("an empty file", new="", says="is empty; it must hold a mapping"),
    Mistake(
        "a list", new="- name: addk\n- kernel: addk.cl\n", says="must hold a mapping with the fields of a job"
    ),
    Mistake(
        "NaN where a number is wanted",
        _STORE,
        "y[i] = i == 500 ? NAN : a[i] + 2.0f * b[i];",
        "the kernel gives NaN or infinity in 1 of 100000 elements",
        "  source: |",
        compiles=True,
        in_source=True,
    ),
    Mistake(
        "the last ten elements unwritten",
        "if (i < n)",
        "if (i < n - 10)",
        "10 of 100000 elements were never written, the first is element 99990",
        "launch:",
        compiles=True,
        in_source=True,
    ),
    Mistake(
        "a wrong entry",
        "  entry: addk",
        "  entry: add",
        "no kernel 'add' in the source; found addk; did you mean 'addk'?",
        "  entry: add",
    ),
    Mistake("a block of 8192", "block: [64]", "block: [8192]", "block x is 8192; ", "block: [8192]"),
    Mistake(
        "two arguments swapped", _B + _Y, _Y + _B, "y stands at place 2, where the kernel takes b", "{name: y"
    ),
    Mistake(
        "an argument left out",
        "    - {name: " + _DOUBLED,
        "",
        "lists 3; addk takes 4 (a, b, y, n), line 1 of the source; missing: n",
        "  arguments:",
    ),
    Mistake(
        "an option that is not allowed",
        "options: []",
        "options: [-I/x]",
        "'-I/x' not allowed; allowed are",
        "options: [-I/x]",
    ),
    Mistake(
        "a source file that is not there",
        "source_file: addk.cl",
        "source_file: adk.cl",
        "no such file: ",
        "adk.cl",
    ),
    Mistake(
        "a constraint that nothing meets",
        "workloads:",
        "parameters: [{name: SIZE, values: [64]}]\nconstraints:\n  - expression: SIZE > 9999\nworkloads:",
        "no configuration meets it on any workload: SIZE > 9999",
        "  - expression",
    ),
    Mistake(
        "a parameter that nothing uses",
        "workloads:",
        "parameters:\n  - {name: UNUSED, values: [1, 2, 3]}\nworkloads:",
        "UNUSED is in neither the source nor the launch nor a constraint",
        "  - {name: UNUSED",
        is_error=False,
    ),
    Mistake(
        "a section twice",
        "budget: {trials: 20, seconds: 30}\n",
        "budget: {trials: 20, seconds: 30}\nbudget:  {trials: 40, seconds: 60}\n",
        "budget stands in lines 23 and 24",
        "budget:  {",
    ),
    Mistake(
        "a grid that drops a remainder",
        "ceil_div(n, 64)",
        "n // 64",
        "n // 64 drops a remainder: 32 of 100000 are left to no block",
        "launch:",
        is_error=False,
    ),
    Mistake(
        "a reference without a factor",
        'total = inputs["a"] + 2.0 * inputs["b"]',
        'total = 3.0 * (inputs["a"] + 2.0 * inputs["b"])',
        "the kernel's result is 1/3 times the reference's everywhere",
        "  source: |",
        compiles=True,
    ),
    Mistake(
        "a reference that gives NaN",
        "2.0 * inputs",
        "float('nan') * inputs",
        "y is NaN in 100000 and infinite in 0 of 100000 elements",
        "name: a,",
        compiles=True,
    ),
)
"""In the order of the record."""
