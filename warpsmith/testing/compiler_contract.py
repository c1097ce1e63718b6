"""Contract of every `CompilerPort`.

A module of tests offers three fixtures and inherits from `CompilerContract`, or from `SourceCompilerContract`
where sources really are compiled:

- `compiler`: the `CompilerPort`.
- `info`: the device to compile for.
- `kernel`: a function from a `Behaviour` to the `ConfiguredKernel` that has it.
"""

from collections.abc import Callable

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected, Stage
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.testing.kernels import Behaviour, configured
from warpsmith.tuning.ports import CompilerPort

KernelOf = Callable[[Behaviour], ConfiguredKernel]
WAIT_S = 60


class CompilerContract:
    """For every compiler, a fake one included."""

    def test_a_good_kernel_is_compiled(
        self, compiler: CompilerPort, info: DeviceInfo, kernel: KernelOf
    ) -> None:
        made = compiler.submit(kernel(Behaviour.RIGHT), info).result(WAIT_S)
        assert isinstance(made, Compiled), made
        assert made.binary
        assert made.entry

    def test_a_bad_kernel_is_a_value_and_raises_nothing(
        self, compiler: CompilerPort, info: DeviceInfo, kernel: KernelOf
    ) -> None:
        made = compiler.submit(kernel(Behaviour.BROKEN), info).result(WAIT_S)
        assert isinstance(made, Rejected)
        assert made.stage is Stage.COMPILE
        assert made.reason

    def test_a_kernel_compiles_to_the_same_entry_and_facts_again(
        self, compiler: CompilerPort, info: DeviceInfo, kernel: KernelOf
    ) -> None:
        first, second = (compiler.submit(kernel(Behaviour.RIGHT), info).result(WAIT_S) for _ in range(2))
        assert isinstance(first, Compiled)
        assert isinstance(second, Compiled)
        assert (first.entry, first.globals) == (second.entry, second.globals)
        assert first.facts.model_copy(update={"seconds": second.facts.seconds}) == second.facts

    def test_several_kernels_at_once_each_get_their_own_answer(
        self, compiler: CompilerPort, info: DeviceInfo, kernel: KernelOf
    ) -> None:
        order = [Behaviour.RIGHT, Behaviour.BROKEN, Behaviour.IDLE, Behaviour.BROKEN, Behaviour.RIGHT]
        futures = [compiler.submit(kernel(behaviour), info) for behaviour in order]
        made = [future.result(WAIT_S) for future in reversed(futures)][::-1]
        assert [isinstance(one, Rejected) for one in made] == [b is Behaviour.BROKEN for b in order]
        right, idle = made[0], made[2]
        assert isinstance(right, Compiled)
        assert isinstance(idle, Compiled)
        assert right.binary != idle.binary


class SourceCompilerContract(CompilerContract):
    """For compilers of sources."""

    def test_the_compilers_words_come_back(
        self, compiler: CompilerPort, info: DeviceInfo, kernel: KernelOf
    ) -> None:
        made = compiler.submit(kernel(Behaviour.BROKEN), info).result(WAIT_S)
        assert isinstance(made, Rejected)
        assert "no_such_name" in made.log + made.reason

    def test_a_missing_entry_is_a_value(self, compiler: CompilerPort, info: DeviceInfo) -> None:
        kernel = configured(info.backend, Behaviour.RIGHT, entry="no_such_entry")
        made = compiler.submit(kernel, info).result(WAIT_S)
        assert isinstance(made, Rejected)
        assert made.stage is Stage.COMPILE

    def test_an_option_that_is_not_allowed_is_a_value(
        self, compiler: CompilerPort, info: DeviceInfo, kernel: KernelOf
    ) -> None:
        good = kernel(Behaviour.RIGHT)
        changed = good.kernel.model_copy(update={"options": ("--no-such-option",)})
        made = compiler.submit(ConfiguredKernel(kernel=changed), info).result(WAIT_S)
        assert isinstance(made, Rejected)
        assert "--no-such-option" in made.reason
