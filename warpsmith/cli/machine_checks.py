"""Checks of devices, compilers, sandbox and profiler. Drivers and compilers are asked in child processes."""

import shutil
from collections.abc import Callable, Iterator, Sequence

from warpsmith.cli.diagnosis import Check, missing, not_used, ok
from warpsmith.cli.hip_words import HIP_ON_NVIDIA, NOT_ON_AMD
from warpsmith.device_checks.compile_check import check_compilation
from warpsmith.device_checks.launch_check import launch_check
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.job import Job
from warpsmith.errors import ChildDied, WarpsmithError
from warpsmith.extras import advice
from warpsmith.sandbox.confinement.confine import landlock_abi
from warpsmith.sandbox.hosts.device_host import Probe, probe_devices, probed_backends
from warpsmith.sandbox.hosts.ncu_host import find_ncu
from warpsmith.settings import Settings

POCL = "Portable Computing Language"
C_COMPILERS = ("cc", "gcc", "clang")
ARCH = "sm_90"
"""CUDA architecture to compile for where there is no GPU."""
_TWICE = """{head} twice({memory}const float* x, {memory}float* y, const int n) {{
    int i = {index};
    if (i < n) y[i] = 2.0f * x[i];
}}
"""

Ask = Callable[[Sequence[Backend]], Probe]


def machine_checks(settings: Settings, ask: Ask = probe_devices) -> Iterator[Check]:
    """Everything about this machine.

    Args:
        ask: looks for devices of back ends; see `probe_devices`.
    """
    devices: list[DeviceInfo] = []
    for backend in probed_backends():
        found, lacking = _devices(backend, ask)
        devices += found
        yield from (_launched(device, settings) for device in found)
        if not found:
            yield _absent(backend, lacking, devices)
    yield _nvrtc(devices, settings)
    yield _nvcc()
    yield from _pocl(devices)
    yield _landlock()
    yield _profiler(devices, settings)


def _absent(backend: Backend, lacking: str, devices: Sequence[DeviceInfo]) -> Check:
    """The check of a back end without devices of its own; others of this machine may run its kernels."""
    check: Callable[[str, str, str], Check] = missing
    if backend is Backend.HIP:
        lacking += f"; {HIP_ON_NVIDIA}; {NOT_ON_AMD}"
        check = not_used if any(d.backend in backend.runs_on for d in devices) else missing
    return check(f"{backend.value} device", lacking, _remedy(backend))


def _remedy(backend: Backend) -> str:
    return backend.language.remedy.format(advice=advice(backend.language.libraries[-1]))


def small_job(backend: Backend, compiler: str = "auto") -> Job:
    """A job whose kernel doubles 1000 numbers."""
    return Job.model_validate(
        {
            "name": "doctor",
            "kernel": {
                "backend": backend.value,
                "source": _TWICE.format(
                    head=backend.language.kernel_head,
                    memory=backend.language.global_word,
                    index=backend.language.global_index,
                ),
                "entry": "twice",
                "compiler": compiler,
                "arguments": [
                    {"name": "x", "dtype": "float32", "role": "input", "shape": ["n"]},
                    {"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]},
                    {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
                ],
                "launch": {"grid": ["ceil_div(n, 64)"], "block": [64]},
            },
            "workloads": [{"dimensions": {"n": 1000}}],
            "reference": {
                "kind": "numpy",
                "source": "def reference(inputs, dims):\n    return {'y': 2.0 * inputs['x']}\n",
            },
        }
    )


def _devices(backend: Backend, ask: Ask) -> tuple[Sequence[DeviceInfo], str]:
    """Devices of a back end, or the reason why there is none."""
    try:
        probe = ask((backend,))
    except ChildDied as exc:
        return (), f"the process that asked the driver ended ({exc})"
    lacking = probe.unavailable.get(backend.value, "the driver knows no device")
    return probe.devices, lacking.removeprefix(f"{backend.value}: ")


def _launched(device: DeviceInfo, settings: Settings) -> Check:
    """The check of a device: a kernel is compiled, launched and compared with its reference."""
    name = device.backend.value
    words = f"{device.name}, driver {device.driver}, {device.architecture}"
    try:
        findings = list(launch_check(small_job(device.backend), device, settings))
    except WarpsmithError as exc:
        said = str(exc)
    else:
        said = "; ".join(finding.message for finding in findings)
    if said:
        words = f"{words}; a kernel of two lines fails: {said[:500]}"
        return missing(f"{name} device", words, _remedy(device.backend))
    title = "OpenCL" if device.backend.language.is_opencl_c else name.upper()
    tunes = f"{title} on {'the CPU' if device.shares_host else device.name}"
    return ok(f"{name} device", f"{words}; ran a kernel", tunes)


def _nvrtc(devices: Sequence[DeviceInfo], settings: Settings) -> Check:
    own = [d for d in devices if d.backend.language.compiles_anywhere]
    found = check_compilation(small_job(Backend.CUDA, "nvrtc"), None, own, "", settings, ARCH)
    if found.note:
        return ok("NVRTC", found.note)
    said = "; ".join(finding.message for finding in found.findings)[:500]
    return missing("NVRTC", "NVRTC is not installed" if "NVRTC is missing" in said else said, advice("cuda"))


def _nvcc() -> Check:
    from warpsmith.backends.cuda.toolkit import find_nvcc

    program = find_nvcc()
    if program is not None:
        return ok("nvcc", str(program))
    fix = "install the CUDA toolkit; CUDA_HOME names its folder"
    return not_used("nvcc", "only CUDA sources that NVRTC cannot read need it", fix)


def _pocl(devices: Sequence[DeviceInfo]) -> Iterator[Check]:
    """PoCL, and the host's compiler, with which it links kernels."""
    check: Callable[[str, str, str], Check]
    linker = next((path for name in C_COMPILERS if (path := shutil.which(name))), None)
    if any(POCL in d.driver for d in devices):
        yield ok("PoCL", "OpenCL on the host's cores")
        check, detail = missing, "PoCL links kernels with it"
    else:
        yield missing("PoCL", "no OpenCL on the host's cores", advice("pyopencl"))
        check, detail = not_used, "only PoCL and nvcc need it"
    yield ok("C compiler", linker) if linker else check("C compiler", detail, "install the package gcc")


def _landlock() -> Check:
    abi = landlock_abi()
    if abi > 0:
        return ok("sandbox", f"Landlock, version {abi}")
    fix = "Linux 5.13 or later with Landlock; in a container, a seccomp profile that lets it through"
    return missing("sandbox", "no Landlock: kernels and references may read what this user may read", fix)


def _profiler(devices: Sequence[DeviceInfo], settings: Settings) -> Check:
    program = find_ncu()
    where = "not installed" if program is None else str(program)
    if not settings.ncu or not any(d.backend.language.has_nvidia_tools for d in devices):
        fix = "" if settings.ncu else "WARPSMITH_NCU=true profiles the kernels of CUDA jobs"
        return not_used("Nsight Compute", where, fix)
    if program is None:
        return missing("Nsight Compute", where, "install the CUDA toolkit, which has ncu")
    return ok("Nsight Compute", where)
