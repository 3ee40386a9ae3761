"""Kernels without reductions for any size: one code of a general kernel, run with many sizes,
gives what a plain interpreter does; and it takes few codes for all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.backends.cpu.link.compile import CompiledKernel, module_text, prepare
from tenfold.backends.cpu.schedule.schedule import tune
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.kernel import Builder, Kernel
from tenfold.kernel.ir.kernel import SEQUENTIAL
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.kernel.passes.generalise import generalise
from tenfold.types import DTYPES
from tests.backends.cpu.running import HOST, TARGETS, Program, every_target, random
from tests.kernel.interpret import interpret

Array = np.ndarray[Any, Any]
MARGIN = 4096  # bytes around each array, which nobody may touch
SEVERAL = [2, 3, 7, 8, 15, 16, 17, 31, 33, 48, 63, 64, 65, 100, 127, 128, 129, 200, 255, 257]
LONG = [1000, 1023, 1024, 1025, 2049, 8191, 8192, 8193]


# Each maker gives a kernel of one form, whose sizes follow from one number or two.


def plain(n: int, dtype: str = "f32") -> Kernel:
    b = Builder()
    x, y, out = b.buffer(dtype, n), b.buffer(dtype, n), b.buffer(dtype, n, "write")
    i = b.axis(n)
    b.store(out, i, b.op("add", dtype, b.load(x, i), b.load(y, i)))
    return b.finish()


def heavy(n: int, dtype: str = "f32") -> Kernel:
    """Several vectors at once."""
    b = Builder()
    x, out = b.buffer(dtype, n), b.buffer(dtype, n, "write")
    i = b.axis(n)
    value = b.load(x, i)
    for _ in range(9):
        value = b.op("sqrt", dtype, b.op("abs", dtype, value))
    b.store(out, i, value)
    return b.finish()


def row(n: int, dtype: str = "f32", rows: int = 12) -> Kernel:
    """A row added to each."""
    b = Builder()
    x, y = b.buffer(dtype, rows * n), b.buffer(dtype, n)
    out = b.buffer(dtype, rows * n, "write")
    i, j = b.axis(rows), b.axis(n)
    b.store(out, i * n + j, b.op("add", dtype, b.load(x, i * n + j), b.load(y, j)))
    return b.finish()


def rows(n: int, dtype: str = "f32") -> Kernel:
    return row(70, dtype, n)


def column(n: int, dtype: str = "f32", width: int = 70) -> Kernel:
    b = Builder()
    x, y = b.buffer(dtype, n * width), b.buffer(dtype, n)
    out = b.buffer(dtype, n * width, "write")
    i, j = b.axis(n), b.axis(width)
    at = i * width + j
    b.store(out, at, b.op("sub", dtype, b.load(x, at), b.load(y, i)))
    return b.finish()


def cache(n: int, dtype: str = "f32", heads: int = 7, width: int = 40) -> Kernel:
    """What is kept of earlier steps, with one more."""
    b = Builder()
    x, y = b.buffer(dtype, heads * n * width), b.buffer(dtype, heads * width)
    out = b.buffer(dtype, heads * (n + 1) * width, "write")
    h, t, d = b.axis(heads), b.axis(n + 1), b.axis(width)
    here, there = b.inside(t, 0, n), b.inside(t - n, 0, 1)
    old = b.load(x, h * (n * width) + t * width + d, here)
    b.store(
        out,
        h * ((n + 1) * width) + t * width + d,
        b.select(here, old, b.load(y, h * width + d, there)),
    )
    return b.finish()


def joined(n: int, dtype: str = "f32", right: int = 41, count: int = 9) -> Kernel:
    b = Builder()
    whole = n + right
    x, y = b.buffer(dtype, count * n), b.buffer(dtype, count * right)
    out = b.buffer(dtype, count * whole, "write")
    i, j = b.axis(count), b.axis(whole)
    here, there = b.inside(j, 0, n), b.inside(j - n, 0, right)
    one, two = b.load(x, i * n + j, here), b.load(y, i * right + j - n, there)
    b.store(out, i * whole + j, b.select(here, one, two))
    return b.finish()


def padded(n: int, dtype: str = "f32", count: int = 9, before: int = 3) -> Kernel:
    b = Builder()
    whole = n + before + 2
    x, out = b.buffer(dtype, count * n), b.buffer(dtype, count * whole, "write")
    i, j = b.axis(count), b.axis(whole)
    there = b.inside(j - before, 0, n)
    value = b.select(there, b.load(x, i * n + j - before, there), b.const(dtype, 1))
    b.store(out, i * whole + j, value)
    return b.finish()


def stencil(n: int, dtype: str = "f32", count: int = 9) -> Kernel:
    b = Builder()
    x, out = b.buffer(dtype, count * n), b.buffer(dtype, count * n, "write")
    i, j = b.axis(count), b.axis(n)
    total = b.load(x, i * n + j)
    for shift in (-1, 1):
        there = b.inside(j + shift, 0, n)
        near = b.select(there, b.load(x, i * n + j + shift, there), b.const(dtype, 0))
        total = b.op("add", dtype, total, near)
    b.store(out, i * n + j, total)
    return b.finish()


def slices(n: int, dtype: str = "f32", step: int = 3, first: int = 5) -> Kernel:
    """Every so many, from somewhere on."""
    b = Builder()
    x, out = b.buffer(dtype, n * step + first), b.buffer(dtype, n, "write")
    i = b.axis(n)
    at = i * step + first
    b.store(out, i, b.op("max", dtype, b.load(x, at), b.load(x, at - 2)))
    return b.finish()


def backwards(n: int, dtype: str = "f32", step: int = 1) -> Kernel:
    b = Builder()
    x, out = b.buffer(dtype, n * step), b.buffer(dtype, n, "write")
    i = b.axis(n)
    b.store(out, i, b.load(x, i * -step + (n - 1) * step))
    return b.finish()


def transposed(n: int, dtype: str = "f32", width: int = 50) -> Kernel:
    b = Builder()
    x, z = b.buffer(dtype, n * width), b.buffer(dtype, n * width)
    out = b.buffer(dtype, n * width, "write")
    i, j = b.axis(n), b.axis(width)
    value = b.op("add", dtype, b.load(x, j * n + i), b.load(z, i * width + j))
    b.store(out, i * width + j, value)
    return b.finish()


def gathered(n: int, dtype: str = "f32", words: int = 300) -> Kernel:
    b = Builder()
    x, places = b.buffer(dtype, words), b.buffer("i64", n)
    out = b.buffer(dtype, n, "write")
    i = b.axis(n)
    b.store(out, i, b.load(x, b.as_index(_clipped(b, b.load(places, i), words), words)))
    return b.finish()


def looked_up(n: int, dtype: str = "f32", words: int = 30, width: int = 40) -> Kernel:
    b = Builder()
    x, places = b.buffer(dtype, words * width), b.buffer("i32", n)
    out = b.buffer(dtype, n * width, "write")
    i, j = b.axis(n), b.axis(width)
    place = b.as_index(_clipped(b, b.load(places, i), words, "i32"), words)
    b.store(out, i * width + j, b.load(x, place * width + j))
    return b.finish()


def added(n: int, dtype: str = "f32", words: int = 20) -> Kernel:
    """Added up in order at computed places."""
    b = Builder()
    x, places = b.buffer(dtype, n), b.buffer("i64", n)
    out = b.buffer(dtype, words, "both")
    i = b.axis(n, SEQUENTIAL)
    place = b.as_index(_clipped(b, b.load(places, i), words), words)
    b.store(out, place, b.load(x, i), update="add")
    return b.finish()


def tiny(n: int, dtype: str = "f32", width: int = 3) -> Kernel:
    return row(width, dtype, n)


def repeated(n: int, dtype: str = "f32", width: int = 24) -> Kernel:
    """By quotient and remainder of a flat position."""
    b = Builder()
    x, y, z = b.buffer(dtype, n * width), b.buffer(dtype, width), b.buffer(dtype, n)
    out = b.buffer(dtype, n * width, "write")
    i = b.axis(n * width)
    value = b.op("add", dtype, b.load(x, i), b.load(y, i % width))
    b.store(out, i, b.op("sub", dtype, value, b.load(z, i // width)))
    return b.finish()


def numbered(n: int, dtype: str = "i32") -> Kernel:
    b = Builder()
    out = b.buffer(dtype, n * 37, "write")
    i, j = b.axis(n), b.axis(37)
    b.store(out, i * 37 + j, b.op("sub", dtype, b.index(i * 2 + 1, dtype), b.index(j, dtype)))
    return b.finish()


def cut(n: int, dtype: str = "f32", right: int = 41, period: int = 32) -> Kernel:
    """Two parts, the second of which begins within the period of a third array."""
    b = Builder()
    x, y, z = b.buffer(dtype, n), b.buffer(dtype, right), b.buffer(dtype, period)
    out = b.buffer(dtype, n + right, "write")
    i = b.axis(n + right)
    here, there = b.inside(i, 0, n), b.inside(i - n, 0, right)
    one = b.select(here, b.load(x, i, here), b.load(y, i - n, there))
    b.store(out, i, b.op("add", dtype, one, b.load(z, i % period)))
    return b.finish()


def divided(n: int, dtype: str = "i32", step: int = 4_999_999, divisor: int = 97) -> Kernel:
    """Quotients and remainders of numbers up to some hundred millions."""
    b = Builder()
    out = b.buffer(dtype, n, "write")
    i = b.axis(n)
    where = i * step + 12_345
    parts = b.index(where // divisor, dtype), b.index(where % divisor, dtype)
    b.store(out, i, b.op("xor", dtype, *parts))
    return b.finish()


def _clipped(b: Builder, place: int, count: int, dtype: str = "i64") -> int:
    low = b.op("max", dtype, place, b.const(dtype, 0))
    return b.op("min", dtype, low, b.const(dtype, count - 1))


MAKERS: list[Callable[..., Kernel]] = [
    plain, heavy, row, rows, column, cache, joined, padded, stencil, slices, backwards,
    transposed, gathered, looked_up, added, tiny, repeated, numbered, cut, divided,
]  # fmt: skip
every_maker = pytest.mark.parametrize("maker", MAKERS, ids=lambda m: m.__name__)


class Codes:
    """The codes of kernels that differ in sizes, each made when no other will do."""

    def __init__(self, target: LLVMTarget, compiled: bool = True) -> None:
        self.target, self.compiled = target, compiled
        self.made: list[tuple[SizedKernel, CompiledKernel, Program | None]] = []

    def of(self, kernel: Kernel) -> tuple[SizedKernel, Program | None]:
        kernel = tune(kernel)
        call = generalise(kernel)
        for other, found, program in self.made:
            if other.kernel == call.kernel and found.facts.hold(call.sizes):
                return call, program
        program = Program(kernel, self.target, tuned=False) if self.compiled else None
        found = prepare(call, self.target)[1] if program is None else program.compiled
        self.made.append((call, found, program))
        return call, program

    def run(self, kernel: Kernel, seed: int = 0) -> None:
        """Hold what a code gives to what an interpreter does."""
        call, program = self.of(kernel)
        assert program is not None
        arrays = inputs(kernel, seed)
        want = [a.copy() for a in arrays]
        if kernel.stores[0].update:  # in order, which the interpreter is not
            x, places, out = want
            np.add.at(out, np.clip(places, 0, out.size - 1), x)
        else:
            interpret(kernel, want)
        with_margins = [np.full(a.nbytes + 2 * MARGIN, 0xA5, np.uint8) for a in arrays]
        given = [m[MARGIN:-MARGIN].view(a.dtype) for m, a in zip(with_margins, arrays, strict=True)]
        for a, b in zip(given, arrays, strict=True):
            a[:] = b
        used = program.kernel, program.call, program.extent
        program.kernel, program.call = call.fixed, call
        program.extent = program.compiled.extent(call)
        assert program.bind(given)() == 0
        program.kernel, program.call, program.extent = used
        for n, (got, wanted) in enumerate(zip(given, want, strict=True)):
            np.testing.assert_array_equal(got, wanted, f"b{n} of {kernel}")
        for margins in with_margins:
            assert (margins[:MARGIN] == 0xA5).all()
            assert (margins[-MARGIN:] == 0xA5).all()


def inputs(kernel: Kernel, seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    found = []
    for n, b in enumerate(kernel.buffers):
        if b.dtype in ("i64", "i32") and n == 1:  # places, some of them alike and some outside
            found.append(np.sort(rng.integers(-2, 310, b.size)).astype(DTYPES[b.dtype]))
        elif b.role == "write":
            found.append(np.zeros(b.size, DTYPES[b.dtype]))
        else:
            found.append(random((b.size,), b.dtype, seed + n))
    return found


def count(maker: Callable[..., Kernel], sizes: Iterable[int], target: LLVMTarget) -> int:
    """How many codes it takes, of those kernels that have the same form as most."""
    codes = Codes(target, compiled=False)
    forms: dict[Kernel, int] = {}
    for n in sizes:
        call, _ = codes.of(maker(n))
        forms[call.kernel] = forms.get(call.kernel, 0) + 1
    common = max(forms, key=lambda form: forms[form])
    return sum(call.kernel == common for call, _, _ in codes.made)


@every_target
@every_maker
def test_one_code_does_for_all_small_sizes(
    maker: Callable[..., Kernel], target: LLVMTarget
) -> None:
    """But for which axis lies across lanes, and where masks are slow, whether rows fill vectors."""
    assert count(maker, range(2, 90), target) <= (2 if target.masked else 3)


@pytest.mark.parametrize("maker", [plain, heavy, row, joined, stencil, backwards, transposed])
def test_large_kernels_have_a_few_classes(maker: Callable[..., Kernel]) -> None:
    sizes = [*range(9000, 9040), *range(100_001, 100_020), *range(1_000_001, 1_000_010)]
    assert count(maker, sizes, HOST) <= 4


@every_target
def test_short_rows_are_written_out(target: LLVMTarget) -> None:
    """Whole vectors; with masks, which are constants then, any rows of up to 8 vectors."""

    def of(n: int) -> Kernel:
        return row(n, rows=8000)

    assert count(of, (16, 32, 128), target) == 3
    others = count(of, (50, 51, 100, 127), target)
    assert others == 4 if target.masked else others <= 2
    assert count(of, (129, 130, 145, 150), target) <= 2


@every_target
def test_a_padded_row_is_read_by_whole_vectors(target: LLVMTarget) -> None:
    """Where there are no masks, lanes are moved singly only beside the array's ends."""
    code, _ = prepare(generalise(tune(stencil(100_000))), target)
    text = module_text([code], target)
    singly = 0 if target.masked or target.moves else text.count("= call <16 x float> @llvm.masked")
    assert len(re.findall(r"label %whole\d+, label %part", text)) == singly


@every_target
@every_maker
def test_a_code_serves_many_sizes(maker: Callable[..., Kernel], target: LLVMTarget) -> None:
    codes = Codes(target)
    for n in SEVERAL:
        codes.run(maker(n), n)


@every_target
@pytest.mark.parametrize("maker", [plain, heavy, row, joined, stencil, slices, transposed, added])
def test_a_code_serves_many_long_sizes(maker: Callable[..., Kernel], target: LLVMTarget) -> None:
    codes = Codes(target)
    for n in LONG:
        codes.run(maker(n), n)


@pytest.mark.parametrize("dtype", ["f64", "i8", "bool", "bf16", "c64"])
def test_dtypes_of_other_sizes(dtype: str) -> None:
    makers = [backwards, transposed, joined] if dtype in ("bool", "c64") else [row, slices, tiny]
    for maker in makers:
        codes = Codes(HOST)
        for n in (2, 15, 16, 17, 60, 130):
            codes.run(maker(n, dtype), n)


_DRAWN: dict[str, tuple[Callable[..., Kernel], tuple[str, ...]]] = {
    "row": (row, ("rows",)),
    "cache": (cache, ("heads", "width")),
    "joined": (joined, ("right", "count")),
    "padded": (padded, ("count", "before")),
    "slices": (slices, ("step", "first")),
    "backwards": (backwards, ("step",)),
    "transposed": (transposed, ("width",)),
    "looked up": (looked_up, ("words", "width")),
    "repeated": (repeated, ("width",)),
    "tiny": (tiny, ("width",)),
    "cut": (cut, ("right", "period")),
    "divided": (divided, ("step", "divisor")),
}


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_drawn_kernels_of_drawn_sizes(data: st.DataObject) -> None:
    """Of extents, strides and offsets alike: a code is used wherever its facts hold."""
    maker, names = _DRAWN[data.draw(st.sampled_from(sorted(_DRAWN)), label="kernel")]
    target = TARGETS[data.draw(st.sampled_from(sorted(TARGETS)), label="target")]
    size = st.one_of(st.integers(2, 40), st.sampled_from(SEVERAL))
    codes = Codes(target)
    for _ in range(8):
        others = {name: data.draw(size, label=name) for name in names}
        codes.run(maker(data.draw(size, label="n"), **others))
