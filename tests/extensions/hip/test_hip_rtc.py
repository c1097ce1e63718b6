"""hipRTC through a stand-in: what it is told, and what is made of what it says. No ROCm is here."""

import inspect
import sys
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.hip_python import interface
from warpsmith.backends.base import CompileRequest
from warpsmith.backends.binaries.amd_code_object import AmdKernel, CodeObject
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.by_value_plan import ParameterSlot
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.errors import Unavailable
from warpsmith.extensions.hip import clang as hip_clang
from warpsmith.extensions.hip import rtc as hip_rtc

LOWERED = "_Z5scaleIfEvPT_"


@dataclass
class Rtc:
    """`hip.hiprtc`, as recorded; every call is a method of its name."""

    log: bytes = b""
    status: int = 0
    options: list[bytes] = field(default_factory=list)
    named: list[bytes] = field(default_factory=list)
    alive: int = 0

    def hiprtcVersion(self) -> tuple[int, int, int]:
        return 0, 7, 0

    def hiprtcCreateProgram(
        self, src: bytes, name: bytes, numHeaders: int, headers: list[bytes], includeNames: list[bytes]
    ) -> tuple[int, Any]:
        self.alive += 1
        return 0, SimpleNamespace(createRef=lambda: self)

    def hiprtcDestroyProgram(self, prog: object) -> tuple[int]:
        assert prog is self, "it takes a reference to the handle"
        self.alive -= 1
        return (0,)

    def hiprtcAddNameExpression(self, prog: object, name_expression: bytes) -> tuple[int]:
        self.named.append(name_expression)
        return (0,)

    def hiprtcCompileProgram(self, prog: object, numOptions: int, options: list[bytes]) -> tuple[int]:
        assert numOptions == len(options)
        self.options = options
        return (self.status,)

    def hiprtcGetLoweredName(self, prog: object, name_expression: bytes) -> tuple[int, bytes]:
        assert name_expression in self.named
        return 0, LOWERED.encode() + b"\0"

    def hiprtcGetProgramLogSize(self, prog: object) -> tuple[int, int]:
        return 0, len(self.log)

    def hiprtcGetProgramLog(self, prog: object, log: bytearray) -> tuple[int]:
        log[: len(self.log)] = self.log
        return (0,)

    def hiprtcGetCodeSize(self, prog: object) -> tuple[int, int]:
        return 0, 4

    def hiprtcGetCode(self, prog: object, code: bytearray) -> tuple[int]:
        code[:] = b"code"
        return (0,)


def request(entry: str = "scale<float>", **more: Any) -> CompileRequest:
    source = "template <typename T> __global__ void scale(T* x) {}\n"
    return CompileRequest(Backend.HIP, source, entry, ("-O2",), (), "auto", "gfx942", 0, **more)


@pytest.fixture
def rtc(monkeypatch: pytest.MonkeyPatch) -> Rtc:
    made = Rtc()
    monkeypatch.setitem(sys.modules, "hip", SimpleNamespace(hiprtc=made))
    kernel = AmdKernel(LOWERED, 20, 10, 2, 0, 512, 16, 64, 256, ((0, 8),))
    contents = CodeObject({LOWERED: kernel}, ("total",))
    monkeypatch.setattr(hip_clang, "read_code_object", lambda code: contents)
    return made


def test_the_stand_in_has_the_calls_as_recorded() -> None:
    for name, call in interface.COMPILER.items():
        assert list(inspect.signature(getattr(Rtc(), name)).parameters) == call.parameters.split(), name


def test_a_template_is_found_by_its_name_expression(rtc: Rtc) -> None:
    made = hip_rtc.compile_hiprtc(request(parameters=(ParameterSlot("x", 0, 8),)))
    assert isinstance(made, Compiled), made
    assert (made.binary, made.entry, made.globals) == (b"code", LOWERED, ("total",))
    facts = made.facts
    assert (facts.registers, facts.static_shared_bytes, facts.spill_bytes) == (20, 512, 8)
    assert rtc.named == [b"scale<float>"]
    offset = hip_clang.OFFSET_OPTION.encode()
    assert rtc.options == [b"--offload-arch=gfx942", offset, b"-std=c++17", b"-O2"]
    assert rtc.alive == 0


def test_what_it_refuses_is_refused_with_its_words(rtc: Rtc) -> None:
    rtc.status, rtc.log = 6, b"kernel.hip:1:3: error: no such name\n1 error generated.\n\0"
    made = hip_rtc.compile_hiprtc(request())
    assert isinstance(made, Rejected)
    assert made.reason == "kernel.hip:1:3: error: no such name"
    assert rtc.alive == 0


def test_parameters_of_another_size_are_refused(rtc: Rtc) -> None:
    made = hip_rtc.compile_hiprtc(request(parameters=(ParameterSlot("x", 0, 4),)))
    assert isinstance(made, Rejected)
    assert "argument 0 (x) has 4 bytes in the job and 8 in the kernel" in made.reason


def test_without_hip_python_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hip", None)
    with pytest.raises(Unavailable, match=r"hipRTC is missing; install warpsmith\[hip\]"):
        hip_rtc.compile_hiprtc(request())


def test_it_stands_in_only_where_clang_is_missing(monkeypatch: pytest.MonkeyPatch, rtc: Rtc) -> None:
    def missing() -> None:
        raise Unavailable("no clang")

    monkeypatch.setattr(hip_rtc, "find_clang", lambda: None)
    assert not hip_rtc.stands_in_for_clang()
    monkeypatch.setattr(hip_rtc, "find_clang", missing)
    assert hip_rtc.stands_in_for_clang()
    monkeypatch.setitem(sys.modules, "hip", None)
    assert not hip_rtc.stands_in_for_clang()
