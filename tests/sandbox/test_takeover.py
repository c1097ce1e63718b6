"""What native code inside a child could still do: send lies. And how OpenCL sources are kept from it."""

import pytest

from tests.sandbox.kernels import SCALE, built, plan, rejected, size, source
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.job import CacheState
from warpsmith.domain.jobs.plan import CaseKey, Compiled, TimingPlan
from warpsmith.domain.templates.outcome import CompileFacts
from warpsmith.errors import ChildDied
from warpsmith.sandbox import CompilePool
from warpsmith.sandbox.hosts.device_host import ChildDevice
from warpsmith.sandbox.transport.process import ChildProcess

ASM = 'volatile("nop");'


@pytest.mark.parametrize(
    ("before", "body"),
    [
        ("", f"__asm__ {ASM}"),
        ("", f"asm {ASM}"),
        ("", f"__asm {ASM}"),
        ("#define NOP __asm__", f"NOP {ASM}"),
        ("#define JOIN(a, b) a##b", f"JOIN(__as, m__) {ASM}"),
        ("#define JOIN(a, b) a##b\n#define X JOIN(__a, sm)", f"X {ASM}"),
        ("", f"__as\\\nm__ {ASM}"),
        ("", f"__as\\  \nm__ {ASM}"),
        ("", f"__as??/\nm__ {ASM}"),
        ("", f"char q = '\"'; __asm__ {ASM} char r = '\"';"),
        ("", f"char q = '\\\"'; __asm__ {ASM} char r = '\"';"),
        ("", f"/* */ __asm__ {ASM} /* */"),
        ("", f"// hidden?\n__asm__ {ASM}"),
        ("#undef __asm__\n", f"__asm__ {ASM}"),
        ('#define JOIN(a, b) a##b\n#pragma pop_macro("__asm__")', f"JOIN(__as, m__) {ASM}"),
        ('int leave(int) __asm__("exit");', "y[i] = leave(0);"),
    ],
)
def test_inline_assembly_is_refused(
    pool: CompilePool, opencl_info: DeviceInfo, before: str, body: str
) -> None:
    result = rejected(pool, opencl_info, source(Backend.OPENCL, body, before))
    assert "assembly" in (result.reason + result.log).replace("_", " ")


def test_an_option_cannot_bring_inline_assembly_in(pool: CompilePool, opencl_info: DeviceInfo) -> None:
    text = source(Backend.OPENCL, f"NOP {ASM}")
    assert "assembly" in rejected(pool, opencl_info, text, options=["-DNOP=__asm__"]).reason
    text = source(Backend.OPENCL, f"JOIN(__as, m__) {ASM}", "#define JOIN(a, b) a##b")
    assert "assembly" in rejected(pool, opencl_info, text, options=["-D__asm__=__asm"]).reason


def test_a_comment_or_a_name_may_speak_of_assembly(pool: CompilePool, opencl_info: DeviceInfo) -> None:
    body = f"int asmara = 0; (void)asmara; {SCALE} // no asm here\n/* nor __asm__ here */"
    built(pool, opencl_info, source(Backend.OPENCL, body))


@pytest.mark.parametrize("function", ["system", "open", "socket", "fork", "dlopen", "syscall"])
def test_the_c_library_is_not_linked(pool: CompilePool, opencl_info: DeviceInfo, function: str) -> None:
    text = source(Backend.OPENCL, f"y[i] = {function}(0);", f"int {function}(int);")
    assert function in rejected(pool, opencl_info, text).log


def _liar(info: DeviceInfo, reply: dict[str, object], blobs: list[int]) -> ChildDevice:
    told = {"do": "lie", "reply": reply, "blobs": blobs}
    child = ChildDevice(info, ChildProcess("tests.sandbox.children", told, {}), 5)
    child._plans[CaseKey("w")] = plan(100)
    return child


@pytest.mark.parametrize(
    ("reply", "blobs"),
    [
        ({}, []),
        ({"names": ["y"], "guards": [], "changed": []}, []),
        ({"names": ["y"], "guards": [], "changed": []}, [399]),
        ({"names": ["y"], "guards": [], "changed": []}, [404]),
        ({"names": ["x"], "guards": [], "changed": []}, [400]),
        ({"names": ["y"], "guards": 5, "changed": []}, [400]),
        ({"names": ["y"], "guards": []}, [400]),
        ({"names": [[]], "guards": [], "changed": []}, [400]),
        ({"fault": "the device burns"}, []),
    ],
    ids=str,
)
def test_a_bad_report_ends_the_child(
    opencl_info: DeviceInfo, reply: dict[str, object], blobs: list[int]
) -> None:
    child = _liar(opencl_info, reply, blobs)
    with pytest.raises(ChildDied) as caught:
        child.run(1, CaseKey("w"), size(100))
    assert caught.value.cause in ("protocol", "device")
    assert not child._process.alive


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"samples_us": [], "launches": 1, "complete": True},
        {"samples_us": [0.0], "launches": 1, "complete": True},
        {"samples_us": [-1.0], "launches": 1, "complete": True},
        {"samples_us": [float("nan")], "launches": 1, "complete": True},
        {"samples_us": [float("inf")], "launches": 1, "complete": True},
        {"samples_us": ["fast"], "launches": 1, "complete": True},
        {"samples_us": [1.0], "launches": None, "complete": True},
        {"samples_us": [1.0], "launches": 1},
    ],
    ids=str,
)
def test_bad_times_end_the_child(opencl_info: DeviceInfo, reply: dict[str, object]) -> None:
    child = _liar(opencl_info, reply, [])
    with pytest.raises(ChildDied) as caught:
        child.time(1, CaseKey("w"), size(100), TimingPlan(CacheState.HOT, samples=1))
    assert caught.value.cause == "protocol"
    assert not child._process.alive


def test_a_handle_that_is_none_ends_the_child(opencl_info: DeviceInfo) -> None:
    child = _liar(opencl_info, {"handle": "one"}, [])
    with pytest.raises(ChildDied, match="protocol"):
        child.load(Compiled(b"", "f", CompileFacts()))
    assert not child._process.alive
