"""Products of matrices by tiles of our own.

The rule is a function of shapes and dtypes alone. Of the tiles that rows and columns fill it is the
largest of which there are `ENOUGH`, to have work for all of a GPU's processors, but for the least.
If there is none, terms are cut into parts of `SPAN` or more, each summed up by blocks of its own:
the largest tile of which there are enough so. A second function adds the parts' sums, in order.
Else it is the least tile. Elements of 8 bytes have tiles of no more than 64, those of 16 of 32:
registers and shared memory hold no more.

Neighbours are read at a time, 16 bytes or four elements, where arrays begin at multiples of 16
bytes and their lines are whole multiples.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.cuda.library.arithmetic import Arithmetic, Parts, sums_of
from tenfold.backends.cuda.library.routine import GpuRoutine, RoutineLaunch
from tenfold.backends.cuda.library.tiles import (
    DEEP,
    TILES,
    Operand,
    Tile,
    TileWriter,
    arrays,
    store_if,
    wide,
)
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.text import Fragment, merged
from tenfold.backends.llvm.writer import SIZES, Writer, kind
from tenfold.backends.matrices import MatrixProduct
from tenfold.frozen import frozen

ENOUGH = 128  # tiles
SPAN = 512  # terms of a part, at least
_LARGEST = {4: 128, 8: 64, 16: 32}  # tiles by the bytes of a sum
_NARROW = ("i8", "u8", "i16")
_PACKED, _COUNT = 16, 4  # bytes of an access at most, and elements
_BLOCK = 256  # threads that add up parts
_WORDS = ("m", "n", "k", "across", "tiles", "batch", "span")


@frozen
class ProductForm:
    """What the text of a product by tiles hangs on: dtypes, the tile, which operands lie
    transposed, how many neighbours of each array are accessed at a time, and whether terms are cut
    into parts."""

    dtypes: tuple[str, str, str]
    tile: Tile
    left: bool
    right: bool
    counts: tuple[int, int, int]
    split: bool

    @property
    def name(self) -> str:
        turns = "".join("t" if turn else "n" for turn in (self.left, self.right))
        counts = "".join(map(str, self.counts))
        how = f"{turns}_{counts}{'_parts' if self.split else ''}"
        return f"tn_product_{'_'.join(self.dtypes)}_{self.tile.extent}_{how}"


def tiles_routine(
    p: MatrixProduct, aligned: bool, cut: tuple[int, int] | None = None
) -> GpuRoutine | None:
    """A product by tiles and parts, those of `cut_of` or these; None where there is none of such
    dtypes."""
    if not _has_sums(p.dtypes):
        return None
    extent, parts = cut or cut_of(p)
    tile = TILES[extent]
    extents = (p.m if p.left else p.k, p.k if p.right else p.n, p.n)  # along which elements lie
    a, b, c = (
        _count(dtype, along) if aligned else 1
        for dtype, along in zip(p.dtypes, extents, strict=True)
    )
    span = -(-p.k // (parts * DEEP)) * DEEP
    parts = -(-p.k // span)
    form = ProductForm(p.dtypes, tile, p.left, p.right, (a, b, c), parts > 1)
    down, across = -(-p.m // tile.extent), -(-p.n // tile.extent)
    words = (p.m, p.n, p.k, across, down * across, p.batch, span)
    blocks = p.batch * parts * down * across
    given = (0, 1, 3 if form.split else 2)
    first = RoutineLaunch(form.name, blocks, tile.threads, given, tuple((x, 8) for x in words))
    if not form.split:
        return GpuRoutine(lambda target: ProductWriter(form, target).text(), form.name, (first,))
    made = p.dtypes[2]
    size = p.batch * p.m * p.n
    name = f"tn_parts_{made}"
    then = RoutineLaunch(
        name, -(-size // _BLOCK), _BLOCK, (3, 2), ((size, 8), (parts, 8)),
    )  # fmt: skip
    scratch = parts * size * SIZES[sums_of(made)]
    return GpuRoutine(
        lambda target: merged(
            (ProductWriter(form, target).text(), parts_text(name, made, target))
        ),
        form.name, (first, then), scratch,
    )  # fmt: skip


def cut_of(p: MatrixProduct) -> tuple[int, int]:
    """The extent of the tiles of a product, and into how many parts its terms are cut.

    >>> def cut(batch, m, n, k, dtype="f32"):
    ...     return cut_of(MatrixProduct((dtype,) * 3, batch, m, n, k, False, False))
    >>> cut(1, 4096, 4096, 64), cut(1, 1024, 1024, 64), cut(1, 64, 64, 64), cut(500, 32, 32, 64)
    ((128, 1), (64, 1), (16, 1), (32, 1))
    >>> cut(1, 4096, 4096, 64, "f64"), cut(1, 4096, 4096, 64, "c128")
    ((64, 1), (32, 1))
    >>> cut(1, 64, 64, 100000), cut(1, 256, 256, 4096)
    ((64, 128), (64, 8))
    """
    least, size = min(TILES), SIZES[p.dtype]
    most = _LARGEST[16 if size == 16 else 8 if size == 8 else 4]
    fit = [
        (extent, p.batch * -(-p.m // extent) * -(-p.n // extent))
        for extent in sorted(TILES, reverse=True)
        if extent <= most and (extent < 2 * min(p.m, p.n) or extent == least)
    ]
    for extent, count in fit:
        if count >= ENOUGH and extent > least:
            return extent, 1
    parts = max(1, p.k // SPAN)
    for extent, count in fit:
        if count * parts >= ENOUGH:
            return extent, min(parts, -(-ENOUGH // count))
    return least, parts


def _has_sums(dtypes: tuple[str, str, str]) -> bool:
    """Whether there are tiles for these: of one dtype, or narrow integers added up in 32 bits."""
    a, b, made = dtypes
    if a == b == made:
        return kind(a) in "fc" or a in ("i32", "u32", "i64", "u64")
    return a in _NARROW and b in _NARROW and made in ("i32", "u32")


def _count(dtype: str, extent: int) -> int:
    """Neighbours that are accessed at a time, where lines have such an extent."""
    most = 1 if kind(dtype) == "c" else min(_COUNT, _PACKED // SIZES[dtype])
    return most if extent % most == 0 else 1


def parts_text(name: str, dtype: str, target: CudaTarget) -> Fragment:
    """The function that adds up the sums of parts: a thread has an element of the result."""
    w = Writer(target.llvm)
    sums = Arithmetic(w, dtype)
    w.label("entry")
    thread = wide(w, w.call("i32", "llvm.nvvm.read.ptx.sreg.tid.x"))
    block = wide(w, w.call("i32", "llvm.nvvm.read.ptx.sreg.ctaid.x"))
    number = w.op(f"add i64 {w.op(f'mul i64 {block}, {_BLOCK}')}, {thread}")
    there = w.op(f"icmp slt i64 {number}, %size")
    here = w.select(there, "i64", number, "0")
    before, head, end = w.block, w.fresh("loop"), w.fresh("end")
    w.put(f"br label %{head}")
    w.label(head)
    part, at = f"%{w.fresh('part')}", f"%{w.fresh('at')}"
    held = [f"%{w.fresh('s')}" for _ in range(sums.parts)]
    phis = len(w.lines)
    w.lines.append("")
    (found,) = sums.load(sums.sums, sums.place(sums.sums, "%parts", at), 1)
    total = sums.total(held, found)
    following, beyond = w.op(f"add i64 {part}, 1"), w.op(f"add i64 {at}, %size")
    w.put(f"br i1 {w.op(f'icmp slt i64 {following}, %count')}, label %{head}, label %{end}")
    lines = [
        f"  {part} = phi i64 [ 0, %{before} ], [ {following}, %{head} ]",
        f"  {at} = phi i64 [ {here}, %{before} ], [ {beyond}, %{head} ]",
    ]
    lines += [
        f"  {a} = phi {sums.ty} [ {sums.zero}, %{before} ], [ {b}, %{head} ]"
        for a, b in zip(held, total, strict=True)
    ]
    w.lines[phis] = "\n".join(lines)
    w.label(end)
    store_if(w, there, sums, sums.place(dtype, "%result", here), [total])
    w.put("ret void")
    given = arrays([("parts", sums.size), ("result", SIZES[dtype] // sums.parts)])
    first = (
        f"define ptx_kernel void @{name}({given}, i64 %size, i64 %count) nounwind "
        f'"nvvm.maxntid"="{_BLOCK}" {{'
    )
    return Fragment(tuple(sorted(w.declared)), "\n".join((first, *w.lines, "}")))


class ProductWriter(TileWriter):
    """The function of one form."""

    def __init__(self, form: ProductForm, target: CudaTarget) -> None:
        made = sums_of(form.dtypes[2]) if form.split else form.dtypes[2]
        self.dtypes = (*form.dtypes[:2], made)
        super().__init__(form.name, form.tile, made, target)
        self.form = form

    def parameters(self) -> str:
        sides = zip("abc", self.dtypes, self.form.counts, strict=True)
        given = [(name, count * SIZES[dtype] // self.sums.parts) for name, dtype, count in sides]
        return arrays(given) + "".join(f", i64 %{x}" for x in _WORDS)

    def operands(self) -> tuple[Operand, Operand]:
        w, form, extent = self.w, self.form, self.tile.extent
        block = wide(w, w.call("i32", "llvm.nvvm.read.ptx.sreg.ctaid.x"))
        number, tile = w.op(f"udiv i64 {block}, %tiles"), w.op(f"urem i64 {block}, %tiles")
        part, which = w.op(f"udiv i64 {number}, %batch"), w.op(f"urem i64 {number}, %batch")
        self.begin = w.op(f"mul i64 {part}, %span")
        self.end = self.least(w.op(f"add i64 {self.begin}, %span"), "%k")
        self.top = w.op(f"mul i64 {w.op(f'udiv i64 {tile}, %across')}, {extent}")
        self.first = w.op(f"mul i64 {w.op(f'urem i64 {tile}, %across')}, {extent}")
        sizes = [w.op(f"mul i64 %{x}, %{y}") for x, y in ("mk", "kn", "mn")]
        bases = [
            self.sums.place(dtype, f"%{name}", w.op(f"mul i64 {at}, {size}"))
            for name, dtype, size, at in zip(
                "abc", self.dtypes, sizes, (which, which, number), strict=True
            )
        ]
        self.result = bases[2]
        left = Operand(
            self, "left", self.dtypes[0], bases[0], self.top, "%m", "%m" if form.left else "%k",
            not form.left, form.counts[0],
        )  # fmt: skip
        right = Operand(
            self, "right", self.dtypes[1], bases[1], self.first, "%n",
            "%k" if form.right else "%n", form.right, form.counts[1],
        )  # fmt: skip
        return left, right

    def store(self, rows: Sequence[str], columns: Sequence[str], found: list[list[Parts]]) -> None:
        w, group = self.w, self.group
        step = group if self.form.counts[2] >= group else 1
        across = []  # places of columns, and whether they are there
        for column in columns:
            first = w.op(f"add i64 {self.first}, {wide(w, column)}")
            for n in range(0, group, step):
                at = w.op(f"add i64 {first}, {n}") if n else first
                across.append((at, w.op(f"icmp slt i64 {at}, %n")))
        for row, sums in zip(rows, found, strict=True):
            down = w.op(f"add i64 {self.top}, {wide(w, row)}")
            there = w.op(f"icmp slt i64 {down}, %m")
            line = w.op(f"mul i64 {down}, %n")
            for n, (at, inside) in enumerate(across):
                place = self.sums.place(self.dtypes[2], self.result, w.op(f"add i64 {line}, {at}"))
                test = w.op(f"and i1 {there}, {inside}")
                store_if(w, test, self.sums, place, sums[n * step : (n + 1) * step])
