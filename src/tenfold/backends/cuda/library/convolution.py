"""Convolutions without padding, over one to three axes.

A convolution is a product for each group: rows are its out channels, columns the places of the
result in all images, terms the channels of the group times the places of the kernel. The input is
not laid out for that: a block reads what its tile needs as it lies (`tiles`), by the place where a
column begins and the offset of each term, which a first function has put into scratch memory. With
no more than `FEW` out channels in a group a tile would be mostly empty: there each thread has one
element of the result (`direct`).

The rule is a function of shapes and dtypes alone. Terms are added in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenfold.backends.convolutions import OFFSETS, PLACES, Convolution, convolution_of
from tenfold.backends.cuda.library.arithmetic import GLOBAL, Arithmetic, Parts
from tenfold.backends.cuda.library.product_tiles import cut_of
from tenfold.backends.cuda.library.routine import GpuRoutine, RoutineLaunch
from tenfold.backends.cuda.library.tiles import (
    TILES,
    Operand,
    Tile,
    TileWriter,
    arrays,
    store_if,
    wide,
)
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.text import Fragment
from tenfold.backends.llvm.writer import SIZES, Writer
from tenfold.backends.matrices import MatrixProduct
from tenfold.frozen import frozen
from tenfold.types import TensorType

FEW = 4  # out channels of a group
_BLOCK, _AHEAD = 256, 4  # threads; terms that are read at a time
_OFFSET = 8  # bytes
_PACKED = 16  # bytes of an access
_OFFSETS = "tn_convolution_offsets"


def convolution_routine(
    types: Sequence[TensorType],
    result: TensorType | None,
    given: Mapping[str, Any],
    *,
    aligned: bool = False,
) -> GpuRoutine | None:
    """The routine of a convolution; None where there is none for its dtype or number of axes."""
    sizes = convolution_of(types, given)
    if sizes is None:
        return None
    dtype, scratch = sizes.dtype, _OFFSET * sizes.terms
    if sizes.rows <= FEW:
        name = f"tn_convolution_direct_{dtype}"
        size, outs = sizes.results, sizes.rows * sizes.groups
        words = (size, sizes.terms, outs, sizes.rows, sizes.own, *sizes.places)
        launch = RoutineLaunch(
            name, -(-size // _BLOCK), _BLOCK, (0, 1, 2, 3), tuple((n, 8) for n in words)
        )
        return GpuRoutine(
            lambda target: _joined(_Direct(name, dtype, target).text(), target), name,
            (_offsets(sizes), launch), scratch,
        )  # fmt: skip
    # Terms are not cut into parts: a tile is chosen as if there were one.
    product = MatrixProduct((dtype,) * 3, sizes.groups, sizes.rows, sizes.columns, 1, False, False)
    tile = TILES[cut_of(product)[0]]
    packed = _PACKED // SIZES[dtype]
    form = _Form(
        dtype, tile, packed if aligned and sizes.terms % packed == 0 else 1,
        packed if aligned and sizes.plane % packed == 0 else 1,
    )  # fmt: skip
    down, across = -(-sizes.rows // tile.extent), -(-sizes.columns // tile.extent)
    words = (
        sizes.rows, sizes.columns, sizes.terms, across, down * across, sizes.groups, sizes.own,
        *sizes.places,
    )  # fmt: skip
    launch = RoutineLaunch(
        form.name, sizes.groups * down * across, tile.threads, (0, 1, 2, 3),
        tuple((n, 8) for n in words),
    )  # fmt: skip
    return GpuRoutine(
        lambda target: _joined(_Tiles(form, target).text(), target), form.name,
        (_offsets(sizes), launch), scratch,
    )  # fmt: skip


def _offsets(sizes: Convolution) -> RoutineLaunch:
    """The launch that puts the offsets of terms into scratch memory."""
    words = (sizes.terms, *sizes.offsets)
    blocks = -(-sizes.terms // _BLOCK)
    return RoutineLaunch(_OFFSETS, blocks, _BLOCK, (3,), tuple((n, 8) for n in words))


def _joined(one: Fragment, target: CudaTarget) -> Fragment:
    """A function, and the one that is launched before it."""
    other = _offsets_text(target)
    both = dict.fromkeys((*one.declarations, *other.declarations))
    return Fragment(tuple(both), f"{other.body}\n{one.body}")


def _offsets_text(target: CudaTarget) -> Fragment:
    """The function that puts the offset of each term from where a column begins into memory."""
    w = Writer(target.llvm)
    w.label("entry")
    term = _number(w, w.call("i32", "llvm.nvvm.read.ptx.sreg.tid.x"))
    there = w.op(f"icmp slt i64 {term}, %k")
    channel, tap = _divided(w, term, "%taps")
    far, last = _divided(w, tap, "%kernel2")
    first, middle = _divided(w, far, "%kernel1")
    at = w.op(f"mul i64 {channel}, %channel")
    for n, x in enumerate((first, middle, last)):
        at = w.op(f"add i64 {at}, {w.op(f'mul i64 {x}, %apart{n}')}")
    place = w.op(f"getelementptr i64, {GLOBAL} %offsets, i64 {term}")
    yes, no = w.fresh("in"), w.fresh("out")
    w.put(f"br i1 {there}, label %{yes}, label %{no}")
    w.label(yes)
    w.put(f"store i64 {at}, {GLOBAL} {place}, align {_OFFSET}")
    w.put(f"br label %{no}")
    w.label(no)
    w.put("ret void")
    given = f"{arrays([('offsets', _OFFSET)])}, i64 %k"
    given += "".join(f", i64 %{name}" for name in OFFSETS)
    return _function(w, _OFFSETS, given, _BLOCK)


def _function(w: Writer, name: str, given: str, threads: int) -> Fragment:
    head = f'define ptx_kernel void @{name}({given}) nounwind "nvvm.maxntid"="{threads}" {{'
    return Fragment(tuple(sorted(w.declared)), "\n".join((head, *w.lines, "}")))


def _number(w: Writer, thread: str) -> str:
    """The number of a thread among those of all blocks."""
    block = wide(w, w.call("i32", "llvm.nvvm.read.ptx.sreg.ctaid.x"))
    return w.op(f"add i64 {w.op(f'mul i64 {block}, {_BLOCK}')}, {wide(w, thread)}")


def _divided(w: Writer, x: str, by: str) -> tuple[str, str]:
    quotient = w.op(f"udiv i64 {x}, {by}")
    return quotient, w.op(f"sub i64 {x}, {w.op(f'mul i64 {quotient}, {by}')}")


def _begins(w: Writer, image: str, place: str) -> str:
    """Where the input that a place of the result sees begins, from the group's own."""
    far, last = _divided(w, place, "%out2")
    first, middle = _divided(w, far, "%out1")
    at = w.op(f"mul i64 {image}, %image")
    for n, x in enumerate((first, middle, last)):
        at = w.op(f"add i64 {at}, {w.op(f'mul i64 {x}, %step{n}')}")
    return at


def _offset_of(w: Writer, term: str) -> str:
    place = w.op(f"getelementptr i64, {GLOBAL} %offsets, i64 {term}")
    return w.op(f"load i64, {GLOBAL} {place}, align {_OFFSET}")


@frozen
class _Form:
    """What the text of a convolution by tiles hangs on: the dtype, the tile, and how many
    neighbours of the kernel and of the result are accessed at a time."""

    dtype: str
    tile: Tile
    read: int
    stored: int

    @property
    def name(self) -> str:
        return f"tn_convolution_{self.dtype}_{self.tile.extent}_{self.read}{self.stored}"


class _Tiles(TileWriter):
    def __init__(self, form: _Form, target: CudaTarget) -> None:
        super().__init__(form.name, form.tile, form.dtype, target)
        self.form = form

    def parameters(self) -> str:
        size = SIZES[self.form.dtype]
        given = arrays(
            [("x", size), ("w", size * self.form.read), ("y", size * self.form.stored),
             ("offsets", _OFFSET)]
        )  # fmt: skip
        words = ("m", "n", "k", "across", "tiles", "groups", "own", *PLACES)
        return given + "".join(f", i64 %{name}" for name in words)

    def operands(self) -> tuple[Operand, Operand]:
        w, extent, dtype = self.w, self.tile.extent, self.form.dtype
        block = wide(w, w.call("i32", "llvm.nvvm.read.ptx.sreg.ctaid.x"))
        self.which, tile = _divided(w, block, "%tiles")
        down, along = _divided(w, tile, "%across")
        self.top, self.first = (w.op(f"mul i64 {n}, {extent}") for n in (down, along))
        lines = w.op(f"mul i64 {self.which}, %m")
        kernel = self.sums.place(dtype, "%w", w.op(f"mul i64 {lines}, %k"))
        left = Operand(self, "left", dtype, kernel, self.top, "%m", "%k", True, self.form.read)
        seen = self.sums.place(dtype, "%x", w.op(f"mul i64 {self.which}, %own"))
        return left, _Seen(self, seen)

    def store(self, rows: Sequence[str], columns: Sequence[str], found: list[list[Parts]]) -> None:
        w, group, dtype = self.w, self.group, self.form.dtype
        step = group if self.form.stored >= group else 1
        outs = w.op("mul i64 %m, %groups")
        top = w.op(f"add i64 {w.op(f'mul i64 {self.which}, %m')}, {self.top}")
        across = []  # where columns go, from a row's own, and whether they are there
        for column in columns:
            begun = w.op(f"add i64 {self.first}, {wide(w, column)}")
            for n in range(0, group, step):
                at = w.op(f"add i64 {begun}, {n}") if n else begun
                image, place = _divided(w, at, "%plane")
                lines = w.op(f"mul i64 {image}, {outs}")
                to = w.op(f"add i64 {w.op(f'mul i64 {lines}, %plane')}, {place}")
                across.append((to, w.op(f"icmp slt i64 {at}, %n")))
        for row, sums in zip(rows, found, strict=True):
            here = w.op(f"add i64 {self.top}, {wide(w, row)}")
            there = w.op(f"icmp slt i64 {here}, %m")
            line = w.op(f"mul i64 {w.op(f'add i64 {top}, {wide(w, row)}')}, %plane")
            for n, (to, inside) in enumerate(across):
                place = self.sums.place(dtype, "%y", w.op(f"add i64 {line}, {to}"))
                test = w.op(f"and i1 {there}, {inside}")
                store_if(w, test, self.sums, place, sums[n * step : (n + 1) * step])


class _Seen(Operand):
    """The input as columns of terms."""

    def __init__(self, of: _Tiles, base: str) -> None:
        super().__init__(of, "right", of.form.dtype, base, of.first, "%n", "", False, 1)

    def line(self, at: str) -> str:
        image, place = _divided(self.w, at, "%plane")
        return _begins(self.w, image, place)

    def load(self, place: str, term: str) -> list[Parts]:
        offset = _offset_of(self.w, self.near(term, "%k", 1))
        return self.sums.load(self.dtype, self.sums.place(self.dtype, place, offset), 1)


class _Direct:
    """One element of the result for each thread."""

    def __init__(self, name: str, dtype: str, target: CudaTarget) -> None:
        self.name, self.dtype = name, dtype
        self.w = Writer(target.llvm)
        self.sums = Arithmetic(self.w, dtype)

    def text(self) -> Fragment:
        w, sums, dtype = self.w, self.sums, self.dtype
        w.label("entry")
        number = _number(w, w.call("i32", "llvm.nvvm.read.ptx.sreg.tid.x"))
        there = w.op(f"icmp slt i64 {number}, %n")
        here = w.select(there, "i64", number, w.op("sub i64 %n, 1"))
        lines, place = _divided(w, here, "%plane")
        image, out = _divided(w, lines, "%outs")
        group = w.op(f"udiv i64 {out}, %rows")
        at = w.op(f"add i64 {w.op(f'mul i64 {group}, %own')}, {_begins(w, image, place)}")
        seen = sums.place(dtype, "%x", at)
        kernel = sums.place(dtype, "%w", w.op(f"mul i64 {out}, %k"))
        before, head, end = w.block, w.fresh("loop"), w.fresh("end")
        w.put(f"br label %{head}")
        w.label(head)
        start, held = f"%{w.fresh('k')}", f"%{w.fresh('s')}"
        phis = len(w.lines)
        w.lines.append("")
        last = w.op("sub i64 %k, 1")
        read: list[tuple[Parts, Parts]] = []
        for n in range(_AHEAD):
            term = w.op(f"add i64 {start}, {n}") if n else start
            inside = w.op(f"icmp sle i64 {term}, {last}")
            near = w.select(inside, "i64", term, last)
            places = (
                sums.place(dtype, seen, _offset_of(w, near)), sums.place(dtype, kernel, near)
            )  # fmt: skip
            a, b = (sums.chosen(inside, sums.load(dtype, p, 1)[0]) for p in places)
            read.append((a, b))
        found: Parts = [held]
        for a, b in read:
            found = sums.add_product(found, a, b)
        following = w.op(f"add i64 {start}, {_AHEAD}")
        latch = w.block
        w.put(f"br i1 {w.op(f'icmp slt i64 {following}, %k')}, label %{head}, label %{end}")
        w.lines[phis] = (
            f"  {start} = phi i64 [ 0, %{before} ], [ {following}, %{latch} ]\n"
            f"  {held} = phi {sums.ty} [ {sums.zero}, %{before} ], [ {found[0]}, %{latch} ]"
        )
        w.label(end)
        store_if(w, there, sums, sums.place(dtype, "%y", here), [found])
        w.put("ret void")
        size = SIZES[dtype]
        given = arrays([("x", size), ("w", size), ("y", size), ("offsets", _OFFSET)])
        words = ("n", "k", "outs", "rows", "own", *PLACES)
        given += "".join(f", i64 %{name}" for name in words)
        return _function(w, self.name, given, _BLOCK)
