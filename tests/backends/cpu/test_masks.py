"""Masked moves touch living lanes and no other byte: beside them lies memory nobody may touch."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.link.loader import load
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.assemble import assemble
from tenfold.backends.llvm.functions import definitions
from tenfold.backends.llvm.masks import refuse
from tenfold.backends.llvm.target import LLVMTarget, named, target_with
from tenfold.backends.llvm.text import Fragment, join
from tenfold.backends.llvm.writer import BITS, LANES, Writer, vector
from tenfold.errors import Unsupported
from tenfold.kernel import Builder, Kernel
from tenfold.types import DTYPES
from tests.backends.cpu.running import Program, every_target
from tests.kernel.interpret import interpret

PAGE = mmap.PAGESIZE
PAIRED = ("load", "store")  # complex numbers come two by two
OLD = 7  # what lies in memory before
ELEMENTS = ("i8", "i16", "i32", "float", "i64", "double")
HOW = ("known", "folded", "asked")  # a mask: see `mask_of`
LINUX = "x86_64-unknown-linux-gnu"


class Walled:
    """Some pages of memory between two that nobody may touch."""

    def __init__(self, count: int = 1) -> None:
        self.pages = mmap.mmap(-1, (count + 2) * PAGE)
        whole = ctypes.c_char.from_buffer(self.pages)
        self.base = ctypes.addressof(whole) + PAGE
        protect = ctypes.CDLL(None).mprotect
        for wall in (self.base - PAGE, self.base + count * PAGE):
            assert protect(ctypes.c_void_p(wall), PAGE, 0) == 0
        self.bytes = np.frombuffer(self.pages, np.uint8)[PAGE : (count + 1) * PAGE]


def patterns(lanes: int) -> Iterator[tuple[bool, ...]]:
    """Masks of some lanes: the first, the last, one, any."""
    source = random.Random(lanes)
    for n in (3, 8, 9, lanes):
        yield tuple(k < n for k in range(lanes))
        yield tuple(k >= n for k in range(lanes))
    for n in (0, 5, lanes - 1):
        yield tuple(k == n for k in range(lanes))
    yield tuple(source.random() < 0.5 for _ in range(lanes))


def mask_of(w: Writer, bits: tuple[bool, ...], how: str) -> str:
    """A mask of these lanes: written down; found by LLVM; or of all lanes or none of them, as the
    call says, and of these."""
    text = "<" + ", ".join(f"i1 {'true' if bit else 'false'}" for bit in bits) + ">"
    ty = vector("i1", True, len(bits))
    if how == "known":
        return text
    if how == "folded":
        return w.op(f"and {ty} {text}, {w.op(f'xor {ty} zeroinitializer, splat (i1 true)')}")
    return w.op(f"and {ty} {w.splat('i1', '%go', len(bits))}, {text}")


def function(
    name: str, what: str, element: str, bits: tuple[bool, ...], how: str, w: Writer
) -> Writer:
    """Move some lanes from %p to %q, and the mask as bytes to %r."""
    lanes = len(bits)
    w.lines = [f"define void @{name}(ptr %p, ptr %q, ptr %r, i1 %go) nounwind {{", "entry:"]
    ty, wide = vector(element, True, lanes), vector("i32", True, lanes)
    counts = "<" + ", ".join(f"i32 {n}" for n in range(lanes)) + ">"
    mask = mask_of(w, bits, how)
    if what == "load":
        masks.store(w, "%q", element, masks.load(w, "%p", element, mask, lanes), None, lanes)
    elif what == "widened":
        x = masks.load(w, "%p", element, mask, lanes)
        w.put(f"store {wide} {w.op(f'sext {ty} {x} to {wide}')}, ptr %q, align 4")
    elif what == "store":
        masks.store(w, "%q", element, masks.load(w, "%p", element, None, lanes), mask, lanes)
    elif what == "narrowed":
        x = w.op(f"load {wide}, ptr %p, align 4")
        masks.store(w, "%q", element, w.op(f"trunc {wide} {x} to {ty}"), mask, lanes)
    elif what == "gather":
        x = masks.gather(w, "%p", element, "i32", counts, mask)
        masks.store(w, "%q", element, x, None, lanes)
    else:
        x = masks.load(w, "%p", element, None, lanes)
        masks.scatter(w, "%q", element, "i32", counts, x, mask)
    # a second use, as kernels have
    told = w.op(f"zext {vector('i1', True, lanes)} {mask} to {vector('i8', True, lanes)}")
    w.put(f"store {vector('i8', True, lanes)} {told}, ptr %r, align 1")
    w.lines += ["  ret void", "}"]
    return w


@every_target
@pytest.mark.parametrize("brief", [False, True])
@pytest.mark.parametrize("element", ELEMENTS)
def test_only_living_lanes_are_touched(element: str, brief: bool, target: LLVMTarget) -> None:
    """The lanes of a pattern are given in one way, for another element in another: elements of four
    bytes and of eight, brief and not, have each pattern in every way."""
    size = BITS[element] // 8
    kinds = ["load", "store", "gather", "scatter"]
    kinds += ["widened", "narrowed"] if element in ("i8", "i16") else []
    turn = ELEMENTS.index(element) % 2 + brief
    cases = [
        (what, bits, HOW[(n + turn) % 3])
        for what in kinds
        for n, bits in enumerate(
            (*patterns(LANES), *(patterns(2 * LANES) if what in PAIRED else ()))
        )
    ]
    made = [
        function(f"f{n}", what, element, bits, how, Writer(target, brief=brief))
        for n, (what, bits, how) in enumerate(cases)
    ]
    names = [f"f{n}" for n in range(len(cases))]
    declared = sorted(set().union(*(w.declared for w in made)))
    bodies = Fragment(tuple(declared), "\n".join("\n".join(w.lines) for w in made))
    needed = sorted(set().union(*(w.maths for w in made)))
    assert not needed or brief
    assert needed or not brief or ((target.masked or target.moves) and size >= 4)
    text = join([*definitions(needed, target), bodies])
    image = load([assemble(text, target)], names)
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_bool)
    source, result, told = Walled(), Walled(), Walled()
    source.bytes[:] = np.random.default_rng(0).integers(8, 256, PAGE)
    for name, (what, bits, how) in zip(names, cases, strict=True):
        call = kind(image.address(name))
        reads = what in ("load", "widened", "gather")
        taken, given = (4 if what == wide else size for wide in ("narrowed", "widened"))
        for go, wall in itertools.product((True, False), ("before", "after")):
            live = np.array(bits) & (go or how != "asked")
            some = np.flatnonzero(live)
            near = 0
            if wall == "before" and len(some):
                near = -int(some[0]) * size
            elif wall == "after":
                near = PAGE - (int(some[-1]) + 1 if len(some) else 0) * size
            at, to = (near, 512) if reads else (512, near)
            result.bytes[:] = OLD
            call(source.base + at, result.base + to, told.base, go)
            want = np.full(PAGE, OLD, np.uint8)
            if reads:
                want[to : to + given * len(bits)] = 0
            for n in some:
                raw = source.bytes[at + n * taken :][: min(taken, given)]
                fill = 255 if what == "widened" and raw[-1] > 127 else 0
                place = want[to + n * given :][:given]
                place[:] = fill
                place[: len(raw)] = raw
            where = f"{what} {''.join(map(str, map(int, bits)))} {how} {go} {wall}"
            np.testing.assert_array_equal(result.bytes, want, err_msg=where)
            assert (told.bytes[: len(bits)] == live).all(), where


def test_wider_masks_are_refused() -> None:
    avx2 = named("x86-64-v3", target_with(LINUX, ()))
    avx512 = named("x86-64-v4", target_with(LINUX, ()))
    with pytest.raises(Unsupported, match="a masked load of f32; x86-64-v3 has"):
        refuse("declare <16 x float> @llvm.masked.load.v16f32.p0(…)", avx2)
    with pytest.raises(Unsupported, match="a masked gather of 128 bytes"):
        refuse("  %x = call <16 x i64> @llvm.masked.gather.v16i64.v16p0(…)", avx512)
    with pytest.raises(Unsupported, match="a masked store of i64; x86-64-v3 has"):
        refuse("  call void @llvm.masked.store.v4i64.p0(…)", avx2)
    refuse("declare <16 x float> @llvm.masked.load.v16f32.p0(…)", avx512)
    refuse("declare <16 x i8> @llvm.masked.load.v16i8.p0(…)", avx2)
    with pytest.raises(Unsupported, match="a masked load"):
        assemble("declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, <16 x i1>)", avx2)


X = np.arange(18, dtype=np.float32).reshape(2, 9)


def one_by_one(x: Any) -> Any:
    out = tn.zeros((2, 9), "float32")
    for j in range(3):
        out[0, j] = x[0, j] * 2
    return out


def by_rows(x: Any) -> Any:
    out = tn.zeros((2, 9), "float32")
    out[:1, :3] = x[:1, :3] * 2
    out[1:, :3] = x[1:, :3] * 3
    return out


def in_blocks(x: Any) -> Any:
    return np.block([[x, x], [x * 2, x]]) + np.float32(1)


@every_target
@pytest.mark.parametrize("program", [one_by_one, by_rows, in_blocks])
def test_parts_that_conditions_leave_out(program: Any, target: LLVMTarget) -> None:
    graph = tn.trace(program, X)
    (got,) = CompiledProgram(BACKEND.plan(graph, target=target), target=target)([X.copy()])
    np.testing.assert_array_equal(got, tn.jit(program, compile="never")(X))


def padded(rows: int, columns: int, dtype: str) -> Kernel:
    """Neighbours along a row, and along it backwards, with zeros beside it."""
    b, n = Builder(), rows * columns
    x, out = b.buffer(dtype, n), b.buffer(dtype, n, "write")
    i, j = b.axis(rows), b.axis(columns)
    total = b.load(x, i * columns + j)
    for place in (j - 1, j + 1, -j + (columns - 3)):
        there = b.inside(place, 0, columns)
        near = b.select(there, b.load(x, i * columns + place, there), b.const(dtype, 0))
        total = b.op("add", dtype, total, near)
    b.store(out, i * columns + j, total)
    return b.finish()


def summed(rows: int, columns: int, dtype: str) -> Kernel:
    """Rows less their largest element, in vectors of which the last is not whole."""
    b, n = Builder(), rows * columns
    x, out = b.buffer(dtype, n), b.buffer(dtype, n, "write")
    i, j, (axis, k) = b.axis(rows), b.axis(columns), b.reduced(columns, 2)
    most = b.reduce("max", (axis,), b.load(x, i * columns + k))
    b.store(out, i * columns + j, b.op("sub", dtype, b.load(x, i * columns + j), most))
    return b.finish()


@every_target
@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "i16"])
@pytest.mark.parametrize("maker", [padded, summed])
@pytest.mark.parametrize(("rows", "columns"), [(1, 33_001), (40, 1003), (700, 50)])
def test_a_vector_is_read_whole_only_inside_its_buffer(
    maker: Any, rows: int, columns: int, dtype: str, target: LLVMTarget
) -> None:
    kernel = maker(rows, columns, dtype)
    program = Program(kernel, target)
    x = np.random.default_rng(5).integers(-9, 9, rows * columns).astype(DTYPES[dtype])
    want = [x, np.zeros_like(x)]
    interpret(kernel, want)
    walled = [Walled(-(-x.nbytes // PAGE)) for _ in want]
    for first in (True, False):
        places = [w.bytes[: x.nbytes] if first else w.bytes[-x.nbytes :] for w in walled]
        given = [place.view(x.dtype) for place in places]
        given[0][:] = x
        assert program.bind(given)() == 0
        np.testing.assert_array_equal(given[1], want[1])
