"""The sizes of a convolution, as its function takes them, and how its work is cut.

In panels, a chunk is `COLUMNS` elements of each of `ROWS` out channels of a group, and sums go by
runs of up to `TERMS` terms; directly, it is `BLOCK` elements of a plane. These follow from the
shape alone, and so do bits, whatever the target's vectors and the number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from tenfold.backends.convolutions import Convolution, convolution_of
from tenfold.backends.cpu.library.routine import DIRECT, PANELS, NodeRoutine
from tenfold.frozen import frozen
from tenfold.ops.algebra import ways
from tenfold.types import SHORT, TensorType

COLUMNS, ROWS = 96, 256
TERMS = ways.TERMS
FOLDED, WASTED = 32, 2  # rows of a fold; those whose columns may be wasted
BLOCK = 2048  # elements of a plane that are computed directly, in a chunk
WORDS = (
    "terms", "taps", "rows", "columns", "column_chunks", "row_chunks",
    "out0", "out1", "out2", "step0", "step1", "step2",
    "image", "channel", "plane", "groups", "span", "straight", "slab", "pitch", "line", "lines",
)  # fmt: skip
DIRECT_WORDS = (
    "terms", "taps", "rows", "channels", "outs", "planes", "lines", "all_lines", "pieces",
    "out1", "out2", "step0", "step1", "step2",
    "image", "channel", "plane", "elements",
)  # fmt: skip


def convolution_routine(
    types: Sequence[TensorType], given: Mapping[str, Any]
) -> NodeRoutine | None:
    """The call of a convolution: the way that it goes is `ways.is_direct`'s."""
    c = convolution_of(types, given)
    if c is None:
        return None
    x, w = types
    rank = x.rank - 2
    result = TensorType(x.dtype, (x.shape[0], w.shape[0], *c.out[-rank:]))
    kind, call, speed = PANELS, _in_panels, 32
    if ways.is_direct(types, result, given):
        kind, call, speed = DIRECT, _direct, 16
    words, chunks = call(c)
    work = c.results * c.terms
    return NodeRoutine(routine_name(kind, x), tuple(words), chunks, 0, work // speed)


def routine_name(kind: str, type: TensorType) -> str:
    """The name of the function for a type; integers wrap alike.

    >>> from tenfold.types import parse_type
    >>> routine_name(PANELS, parse_type("u32[2]"))
    'tn_panels_i32'
    """
    return f"tn_{kind}_{SHORT[type.dtype].replace('u', 'i')}"


def _in_panels(c: Convolution) -> tuple[list[int], int]:
    """The sizes, behind them the offset of each place of the kernel; and the number of chunks."""
    offsets = _offsets(c)
    lines = _lines(c.out, c.steps, c.rows)
    columns = c.images * lines.span
    column_chunks, row_chunks = -(-columns // COLUMNS), -(-c.rows // ROWS)
    words = [
        c.terms, len(offsets), c.rows, columns, column_chunks, row_chunks,
        *lines.out, *lines.steps, c.groups * c.own, c.channel, c.plane, c.groups, lines.span,
        c.plane if lines.pitch == lines.line else -1,
        lines.slab, lines.pitch, lines.line, lines.lines,
    ]  # fmt: skip
    return [*words, *offsets], c.groups * column_chunks * row_chunks


@frozen
class _Lines:
    """How columns run through the input: extents and steps, the last along neighbours. A slab of
    columns has so many lines, `pitch` apart, each a line of the result."""

    out: tuple[int, ...]
    steps: tuple[int, ...]
    slab: int
    pitch: int
    line: int
    lines: int = 1

    @property
    def span(self) -> int:
        """Columns of an image."""
        return prod(self.out)


def _lines(out: Sequence[int], steps: Sequence[int], rows: int) -> _Lines:
    """Lines of the result that lie side by side in the input are one. So are those with something
    between them, if that is little and rows are few: columns that nobody wants are computed, and
    nothing is packed."""
    slabs, lines, line = out
    outer, pitch, step = steps
    little = pitch == line or (rows <= FOLDED and (pitch - line) * rows <= WASTED * pitch)
    if step == 1 and lines > 1 and line <= pitch and little:
        length = (lines - 1) * pitch + line
        if pitch > line:
            return _Lines((1, slabs, length), (0, outer, 1), length, pitch, line, lines)
        out, steps = (1, slabs, length), (0, outer, 1)
        if outer == length:
            out, steps = (1, 1, slabs * length), (0, 0, 1)
    plane = prod(out)
    return _Lines(tuple(out), tuple(steps), plane, plane, plane)


def _direct(c: Convolution) -> tuple[list[int], int]:
    """The same for what is computed directly: blocks of lines, or of pieces of long ones."""
    (*outer, length), offsets = c.out, _offsets(c)
    outs, all_lines = c.rows * c.groups, prod(outer)
    lines, pieces = max(1, BLOCK // length), -(-length // BLOCK)
    planes = c.images * outs
    words = [
        c.terms, len(offsets), c.rows, c.terms // len(offsets), outs, planes, lines, all_lines,
        pieces, outer[-1], length, *c.steps, c.groups * c.own, c.channel, c.plane,
        c.images * c.groups * c.own,
    ]  # fmt: skip
    return [*words, *offsets], planes * -(-all_lines // lines) * pieces


def _offsets(c: Convolution) -> list[int]:
    """The offset of each place of the kernel."""
    offsets = [0]
    for extent, apart in zip(c.kernel, c.apart, strict=True):
        offsets = [at + n * apart for at in offsets for n in range(extent)]
    return offsets
