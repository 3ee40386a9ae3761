"""Products of matrices by tiles.

How far is a function of shapes and dtypes alone: of the tiles that rows and columns fill it is the
largest of which there are `ENOUGH`; if there is none, terms are cut into parts of `SPAN` or more,
as many as make it enough. `FARTHEST` terms always end a part: drivers end longer loops.
"""

from __future__ import annotations

from tenfold.backends.matrices import MatrixProduct
from tenfold.backends.webgpu.library.elements import bits_of
from tenfold.backends.webgpu.library.routine import Routine
from tenfold.backends.webgpu.library.tiles import DEEP, TileWriter, tile_text, tiling
from tenfold.backends.webgpu.target import WebGPUTarget

ENOUGH = 128  # tiles
SPAN = 512  # terms of a part, at least
FARTHEST = 1 << 14  # and at most
EXTENTS = (128, 64, 32, 16)


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
    made = tiling(p, cut or cut_of(p), target)
    text = tile_text(made.form)
    _Product(made.form, text).write()
    sides = zip(p.dtypes, (p.m * p.k, p.k * p.n, p.m * p.n), strict=True)
    largest = max(p.batch * count * bits_of(dtype) // 8 for dtype, count in sides)
    shader = text.finish(made.form.words)
    return Routine(shader, tuple(made.launches()), largest, made.scratch)


class _Product(TileWriter):
    """Of two matrices."""

    def found(self, c: int) -> str:
        return "which * n * k + " + ("line * k + term" if self.form.right else "term * n + line")
