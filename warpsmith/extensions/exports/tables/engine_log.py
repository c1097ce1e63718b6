"""Tables that engines asked for and did not find, read from their logs. Pure."""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_MARKUP = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|</?(?:font|b|span|i)\b[^>]*>")
"""Colours of a terminal, and of a log that was pasted into a page."""
# A terminal may break a line anywhere, so breaks are taken out and blanks may be missing.
_PATH = r"\[?\s*['\"]?(?P<{}>[^'\"\s][^'\"]{{0,600}}?\.json)"
_MISS = re.compile(r"Config\s*file\s*not\s*found\s*at\s*" + _PATH.format("path"))
_USED = re.compile(
    r"\s*['\"]?\]?\.\s*Fallback\s*to\s*triton\s*version\s*(?P<version>\d[\d.]*\d)\s*and\s*use\s*MoE\s*kernel"
)
_AITER = re.compile(
    r"shape\s*is\s*M:(?P<M>\d+),\s*N:(?P<N>\d+),\s*K:(?P<K>\d+)(?P<more>.{0,300}?)\s*,?\s*"
    r"not\s*found\s*tuned\s*config\s*in\s*(?P<path>\S{1,300}?\.csv)"
)
_FACT = re.compile(r"(\w+)=(\[[^\]]*\]|[^,]+)")
_NAME = re.compile(r"(?:E=\d+,)?N=\d+,(?:K=\d+,)?device_name=")
_FOLDER = re.compile(r"triton_(\d+(?:_\d+)+)/?\Z")
_SIZES = (
    re.compile(r"Capture cuda graph bs \[([\d,\s]+)\]"),
    re.compile(r"cuda_?graph_(?:capture_sizes|bs|sizes)['\"]?\s*[=:]\s*\[([\d,\s]+)\]"),
)
_MOST = re.compile(r"(?:max_num_batched_tokens|chunked_prefill_size)['\"]?\s*[=:]\s*(\d+)")


@dataclass(frozen=True)
class LogPlace:
    """A layer's table, as an engine names it."""

    engine: str
    kernel: str
    facts: tuple[tuple[str, str], ...]
    """Parts of the file's name in its order, such as `E`, `N`, `device_name`, `dtype`, `block_shape`."""
    triton: str = ""
    """Version of Triton in the path; empty: none is there."""

    @property
    def layer(self) -> str:
        """The name's parts without the device, such as `E=16,N=1536`."""
        return ",".join(f"{name}={value}" for name, value in self.facts if name != "device_name")

    @property
    def device(self) -> str:
        """The device as the engine writes it; empty if the name has none."""
        return dict(self.facts).get("device_name", "")


@dataclass
class MissingTable:
    """A table that was looked for and not found."""

    place: LogPlace
    file: str
    """The file's name."""
    lines: int = 0
    """Lines that say so; every rank has its own."""
    runs: str = "the engine's default"
    """Configurations that the engine took instead."""
    sizes: set[int] = field(default_factory=set)
    """Batch sizes that the lines themselves name."""
    hidden: int = 0
    """The model's hidden size; 0, here and below: no log says it."""
    chosen: int = 0
    """Experts of a token."""
    layers: int = 0
    """Hidden layers of the model."""


@dataclass(frozen=True)
class EngineLog:
    """Reading of a log."""

    missing: tuple[MissingTable, ...]
    """In the order of their first lines."""
    sizes: tuple[int, ...]
    """Batch sizes of captured graphs and the most tokens of a batch, ascending; empty if the log has none."""


def read_log(text: str) -> EngineLog:
    """Read the log of vLLM, SGLang or AITER: the lines of any number of ranks, wrapped or coloured."""
    plain = _MARKUP.sub("", html.unescape(text).replace("\r", ""))
    whole = plain.replace("\n", "")
    found: dict[tuple[LogPlace, str], MissingTable] = {}
    for place, file, runs, size in (*_json_misses(whole), *_aiter_misses(whole)):
        row = found.setdefault((place, file), MissingTable(place, file))
        row.lines += 1
        row.runs = runs or row.runs
        row.sizes |= {size} if size else set()
    listed = [m[1] for pattern in _SIZES for m in pattern.finditer(plain)]
    sizes = {int(n) for numbers in listed for n in re.findall(r"\d+", numbers)}
    sizes |= {int(m[1]) for m in _MOST.finditer(plain)}
    return EngineLog(tuple(found.values()), tuple(sorted(sizes)))


def _json_misses(text: str) -> Iterator[tuple[LogPlace, str, str, int]]:
    for miss in _MISS.finditer(text):
        folder, _, file = miss["path"].rpartition("/")
        if not _NAME.match(file):
            continue
        used = _USED.match(text, miss.end())
        runs = f"the table of triton {used['version']}" if used else ""
        yield _place(folder, file), file, runs, 0


def _place(folder: str, file: str) -> LogPlace:
    stem = file.removesuffix(".json")
    down = stem.endswith("_down")
    facts = tuple((name, value) for name, value in _FACT.findall(stem.removesuffix("_down")))
    versions = _FOLDER.search(folder)
    is_sglang = "sglang" in folder or versions is not None or "block_shape=[128, 128]" in file
    is_moe = facts[0][0] == "E"
    kernel = f"fused MoE{', down projection' if down else ''}" if is_moe else "fp8 GEMM, scaled by blocks"
    return LogPlace(
        engine="SGLang" if is_sglang else "vLLM",
        kernel=kernel,
        facts=facts,
        triton=versions[1].replace("_", ".") if versions else "",
    )


def _aiter_misses(text: str) -> Iterator[tuple[LogPlace, str, str, int]]:
    for miss in _AITER.finditer(text):
        facts: dict[str, str] = {"N": miss["N"], "K": miss["K"]}
        dtype = re.search(r"\bdtype='?(?:torch\.)?(\w+)", miss["more"])
        facts |= {"dtype": dtype[1]} if dtype else {}
        file = miss["path"].rpartition("/")[2]
        kernel = file.removesuffix(".csv").replace("_tuned_gemm", "") + " GEMM"
        yield LogPlace("AITER", kernel, tuple(facts.items())), file, "", int(miss["M"])
