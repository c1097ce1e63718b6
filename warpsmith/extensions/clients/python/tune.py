"""`warpsmith.tune`: tunes a kernel in one call."""

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Never

from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Budget, Job, Reference
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.state import JobState
from warpsmith.errors import InvalidInput, Unavailable
from warpsmith.extensions.clients.client import Client
from warpsmith.extensions.clients.python.embedded import kept_service, submit_or_resume
from warpsmith.extensions.clients.python.job_of import TuneCall, job_of
from warpsmith.extensions.clients.python.job_parts import (
    Constraints,
    Extents,
    GivenTolerance,
    Parameters,
    Workloads,
)
from warpsmith.extensions.clients.python.kernel_given import GivenKernel
from warpsmith.extensions.clients.python.progress import Progress, shown
from warpsmith.extensions.clients.python.result import Result
from warpsmith.extras import advice
from warpsmith.settings import settings

_OTHER_NAMES = """
constraints restrictions restrict; seconds timeout time_limit; trials max_fevals n_trials iterations;
parameters tune_params params configs; reference answer verify expected; tolerances atol rtol tolerance;
workloads dims dimensions shapes sizes problem_size; arguments args inputs; block block_size threads;
grid global_size blocks; entry kernel_name function; kernel kernel_source source job; backend lang device;
options compiler_options flags; progress verbose quiet on_status callback; fields objective rewrite labels
"""
_MEANT = {other: names.split()[0] for names in _OTHER_NAMES.split(";") for other in names.split()[1:]}
"""Parameters of `tune` by the names that other tuners have for them."""


def tune(
    kernel: GivenKernel,
    arguments: Sequence[Any] | Mapping[str, Any] | None = None,
    workloads: Workloads | None = None,
    *,
    grid: Extents | None = None,
    block: Extents | None = None,
    launch: Launch | Mapping[str, Any] | None = None,
    entry: str | None = None,
    backend: Backend | str | None = None,
    reference: Callable[..., Any] | str | Mapping[str, Any] | Reference | None = None,
    tolerances: Mapping[str, GivenTolerance] | None = None,
    parameters: Parameters = (),
    constraints: Constraints = (),
    options: Sequence[str] = (),
    include_dirs: Sequence[str | Path] = (),
    name: str | None = None,
    budget: Budget | Mapping[str, Any] | None = None,
    seconds: float | None = None,
    trials: int | None = None,
    rounds: int | None = None,
    fields: Mapping[str, Any] | None = None,
    checks: bool = True,
    progress: Progress = "auto",
    data_dir: str | Path | None = None,
    url: str | None = None,
    key: str | None = None,
    **unknown: Never,
) -> Result:
    """Tune a kernel on this machine, or on a service, and wait for the result.

    A call that was interrupted (Ctrl-C) has ended everything that it started; the same call goes on. A job
    that failed or was cancelled has a result, too, and a warning says why.

    Args:
        kernel: path of a source (`.cl`, `.cu`) or its text; or a whole job, of which only name and budget can
            then be changed: a path (`.yaml`, `.json`), a mapping in the job form, or a `Job`.
        arguments: the kernel's arguments, in its order or by name. Arrays (NumPy, torch, CuPy) are examples
            of shape, type and values; numbers are passed by value. Text is an expression over dimensions. A
            mapping has fields of the job form, and perhaps an array as `example` for the others.
        workloads: dimensions by name, or several of these; the arrays have the sizes of the first. Default:
            the whole numbers among the arguments that are sizes.
        grid: blocks (work-groups) along x, y, z: numbers, expressions such as `"ceil_div(n, 64)"`, or a
            function of the configuration that returns them, which is read and not called.
        block: threads (work-items) of a block along x, y, z.
        launch: instead of grid and block, with whatever else the job form's `launch` has.
        entry: name of the kernel if the source has several; with template arguments in CUDA.
        backend: `cuda` or `opencl`, if neither the file's ending nor the text says it.
        reference: a function of NumPy, or its text, that computes what is right; see docs/python.md. Default:
            the kernel itself.
        tolerances: `(rtol, atol)` by output, or a mapping that has `share` and `within` too.
        parameters: your own tunables: macros of the source with their values, the default first.
        constraints: expressions that every configuration meets, or functions of one that are read as such;
            one alone needs no list.
        options: compile options.
        include_dirs: folders that are searched for headers.
        name: name of the job. Default: the kernel's.
        budget: what may be spent; `seconds`, `trials` and `rounds` are parts of it.
        seconds: limit on the device's time. Default: 60, if the budget has none.
        trials: limit on the configurations that are tried.
        rounds: limit on the rounds.
        fields: further fields of the job form, such as `objective`, `rewrite` or `labels`; those of `kernel`
            under that name.
        checks: compare the job with its source first.
        progress: `"auto"`, False for none, or a function that is given every `JobStatus`.
        data_dir: folder of the service's database on this machine. Default: `.warpsmith`, or
            `WARPSMITH_DATA_DIR`.
        url: address of a running service. Default: one is started on this machine for the call.
        key: API key of that service. Default: `WARPSMITH_API_KEY`.

    Raises:
        InvalidInput: an argument is wrong; the message names it and the fix.
        Unavailable: an extra of this package or the service is missing.
    """
    for other in unknown:
        raise _unknown(other)
    call = TuneCall(
        kernel,
        arguments,
        workloads,
        grid=grid,
        block=block,
        launch=launch,
        entry=entry,
        backend=backend,
        reference=reference,
        tolerances=tolerances or {},
        parameters=parameters,
        constraints=constraints,
        options=options,
        include_dirs=include_dirs,
        name=name,
        budget=budget,
        seconds=seconds,
        trials=trials,
        rounds=rounds,
        fields=fields or {},
        checks=checks,
    )
    job = job_of(call)
    with _service(job, url, key, data_dir) as client, shown(progress) as show:
        status = client.wait(submit_or_resume(client, job).id, show)
        result = client.result_of(status.id)
    if status.state is not JobState.DONE:
        warnings.warn(f"the job has {status.state.value}: {status.detail}", stacklevel=2)
    return result


def _unknown(given: str) -> InvalidInput:
    own = tuple(inspect.signature(tune).parameters)[:-1]
    near = get_close_matches(given, [*own, *_MEANT], n=1)
    if not near:
        return InvalidInput(given, f"tune has no such argument; it has {', '.join(own)}")
    return InvalidInput(given, f"tune has no such argument; give {_MEANT.get(near[0], near[0])}")


def _service(
    job: Job, url: str | None, key: str | None, data_dir: str | Path | None
) -> AbstractContextManager[Client]:
    current = settings()
    own_key = current.api_key_text if key is None else key
    if url is not None:
        return Client(url, own_key)
    _require_library(job.kernel.backend)
    return kept_service(current.data_dir if data_dir is None else Path(data_dir), own_key)


def _require_library(backend: Backend) -> None:
    libraries = backend.language.libraries
    if libraries and not any(map(find_spec, libraries)):
        lacking = " or ".join(f"{name} ({advice(name)})" for name in libraries)
        raise Unavailable(f"{backend.value}: {lacking} is missing; or give a service's url")
