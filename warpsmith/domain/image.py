"""OpenCL images: the part of an argument that says how its elements are pixels."""

from enum import StrEnum

from warpsmith.domain.base import Frozen


class ChannelOrder(StrEnum):
    """Which channels a pixel has, in memory's order."""

    R = "r"
    RG = "rg"
    RGBA = "rgba"
    BGRA = "bgra"


class ImageFormat(Frozen):
    """An argument is an image. Its `dtype` is the type of a channel, the last extent of its `shape` the
    number of channels: [height, width, channels], or [depth, height, width, channels] of an `image3d_t`."""

    channels: ChannelOrder
    normalized: bool = False
    """Integers of 8 or 16 bits that the kernel sees as floats: unsigned ones in 0..1, signed in -1..1."""

    @property
    def lanes(self) -> int:
        """Channels of a pixel."""
        return len(self.channels.value)
