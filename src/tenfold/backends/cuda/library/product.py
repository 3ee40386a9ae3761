"""Products of matrices: by cublasLt, or by functions of our own.

The rule is a function of shapes, dtypes and the target alone.

- A product of a real matrix and a vector is our own (`vectors`) where the matrix is long along the
  result: from `LONG` rows on, or where columns lie apart `APART`. So is a batch of `MANY` tiny
  products, of no more than `TINY` rows, columns and terms. The library takes longer for both.
- All others are the library's, if there is one and it has the dtype.
- Else a product with a vector is our own way for such, and all others go by tiles (`tiles`): the
  largest tile of which there are at least `ENOUGH`, to have work for all of a GPU's processors, and
  that is no larger than rows and columns fill; else the smallest. Elements of 8 bytes have tiles of
  no more than 64, those of 16 of 32: registers and shared memory hold no more.

Neighbours are read at a time, 16 bytes or four elements, where arrays begin at multiples of 16
bytes and their lines are whole multiples.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.cuda.library.arithmetic import Parts
from tenfold.backends.cuda.library.cublas_product import CublasProduct, has_library
from tenfold.backends.cuda.library.matrices import MatrixProduct, matrices_of
from tenfold.backends.cuda.library.routine import Found, Given, GpuRoutine, RoutineLaunch
from tenfold.backends.cuda.library.tiles import (
    TILES,
    Operand,
    Tile,
    TileWriter,
    arrays,
    store_if,
    wide,
)
from tenfold.backends.cuda.library.vectors import has_vector, vector_routine
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.writer import SIZES, kind
from tenfold.frozen import frozen
from tenfold.types import TensorType

LONG, APART = 128, 1024  # elements of the result of a product with a vector
MANY, TINY = 128, 32
ENOUGH = 128  # tiles
_LARGEST = {4: 128, 8: 64, 16: 32}  # tiles by the bytes of a sum
_NARROW = ("i8", "u8", "i16")
_PACKED, _COUNT = 16, 4  # bytes of an access at most, and elements


def product_routine(
    types: Sequence[TensorType],
    result: TensorType,
    given: Given,
    *,
    target: CudaTarget,
    aligned: bool = False,
) -> Found | None:
    """The routine of a contraction that is laid out as libraries have it; `aligned` if its arrays
    begin at multiples of 16 bytes."""
    product = matrices_of(types, given)
    return None if product is None else _routine(product, target, aligned)


def product_scratch(types: Sequence[TensorType], given: Given, target: CudaTarget) -> int | None:
    """The bytes of its scratch memory, None where there is no routine."""
    product = matrices_of(types, given)
    found = None if product is None else _routine(product, target, False)
    return None if found is None else found.scratch


def product_words(types: Sequence[TensorType], given: Given, target: CudaTarget) -> str:
    """What a plan says of a product: which library makes it, if one does."""
    product = matrices_of(types, given)
    found = None if product is None else _routine(product, target, False)
    if found is None or isinstance(found, GpuRoutine):
        return ""
    return f"{product}: by {found.made_by}, whose bits are its own"


def _routine(p: MatrixProduct, target: CudaTarget, aligned: bool) -> Found | None:
    if not _is_ours(p) and target.cublas and has_library(p):
        return CublasProduct(p, target.cublas)
    if has_vector(p):
        return vector_routine(p, aligned)
    return tiles_routine(p, aligned)


def _is_ours(p: MatrixProduct) -> bool:
    """Whether a product is our own even where there is a library."""
    if has_vector(p):
        along = p.left if p.n == 1 else not p.right  # the result's axis lies last
        return max(p.m, p.n) >= (APART if along else LONG)
    return p.batch >= MANY and max(p.m, p.n, p.k) <= TINY


@frozen
class ProductForm:
    """What the text of a product by tiles hangs on: dtypes, the tile, which operands lie
    transposed, and how many neighbours of each array are accessed at a time."""

    dtypes: tuple[str, str, str]
    tile: Tile
    left: bool
    right: bool
    counts: tuple[int, int, int]

    @property
    def name(self) -> str:
        turns = "".join("t" if turn else "n" for turn in (self.left, self.right))
        counts = "".join(map(str, self.counts))
        return f"tn_product_{'_'.join(self.dtypes)}_{self.tile.extent}_{turns}_{counts}"


def tiles_routine(p: MatrixProduct, aligned: bool, extent: int = 0) -> GpuRoutine | None:
    """A product by tiles, those of `tile_of` or of this extent; None where there is none of such
    dtypes."""
    if not _has_sums(p.dtypes):
        return None
    tile = TILES[extent or tile_of(p)]
    extents = (p.m if p.left else p.k, p.k if p.right else p.n, p.n)  # along which elements lie
    counts = tuple(
        _count(dtype, extent) if aligned else 1
        for dtype, extent in zip(p.dtypes, extents, strict=True)
    )
    form = ProductForm(p.dtypes, tile, p.left, p.right, (counts[0], counts[1], counts[2]))
    down, across = -(-p.m // tile.extent), -(-p.n // tile.extent)
    words = (p.m, p.n, p.k, across, down * across)
    launch = RoutineLaunch(
        form.name, p.batch * down * across, tile.threads, (0, 1, 2),
        tuple((word, 8) for word in words),
    )  # fmt: skip
    return GpuRoutine(lambda target: ProductWriter(form, target).text(), form.name, (launch,))


def tile_of(p: MatrixProduct) -> int:
    """The extent of the tiles of a product.

    >>> def tile(batch, m, n, dtype="f32"):
    ...     return tile_of(MatrixProduct((dtype,) * 3, batch, m, n, 64, False, False))
    >>> tile(1, 4096, 4096), tile(1, 1024, 1024), tile(1, 64, 64), tile(500, 32, 32)
    (128, 64, 16, 32)
    >>> tile(1, 4096, 4096, "f64"), tile(1, 4096, 4096, "c128")
    (64, 32)
    """
    sizes = sorted(TILES, reverse=True)
    size = SIZES[p.dtype]
    most = _LARGEST[16 if size == 16 else 8 if size == 8 else 4]
    for extent in sizes:
        fills = extent < 2 * min(p.m, p.n) or extent == sizes[-1]
        count = p.batch * -(-p.m // extent) * -(-p.n // extent)
        if extent <= most and fills and count >= ENOUGH:
            return extent
    return sizes[-1]


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


class ProductWriter(TileWriter):
    """The function of one form."""

    def __init__(self, form: ProductForm, target: CudaTarget) -> None:
        super().__init__(form.name, form.tile, form.dtypes[2], target)
        self.form = form

    def parameters(self) -> str:
        sides = zip("abc", self.form.dtypes, self.form.counts, strict=True)
        given = [(name, count * SIZES[dtype] // self.sums.parts) for name, dtype, count in sides]
        return arrays(given) + "".join(f", i64 %{x}" for x in ("m", "n", "k", "across", "tiles"))

    def operands(self) -> tuple[Operand, Operand]:
        w, form, extent = self.w, self.form, self.tile.extent
        block = wide(w, w.call("i32", "llvm.nvvm.read.ptx.sreg.ctaid.x"))
        which, tile = w.op(f"udiv i64 {block}, %tiles"), w.op(f"urem i64 {block}, %tiles")
        self.top = w.op(f"mul i64 {w.op(f'udiv i64 {tile}, %across')}, {extent}")
        self.first = w.op(f"mul i64 {w.op(f'urem i64 {tile}, %across')}, {extent}")
        sizes = [w.op(f"mul i64 %{x}, %{y}") for x, y in ("mk", "kn", "mn")]
        bases = [
            self.sums.place(dtype, f"%{name}", w.op(f"mul i64 {which}, {size}"))
            for name, dtype, size in zip("abc", form.dtypes, sizes, strict=True)
        ]
        self.result = bases[2]
        left = Operand(
            self, "left", form.dtypes[0], bases[0], self.top, "%m", "%m" if form.left else "%k",
            not form.left, form.counts[0],
        )  # fmt: skip
        right = Operand(
            self, "right", form.dtypes[1], bases[1], self.first, "%n",
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
                place = self.sums.place(
                    self.form.dtypes[2], self.result, w.op(f"add i64 {line}, {at}")
                )
                test = w.op(f"and i1 {there}, {inside}")
                store_if(w, test, self.sums, place, sums[n * step : (n + 1) * step])
