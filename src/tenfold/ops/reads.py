"""Reads: which elements of its inputs an element of a result is made of.

For ops whose lowering does not show it. These are generators like those of `elements`, but what
they compute is left open: they yield a Read for each element, and an axis that is read as a whole
is a reduced one.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from tenfold.kernel.ir.index import ZERO, Index
from tenfold.ops.elements import Read, Site
from tenfold.types import Shape

Reads = Generator[Read, int, None]


def elementwise(site: Site) -> Reads:
    """The element at the same place, of inputs that broadcast."""
    for i, type in enumerate(site.types):
        own = site.position[len(site.position) - type.rank :]
        at = (ZERO if extent == 1 else p for p, extent in zip(own, type.shape, strict=True))
        yield Read(i, tuple(at))


def along(site: Site) -> Reads:
    """A whole line along `axis`."""
    axis = site.attributes["axis"]
    (line,) = _whole(site, (site.types[0].shape[axis],))
    yield Read(0, (*site.position[:axis], line, *site.position[axis + 1 :]))


def over(site: Site) -> Reads:
    """All along `axes`, which the result lacks; then a first value."""
    shape, axes = site.types[0].shape, site.attributes["axes"]
    inner, rest = iter(_whole(site, [shape[a] for a in axes])), iter(site.position)
    yield Read(0, tuple(next(inner) if a in axes else next(rest) for a in range(len(shape))))
    yield Read(1, ())


def lines(site: Site) -> Reads:
    """A whole line along the last axis of each input."""
    yield from _cores(site, 1)


def matrices(site: Site) -> Reads:
    """A whole matrix in the last two axes of each input."""
    yield from _cores(site, 2)


def _cores(site: Site, rank: int) -> Reads:
    for i, type in enumerate(site.types):
        leading = type.rank - rank
        core = _whole(site, type.shape[leading:])
        yield Read(i, (*site.position[:leading], *core))


def _whole(site: Site, extents: Sequence[int] | Shape) -> list[Index]:
    """An axis that is read as a whole, for each extent."""
    return [site.kernel.reduced(n, site.stage, turn)[1] for turn, n in enumerate(extents)]
