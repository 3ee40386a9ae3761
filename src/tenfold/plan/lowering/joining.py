"""Ops that write ranges, as elements: each is chosen from the input whose range it is in."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from tenfold.graph.op import Ranges
from tenfold.kernel import Index
from tenfold.kernel.ir.index import constant
from tenfold.ops.elements import Read, Site
from tenfold.ops.ranges import Start, WrittenRange


def as_element(lowering: Ranges) -> Callable[[Site], Generator[Read, int, int]]:
    """The element generator of an op that writes ranges; a later range goes before an earlier."""

    def generate(site: Site) -> Generator[Read, int, int]:
        kernel = site.kernel
        value: int | None = None
        for one in lowering.ranges(site.types, site.attributes):
            starts = yield from starts_of(site, one)
            shape = site.types[one.input].shape
            if 0 in shape:
                continue
            condition: int | None = None
            source = []
            for p, start, extent in zip(site.position, starts, shape, strict=True):
                at = p - start
                condition = kernel.both(condition, kernel.inside(at, 0, extent))
                source.append(at)
            if condition is None or kernel._truth(condition) is True:
                value = yield Read(one.input, tuple(source))
                continue
            element = yield Read(one.input, tuple(source), condition)
            value = element if value is None else kernel.select(condition, element, value)
        assert value is not None
        return value

    return generate


def starts_of(site: Site, one: WrittenRange) -> Generator[Read, int, list[Index]]:
    """Where a range begins: numbers, or scalars read now and clamped."""
    kernel, found = site.kernel, []
    for start in one.starts:
        if isinstance(start, Start):
            value = yield Read(start.input, ())
            found.append(clamped(kernel, value, start.limit))
        else:
            found.append(constant(start))
    return found


def clamped(kernel: object, value: int, limit: int) -> Index:
    """A computed start as an index in [0, limit]."""
    b: Any = kernel
    if b.dtype(value) == "u64":
        value = b.op("min", "u64", value, b.const("u64", 2**63 - 1))
    value = b.cast(value, "i64")
    value = b.op("max", "i64", value, b.const("i64", 0))
    value = b.op("min", "i64", value, b.const("i64", limit))
    found: Index = b.as_index(value, limit + 1)
    return found
