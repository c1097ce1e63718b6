"""A tuned kernel compiled for PyOpenCL, which launches it."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from warpsmith.errors import InvalidInput

if TYPE_CHECKING:
    from warpsmith.extensions.clients.python.tuned_kernel import KernelLaunch, TunedKernel


class CompiledKernel:
    """Launches a kernel for the shape that it was chosen for.

    Args:
        kernel: the kernel.
        given: a queue of PyOpenCL, or a context, of which a queue is made.

    Raises:
        InvalidInput: it is neither, or the kernel takes other arguments than buffers, numbers and local
            memory.
    """

    def __init__(self, kernel: "TunedKernel", given: Any) -> None:
        if type(given).__module__.partition(".")[0] != "pyopencl" or not kernel.backend.language.is_opencl_c:
            words = f"is {type(given).__name__}, and the kernel is of {kernel.backend.value}"
            instead = "elsewhere compile `source` with `options` and `files` by the library's own means"
            raise InvalidInput("queue", f"{words}; give a queue or a context of PyOpenCL; {instead}")
        import pyopencl as cl
        import pyopencl.array

        self.kernel, self._cl = kernel, cl
        self.queue = cl.CommandQueue(given) if isinstance(given, cl.Context) else given
        local = [self._local(step) for step in kernel.launches]
        with TemporaryDirectory() as folder:
            for name, text in kernel.files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            program = cl.Program(self.queue.context, kernel.source).build([*kernel.options, f"-I{folder}"])
        functions = [cl.Kernel(program, step.entry) for step in kernel.launches]
        self._steps = list(zip(functions, kernel.launches, local, strict=True))
        flags = cl.mem_flags.READ_WRITE
        self._held = {n: cl.Buffer(self.queue.context, flags, size) for n, size in kernel.scratch.items()}

    def __call__(self, *buffers: Any, **values: Any) -> Any:
        """Enqueue the launches; the event of the last one.

        Args:
            buffers: `Buffer`s or arrays of PyOpenCL, in the kernel's order.
            values: other values for arguments that are numbers.

        Raises:
            InvalidInput: a buffer is missing, of another kind or too small, or a name is none of a number.
        """
        names, own = list(self.kernel.buffer_bytes), self.kernel.by_value
        if len(buffers) != len(names):
            words = f"{len(buffers)} are given; the kernel takes {len(names)} ({', '.join(names)})"
            raise InvalidInput("buffers", words)
        for name in values.keys() - own.keys():
            raise InvalidInput(name, f"is none of the numbers ({', '.join(own)})")
        known = {**self._held, **own, **{n: type(own[n])(value) for n, value in values.items()}}
        known |= {n: self._memory(n, buffer) for n, buffer in zip(names, buffers, strict=True)}
        event = None
        for function, step, local in self._steps:
            total = tuple(g * b for g, b in zip(step.grid, step.block, strict=True))
            function.set_args(*({**known, **local}[n] for n in step.arguments))
            event = self._cl.enqueue_nd_range_kernel(self.queue, function, total, step.block)
        return event

    def _memory(self, name: str, given: Any) -> Any:
        memory = given.data if isinstance(given, self._cl.array.Array) else given
        if not isinstance(memory, self._cl.MemoryObjectHolder):
            words = f"is of the type {type(given).__name__}; give a Buffer or an array of PyOpenCL"
            raise InvalidInput(name, f"{words} (pyopencl.array.to_device)")
        need = self.kernel.buffer_bytes[name]
        if memory.size < need:
            raise InvalidInput(name, f"has {memory.size} bytes; for these dimensions it needs {need}")
        return memory

    def _local(self, step: "KernelLaunch") -> dict[str, Any]:
        """Local memory of a launch by argument."""
        known = {*self.kernel.buffer_bytes, *self.kernel.by_value, *self.kernel.scratch}
        others = [n for n in step.arguments if n not in known]
        if len(others) != len(step.local_bytes):
            words = f"{', '.join(others)}: no buffer, number or local memory; launch `source` by `launches`"
            raise InvalidInput("kernel", words)
        return {n: self._cl.LocalMemory(b) for n, b in zip(others, step.local_bytes, strict=True)}
