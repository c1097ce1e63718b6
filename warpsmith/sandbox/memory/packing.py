"""Bytes of arguments by value and of arrays of addresses. Runs in the device child."""

from collections.abc import Callable, Sequence

import numpy as np

from warpsmith.backends.base import Array
from warpsmith.domain.arguments.layout import POINTER_BYTES
from warpsmith.domain.jobs.by_value_plan import Address, ValuePlan
from warpsmith.verify.dtypes import narrowed, numpy_dtype

AddressOf = Callable[[Address], int]
"""Device address of a place in a buffer; 0 for null."""


def packed(plan: ValuePlan, address_of: AddressOf) -> bytes:
    """The bytes of a vector or struct; those between its members are zero."""
    data = bytearray(plan.size_bytes)
    for part in plan.numbers:
        if part.dtype.is_float:
            numbers = narrowed(np.array(part.values, np.float64), part.dtype)
        else:
            numbers = np.array(part.values, numpy_dtype(part.dtype))
        data[part.offset_bytes : part.offset_bytes + numbers.nbytes] = numbers.tobytes()
    for offset, address in plan.addresses:
        data[offset : offset + POINTER_BYTES] = address_of(address).to_bytes(POINTER_BYTES, "little")
    return bytes(data)


def table(addresses: Sequence[Address], address_of: AddressOf) -> Array:
    """The contents of an array of addresses."""
    return np.array([address_of(a) for a in addresses], np.uint64)
