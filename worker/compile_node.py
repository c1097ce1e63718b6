"""A compile node: compiles kernels for device workers that have no free compiler."""

import logging
import os
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from db.repositories.remote_compilations import CompilationRepository, CompilationRequest
from db.repositories.workers import WorkerRepository
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.templates.outcome import Rejected
from worker.device.compile_cache import pack
from worker.device.device_setup import compile_pool
from worker.device.pool_environment import COMPILE_DEVICES, DEVICES
from worker.device.process_context import Context

if TYPE_CHECKING:
    from warpsmith.sandbox import CompilePool

log = logging.getLogger(__name__)


def answer(context: Context, key: str) -> bool:
    """Compile the announced kernel if it is still requested; False if it is not."""
    return _compile(context, lambda compilations: compilations.take(key, context.worker_id))


def run_next(context: Context, queue: str) -> bool:
    """Compile the kernel that has waited longest; False if none waits."""
    return _compile(context, lambda compilations: compilations.take_next(queue, context.worker_id))


def _compile(context: Context, take: Callable[[CompilationRepository], CompilationRequest | None]) -> bool:
    with context.database.write() as session:
        if WorkerRepository(session).is_stopping(context.worker_id):
            return False
        wanted = take(CompilationRepository(session))
    if wanted is None:
        return False
    device = wanted.device
    if not device.backend.language.compiles_anywhere:
        # The platform compiles for the device by its local number.
        same = (d for d in _devices() if d.device_class == device.device_class)
        device = next(same, device)
    compiled = _compiler(context).submit(wanted.kernel, device).result()
    if isinstance(compiled, Rejected):
        log.info("no binary for %s: %s", wanted.key[:12], compiled.reason)
    with context.database.write() as session:
        artifact = None if isinstance(compiled, Rejected) else pack(compiled)
        CompilationRepository(session).finish(wanted.key, context.worker_id, artifact)
    return True


_compilers: dict[int, "CompilePool"] = {}


def _compiler(context: Context) -> "CompilePool":
    """Compile child of this process of the pool, started once."""
    pid = os.getpid()
    if pid not in _compilers:
        _compilers.clear()
        _compilers[pid] = compile_pool(context.settings, 1)
    return _compilers[pid]


@lru_cache
def _devices() -> tuple[DeviceInfo, ...]:
    return DEVICES.validate_json(os.environ.get(COMPILE_DEVICES, "[]"))
