"""Compile options that a job may name. Anything else could read files, write them or run programs."""

import re
from collections.abc import Iterable

from warpsmith.domain.device import Backend

_PATTERNS: dict[Backend, tuple[str, ...]] = {
    Backend.CUDA: (
        r"--?use_fast_math",
        r"--?(ftz|prec-div|prec-sqrt|fmad)=(true|false)",
        r"--?std=c\+\+(11|14|17|20)",
        r"--?maxrregcount=\d{1,3}",
        r"--?extra-device-vectorization",
        r"-lineinfo",
        r"--expt-relaxed-constexpr",
        r"--expt-extended-lambda",
        r"-D[A-Za-z_]\w{0,63}(=[A-Za-z0-9_.+-]{0,64})?",
    ),
    Backend.HIP: (
        r"-ffast-math",
        r"-ffp-contract=(fast|on|off)",
        r"-fno-(fast-math|math-errno|signed-zeros)",
        r"--?std=c\+\+(11|14|17|20)",
        r"-O[123]",
        r"-D[A-Za-z_]\w{0,63}(=[A-Za-z0-9_.+-]{0,64})?",
    ),
    Backend.OPENCL: (
        r"-cl-(single-precision-constant|denorms-are-zero|fp32-correctly-rounded-divide-sqrt)",
        r"-cl-(mad-enable|no-signed-zeros|unsafe-math-optimizations|finite-math-only|fast-relaxed-math)",
        r"-cl-(opt-disable|strict-aliasing|uniform-work-group-size)",
        r"-cl-std=CL[123]\.[012]",
        r"-D[A-Za-z_]\w{0,63}(=[A-Za-z0-9_.+-]{0,64})?",
    ),
}


def refused_options(backend: Backend, options: Iterable[str]) -> dict[str, str]:
    """Options that are not on the allow-list of `backend`, each with what is allowed."""
    patterns = _PATTERNS.get(backend, ())
    allowed = ", ".join(patterns) or "none"
    return {
        option: f"not allowed; allowed are (as regular expressions): {allowed}"
        for option in options
        if not any(re.fullmatch(pattern, option) for pattern in patterns)
    }
