"""Products of integers of 8 and 16 bits: by panels, exact modulo 2**32, with VNNI and without."""

from __future__ import annotations

import ctypes
import mmap
import random
from collections.abc import Callable
from itertools import product
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.library.product import NARROW_PRODUCT, product_name
from tenfold.backends.cpu.library.product.text import product_text
from tenfold.backends.cpu.library.product.tiles import product_tiles
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.backends.cpu.run.kernels import routine_image
from tenfold.backends.cpu.target import host_target
from tenfold.backends.llvm.target import LLVMTarget, named, target_machine, target_with
from tenfold.graph.op import PRODUCT
from tenfold.plan import HostStep, KernelStep, Plan, RoutineStep
from tenfold.types import DTYPES, KIND, SHORT, TensorType
from tests.backends.cpu.running import HOST, TARGETS

Array = np.ndarray[Any, Any]

LINUX = "x86_64-unknown-linux-gnu"
V3 = named("x86-64-v3", target_with(LINUX, ()))
V4 = named("x86-64-v4", target_with(LINUX, ()))
ALL = {target.name: target for target in (*TARGETS.values(), named(HOST.cpu, HOST))}
every_target = pytest.mark.parametrize("target", ALL.values(), ids=ALL.keys())
PAIRS = list(product(("i1", "u1", "i2"), repeat=2))
AXES = ("lhs_contract", "rhs_contract", "lhs_batch", "rhs_batch")
# Rows, terms and columns: tails of each, of groups, vectors and runs; several strips and tiles.
SHAPES = (
    *((1, 1, 1), (1, 9, 5), (2, 3, 33), (7, 4, 8), (5, 130, 1), (6, 512, 64), (13, 1025, 9)),
    *((97, 66, 17), (100, 513, 67), (193, 31, 70), (530, 12, 24), (530, 7, 3), (33, 1024, 131)),
)


def drawn(source: np.random.Generator, dtype: str, *shape: int) -> Array:
    limits = np.iinfo(dtype)
    return source.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def right(a: Array, b: Array) -> Array:
    """NumPy's product in 64 bits, reduced."""
    return (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)


class Panels:
    """The function for two dtypes, called as a plan calls it, with tiles in any order."""

    def __init__(self, left: str, right: str, target: LLVMTarget) -> None:
        self.target = target
        self.name = product_name(NARROW_PRODUCT, *(SHORT[np.dtype(d)] for d in (left, right)))
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)
        self.call = kind(routine_image(self.name, target).address(self.name))

    def __call__(self, a: Array, b: Array, turned: tuple[bool, bool] = (False, False)) -> Array:
        """The product of two matrices, or of a batch, each of which may lie transposed."""
        given = [
            np.ascontiguousarray(np.swapaxes(x, -1, -2) if t else x)
            for x, t in zip((a, b), turned, strict=True)
        ]
        lead = a.ndim - 2
        over = lead + (0 if turned[0] else 1), lead + (1 if turned[1] else 0)
        batch = tuple(range(lead))
        axes = dict(zip(AXES, ((over[0],), (over[1],), batch, batch), strict=True))
        types = [TensorType(DTYPES[SHORT[x.dtype]], x.shape) for x in given]
        tiles = product_tiles(types, axes, False, NARROW_PRODUCT)
        shape = (*a.shape[:-1], b.shape[-1])
        room = np.full(int(np.prod(shape)) + 32, 0x5A5A5A5A, np.int32)
        table = (ctypes.c_void_p * 5)(*(x.ctypes.data for x in given), room[16:].ctypes.data)
        params = np.array(tiles.params, np.int64)
        order = list(range(tiles.count))
        random.Random(7).shuffle(order)
        for tile in order:
            assert self.call(table, params.ctypes.data, tile, tile + 1) == 0
        assert (room[:16] == 0x5A5A5A5A).all()
        assert (room[-16:] == 0x5A5A5A5A).all()
        return room[16:-16].reshape(shape)


@every_target
@pytest.mark.parametrize(("left", "right_one"), PAIRS)
def test_every_shape_and_order_of_memory(left: str, right_one: str, target: LLVMTarget) -> None:
    panels, source = Panels(left, right_one, target), np.random.default_rng(3)
    for m, k, n in SHAPES:
        a, b = drawn(source, left, m, k), drawn(source, right_one, k, n)
        for turned in product((False, True), repeat=2):
            made = panels(a, b, turned)
            np.testing.assert_array_equal(made, right(a, b), err_msg=f"{m, k, n, turned}")


@every_target
@pytest.mark.parametrize(("left", "right_one"), PAIRS)
def test_extreme_values(left: str, right_one: str, target: LLVMTarget) -> None:
    """All equal, and sums far beyond 2**32."""
    panels = Panels(left, right_one, target)
    ends = [(np.iinfo(d).min, np.iinfo(d).max) for d in (left, right_one)]
    for x, y in product(*ends):
        for k in (2, 4, 37, 70_000 if x == ends[0][0] or x == ends[0][1] == y else 512):
            a, b = np.full((7, k), x, left), np.full((k, 18), y, right_one)
            np.testing.assert_array_equal(panels(a, b), right(a, b))
            np.testing.assert_array_equal(panels(a, b, (True, True)), right(a, b))


@every_target
def test_no_byte_outside_the_operands_is_read(target: LLVMTarget) -> None:
    """Each ends with its page, and the next one can not be read."""
    libc, page = ctypes.CDLL(None), 4096
    source = np.random.default_rng(1)

    def at_an_end(x: Array) -> Array:
        size = -(-x.nbytes // page) * page
        memory = mmap.mmap(-1, size + page)
        whole = np.frombuffer(memory, np.uint8)
        kept.append((memory, whole))
        assert libc.mprotect(ctypes.c_void_p(whole.ctypes.data + size), page, 0) == 0
        made = whole[size - x.nbytes : size].view(x.dtype).reshape(x.shape)
        made[...] = x
        return made

    for left, right_one in (("i1", "i1"), ("u1", "i1"), ("i2", "i2")):
        panels = Panels(left, right_one, target)
        for m, k, n in ((7, 61, 19), (9, 64, 33), (100, 3, 65), (17, 130, 64)):
            for turned in product((False, True), repeat=2):
                kept: list[Any] = []
                a, b = drawn(source, left, m, k), drawn(source, right_one, k, n)
                x = at_an_end(np.ascontiguousarray(a.T if turned[0] else a))
                y = at_an_end(np.ascontiguousarray(b.T if turned[1] else b))
                x, y = x.T if turned[0] else x, y.T if turned[1] else y
                np.testing.assert_array_equal(panels(x, y, turned), right(a, b))
                del x, y
                for memory, whole in kept:
                    libc.mprotect(ctypes.c_void_p(whole.ctypes.data + len(whole) - page), page, 3)
                    del memory


def test_a_batch() -> None:
    source = np.random.default_rng(2)
    a, b = drawn(source, "i1", 5, 66, 35), drawn(source, "i1", 5, 35, 40)
    np.testing.assert_array_equal(Panels("i1", "i1", HOST)(a, b), right(a, b))
    np.testing.assert_array_equal(Panels("i1", "i1", HOST)(a, b, (True, True)), right(a, b))


def planned(function: Callable[..., Any], *args: Array, target: LLVMTarget = HOST) -> Plan:
    plan: Plan = BACKEND.plan(tn.trace(function, *args), target=target)
    return plan


def count_products(plan: Plan) -> int:
    """How many there are of narrow integers; there are no others, and nothing is the host's."""
    steps = [step for one in plan.every for step in one.steps]
    assert not any(isinstance(step, HostStep) for step in steps), plan.explain()
    assert not any(KIND[slot.type.dtype] == "f" for one in plan.every for slot in one.slots)
    found = [s for s in steps if isinstance(s, RoutineStep) and s.name == PRODUCT]
    for step in found:
        for value in plan.graph.nodes[step.node].inputs:
            assert plan.graph.types[value].dtype.itemsize <= 2
    return len(found)


def as_i32(a: Any, b: Any) -> Any:
    return a.astype(np.int32) @ b.astype(np.int32)


def as_u32(a: Any, b: Any) -> Any:
    return a.astype(np.uint32) @ b.astype(np.uint32)


def as_i64(a: Any, b: Any) -> Any:
    return a.astype(np.int64) @ b.astype(np.int64)


def by_dtype(a: Any, b: Any) -> Any:
    return np.matmul(a, b, dtype=np.int32)


def as_they_are(a: Any, b: Any) -> Any:
    return a @ b


@pytest.mark.parametrize("function", [as_i32, as_u32, as_i64, by_dtype, as_they_are])
@pytest.mark.parametrize(("left", "right_one"), PAIRS)
def test_programs_of_every_pair(function: Any, left: str, right_one: str) -> None:
    """What is wider than both is exact or wraps as NumPy's does."""
    source = np.random.default_rng(4)
    a, b = drawn(source, left, 70, 90), drawn(source, right_one, 90, 65)
    wide = function is as_i64 and "i2" in (left, right_one)
    plan = planned(function, a, b)
    if not wide:  # else no 32 bits hold the sums: floats do, exactly
        assert count_products(plan) == 1
    (made,) = CompiledProgram(plan)([a, b])
    np.testing.assert_array_equal(made, function(a, b))
    assert made.dtype == function(a, b).dtype


@every_target
def test_programs(target: LLVMTarget) -> None:
    """Transposed, batched, thin, from views, with what follows."""
    source = np.random.default_rng(5)
    a, b, c = (drawn(source, "i1", *s) for s in ((90, 70), (90, 80), (6, 90, 70)))
    u, large = drawn(source, "u1", 90, 70), drawn(source, "i1", 200, 140)
    cases: list[tuple[Any, tuple[Array, ...]]] = [
        (lambda a, b: a.astype(np.int32).T @ b.astype(np.int32), (a, b)),
        (lambda a, b: np.einsum("ki,kj->ij", a, b, dtype=np.int32), (a, b)),
        (lambda a, b: a.T.astype(np.int32) @ b.astype(np.int32), (a, b)),
        (lambda u, b: u.astype(np.int32).T @ b.astype(np.int32), (u, b)),
        (lambda c, b: np.swapaxes(c, 1, 2).astype(np.int32) @ b.astype(np.int32), (c, b)),
        (lambda c, a: c.astype(np.int32) @ np.broadcast_to(a.T, (6, 70, 90)), (c, a)),
        (lambda x, b: x[::2, 1::2].astype(np.int32).T @ b[:, ::-1][:80].repeat(2, 0)[:100],
         (large, b)),
        (lambda a, b: np.maximum(by_dtype(a.T, b) * 3 + b[0], 0).astype(np.int8), (a, b)),
        (lambda a: by_dtype(a, a.T), (a,)),
        (lambda a, b: by_dtype(a.T, b[:, :2]), (np.tile(a, (8, 1)), np.tile(b, (8, 1)))),
    ]  # fmt: skip
    for number, (function, args) in enumerate(cases):
        plan = planned(function, *args, target=target)
        assert not any(isinstance(step, HostStep) for step in plan.steps)
        (made,) = CompiledProgram(plan, target=target)(list(args))
        np.testing.assert_array_equal(made, function(*args), err_msg=str(number))


def test_transposes_are_read_as_they_lie() -> None:
    a = np.ones((90, 80), np.int8)
    for function in (
        lambda a: a.astype(np.int32).T @ a.astype(np.int32),
        lambda a: a.astype(np.int32) @ a.astype(np.int32).T,
    ):
        plan = planned(function, a)
        assert [type(step) for step in plan.steps] == [RoutineStep]


@pytest.mark.parametrize("terms", [65_000, 131_071, 131_072, 140_000])
def test_what_is_asked_for_in_64_bits_is_exact(terms: int) -> None:
    """Where sums do not fit in 32 bits, they are not added up in these."""
    a, b = np.full((2, terms), -128, np.int8), np.full((terms, 3), -128, np.int8)
    plan = planned(as_i64, a, b)
    (step,) = [step for step in plan.steps if isinstance(step, RoutineStep)]
    read = plan.graph.types[plan.graph.nodes[step.node].inputs[0]]
    assert SHORT[read.dtype] == ("i8" if terms < 131_072 else "i64")
    (made,) = CompiledProgram(plan)([a, b])
    np.testing.assert_array_equal(made, np.full((2, 3), terms << 14))


def test_small_ones_vectors_and_empty_ones_are_kernels() -> None:
    for m, k, n in ((25, 25, 25), (1, 5000, 300), (300, 5000, 1), (0, 9, 9), (9, 0, 9), (9, 9, 0)):
        a, b = np.ones((m, k), np.int8), np.ones((k, n), np.int8)
        plan = planned(as_i32, a, b)
        assert all(isinstance(step, KernelStep) for step in plan.steps), plan.explain()
        (made,) = CompiledProgram(plan)([a, b])
        np.testing.assert_array_equal(made, np.full((m, n), k, np.int32))


def test_the_number_of_threads_and_calls_change_nothing() -> None:
    source = np.random.default_rng(6)
    a, b = drawn(source, "i1", 301, 290), drawn(source, "u1", 290, 333)
    f, found = tn.jit(by_dtype), set()
    try:
        for threads in (1, 2, 3, 8):
            tn.config.threads = threads
            found.update(f(a, b).tobytes() for _ in range(3))
    finally:
        tn.config.threads = None
    assert found == {right(a, b).tobytes()}


@pytest.mark.parametrize(
    ("target", "wanted", "unwanted"),
    [
        (target_with(LINUX, ()), "pmaddwd", "vpmaddwd"),
        (target_with("aarch64-unknown-linux-gnu", ()), "smlal", "dot"),
        (V3, "vpmaddwd", "vpdp"),
        (V4, "vpmaddwd", "vpdp"),
        (target_with(LINUX, ["avx512vnni"]), "pmaddwd", "vpdp"),  # without its level
    ],
    ids=lambda one: getattr(one, "name", one),
)
def test_instructions_of_levels(target: LLVMTarget, wanted: str, unwanted: str) -> None:
    made = assembly("i8xi8", target)
    assert wanted in made
    assert unwanted not in made


@pytest.mark.parametrize("feature", ["avx512vnni", "avxvnni"])
def test_instructions_of_vnni(feature: str) -> None:
    level = "x86-64-v4" if feature == "avx512vnni" else "x86-64-v3"
    target = named(f"{level}+{feature}", V4)
    register = "zmm" if feature == "avx512vnni" else "ymm"
    for pair in ("i8xi8", "i8xu8", "u8xi8", "u8xu8"):
        lines = [line for line in assembly(pair, target).splitlines() if "vpdpbusd" in line]
        sums = 24 if register == "zmm" else 12  # of the largest tile
        assert sum(register in line for line in lines) >= sums
        assert "vpdpbusds" not in "".join(lines)  # which saturates
    assert "vpdpwssd" in assembly("i16xi16", target)


def assembly(pair: str, target: LLVMTarget) -> str:
    text = product_text(NARROW_PRODUCT, pair, target)
    module = llvm.parse_assembly(f'target triple = "{target.triple}"\n{text}')
    return str(target_machine(target).emit_assembly(module))


def test_the_certificate_names_what_code_hangs_on() -> None:
    a = np.ones((70, 70), np.int8)
    f = tn.jit(by_dtype)
    f(a, a)
    assert f.certificate(a, a).target.startswith(f"{host_target()} ")
    assert ("vnni" in str(host_target())) == host_target().dots
