"""The arguments of a plan as plain JSON."""

from typing import Any

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.arguments.draw import Draw
from warpsmith.domain.arguments.image import ImageFormat
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.by_value_plan import Address, NumberPart, PointerPlan, TablePlan, ValuePlan
from warpsmith.domain.jobs.plan import ArgumentPlan, BufferPlan, LocalPlan, ScalarPlan, ScratchPlan

Json = dict[str, Any]
_VECTOR = "vector"
"""Kind of a vector or struct; the other kinds are roles."""


def argument_to_json(a: ArgumentPlan) -> Json:
    """An argument as JSON."""
    if isinstance(a, BufferPlan):
        draw = None if a.draw is None else a.draw.model_dump(mode="json")
        image = None if a.image is None else a.image.model_dump(mode="json")
        kind = {"kind": a.role.value, "name": a.name, "dtype": a.dtype.value}
        drawn = {"draw": draw, "image": image, "moved": a.moved}
        return {**kind, "shape": a.shape, **drawn, "in_part": a.in_part}
    if isinstance(a, LocalPlan):
        return {"kind": Role.LOCAL.value, "name": a.name}
    if isinstance(a, ScratchPlan):
        return {"kind": Role.SCRATCH.value, "name": a.name, "dtype": a.dtype.value}
    if isinstance(a, ScalarPlan):
        return {"kind": Role.SCALAR.value, "name": a.name, "dtype": a.dtype.value, "value": a.value}
    if isinstance(a, PointerPlan):
        return {"kind": Role.POINTER.value, "name": a.name, "address": _address(a.address)}
    if isinstance(a, TablePlan):
        return {
            "kind": Role.POINTERS.value,
            "name": a.name,
            "addresses": [_address(address) for address in a.addresses],
        }
    numbers = [(p.path, p.offset_bytes, p.dtype.value, p.values) for p in a.numbers]
    addresses = [(offset, *_address(address)) for offset, address in a.addresses]
    extent = {"size_bytes": a.size_bytes, "align": a.align}
    return {"kind": _VECTOR, "name": a.name, **extent, "numbers": numbers, "addresses": addresses}


def argument_from_json(data: Json) -> ArgumentPlan:
    """The inverse of `argument_to_json`."""
    name, kind = data["name"], data["kind"]
    if kind == Role.LOCAL:
        return LocalPlan(name)
    if kind == Role.SCRATCH:
        return ScratchPlan(name, Dtype(data["dtype"]))
    if kind == Role.SCALAR:
        return ScalarPlan(name, Dtype(data["dtype"]), data["value"])
    if kind == Role.POINTER:
        return PointerPlan(name, Address(*data["address"]))
    if kind == Role.POINTERS:
        return TablePlan(name, tuple(Address(*a) for a in data["addresses"]))
    if kind == _VECTOR:
        numbers = (NumberPart(tuple(p), at, Dtype(t), tuple(v)) for p, at, t, v in data["numbers"])
        addresses = tuple((at, Address(to, offset)) for at, to, offset in data["addresses"])
        return ValuePlan(name, data["size_bytes"], data["align"], tuple(numbers), addresses)
    draw = None if data["draw"] is None else Draw.model_validate(data["draw"])
    image = None if data["image"] is None else ImageFormat.model_validate(data["image"])
    shape = tuple(data["shape"])
    moved, in_part = data["moved"], data["in_part"]
    return BufferPlan(name, Dtype(data["dtype"]), Role(kind), shape, draw, image, moved, in_part=in_part)


def _address(address: Address) -> tuple[str | None, int]:
    return address.to, address.offset_bytes
