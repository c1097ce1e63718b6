"""The compile child: imports the compiler once, then forks one throw-away process per request.

The parent process never looks at the request. The fork confines itself, compiles, writes the reply and ends,
so that no state, file or fault of one source can affect the next. A child for Triton serves one request: what
its fork runs is Python of the user, and the channel is in its reach.
"""

import os
import shutil
import signal
import tempfile
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from warpsmith.backends.base import CompileRequest, KernelEntry, RefusedEveryWay
from warpsmith.backends.opencl.compile import POCL_CACHE
from warpsmith.backends.registry import backend_module
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.by_value_plan import ParameterSlot
from warpsmith.domain.kernels.headers import SENT, path_problem
from warpsmith.domain.kernels.specialisation import Specialisation
from warpsmith.domain.templates.outcome import MAX_LOG_CHARACTERS, Rejected, Stage
from warpsmith.domain.templates.template import ExpectedLaunch
from warpsmith.processes.parent_death import die_with_parent
from warpsmith.sandbox.children.process_count import MOST_PROCESSES, wait_for
from warpsmith.sandbox.confinement.confine import Confinement, confine, memory_limit
from warpsmith.sandbox.confinement.toolkit_folders import toolkit_folders
from warpsmith.sandbox.transport.child import take_channel
from warpsmith.sandbox.transport.frames import Channel
from warpsmith.sandbox.transport.process import system_paths

FILE_BYTES = 256 << 20


def main(argument: dict[str, Any]) -> None:
    """Serve compile requests until the parent closes the pipe."""
    channel = take_channel()
    backend = Backend(argument["backend"])
    module = backend_module(backend)
    warm = getattr(module, "import_compiler", None)
    if warm is not None:
        warm()
    private = Path(argument["private"])
    while True:
        header, blobs = channel.receive()
        folder = Path(tempfile.mkdtemp(dir=private))
        pid = os.fork()
        if pid == 0:
            try:
                _serve(channel, header, [bytes(blob) for blob in blobs], folder, argument)
            finally:
                traceback.print_exc()
                os._exit(1)
        status = wait_for(pid, partial(_end_with_all, channel))
        shutil.rmtree(folder, ignore_errors=True)
        if status != 0:
            how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "an error of its own"
            channel.send({"crashed": f"the compiler was ended by {how}"})
        if backend.language.runs_source:
            return  # its source ran in the fork, which may have left a process behind that holds the channel


def _end_with_all(channel: Channel) -> None:
    """Kill the whole group, this process too: what forks without end cannot be ended one by one."""
    channel.send({"crashed": f"the compiler started more than {MOST_PROCESSES} processes"})
    os.killpg(0, signal.SIGKILL)


def _write_headers(folder: Path, files: dict[str, bytes]) -> Path:
    """Write the headers of a kernel to its private folder.

    Raises:
        ValueError: a path leads out of the folder.
    """
    for path, text in files.items():
        if path_problem(path):
            raise ValueError(f"{path!r} {path_problem(path)}")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text)
    return folder


def _parameters(fields: dict[str, Any]) -> tuple[ParameterSlot, ...]:
    return tuple(ParameterSlot(*p) for p in fields["parameters"])


def _serve(
    channel: Channel, header: dict[str, Any], texts: list[bytes], folder: Path, argument: dict[str, Any]
) -> None:
    die_with_parent()
    os.environ.update(TMPDIR=str(folder), HOME=str(folder))
    tempfile.tempdir = str(folder)
    os.chdir(folder)
    Path(POCL_CACHE).mkdir()
    permitted = tuple(Path(p) for p in header["permitted_dirs"])
    source, *headers = texts
    expected = header["expected_launch"]
    sent = _write_headers(folder / SENT, dict(zip(header["files"], headers, strict=True)))
    cuda = tuple(p for p in (Path("/usr/local/cuda").resolve(), Path("/opt/cuda")) if p.exists())
    toolkits = (*cuda, *toolkit_folders())
    confined = confine(
        Confinement(
            read=(*system_paths(), *permitted, *toolkits),
            list_root=Backend(header["backend"]).language.lists_root,
            write=(folder,),
            devices=(Path("/dev/null"),),
            memory_bytes=memory_limit(int(argument["memory_bytes"])),
            cpu_s=int(argument["cpu_s"]) + 1,
            file_bytes=FILE_BYTES,
        )
    )
    request = CompileRequest(
        backend=Backend(header["backend"]),
        source=source.decode(),
        entry=header["entry"],
        options=tuple(header["options"]),
        include_dirs=(*(sent / d for d in header["include_dirs"]), *([sent] if headers else []), *permitted),
        compiler=header["compiler"],
        architecture=header["architecture"],
        device_index=header["device_index"],
        headers=tuple(text.decode() for text in headers),
        has_other_headers=bool(permitted),
        parameters=_parameters(header),
        then=tuple(KernelEntry(e["entry"], _parameters(e)) for e in header["then"]),
        expected_launch=expected and ExpectedLaunch.model_validate(expected),
        arguments=tuple(header["arguments"]),
        specialisation=header["specialisation"] and Specialisation.model_validate(header["specialisation"]),
        tells_words=header["tells_words"],
        begin_with=header["begin_with"],
        may_fall_back=header["may_fall_back"],
    )
    module = backend_module(request.backend)
    watched = getattr(module, "refuse_objects_with", None)
    if watched is not None:
        watched(lambda reason: _reject(channel, Rejected(stage=Stage.COMPILE, reason=reason), confined))
    started = time.monotonic()
    result = module.compile_source(request)
    seconds = time.monotonic() - started
    if isinstance(result, Rejected):
        _reject(channel, result, confined)
    facts = result.facts.model_copy(
        update={"seconds": seconds, "binary_bytes": len(result.binary)}
    ).model_dump(mode="json")
    reply: dict[str, Any] = {"entry": result.entry, "facts": facts, "log": result.log[-MAX_LOG_CHARACTERS:]}
    reply["globals"] = list(result.globals)
    reply["unnamed"] = list(result.unnamed)
    reply["telling"] = list(result.telling)
    reply["may_tell"] = result.may_tell
    reply["way"] = result.way
    reply["then_entries"] = list(result.then_entries)
    channel.send({**reply, "confined": confined}, [result.binary])
    os._exit(0)


def _reject(channel: Channel, result: Rejected, confined: bool) -> NoReturn:
    every_way = isinstance(result, RefusedEveryWay)
    rejected = {"rejected": result.model_dump(mode="json"), "every_way": every_way}
    channel.send({**rejected, "confined": confined})
    os._exit(0)
