"""Products of matrices by tiles.

How far is a function of shapes and dtypes alone: of the tiles that rows and columns fill it is the
largest of which there are `ENOUGH`; if there is none, terms are cut into parts of `SPAN` or more,
as many as make it enough. `FARTHEST` terms always end a part: drivers end longer loops.
"""

from __future__ import annotations

from dataclasses import replace

from tenfold.backends.matrices import MatrixProduct
from tenfold.backends.webgpu.library.elements import bits_of
from tenfold.backends.webgpu.library.routine import Routine
from tenfold.backends.webgpu.library.tiles import DEEP, TileWriter, tile_text, tiling
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.types import DTYPES

ENOUGH = 128  # tiles
SPAN = 512  # terms of a part, at least
FARTHEST = 1 << 14  # and at most
EXTENTS = (128, 64, 32, 16)
PARTS = {"c64": "f32", "c128": "f64"}


def cut_of(p: MatrixProduct) -> tuple[int, int]:
    """The extent of the tiles of a product, and the terms of a part.

    >>> def cut(batch, m, n, k, dtype="f32"):
    ...     return cut_of(MatrixProduct((dtype,) * 3, batch, m, n, k, False, False))
    >>> cut(1, 4096, 4096, 64), cut(1, 1024, 1024, 64), cut(1, 64, 64, 64), cut(500, 32, 32, 64)
    ((128, 64), (64, 64), (16, 64), (32, 64))
    >>> cut(1, 4096, 4096, 64, "f64"), cut(1, 64, 64, 100000), cut(1, 4096, 4096, 40000)
    ((64, 64), (64, 784), (128, 13344))
    """
    fit = [
        (extent, p.batch * -(-p.m // extent) * -(-p.n // extent))
        for extent in EXTENTS
        if extent <= (64 if bits_of(p.dtype) == 64 else 128)
        and (extent < 2 * min(p.m, p.n) or extent == EXTENTS[-1])
    ]
    most = max(1, p.k // SPAN)
    full = [extent for extent, count in fit if count >= ENOUGH and extent > EXTENTS[-1]]
    cut = [(extent, count) for extent, count in fit if count * most >= ENOUGH]
    if full:
        extent, parts = full[0], 1
    elif cut:
        extent, parts = cut[0][0], min(most, -(-ENOUGH // cut[0][1]))
    else:
        extent, parts = EXTENTS[-1], most
    parts = max(parts, -(-p.k // FARTHEST))
    return extent, -(-p.k // (parts * DEEP)) * DEEP


def tiles_routine(
    p: MatrixProduct, target: WebGPUTarget, cut: tuple[int, int] | None = None
) -> Routine:
    """A product by tiles of this extent, and terms cut so; else by those of `cut_of`."""
    sides = zip(p.dtypes, (p.m * p.k, p.k * p.n, p.m * p.n), strict=True)
    largest = max(p.batch * count * DTYPES[dtype].itemsize for dtype, count in sides)
    part = PARTS.get(p.dtype)
    if part is not None:
        p = replace(p, dtypes=(part,) * 3, n=2 * p.n, k=2 * p.k)
    made = tiling(p, cut or cut_of(p), target)
    text = tile_text(made.form, parts=1 if part is None else 2)
    (_Product if part is None else _Parts)(made.form, text).write()
    return Routine(text.finish(made.form.words), tuple(made.launches()), largest, made.scratch)


class _Product(TileWriter):
    """Of two matrices."""

    def right(self, c: int) -> str:
        inner = "line * k + term" if self.form.right else "term * n + line"
        return self.get("b", f"which * n * k + {inner}")


class _Parts(TileWriter):
    """Of two complex matrices, as one of their parts: each term and each column is two. The left
    operand lies as it should; of the right one each element is read as four numbers, its real part,
    its imaginary part, that with the other sign, and its real part again."""

    def left(self) -> str:
        if self.beside("a"):
            return super().left()
        return self.get("a", "which * m * k + (term / 2u * m + line) * 2u + term % 2u")

    def right(self, c: int) -> str:
        inner = "term / 2u * (n / 2u) + line / 2u"
        if self.form.right:
            inner = "line / 2u * (k / 2u) + term / 2u"
        part = "((term % 2u) ^ (line % 2u))"
        found = self.get("b", f"(which * (k / 2u) * (n / 2u) + {inner}) * 2u + {part}")
        return f"select({found}, -{found}, term % 2u > line % 2u)"
