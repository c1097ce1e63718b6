"""Engines that read their configurations from a table: names of its file, its fields, its look-up."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from warpsmith.errors import InvalidInput
from warpsmith.extensions.exports.tables.engine_defaults import (
    BlockShape,
    DefaultRule,
    sglang_default,
    vllm_default,
)
from warpsmith.extensions.exports.tables.engine_options import TableOptions, triton_version
from warpsmith.http_models import JobResult

NEEDED = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "num_stages")
"""Fields of a row of a fused MoE kernel, in the order in which engines write them."""
_MOE_KEYS = {
    "batch": "M",
    "pin": "others",
    "triton": "3.6.0",
    "E": "8",
    "N": "14336",
    "dtype": "fp8_w8a8",
    "block_shape": "128,128",
}
_NO_NAME = ("bfloat16", "bf16", "float16", "fp16", "half", "none", "auto")
"""Types of weights for which engines have no word in a file's name."""


@dataclass(frozen=True)
class Engine:
    """File, rows and lookup of the tables that one engine reads."""

    title: str
    keys: Mapping[str, str]
    """Options that it takes, each with a value that would be valid."""
    place: Callable[[JobResult, TableOptions], str]
    """Path of the file, as the engine looks for it."""
    needed: tuple[str, ...] = ()
    """Fields that every row has to have."""
    known: tuple[str, ...] | None = None
    """Further fields that a row may have; None: whatever the kernel has."""
    default: Callable[[int, str, BlockShape | None], DefaultRule | None] | None = None
    """Its own default by experts, dtype and block shape; None: no rule is known here."""
    distance: Callable[[int, int], float] = lambda key, size: abs(key - size)
    """Distance of a key from a batch size. The engine takes the nearest key; of two, the file's first."""
    lookup: str = "least |key - batch|, the smaller of two"
    versioned: bool = False
    """True if the file itself has a key `triton_version`."""
    cuts_k: bool = False
    """True if the engine cuts BLOCK_SIZE_K down to the smaller side of the block shape."""


def block_shape(options: TableOptions) -> BlockShape | None:
    """The option `block_shape`, rows (N) and columns (K); None without it.

    Raises:
        InvalidInput: it is not two numbers.
    """
    found = options.numbers("block_shape")
    if not found:
        return None
    if len(found) != 2:
        raise options.problem("block_shape", f"{len(found)} numbers instead of two, rows (N) and columns (K)")
    return found[0], found[1]


def dtype_word(options: TableOptions) -> str:
    """The option `dtype`: the engine's word for quantised weights; empty without it.

    Raises:
        InvalidInput: it is a type of 16 bits, which engines leave out of the name.
    """
    found = options.word("dtype")
    if found.lower().removeprefix("torch.") in _NO_NAME:
        raise options.problem("dtype", f"{found} is not in the names of files; leave it out, or quantised")
    return found


@dataclass(frozen=True)
class MoeShape:
    """Facts in the name of a fused MoE layer's table, on one device."""

    experts: int
    size: int
    """The experts' intermediate size, after silu_and_mul."""
    dtype: str = ""
    """The engine's word for quantised weights; empty for 16 bits."""
    block_shape: BlockShape | None = None
    per_channel: bool = False
    is_down: bool = False
    """True for a table of the second product alone."""

    def file(self, engine: str, device: str) -> str:
        """Name of a table of vLLM or SGLang; the device is named as the engine names it."""
        is_vllm, words = engine == "vLLM", [f"E={self.experts}", f"N={self.size}", f"device_name={device}"]
        words += [f"dtype={self.dtype}"] if self.dtype else []
        if self.block_shape:
            words.append(
                ("block_shape=[{},{}]" if is_vllm else "block_shape=[{}, {}]").format(*self.block_shape)
            )
        if not is_vllm:
            words += ["per_channel_quant=True"] * self.per_channel
        return f"{','.join(words)}{'_down' * (self.is_down and not is_vllm)}.json"


def vllm_device(device: str) -> str:
    """The name of a device as vLLM writes it: all kinds of H200 share their tables."""
    name = re.sub(r"[\s/]+", "_", device)
    return "NVIDIA_H200" if "H200" in name.split("_") else name


def _moe_shape(options: TableOptions) -> MoeShape:
    return MoeShape(
        experts=options.number("E", "the number of experts on one device"),
        size=options.number("N", "the experts' intermediate size on one device, after silu_and_mul"),
        dtype=dtype_word(options),
        block_shape=block_shape(options),
        per_channel=options.flag("per_channel_quant"),
        is_down=options.flag("down"),
    )


def _vllm_place(result: JobResult, options: TableOptions) -> str:
    return _moe_shape(options).file("vLLM", vllm_device(result.device))


def _sglang_place(result: JobResult, options: TableOptions) -> str:
    version = triton_version(result, options) or options.needed("triton", "SGLang's folders bear its version")
    number = re.fullmatch(r"(\d+\.\d+\.\d+)(\+.*)?", version)
    if number is None:
        raise options.problem("triton", f"{version!r} is no version of Triton")
    folder = f"configs/triton_{number[1].replace('.', '_')}"
    return f"{folder}/{_moe_shape(options).file('SGLang', blanks_gone(result))}"


def _hf_place(result: JobResult, options: TableOptions) -> str:
    names = [w for w in re.split(r"[\s,]+", options.text("names")) if w] or ["N", "K"]
    words = [f"{name}={_dimension(result, options, name)}" for name in names]
    return f"configs/{','.join([*words, f'device_name={blanks_gone(result)}'])}.json"


def _dimension(result: JobResult, options: TableOptions, name: str) -> int:
    """A dimension that all workloads share, or the option of its name."""
    given = options.number(name, "") if options.takes(name) and options.text(name) else None
    own = {w.dimensions[name] for w in result.job.workloads if name in w.dimensions}
    found = own | ({given} if given is not None else set())
    if len(found) != 1:
        words = (
            f"is {' and '.join(map(str, sorted(found)))} in the job and the option"
            if found
            else ("is in the file's name, and no dimension of the job is called so")
        )
        key = name if options.takes(name) else "names"
        raise options.problem(key, f"{name} {words}")
    return found.pop()


def blanks_gone(result: JobResult) -> str:
    """The name of the device with `_` for each blank, as SGLang and the hub's kernels write it.

    Raises:
        InvalidInput: it has a slash, which they would take for a folder.
    """
    if "/" in result.device:
        raise InvalidInput(
            "--as", f"this engine takes the slash in {result.device!r} for a folder; use vllm-config"
        )
    return result.device.replace(" ", "_")


def _log_distance(key: int, size: int) -> float:
    return abs(math.log(size / key))


_HIP = ("waves_per_eu", "matrix_instr_nonkdim", "kpack")
ENGINES: dict[str, Engine] = {
    "vllm-config": Engine(
        title="vLLM",
        keys=_MOE_KEYS,
        place=_vllm_place,
        needed=NEEDED,
        known=_HIP,
        default=vllm_default,
        versioned=True,
        cuts_k=True,
    ),
    "sglang-config": Engine(
        title="SGLang",
        keys=_MOE_KEYS | {"per_channel_quant": "true", "down": "true"},
        place=_sglang_place,
        needed=NEEDED,
        known=(*_HIP, "USE_TMA"),
        default=sglang_default,
    ),
    "hf-config": Engine(
        title="a kernel of the Hugging Face hub",
        keys={"batch": "M", "pin": '{"1": {"BLOCK_SIZE_M": 16}}', "names": "N,K", "N": "4096", "K": "4096"},
        place=_hf_place,
        distance=_log_distance,
        lookup="least |log(batch / key)|, the first in the file of two",
    ),
}
"""By name of the format."""
