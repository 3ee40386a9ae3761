"""Products on a WebGPU adapter: integers against NumPy exactly, floats by the bound of a sum of so
many terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tenfold.backends.matrices import MatrixProduct
from tenfold.backends.webgpu.library.elements import computed
from tenfold.backends.webgpu.library.product import has_product
from tenfold.backends.webgpu.library.product_tiles import FARTHEST, cut_of, tiles_routine
from tenfold.backends.webgpu.library.routine import Routine, routine_of
from tenfold.backends.webgpu.library.vectors import vector_routine
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.graph.op import PRODUCT
from tenfold.types import DTYPES, parse_type
from tests.backends.webgpu.beside import Array, adapter, run_shader
from tests.backends.webgpu.here import needs_adapter
from tests.backends.webgpu.run.test_run import agrees

EPS = {"f32": 2.0**-24, "f64": 2.0**-53, "f16": 2.0**-24, "bf16": 2.0**-24,
       "c64": 2.0**-22, "c128": 2.0**-51}  # fmt: skip
UNIT = {"f16": 2.0**-11, "bf16": 2.0**-8}
TURNS = [(a, b) for a in (False, True) for b in (False, True)]
X = np.random.default_rng(0).standard_normal((70, 90)).astype(np.float32)
Y = np.random.default_rng(1).standard_normal((90, 65)).astype(np.float32)
AXES = {"lhs_batch": (), "rhs_batch": (), "lhs_contract": (1,), "rhs_contract": (0,)}


def drawn(random: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Array:
    of = DTYPES[dtype]
    if dtype[0] in "iu":
        bounds = np.iinfo(of)
        return random.integers(bounds.min, bounds.max, shape, of, endpoint=True)
    made: Any = random.normal(size=shape)
    if dtype[0] == "c":
        made = made + 1j * random.normal(size=shape)
    return made.astype(of)


def multiplied(p: MatrixProduct, routine: Routine) -> None:
    """Multiply drawn matrices by a routine, and compare."""
    random = np.random.default_rng(prod((p.m, p.n, p.k)))
    a, b = (
        drawn(random, dtype, (p.batch, *shape))
        for dtype, shape in zip(p.dtypes, ((p.m, p.k), (p.k, p.n)), strict=False)
    )
    lies = [x.swapaxes(1, 2) if turn else x for x, turn in ((a, p.left), (b, p.right))]
    made = np.zeros((p.batch, p.m, p.n), DTYPES[p.dtype])
    arrays = [*map(np.ascontiguousarray, lies), made]
    run_shader(routine.shader, routine.bound((0, 0, 0)), arrays)
    if p.dtype[0] in "iu":
        assert np.array_equal(made, np.matmul(a.astype(made.dtype), b.astype(made.dtype)))
        return
    wide = np.clongdouble if p.dtype[0] == "c" else np.longdouble
    exact = np.matmul(a.astype(wide), b.astype(wide))
    whole = np.matmul(np.abs(a.astype(wide)), np.abs(b.astype(wide)))
    bound = (p.k / 2 + 2) * EPS[p.dtype] * whole + UNIT.get(p.dtype, 0) * np.abs(exact)
    bound += 2.0**-25 * (p.dtype == "f16")  # of subnormal numbers
    assert (np.abs(made.astype(wide) - exact) <= bound).all()


def here(p: MatrixProduct) -> MatrixProduct:
    """A product that the adapter has numbers for."""
    if not has_product(p, adapter().target):
        pytest.skip(f"the adapter has no {p.dtype}")
    return p


@needs_adapter
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i32", "u32", "u64", "i64", "c64",
                                   "c128"])  # fmt: skip
def test_tiles_multiply(dtype: str) -> None:
    for (left, right), (m, n, k) in zip(TURNS, [(20, 36, 40), (17, 19, 21)] * 2, strict=True):
        p = here(MatrixProduct((dtype,) * 3, 2, m, n, k, left, right))
        multiplied(p, tiles_routine(p, adapter().target))


@needs_adapter
@pytest.mark.parametrize("extent", [16, 32, 64, 128])
def test_tiles_of_every_extent_multiply(extent: int) -> None:
    target = adapter().target
    for turns in ((False, False), (True, True)):
        for m, n, k in ((extent + 4, 2 * extent - 8, 36), (extent - 1, extent + 1, 5), (1, 2, 0)):
            if k:
                p = MatrixProduct(("f32",) * 3, 1, m, n, k, *turns)
                multiplied(p, tiles_routine(p, target, (extent, 48)))


@needs_adapter
@pytest.mark.parametrize("dtypes", [("i8", "u8", "i32"), ("u8", "u8", "u32"), ("i16", "i8", "i32"),
                                    ("i16", "i16", "i32")])  # fmt: skip
def test_narrow_integers_wrap_in_32_bits(dtypes: tuple[str, str, str]) -> None:
    p = MatrixProduct(dtypes, 1, 24, 20, 300, True, False)
    multiplied(p, tiles_routine(p, adapter().target))
    multiplied(replace(p, m=1), vector_routine(replace(p, m=1)))


@needs_adapter
@pytest.mark.parametrize("dtypes", [("f32",) * 3, ("f64",) * 3, ("bf16",) * 3, ("i64",) * 3,
                                    ("u8", "i8", "i32"), ("c64",) * 3])  # fmt: skip
def test_terms_in_parts_are_added_up(dtypes: tuple[str, str, str]) -> None:
    p = here(MatrixProduct(dtypes, 2, 20, 24, 150, False, True))
    routine = tiles_routine(p, adapter().target, (16, 64))
    assert [one.entry for one in routine.launches] == ["main", "add_parts"]
    multiplied(p, routine)


@needs_adapter
def test_no_loop_is_longer_than_drivers_let_it_be() -> None:
    p = MatrixProduct(("i32",) * 3, 1, 2, 3, 70_000, False, False)
    multiplied(p, tiles_routine(p, adapter().target))
    multiplied(replace(p, m=1), vector_routine(replace(p, m=1)))
    assert cut_of(replace(p, m=9000, n=9000))[1] <= FARTHEST


@needs_adapter
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "i32"])
@pytest.mark.parametrize("turned", [False, True])
def test_vectors_multiply(dtype: str, turned: bool) -> None:
    for results in (1, 3, 70, 2100):
        for k in (1, 37, 1500, 20_000):
            for batch in (1, 3):
                if results * k < 200_000:
                    p = MatrixProduct((dtype,) * 3, batch, results, 1, k, turned, False)
                    multiplied(here(p), vector_routine(p))
                    p = MatrixProduct((dtype,) * 3, batch, 1, results, k, False, turned)
                    multiplied(p, vector_routine(p))


@needs_adapter
@pytest.mark.parametrize("dtype", ["f32", "f16", "c64"])
def test_arrays_that_begin_amid_what_is_bound(dtype: str) -> None:
    p = MatrixProduct((dtype,) * 3, 1, 5, 7, 9, False, False)
    of, starts, random = DTYPES[dtype], (3, 1, 5), np.random.default_rng(0)
    whole = [random.integers(-3, 4, 80).astype(of) for _ in range(3)]
    a, b = (x[start:] for x, start in zip(whole[:2], starts, strict=False))
    wanted = whole[2].copy()
    wanted[5:40] = (a[:45].reshape(5, 9) @ b[:63].reshape(9, 7)).reshape(-1)
    one = replace(p, n=1)
    ways = [tiles_routine(p, adapter().target)]
    ways += [tiles_routine(one, adapter().target) if dtype == "c64" else vector_routine(one)]
    for routine in ways:
        run_shader(routine.shader, routine.bound(starts), whole)
        assert whole[2].tobytes() == wanted.tobytes()
        wanted[5:10] = a[:45].reshape(5, 9) @ b[:9]


@needs_adapter
def test_infinite_terms_stay_where_they_are() -> None:
    """What lies beyond the last term is not multiplied, nor what lies beyond the last line."""
    a, b = np.ones((3, 7), np.float32), np.ones((7, 5), np.float32)
    a[2, 6], b[6, 4] = np.inf, np.nan
    made = np.zeros((3, 5), np.float32)
    p = MatrixProduct(("f32",) * 3, 1, 3, 5, 7, False, False)
    routine = tiles_routine(p, adapter().target)
    run_shader(routine.shader, routine.bound((0, 0, 0)), [a, b, made])
    with np.errstate(invalid="ignore"):
        assert np.array_equal(made, a @ b, equal_nan=True)


@needs_adapter
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_sixteen_bit_floats_are_rounded_once(dtype: Any) -> None:
    random = np.random.default_rng(5)
    a, b = (random.integers(-9, 10, s).astype(dtype) for s in ((16, 64), (64, 16)))
    made = np.zeros((16, 16), dtype)
    short = "f16" if dtype == np.float16 else "bf16"
    p = MatrixProduct((short,) * 3, 1, 16, 16, 64, False, False)
    routine = tiles_routine(p, adapter().target)
    run_shader(routine.shader, routine.bound((0, 0, 0)), [a, b, made])
    expected = (a.astype(np.float32) @ b.astype(np.float32)).astype(dtype)  # sums are exact
    assert made.tobytes() == expected.tobytes()


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Array, ...], list[str]]] = {
    "plain": (lambda a, b: a @ b, (X, Y), ["routine"]),
    "turned": (lambda a, b: a.T @ b[::-1], (X, Y[:70].copy()), ["kernel", "routine"]),
    "of a range": (lambda a, b: a[1:] @ b, (X, Y), ["kernel", "routine"]),
    "with a vector": (lambda a, b: a @ b, (np.tile(X, (2, 3)), np.tile(Y[0], 9)[:270].copy()),
                      ["routine"]),
    "sixteen bits": (lambda a, b: a @ b, (X.astype(np.float16), Y.astype(np.float16)),
                     ["routine"]),
    "batched": (lambda a, b: a @ b, (np.stack([X] * 3), np.stack([Y, -Y, Y])), ["routine"]),
    "bools": (lambda a, b: a @ b, (X > 1, Y > 1), ["kernel", "kernel", "routine", "kernel"]),
    "twice": (lambda a, b: np.tanh(a @ b).T @ a, (X, Y), ["routine", "kernel", "routine"]),
    "complex": (lambda a, b: a @ b, (X + 1j * X[::-1], (Y * 1j).astype(np.complex64)), ["routine"]),
    "complex, turned": (lambda a, b: (a * a).T @ b.T,
                        (X[:, :65] * (1 + 1j), Y.T[:, :70] * (1 - 2j)),
                        ["kernel", "routine"]),
}  # fmt: skip


@needs_adapter
@pytest.mark.parametrize("name", PROGRAMS)
def test_in_programs(name: str) -> None:
    function, arrays, kinds = PROGRAMS[name]
    program = agrees(function, *arrays)
    assert [step.kind for step in program.plan.steps] == kinds


@needs_adapter
def test_products_of_nothing() -> None:
    for m, n, k in ((0, 3, 4), (3, 0, 4), (3, 4, 0)):
        agrees(lambda a, b: a @ b, np.ones((m, k), np.float32), np.ones((k, n), np.float32))


def test_what_an_adapter_has_no_numbers_for_is_left() -> None:
    for dtype, there in (("f32", True), ("f64", False), ("i64", False), ("c64", True),
                         ("c128", False)):  # fmt: skip
        types = [parse_type(f"{dtype}[64,64]")] * 2
        assert (routine_of(PRODUCT, types, AXES, WebGPUTarget()) is not None) == there


def test_arrays_that_no_shader_is_shown_are_left() -> None:
    types = [parse_type("f32[6000,8]"), parse_type("f32[8,6000]")]
    assert routine_of(PRODUCT, types, AXES, WebGPUTarget()) is None
    assert routine_of(PRODUCT, types, AXES, WebGPUTarget(storage_bytes=1 << 30)) is not None


@pytest.mark.parametrize("memory", [16384, 32768])
def test_shared_memory_suffices(memory: int) -> None:
    """Also of what has the least: lines of it are not padded then."""
    target = WebGPUTarget(workgroup_bytes=memory, f64=True)
    for dtype in ("f32", "f64"):
        p = MatrixProduct((dtype,) * 3, 1, 4096, 4096, 64, False, False)
        extent, text = cut_of(p)[0], tiles_routine(p, target).shader.text
        pitch = extent // 4 + (memory > 16384)
        size = 8 if computed(dtype) == "f64" else 4
        assert f"left: array<vec4<{dtype}>, {16 * pitch}>" in text
        assert 2 * 16 * pitch * 4 * size <= memory
