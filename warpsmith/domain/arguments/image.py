"""OpenCL images: how the elements of an argument form pixels."""

from enum import StrEnum

from warpsmith.domain.base import Frozen


class ChannelOrder(StrEnum):
    """Channels of a pixel, in memory order."""

    R = "r"
    RG = "rg"
    RGBA = "rgba"
    BGRA = "bgra"


class ImageFormat(Frozen):
    """Marks an argument as an image. `dtype` is the type of a channel. The last extent of `shape` is the
    number of channels: [height, width, channels], or [depth, height, width, channels] for an `image3d_t`."""

    channels: ChannelOrder
    normalized: bool = False
    """If true, the kernel reads 8- and 16-bit integers as floats: unsigned in 0..1, signed in -1..1."""

    @property
    def lanes(self) -> int:
        """Number of channels of a pixel."""
        return len(self.channels.value)
