"""Products: tiles that the shape alone decides, in any order, on any threads."""

from __future__ import annotations

import ctypes
import random
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.library.blas import blas, why_not
from tenfold.backends.cpu.library.product import (
    NARROW_PRODUCT,
    PAIR_PRODUCT,
    PANEL_PRODUCT,
    VECTOR_PRODUCT,
    product_name,
)
from tenfold.backends.cpu.library.product.tiles import product_tiles, product_way
from tenfold.backends.cpu.library.product.vectors import has_vectors
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.backends.cpu.run.kernels import routine_image
from tenfold.backends.cpu.target import host_target
from tenfold.backends.cpu.threads.pool import thread_pool
from tenfold.backends.llvm.target import LLVMTarget, named, target_with
from tenfold.graph.op import PRODUCT
from tenfold.plan import KernelStep, RoutineStep
from tenfold.types import DTYPES, SHORT, TensorType
from tests.backends.cpu.running import TARGETS, every_target
from tests.backends.cpu.test_masks import Walled

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
    "few rows": ((7, 300), (300, 900), (1, 0), False),
    "few columns": ((900, 300), (300, 19), (1, 0), False),
    "few turned rows": ((300, 16), (700, 300), (0, 1), False),
    "itself on the left": ((300, 500), (300, 500), (0, 0), True),
    "itself on the right": ((333, 60), (333, 60), (1, 1), True),
}


class Product:
    """A product of two arrays in tiles, in one way or in that of this machine."""

    def __init__(
        self,
        a: Array,
        b: Array,
        over: tuple[int, int],
        same: bool,
        batch: tuple[int, ...] = (),
        way: str | None = None,
        target: LLVMTarget | None = None,
    ) -> None:
        types = [TensorType(DTYPES[SHORT[x.dtype]], x.shape) for x in (a, b)]
        given = dict(zip(AXES, ((over[0],), (over[1],), batch, batch), strict=True))
        self.target = target or host_target()
        way = way or product_way(types, given, self.target)
        tiles = product_tiles(types, given, same, way)
        self.arrays, self.count, self.params = (a, b), tiles.count, tiles.params
        self.name = product_name(way, SHORT[a.dtype])

    def run(self, shape: tuple[int, ...], parts: Any = None) -> Array:
        """The product, whose tiles are done in these ranges, each in a thread of its own."""
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)
        call = kind(routine_image(self.name, self.target).address(self.name))
        a, b = self.arrays
        made = np.full(shape, np.nan, a.dtype)
        rows = (ctypes.c_void_p * 5)(a.ctypes.data, b.ctypes.data, made.ctypes.data)
        params = np.array(self.params, np.int64)
        with ThreadPoolExecutor(4) as pool:
            ranges = parts or [(0, self.count)]
            done = pool.map(lambda part: call(rows, params.ctypes.data, *part), ranges)
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
    tiles = Product(a, b, over, same)
    whole = tiles.run(wanted.shape)
    np.testing.assert_allclose(whole, wanted, rtol=0, atol=1e-3 if dtype in ("f4", "c8") else 1e-10)
    parts = [(t, t + 1) for t in range(tiles.count)]
    random.Random(form).shuffle(parts)
    assert tiles.run(wanted.shape, parts).tobytes() == whole.tobytes()
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
    tiles = Product(a, b, (2, 1), False, (0,))
    assert 1 < tiles.count < 70
    parts = [(t, t + 1) for t in range(tiles.count)]
    np.testing.assert_allclose(tiles.run((70, 20, 40), parts[::-1]), a @ b, atol=1e-12)


@pytest.mark.parametrize(
    ("way", "wanted"),
    [(PRODUCT, [1, 2, 2, 4, 8, 16, 1024]), (PANEL_PRODUCT, [1, 2, 16, 32, 64, 64, 1024])],
)
def test_the_number_of_tiles_grows_slowly_with_the_work(way: str, wanted: list[int]) -> None:
    """Each tile packs operands anew; but between two of them signals are looked for."""
    counts = []
    for n in (64, 128, 512, 1024, 2048, 4096, 16384):
        square = TensorType(DTYPES["f32"], (n, n))
        given = dict(zip(AXES, ((1,), (0,), (), ()), strict=True))
        counts.append(product_tiles((square, square), given, False, way).count)
    assert counts == wanted


def placed(a: Array, before: int) -> Array:
    """A copy that begins so many bytes behind a line of the cache, among NaN."""
    room = np.full(a.nbytes + 256, 255, np.uint8)
    first = -room.ctypes.data % 64 + 64 + before
    copy = room[first : first + a.nbytes].view(a.dtype).reshape(a.shape)
    copy[...] = a
    return copy


@needed
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products_with_vectors_have_the_same_bits_wherever_a_matrix_lies(dtype: str) -> None:
    """And on every level that has code of our own for them."""
    drawn = np.random.default_rng(6)
    targets = [t for t in TARGETS.values() if t.cpu >= "x86-64-v3"] or [host_target()]
    for m, n in ((1, 40), (7, 129), (9, 1037), (6, 5003), (530, 70)):
        a, x, y = (drawn.standard_normal(s).astype(dtype) for s in ((m, n), n, m))
        for vector, over in ((x, (1, 0)), (y, (0, 0))):
            found = set()
            for target, before in product(targets, (0, a.itemsize, 16, 40, 64 - a.itemsize)):
                made = Product(placed(a, before), vector, over, False, target=target)
                made_one = made.run((m if over[0] else n,))
                found.add(made_one.tobytes())
            wanted = np.tensordot(a.astype("f8"), vector.astype("f8"), (over[:1], (0,)))
            np.testing.assert_allclose(made_one, wanted, atol=1e-3 if dtype == "f4" else 1e-11)
            assert len(found) == 1


@needed
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_nothing_is_read_beside_operands(dtype: str) -> None:
    """They end, or begin, where nobody may touch memory."""
    drawn = np.random.default_rng(8)
    targets = [t for t in TARGETS.values() if t.cpu >= "x86-64-v3"] or [host_target()]
    walls = Walled(24), Walled(24)
    shapes = [(VECTOR_PRODUCT, 7, 1, 1037), (VECTOR_PRODUCT, 5, 1, 43), (PAIR_PRODUCT, 13, 3, 515)]
    shapes += [(PAIR_PRODUCT, 1, 1, 9), (PANEL_PRODUCT, 7, 65, 33), (PANEL_PRODUCT, 18, 5, 40)]
    for (way, m, n, k), left, right in product(shapes, (0, 1), (0, 1)):
        a = drawn.standard_normal((m, k) if left else (k, m)).astype(dtype)
        b = drawn.standard_normal((n, k) if right else (k, n)).astype(dtype)
        b, over = (b.reshape(k), 0) if way == VECTOR_PRODUCT else (b, right)
        wanted = np.tensordot(a.astype("f8"), b.astype("f8"), ((left,), (over,)))
        for end, target in product((False, True), targets):
            walled = []
            for array, wall in zip((a, b), walls, strict=True):
                room = wall.bytes[-array.nbytes :] if end else wall.bytes[: array.nbytes]
                walled.append(room.view(dtype).reshape(array.shape))
                walled[-1][...] = array
            x, y = walled
            made = Product(x, y, (left, over), False, way=way, target=target).run(wanted.shape)
            np.testing.assert_allclose(made, wanted, atol=1e-3 if dtype == "f4" else 1e-11)


@needed
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_few_columns_have_the_same_bits_however_operands_lie(dtype: str) -> None:
    """And on every level that multiplies them by pairs of terms, however many rows there are."""
    drawn = np.random.default_rng(7)
    targets = [t for t in TARGETS.values() if t.cpu >= "x86-64-v3"] or [host_target()]
    for terms, n in ((1, 3), (40, 1), (515, 4), (1100, 3), (300, 8 if dtype == "f4" else 2)):
        a = drawn.standard_normal((30, terms)).astype(dtype)
        b = drawn.standard_normal((terms, n)).astype(dtype)
        whole = None
        for m, left, right, target in product((30, 1, 5, 13), (1, 0), (0, 1), targets):
            x, y = a[:m] if left else a[:m].T, b.T if right else b
            x, y = placed(np.ascontiguousarray(x), 16), placed(np.ascontiguousarray(y), 16)
            made = Product(x, y, (left, right), False, way=PAIR_PRODUCT, target=target)
            made_one = made.run((m, n))
            whole = made_one if whole is None else whole
            np.testing.assert_array_equal(made_one, whole[:m])
        right_one = a.astype("f8") @ b.astype("f8")
        np.testing.assert_allclose(whole, right_one, atol=1e-4 if dtype == "f4" else 1e-12)


@needed
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
            made = Product(left, right, over, False, way=PANEL_PRODUCT).run((m, n))
            whole = made if whole is None else whole
            np.testing.assert_array_equal(made, whole[:m, :n])
        right_one = a.astype("f8") @ b.astype("f8")
        np.testing.assert_allclose(whole, right_one, atol=1e-4 if dtype == "f4" else 1e-12)


def test_a_long_product_by_a_vector_is_added_up_in_runs() -> None:
    """One term after the other, equal terms are rounded the same way each time."""
    if blas() is None:
        pytest.skip(str(why_not()))
    x, a = np.full(60_000, 148.41316, np.float32), np.full((60_000, 8), 119131.21, np.float32)
    made = Product(x, a, (0, 0), False).run((8,))
    right = float(x[0]) * float(a[0, 0]) * 60_000
    assert np.abs(made / right - 1).max() < 2e-5


@pytest.mark.parametrize("level", ["generic", "x86-64", "x86-64-v3", "x86-64-v4"])
def test_which_way_a_product_goes(level: str) -> None:
    """On aarch64 as with the least of x86-64."""
    arch = "aarch64" if level == "generic" else "x86_64"
    target = named(level, target_with(f"{arch}-unknown-linux-gnu", ()))

    def way(m: int, k: int, n: int, dtype: str = "f32", batch: int = 0) -> str:
        lead = (batch,) if batch else ()
        types = [TensorType(DTYPES[dtype], (*lead, *shape)) for shape in ((m, k), (k, n))]
        first, axes = len(lead), tuple(range(len(lead)))
        given = dict(zip(AXES, ((first + 1,), (first,), axes, axes), strict=True))
        return product_way(types, given, target)

    large = PANEL_PRODUCT if level == "x86-64-v4" else PRODUCT
    ours = level in ("x86-64-v3", "x86-64-v4")
    few, pairs = (w if ours else PRODUCT for w in (PANEL_PRODUCT, PAIR_PRODUCT))
    assert has_vectors("f32", target) == has_vectors("f64", target) == ours
    assert way(500, 500, 500) == way(17, 70_000, 33, "f64") == large
    assert way(17, 500, 33, "f64") == way(300, 300, 300) == few
    assert way(500, 500, 8) == way(500, 50, 4, "f64") == way(40, 50, 2, batch=3) == pairs
    assert way(500, 500, 9) == way(500, 50, 5, "f64") == few
    assert way(16, 500, 500) == way(500, 500, 32, "f64") == way(8, 500, 500, batch=3) == few
    assert way(16, 500, 500, "c64") == way(500, 500, 500, "c128") == PRODUCT
    assert way(1, 500, 500) == way(500, 500, 1, "c64") == VECTOR_PRODUCT
    assert way(1, 500, 500, batch=3) == few
    assert way(500, 500, 500, "i64") == way(500, 500, 500, "u32") == PANEL_PRODUCT
    assert way(500, 500, 500, "i8") == way(16, 500, 500, "i16") == NARROW_PRODUCT


@every_target
@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "u8"])
def test_large_products_of_integers_are_by_panels_and_wrap(dtype: str, target: LLVMTarget) -> None:
    source = np.random.default_rng(3)
    limits = np.iinfo(dtype)

    def drawn(*shape: int) -> Array:
        return source.integers(limits.min, limits.max, shape, dtype, endpoint=True)

    def times(a: Any, b: Any) -> Any:
        return a @ b

    def turned(a: Any, b: Any) -> Any:
        return a.T @ b.T

    a, shared = drawn(70, 600), drawn(5, 80, 70)
    cases = [
        (times, drawn(65, 600), drawn(600, 67)),  # two runs of terms, tails both ways
        (times, drawn(7, 500), drawn(500, 100)),
        (turned, drawn(90, 80), drawn(77, 90)),
        (times, shared, drawn(5, 70, 80)),
        (lambda a, b: a @ a.T + b, a, drawn(70, 70)),  # with itself
    ]
    for function, x, y in cases:
        graph = tn.trace(function, x, y)
        plan = BACKEND.plan(graph, target=target)
        assert any(isinstance(s, RoutineStep) and s.name == PRODUCT for s in plan.steps)
        (made,) = CompiledProgram(plan, target=target)([x, y])
        np.testing.assert_array_equal(made, function(x, y))


def test_small_products_of_integers_are_kernels() -> None:
    x, v = np.ones((40, 40), np.int32), np.ones(5000, np.int32)
    for function, given in (
        (lambda a: a @ a, (x,)),
        (lambda a, b: a @ b, (np.ones((5000, 5000), np.int32), v)),
        (lambda a, b: a @ b, (np.ones((400, 30, 30), np.int64), np.ones((400, 30, 30), np.int64))),
    ):
        plan = BACKEND.plan(tn.trace(function, *given))
        assert all(isinstance(step, KernelStep) for step in plan.steps)
