"""Jobs of SGLang's fused MoE kernel: the first matrix product of a layer, in half precision."""

from dataclasses import dataclass

from warpsmith.domain.jobs.job import Job
from warpsmith.extensions.exports.tables.engine_defaults import sglang_default
from warpsmith.extensions.exports.tables.engines import NEEDED, MoeShape
from warpsmith.extensions.exports.tables.model_config import MoeLayer
from warpsmith.extensions.exports.tables.moe_job import MoeWork, moe_jobs
from warpsmith.job_files.jobfile import parse_job

NUMBERS = NEEDED


@dataclass(frozen=True)
class Layer:
    """A layer's extents."""

    name: str
    experts: int
    rows: int
    """Rows of an expert's weights: twice the intermediate size on one device."""
    hidden: int
    top_k: int


def default_configuration(layer: Layer, tokens: int) -> dict[str, int]:
    """What SGLang takes for half precision without a table."""
    rule = sglang_default(layer.experts, "", None)
    assert rule is not None, "half precision has a rule"
    return {name: int(value) for name, value in rule.configuration(tokens).items()}


def moe_job(source: str, layer: Layer, tokens: int) -> Job:
    """The job of one batch size, which is one of those that engines' tables have."""
    shape = MoeShape(layer.experts, layer.rows // 2)
    work = MoeWork("sglang-config", MoeLayer(shape, layer.hidden, layer.top_k), device="")
    own = [{"dimensions": {"M": tokens}}]
    made = next(job for job in moe_jobs(work, source, "moe.py") if own[0] in job["workloads"])
    return parse_job(made | {"name": f"{layer.name}-{tokens}", "workloads": own})
