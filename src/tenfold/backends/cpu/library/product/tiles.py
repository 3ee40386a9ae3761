"""Tiles: how a product is cut into parts that run in any order, on any number of threads.

The rule is a function of the shape alone, so bits do not depend on threads. Tiles are of rows and
columns of the result; what is added up is never cut among them. A batch of several matrices is cut
between them.

For the library, each tile packs its operands anew, which costs one thread 2 % of the time for two
tiles and 5 % for many small ones: so there are two tiles from 2**21 multiplications on, and twice
as many for each eight times the work. Rows are cut first: the library likes wide tiles. By panels,
the right operand alone is packed: columns are cut first, which costs nothing, from 2**19
multiplications on, and rows where what a tile reads of the left operand would leave the cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from tenfold.backends.cpu.library.product import (
    NARROW_PRODUCT,
    PAIR_PRODUCT,
    PANEL_PRODUCT,
    VECTOR_PRODUCT,
    product_name,
)
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.frozen import frozen
from tenfold.graph.op import PRODUCT
from tenfold.ops.algebra.products import NARROW, SERIAL, turned
from tenfold.types import KIND, SHORT, TensorType

# The kinds of products, as the text knows them.
MATRICES, MATRIX_VECTOR, VECTOR_MATRIX, SYMMETRIC = range(4)

# About what a nanosecond is enough for: multiplications, and bytes of a matrix that is read once.
_EACH, _BYTES = 32, 16
_CUT = 21  # from 2**21 multiplications on there are two tiles
_TWICE = 27  # from 2**27 on, twice as many for each eight times the work
_LONGEST = 1 << 32  # multiplications of a tile: signals are looked for between tiles
_NARROW_CUT, _SUM = 24, 4  # of narrow integers; bytes of a sum of their products
_CUT_PANELS = 19  # by panels: from 2**19 on
_PANEL_CUT, _MOST = 22, 64  # by panels: a tile has 2**22 multiplications, where there are more
_PANEL = 64  # columns of a tile are a multiple of this
_TALL, _FLAT = 512, 256  # rows of a tile: at most, and at least where they are cut for threads
_FEW_ROWS, _FEW_COLUMNS = 16, 32  # with AVX2: up to these panels multiply
_LITTLE = 1 << 25  # multiplications up to which they do, whatever the shape
_PAIRS = 32  # bytes of a row of the result: up to these terms go in pairs
_ENOUGH = 16  # tiles, for which rows are cut
_WHOLE = 4  # matrices of a batch from which on none is cut
_ALIGNED = 32  # rows and columns of a tile are multiples of this
_READ = 1 << 18  # elements of the matrix that a tile of a product with a vector reads
_WIDE = 2048  # columns of such a tile where the matrix is cut between columns: less is slow
WIDEST = 4096  # columns of such a tile, at most: its sums have a place on the stack
_PARTS = 4  # of the rows of a matrix of fewer columns, at most: sums of each are added in order
# Terms that the library adds up of a product with a vector, before what comes of them is added.
# The error grows with how many it adds one after the other: along rows it has eight sums or more,
# vectors of them, else one.
_RUN_ALONG, _RUN_ACROSS = 8 * SERIAL, SERIAL
_TRIANGLE = 512  # rows of a tile of a symmetric product, at most


@frozen
class ProductTiles:
    """A product in tiles: `params` as the text reads them (the kind, about how many nanoseconds
    it takes, and what that kind needs), and the number of tiles."""

    params: tuple[int, ...]
    count: int


def product_tiles(
    types: Sequence[TensorType], given: Mapping[str, Any], same: bool, way: str
) -> ProductTiles:
    """The tiles of a contraction laid out as the library has it; `same`: of a value with itself;
    `way`: how it goes."""
    lhs, rhs = types
    size = lhs.dtype.itemsize
    batch, m, n, k = _extents(types, given)
    left = turned(lhs.rank, given["lhs_batch"], given["lhs_contract"], last=True)
    right = turned(rhs.rank, given["rhs_batch"], given["rhs_contract"], last=False)
    if way == VECTOR_PRODUCT:
        # The matrix lies with the result's axis first, or with the other first.
        kind, first = (MATRIX_VECTOR, not left) if n == 1 else (VECTOR_MATRIX, right)
        return _with_vector(kind, max(m, n), k, first, size)
    whole = KIND[lhs.dtype] in "iu"
    if batch == 1 and same and not whole and given["lhs_contract"] == given["rhs_contract"]:
        rows = min(_TRIANGLE, _half(m))  # two tiles on the diagonal cost as much as one below it
        down = -(-m // rows)
        step = (1 if left else k) * size
        time, ld = m * m * k // (2 * _EACH), m if left else k
        words = (SYMMETRIC, time, int(left), m, k, ld, step, size, rows)
        return ProductTiles(words, down * (down + 1) // 2)
    weight = k * (4 if KIND[lhs.dtype] == "c" else 1)
    rows, columns = m, n
    if way in (PANEL_PRODUCT, PAIR_PRODUCT, NARROW_PRODUCT):
        cut = _NARROW_CUT if way == NARROW_PRODUCT else _PANEL_CUT
        rows, columns = _by_panels(m, n, weight, cut)
    elif batch < _WHOLE:
        rows, columns = _cut(m, n, weight)
    down, across = -(-m // rows), -(-n // columns)
    lanes = 1
    if down * across == 1:
        lanes = min(batch, max(1, (1 << _CUT - 1) // (m * n * weight)))
    lda, ldb = m if left else k, k if right else n
    sizes = size, rhs.dtype.itemsize, _SUM if way == NARROW_PRODUCT else size
    params = (
        MATRICES, batch * m * n * weight // _EACH, left, right, m, n, k, lda, ldb,
        batch, m * k * sizes[0], k * n * sizes[1], m * n * sizes[2],
        rows, columns, lanes, across, down * across,
        (1 if left else k) * sizes[0], (k if right else 1) * sizes[1], sizes[2],
    )  # fmt: skip
    return ProductTiles(tuple(map(int, params)), -(-batch // lanes) * down * across)


def product_way(types: Sequence[TensorType], given: Mapping[str, Any], target: LLVMTarget) -> str:
    """The function that carries a contraction out. Panels multiply matrices of integers, which the
    library does not, and with AVX-512 all of floats. With AVX2 the library is as fast, but where
    there is little work, or there are few rows or columns: it packs operands that are hardly read
    again. Where columns fill but half of a vector, terms go in pairs."""
    if SHORT[types[0].dtype] in NARROW:
        return NARROW_PRODUCT
    batch, m, n, k = _extents(types, given)
    if batch == 1 and min(m, n) == 1:
        return VECTOR_PRODUCT
    if KIND[types[0].dtype] in "iu":
        return PANEL_PRODUCT
    if KIND[types[0].dtype] != "f" or not (target.masked or target.moves):
        return PRODUCT
    if n * types[0].dtype.itemsize <= _PAIRS:
        return PAIR_PRODUCT
    few = m <= _FEW_ROWS or n <= _FEW_COLUMNS or m * n * k <= _LITTLE
    return PANEL_PRODUCT if target.masked or few else PRODUCT


def product_symbol(
    types: Sequence[TensorType], given: Mapping[str, Any], target: LLVMTarget
) -> str:
    """The name of that function."""
    way = product_way(types, given, target)
    dtypes = [SHORT[t.dtype] for t in types]
    return product_name(way, *(dtypes if way == NARROW_PRODUCT else dtypes[:1]))


def _extents(types: Sequence[TensorType], given: Mapping[str, Any]) -> tuple[int, int, int, int]:
    """How many products there are, the rows and columns of each, and the terms of an element."""
    lhs, rhs = types
    batch = prod(lhs.shape[a] for a in given["lhs_batch"])
    k = prod(lhs.shape[a] for a in given["lhs_contract"])
    return batch, lhs.size // (batch * k), rhs.size // (batch * k), k


def _with_vector(kind: int, m: int, k: int, first: bool, size: int) -> ProductTiles:
    """A product with a vector. Its rows are cut where the result's axis comes first in memory. Else
    columns are, if there are many; what is added up to few columns is one tile, which takes parts
    of the rows, each to sums of its own."""
    rows = _READ // k if first else max(_WIDE, _READ // k)
    rows = min(m, WIDEST, max(1, -(-rows // _ALIGNED)) * _ALIGNED)
    steps = (k * size, size) if first else (size, m * size)
    run = _RUN_ALONG if first else _RUN_ACROSS
    parts = 1 if first or rows < m else max(1, min(_PARTS, m * k // _READ))
    span = -(-k // parts)
    parts = -(-k // span)
    time = m * k * size // _BYTES
    params = (kind, time, first, m, k, k if first else m, *steps, size, rows, run, span, parts)
    return ProductTiles(tuple(map(int, params)), -(-m // rows))


def _cut(m: int, n: int, weight: int) -> tuple[int, int]:
    """Rows and columns of the tiles of a product of m by n elements that cost so much each."""
    work = m * n * weight
    if work < 1 << _CUT:
        return m, n
    parts = 2 << max(0, (work.bit_length() - 1 - _TWICE) // 3)
    parts = max(parts, -(-work // _LONGEST))
    rows, columns = m, n
    while parts > 1:
        if 2 * rows >= columns:
            rows = _half(rows)
        else:
            columns = _half(columns)
        parts = -(-parts // 2)
    return rows, columns


def _by_panels(m: int, n: int, weight: int, cut: int) -> tuple[int, int]:
    """The same where panels are multiplied, in tiles of 2**cut multiplications."""
    work = m * n * weight
    if work < 1 << _CUT_PANELS:
        return m, n
    parts = min(_MOST, max(2, work >> cut))
    parts = max(parts, -(-work // _LONGEST))
    down = -(-m // _TALL)
    across = min(-(-n // _PANEL), -(-parts // down))
    down = max(down, min(-(-m // _FLAT), -(-min(parts, _ENOUGH) // across)))
    return _shared(m, down, _ALIGNED), _shared(n, across, _PANEL)


def _shared(extent: int, parts: int, grain: int) -> int:
    return min(extent, -(-extent // (parts * grain)) * grain)


def _half(extent: int) -> int:
    return min(extent, -(-extent // (2 * _ALIGNED)) * _ALIGNED)
