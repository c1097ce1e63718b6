"""OpenCL images as memory whose bytes can be read and written. Runs inside children only."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from warpsmith.backends.base import Array, DeviceFault, LaunchRefused, Memory, pieces_of
from warpsmith.backends.opencl.platforms import opencl
from warpsmith.domain.arguments.image import ImageFormat
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.plan import BufferPlan

Triple = tuple[int, int, int]

_FLOATS = {Dtype.FLOAT16: "HALF_FLOAT", Dtype.FLOAT32: "FLOAT"}


class ImageMemory:
    """Implements `backends.base.Memory` for an image.

    Byte 0 is the first channel of the first pixel. Rows and slices follow each other without padding. An
    image has no guard zones.

    Args:
        copy: `OpenClDevice.copy`.

    Raises:
        LaunchRefused: the device supports no images, not this format, or not this size.
        DeviceFault: there is no memory left.
    """

    address = 0

    def __init__(self, context: Any, copy: Callable[..., None], plan: BufferPlan) -> None:
        assert plan.image is not None
        self.size_bytes = plan.size_bytes
        self._copy = copy
        depth, height, width = (1, *plan.shape)[-4:-1]
        self._extents: Triple = (width, height, depth)
        self._row_bytes = width * plan.image.lanes * plan.dtype.size_bytes
        shape = self._extents[: len(plan.shape) - 1]
        cl = opencl()
        _check_size(context.devices[0], plan.name, shape)
        form = _format(context, plan, plan.image, len(shape))
        try:
            self.image = cl.create_image(context, cl.mem_flags.READ_WRITE, form, shape=shape)
        except cl.Error as exc:
            words = f"an image of {_times(shape)} pixels ({self.size_bytes} bytes)"
            raise DeviceFault(f"{words} cannot be allocated: {exc}") from exc

    def write(self, data: Array, offset_bytes: int = 0) -> None:
        """See `Memory.write`. Other pixels of the same rows keep their values."""
        host: Array = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        begin, origin, region = self._around(offset_bytes, offset_bytes + host.size)
        if host.size != math.prod(region) * self._pixel_bytes:
            rows = self._pixels(origin, region)
            rows[offset_bytes - begin : offset_bytes - begin + host.size] = host
            host = rows
        self._copy(self.image, host, origin=origin, region=region)

    def read(self, offset_bytes: int, size_bytes: int) -> bytes:
        """See `Memory.read`."""
        begin, origin, region = self._around(offset_bytes, offset_bytes + size_bytes)
        start = offset_bytes - begin
        return self._pixels(origin, region)[start : start + size_bytes].tobytes()

    def copy_from(self, other: Memory, size_bytes: int, offset_bytes: int = 0) -> None:
        """See `Memory.copy_from`. Copies a whole image of the same shape."""
        assert isinstance(other, ImageMemory)
        assert (size_bytes, offset_bytes) == (self.size_bytes, 0)
        places = {"src_origin": (0, 0, 0), "dest_origin": (0, 0, 0), "region": self._extents}
        self._copy(self.image, other.image, **places)

    def gather(self, source: Memory, begins: Sequence[int], piece_bytes: int, to: slice) -> None:
        """See `Memory.gather`."""
        for at, begin, size in pieces_of(begins, piece_bytes, to):
            self.write(np.frombuffer(source.read(begin, size), np.uint8), at)

    def fill(self, pattern: bytes, offset_bytes: int, size_bytes: int) -> None:
        """See `Memory.fill`."""
        self.write(np.resize(np.frombuffer(pattern, np.uint8), size_bytes), offset_bytes)

    def free(self) -> None:
        """See `Memory.free`."""
        self.image.release()

    @property
    def _pixel_bytes(self) -> int:
        return self._row_bytes // self._extents[0]

    def _pixels(self, origin: Triple, region: Triple) -> Array:
        host = np.empty(math.prod(region) * self._pixel_bytes, np.uint8)
        self._copy(host, self.image, origin=origin, region=region)
        return host

    def _around(self, start: int, stop: int) -> tuple[int, Triple, Triple]:
        """The whole rows of one slice, or whole slices, that contain these bytes: first byte, origin and
        region."""
        width, height, _ = self._extents
        first, last = start // self._row_bytes, -(-stop // self._row_bytes)
        if first // height == (last - 1) // height:
            origin = (0, first % height, first // height)
            return first * self._row_bytes, origin, (width, last - first, 1)
        first, last = first // height, -(-last // height)
        return first * height * self._row_bytes, (0, 0, first), (width, height, last - first)


def _check_size(device: Any, name: str, shape: tuple[int, ...]) -> None:
    if not device.image_support:
        raise LaunchRefused(f"image {name}: the device has no images; use a buffer")
    most: tuple[int, ...] = (device.image2d_max_width, device.image2d_max_height)
    if len(shape) == 3:
        most = (device.image3d_max_width, device.image3d_max_height, device.image3d_max_depth)
    if any(extent > limit for extent, limit in zip(shape, most, strict=True)):
        words = f"{_times(shape)} pixels (width x height{' x depth' * (len(shape) == 3)})"
        raise LaunchRefused(f"image {name} has {words}; the device takes up to {_times(most)}")


def _format(context: Any, plan: BufferPlan, image: ImageFormat, axes: int) -> Any:
    cl = opencl()
    order = getattr(cl.channel_order, image.channels.value.upper())
    kind = getattr(cl.channel_type, _kind(plan.dtype, image))
    form = cl.ImageFormat(order, kind)
    shapes = cl.mem_object_type.IMAGE2D if axes == 2 else cl.mem_object_type.IMAGE3D
    known = cl.get_supported_image_formats(context, cl.mem_flags.READ_WRITE, shapes)
    if not any((f.channel_order, f.channel_data_type) == (order, kind) for f in known):
        normalized = "normalized " * image.normalized
        words = f"{image.channels.value} images of {normalized}{plan.dtype.value}"
        raise LaunchRefused(f"image {plan.name}: the device has no {words}; use other channels, as rgba")
    return form


def _kind(dtype: Dtype, image: ImageFormat) -> str:
    """OpenCL name of the type of a channel."""
    if dtype in _FLOATS:
        return _FLOATS[dtype]
    bits = 8 * dtype.size_bytes
    signed = not dtype.value.startswith("u")
    if image.normalized:
        return f"{'S' if signed else 'U'}NORM_INT{bits}"
    return f"{'' if signed else 'UN'}SIGNED_INT{bits}"


def _times(extents: tuple[int, ...]) -> str:
    return " x ".join(str(e) for e in extents)
