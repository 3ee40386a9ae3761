"""Reductions for any size: one code of a general kernel, run with many sizes, has the bits of
kernels that are fixed to each of them; and it takes few codes for all."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from tenfold.backends.cpu.link.compile import module_text, prepare
from tenfold.backends.cpu.schedule.schedule import tune
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.kernel import Builder, Fold, Kernel
from tenfold.kernel.analyse.lanes import rounds
from tenfold.kernel.ir.index import Index
from tenfold.kernel.ir.number import Facts
from tenfold.kernel.passes.generalise import generalise
from tenfold.types import DTYPES
from tests.backends.cpu.running import HOST, Program, every_target, fixed, random, reduction
from tests.kernel.folding import across_lanes, down

Array = np.ndarray[Any, Any]
Shape = tuple[int, int]
# Around lanes, rounds, runs, nests of runs, and chunks.
EXTENTS = [2, 3, 7, 15, 16, 17, 33, 63, 64, 65, 100, 127, 129, 255, 256, 257, 300, 511, 512, 513]
EXTENTS += [1000, 1024, 1025, 2047, 2049, 4096, 4097, 8191, 8192]
LONG = [8193, 8192 * 2 + 300, 8192 * 3, 32_767, 8192 * 5 + 17]


class Codes:
    """The codes of kernels that differ in sizes, each made when no other will do."""

    def __init__(self, target: LLVMTarget = HOST) -> None:
        self.target = target
        self.made: list[Program] = []

    def of(self, kernel: Kernel) -> Program:
        """The program of a kernel, with its sizes."""
        kernel = tune(kernel)
        call = generalise(kernel)
        for one in self.made:
            if one.call.kernel == call.kernel and one.compiled.facts.hold(call.sizes):
                found = copy.copy(one)
                found.kernel, found.call = kernel, call
                found.extent = one.compiled.extent(call)
                return found
        self.made.append(Program(kernel, self.target, tuned=False))
        return self.made[-1]


def softmax(rows: int, columns: int, dtype: str = "f32", axis: int = 1) -> Kernel:
    b = Builder()
    x, out = (b.buffer(dtype, rows * columns, role) for role in ("read", "write"))
    i, j = b.axis(rows), b.axis(columns)
    length = columns if axis else rows
    (first, k), (second, m) = b.reduced(length, 1), b.reduced(length, 2)

    def apart(at: Index) -> int:
        return b.op("sub", dtype, read(at), top)

    def read(at: Index) -> int:
        return b.load(x, i * columns + at if axis else at * columns + j)

    top = b.reduce("max", (first,), read(k))
    total = b.reduce("sum", (second,), b.op("exp", dtype, apart(m)))
    own = b.op("exp", dtype, apart(j if axis else i))
    b.store(out, i * columns + j, b.op("div", dtype, own, total))
    return b.finish()


def layernorm(rows: int, columns: int, dtype: str = "f32") -> Kernel:
    b = Builder()
    x, out = (b.buffer(dtype, rows * columns, role) for role in ("read", "write"))
    i, j = b.axis(rows), b.axis(columns)
    (first, k), (second, m) = b.reduced(columns, 1), b.reduced(columns, 2)
    mean = b.reduce("sum", (first,), b.load(x, i * columns + k))
    apart = b.op("sub", dtype, b.load(x, i * columns + m), mean)
    variance = b.reduce("sum", (second,), b.op("mul", dtype, apart, apart))
    centred = b.op("sub", dtype, b.load(x, i * columns + j), mean)
    b.store(out, i * columns + j, b.op("div", dtype, centred, b.op("sqrt", dtype, variance)))
    return b.finish()


def several(rows: int, columns: int, dtype: str = "f32") -> Kernel:
    """A product, the greatest and where, and a dot product, all in one loop."""
    b = Builder()
    x = b.buffer(dtype, rows * columns)
    outs = [b.buffer(d, rows, "write") for d in (dtype, dtype, "i64", dtype)]
    i, (axis, k) = b.axis(rows), b.reduced(columns, 1)
    value = b.load(x, i * columns + k)
    best = b.reduce("argmax", (axis,), value, b.index(k))
    product = b.reduce("prod", (axis,), value)
    dot = b.reduce("sum", (axis,), b.op("mul", dtype, value, b.load(x, k)))
    for out, made in zip(outs, (product, best, b.state(best, 1), dot), strict=True):
        b.store(out, i, made)
    return b.finish()


def parts(rows: int, columns: int, dtype: str = "f32") -> Kernel:
    """A sum over two axes that lie apart."""
    return reduction("sum", dtype, (3, rows, columns), (0, 2))


def of_a_table(rows: int, length: int, dtype: str = "f32") -> Kernel:
    """Sums of so many rows of a table, by their numbers."""
    words, width = 50, 64
    b = Builder()
    table, ids = b.buffer(dtype, words * width), b.buffer("i32", rows * length)
    out = b.buffer(dtype, rows * width, "write")
    i, d, (axis, t) = b.axis(rows), b.axis(width), b.reduced(length, 1)
    number = b.op("max", "i32", b.load(ids, i * length + t), b.const("i32", 0))
    row = b.as_index(b.op("min", "i32", number, b.const("i32", words - 1)), words)
    b.store(out, i * width + d, b.reduce("sum", (axis,), b.load(table, row * width + d)))
    return b.finish()


def kind(name: str, axis: int = 1) -> Callable[..., Kernel]:
    return lambda rows, columns, dtype="f32": reduction(name, dtype, (rows, columns), (axis,))


MAKERS: dict[str, Callable[..., Kernel]] = {
    "softmax": softmax,
    "softmax down": lambda rows, columns, dtype="f32": softmax(rows, columns, dtype, 0),
    "layernorm": layernorm,
    "several": several,
    "parts": parts,
} | {f"{name} {axis}": kind(name, axis) for axis in (0, 1) for name in
     ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")}  # fmt: skip


def drawn(size: int, dtype: str, seed: int) -> Array:
    """Values with signed zeros, and in some sizes with NaN and infinities."""
    x = random((size,), dtype, seed)
    if DTYPES[dtype].kind in "fcV":
        x[::3] = -0.0
        if seed % 3 == 0:
            x[size // 2 :: 97] = np.inf
        if seed % 3 == 1:
            x[size // 3 :: 101] = np.nan
    return x


def results(program: Program, seed: int) -> list[Array]:
    """What a program writes, for values that are drawn."""
    arrays = []
    for n, buffer in enumerate(program.kernel.buffers):
        if buffer.role == "scratch":
            break
        value = drawn(buffer.size, buffer.dtype, seed + n)
        arrays.append(value if buffer.role == "read" else np.zeros(buffer.size, value.dtype))
    assert program.bind(arrays)() == 0
    return [a for a, b in zip(arrays, program.kernel.buffers, strict=False) if b.role == "write"]


def bits(x: Array) -> bytes:
    """The bits of numbers; any NaN is like any other."""
    if x.dtype.kind in "fcV":
        x = np.where(x != x, np.array(np.nan, x.dtype), x)
    return x.tobytes()


def compare(
    maker: Callable[..., Kernel], shapes: Iterable[Shape], dtype: str, target: LLVMTarget
) -> int:
    """Hold codes for any size to fixed ones; how many of the former there are."""
    codes = Codes(target)
    for rows, columns in shapes:
        kernel = maker(rows, columns, dtype)
        got = results(codes.of(kernel), rows + columns)
        want = results(fixed(kernel, target), rows + columns)
        for a, b in zip(got, want, strict=True):
            assert bits(a) == bits(b), (rows, columns, a, b)
    return len(codes.made)


@every_target
@pytest.mark.parametrize("name", ["softmax", "layernorm", "several", "parts"])
def test_rows_of_any_length_have_the_bits_of_fixed_ones(name: str, target: LLVMTarget) -> None:
    lengths = [2, 16, 17, 65, 257, 1000, 2049] + ([8192 * 3 + 5] if name == "several" else [])
    shapes = [(3, n) for n in lengths] + [(700, 70), (301, 300)]
    assert compare(MAKERS[name], shapes, "f32", target) <= 7


@every_target
@pytest.mark.parametrize("name", ["softmax down", "sum 0", "argmax 0"])
def test_columns_of_any_length_have_the_bits_of_fixed_ones(name: str, target: LLVMTarget) -> None:
    shapes = [(n, 5) for n in (2, 17, 65, 300)] + [(n, 300) for n in (37, 130, 4099)]
    assert compare(MAKERS[name], shapes, "f32", target) <= 6


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16", "i32", "u8", "c64"])
@pytest.mark.parametrize("name", ["sum 0", "sum 1", "prod 1", "max 1", "argmin 1"])
def test_other_types_have_the_bits_of_fixed_kernels(name: str, dtype: str) -> None:
    if dtype == "c64" and not name.startswith(("sum", "prod")):
        pytest.skip("complex numbers have no order")
    shapes = [(3, n) for n in (2, 17, 70, 300, 8200, 11_000)]
    if name.endswith("0"):
        shapes = [(columns, rows) for rows, columns in shapes]
    compare(MAKERS[name], shapes, dtype, HOST)


@every_target
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_few_codes_have_the_tree_of_every_length(dtype: str, target: LLVMTarget) -> None:
    codes = Codes(target)
    for length in EXTENTS + LONG:
        program = codes.of(reduction("sum", dtype, (3, length), (1,)))
        x, out = random((3, length), dtype, length), np.empty(3, DTYPES[dtype])
        assert program.bind([x, out, np.empty(3, np.int64)])() == 0
        packed = None not in rounds(program.kernel).values()
        want = across_lanes(x, Fold()) if packed else down(x.T, Fold())
        assert bits(out) == bits(want), length
    # Lanes across rows, of 2 and of 3 × 3; along them: one chunk, a few, many, many whole ones.
    assert len(codes.made) <= 6


def code_count(maker: Callable[..., Kernel], shapes: Iterable[Shape], target: LLVMTarget) -> int:
    """How many codes a kernel takes at most, by the facts of each; nothing is compiled. Where
    extents are equal it is another kernel."""
    known: dict[Kernel, list[Facts]] = {}
    for shape in shapes:
        call = generalise(tune(maker(*shape)))
        found = known.setdefault(call.kernel, [])
        if not any(facts.hold(call.sizes) for facts in found):
            found.append(prepare(call, target)[1].facts)
    return max(map(len, known.values()))


def shapes_of(count: int, fits: Callable[[int, int], bool]) -> list[Shape]:
    rng, found = np.random.default_rng(7), list[Shape]()
    while len(found) < count:
        rows, columns = (int(n) for n in 2 ** rng.uniform(1, 12, 2))
        if fits(rows, columns):
            found.append((rows, columns))
    return found


@every_target
@pytest.mark.parametrize("name", MAKERS)
def test_small_kernels_take_one_code_for_each_choice_of_lanes(
    name: str, target: LLVMTarget
) -> None:
    few = shapes_of(60, lambda rows, columns: rows * columns * 3 < 1 << 15 and columns <= 8192)
    assert code_count(MAKERS[name], few, target) <= 2


@every_target
@pytest.mark.parametrize("name", MAKERS)
def test_large_kernels_take_few_codes(name: str, target: LLVMTarget) -> None:
    columns = [(4096, n) for n in range(65, 2000, 97)]
    heavy = name.startswith("softmax")  # of which the vectors of the last round are counted
    assert code_count(MAKERS[name], columns, target) <= (12 if heavy else 8)
    rows = [(n, 1000) for n in range(2000, 4000, 83)]
    assert code_count(MAKERS[name], rows, target) <= 2


@every_target
def test_rows_that_do_not_lie_along_lanes_are_not_written_out(target: LLVMTarget) -> None:
    """A batch of vectors by matrices: lanes lie along the columns, and rows are added."""

    def product(rows: int, _: int) -> Kernel:
        b = Builder()
        x, y = b.buffer("f32", 12 * rows), b.buffer("f32", 12 * rows * 64)
        out = b.buffer("f32", 12 * 64, "write")
        i, j = b.axis(12), b.axis(64)
        r, k = b.reduced(rows, 1)
        terms = b.op("mul", "f32", b.load(x, i * rows + k), b.load(y, (i * rows + k) * 64 + j))
        b.store(out, i * 64 + j, b.reduce("sum", (r,), terms))
        return b.finish()

    assert code_count(product, [(rows, 0) for rows in range(43, 200)], target) <= 4


@every_target
def test_rows_that_fill_vectors_overlap_where_there_are_no_masks(target: LLVMTarget) -> None:
    """A small pointwise kernel takes one code for long rows and one for short, or one for all;
    none has masked moves in it for rows that need none."""

    def doubled(rows: int, columns: int, dtype: str = "f32") -> Kernel:
        b = Builder()
        x, row = b.buffer(dtype, rows * columns), b.buffer(dtype, columns)
        out = b.buffer(dtype, rows * columns, "write")
        i, j = b.axis(rows), b.axis(columns)
        value = b.op("mul", dtype, b.load(x, i * columns + j), b.load(row, j))
        b.store(out, i * columns + j, value)
        return b.finish()

    shapes = [(30, n) for n in (16, 17, 31, 33, 60, 100)]
    assert compare(doubled, shapes, "f32", target) == 1
    assert compare(doubled, [*shapes, (8, 12), (8, 15)], "f32", target) <= 2
    code, _ = prepare(generalise(tune(doubled(30, 60))), target)
    text = module_text([code], target)
    assert target.masked or not ("masked" in text or "tenfold.lanes" in text)


@every_target
def test_no_vector_is_computed_in_vain_in_the_last_round(target: LLVMTarget) -> None:
    """Rows with as many vectors in the last round share a code; their bits are the fixed one's."""
    few = [(200, n) for n in (1001, 1003, 1005)]  # 15 rounds, and 3 vectors
    assert compare(softmax, few, "f32", target) == 1
    more = [(200, n) for n in (961, 977, 993, 1009)]  # 1, 2, 3 and 4 vectors
    assert compare(softmax, [*few, *more], "f32", target) == 4


@every_target
def test_how_many_rows_of_a_table_are_added_is_fixed_where_registers_are_short(
    target: LLVMTarget,
) -> None:
    shapes = [(200, n) for n in (40, 48, 56)]
    assert compare(of_a_table, shapes, "f32", target) == (3 if target.vector_bytes == 16 else 1)
    more = [(200, n) for n in (72, 80)]
    assert compare(of_a_table, more, "f32", target) == 1
