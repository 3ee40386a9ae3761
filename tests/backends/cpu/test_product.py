"""Products by the library: tiles that the shape alone decides, in any order, on any threads."""

from __future__ import annotations

import ctypes
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.library.blas import blas, why_not
from tenfold.backends.cpu.library.product import by_panels, product_name
from tenfold.backends.cpu.library.product.tiles import (
    MATRIX_VECTOR,
    VECTOR_MATRIX,
    ProductTiles,
    product_tiles,
)
from tenfold.backends.cpu.run.kernels import routine_image
from tenfold.backends.cpu.target import host_target
from tenfold.backends.cpu.threads.pool import thread_pool
from tenfold.types import DTYPES, SHORT, TensorType

Array = np.ndarray[Any, Any]
needed = pytest.mark.skipif(blas() is None, reason=str(why_not()))

AXES = ("lhs_contract", "rhs_contract", "lhs_batch", "rhs_batch")
# Shapes, the axes that are contracted, and whether both operands are one.
FORMS: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, int], bool]] = {
    "square": ((300, 300), (300, 300), (1, 0), False),
    "tall": ((900, 70), (70, 40), (1, 0), False),
    "wide": ((40, 70), (70, 900), (1, 0), False),
    "transposed": ((200, 310), (170, 200), (0, 1), False),
    "matrix and vector": ((1500, 400), (400,), (1, 0), False),
    "matrix and column": ((1500, 400), (400, 1), (1, 0), False),
    "turned matrix and vector": ((400, 5000), (400,), (0, 0), False),
    "vector and matrix": ((1100,), (1100, 4500), (0, 0), False),
    "vector and matrix in parts": ((2500,), (2500, 300), (0, 0), False),
    "turned matrix and vector in parts": ((1100, 1000), (1100,), (0, 0), False),
    "vector and turned matrix": ((1000,), (900, 1000), (0, 1), False),
    "itself on the left": ((300, 500), (300, 500), (0, 0), True),
    "itself on the right": ((333, 60), (333, 60), (1, 1), True),
}


def tiles_of(
    a: Array, b: Array, over: tuple[int, int], same: bool, batch: tuple[int, ...] = ()
) -> ProductTiles:
    types = [TensorType(DTYPES[SHORT[x.dtype]], x.shape) for x in (a, b)]
    given = dict(zip(AXES, ((over[0],), (over[1],), batch, batch), strict=True))
    return product_tiles(types, given, same, by_panels(SHORT[a.dtype], host_target()))


def run(a: Array, b: Array, shape: tuple[int, ...], tiles: ProductTiles, parts: Any) -> Array:
    """A product whose tiles are done in these ranges, each in a thread of its own."""
    name = product_name(SHORT[a.dtype], tiles.params[0] in (MATRIX_VECTOR, VECTOR_MATRIX))
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)
    call = kind(routine_image(name, host_target()).address(name))
    made = np.full(shape, np.nan, a.dtype)
    rows = (ctypes.c_void_p * 5)(a.ctypes.data, b.ctypes.data, made.ctypes.data)
    params = np.array(tiles.params, np.int64)
    with ThreadPoolExecutor(4) as pool:
        done = pool.map(lambda part: call(rows, params.ctypes.data, *part), parts)
        assert not any(done)
    return made


@needed
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("form", FORMS)
def test_tiles_in_any_order_give_the_same_bits(form: str, dtype: str) -> None:
    left, right, over, same = FORMS[form]
    drawn = np.random.default_rng(len(form))
    a, b = (drawn.standard_normal(s).astype(dtype) for s in (left, right))
    if dtype[0] == "c":
        a.imag, b.imag = drawn.standard_normal(left), drawn.standard_normal(right)
    b = a if same else b
    wanted = np.tensordot(a.astype("c16"), b.astype("c16"), ((over[0],), (over[1],)))
    tiles = tiles_of(a, b, over, same)
    whole = run(a, b, wanted.shape, tiles, [(0, tiles.count)])
    np.testing.assert_allclose(whole, wanted, rtol=0, atol=1e-3 if dtype in ("f4", "c8") else 1e-10)
    parts = [(t, t + 1) for t in range(tiles.count)]
    random.Random(form).shuffle(parts)
    assert run(a, b, wanted.shape, tiles, parts).tobytes() == whole.tobytes()
    if same:
        np.testing.assert_array_equal(whole, whole.T)


@needed
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_bits_do_not_depend_on_the_number_of_threads(dtype: str) -> None:
    drawn = np.random.default_rng(3)
    a, b = drawn.standard_normal((2, 301, 290)).astype(dtype)
    c, x = drawn.standard_normal((2800, 290)).astype(dtype), drawn.standard_normal(290)
    f = tn.jit(lambda a, b, c, x: (a @ b.T, a.T @ a, c @ x, x @ c.T @ c, (c @ b.T)[:, None] @ a))
    args = (a, b, c, x.astype(dtype))
    found = []
    try:
        for threads in (1, 2, 3, 8):
            tn.config.threads = threads
            before = thread_pool(host_target()).counts()["indices_on_workers"]
            found.append([part.tobytes() for _ in range(5) for part in f(*args)])
            if threads == 1:
                assert thread_pool(host_target()).counts()["indices_on_workers"] == before
    finally:
        tn.config.threads = None
    assert all(one == found[0] for one in found)


@needed
def test_matrices_of_a_batch_are_shared_out() -> None:
    drawn = np.random.default_rng(1)
    a, b = drawn.standard_normal((70, 20, 33)), drawn.standard_normal((70, 33, 40))
    tiles = tiles_of(a, b, (2, 1), False, (0,))
    assert 1 < tiles.count < 70
    parts = [(t, t + 1) for t in range(tiles.count)]
    np.testing.assert_allclose(run(a, b, (70, 20, 40), tiles, parts[::-1]), a @ b, atol=1e-12)


@pytest.mark.parametrize(
    ("panels", "wanted"),
    [(False, [1, 2, 2, 4, 8, 16, 1024]), (True, [1, 2, 16, 32, 64, 64, 1024])],
)
def test_the_number_of_tiles_grows_slowly_with_the_work(panels: bool, wanted: list[int]) -> None:
    """Each tile packs operands anew; but between two of them signals are looked for."""
    counts = []
    for n in (64, 128, 512, 1024, 2048, 4096, 16384):
        square = TensorType(DTYPES["f32"], (n, n))
        given = dict(zip(AXES, ((1,), (0,), (), ()), strict=True))
        counts.append(product_tiles((square, square), given, False, panels).count)
    assert counts == wanted


@pytest.mark.skipif(not by_panels("f32", host_target()), reason="the library multiplies here")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_panels_give_bits_that_hang_on_the_number_of_terms(
    dtype: str, turned: tuple[bool, bool]
) -> None:
    """However many rows and columns there are: a part of a product is the product of the parts."""
    drawn = np.random.default_rng(5)
    over = (0 if turned[0] else 1, 1 if turned[1] else 0)
    for terms in (3, 40, 515, 1100):
        a = drawn.standard_normal((20, terms)).astype(dtype)
        b = drawn.standard_normal((terms, 150)).astype(dtype)
        whole = None
        for m, n in ((20, 150), (2, 150), (5, 64), (7, 47), (8, 70), (13, 3), (19, 5), (20, 9)):
            left, right = a[:m], b[:, :n]
            left = np.ascontiguousarray(left.T if turned[0] else left)
            right = np.ascontiguousarray(right.T if turned[1] else right)
            tiles = tiles_of(left, right, over, False)
            made = run(left, right, (m, n), tiles, [(0, tiles.count)])
            whole = made if whole is None else whole
            np.testing.assert_array_equal(made, whole[:m, :n])
        right_one = a.astype("f8") @ b.astype("f8")
        np.testing.assert_allclose(whole, right_one, atol=1e-4 if dtype == "f4" else 1e-12)


def test_a_long_product_by_a_vector_is_added_up_in_runs() -> None:
    """One term after the other, equal terms are rounded the same way each time."""
    if blas() is None:
        pytest.skip(str(why_not()))
    x, a = np.full(60_000, 148.41316, np.float32), np.full((60_000, 8), 119131.21, np.float32)
    tiles = tiles_of(x, a, (0, 0), False)
    made = run(x, a, (8,), tiles, [(0, tiles.count)])
    right = float(x[0]) * float(a[0, 0]) * 60_000
    assert np.abs(made / right - 1).max() < 2e-5
