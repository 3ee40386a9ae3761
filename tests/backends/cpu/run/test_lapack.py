"""Linear algebra in plans: routines of LAPACK beside NumPy's, and what they leave to NumPy."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.library.blas import blas
from tenfold.backends.cpu.library.lapack.routines import form_of
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.ops import TABLE
from tenfold.parity.rule.agree import disagreement, judged
from tenfold.reference import evaluate
from tenfold.types import TensorType

Array = np.ndarray[Any, Any]
DTYPES = ("f4", "f8", "c8", "c16")
SHAPES = ((1, 1), (2, 2), (3, 3), (5, 5), (17, 17), (40, 40), (3, 4, 4), (2, 3, 2, 2))


def adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def draw(dtype: str, *shape: int, seed: int = 0) -> Array:
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * random.standard_normal(shape)
    return x.astype(dtype)


def positive(x: Array) -> Array:
    made = np.matmul(x, adjoint(x)) + x.shape[-1] * np.eye(x.shape[-1])
    return np.asarray(made, x.dtype)


def agrees(function: Callable[..., Any], *args: Array) -> None:
    """A plan without host steps, that gives what the rule of agreement allows."""
    graph = tn.trace(function, *args)
    plan = BACKEND.plan(graph)
    assert not plan.host_steps, plan.explain()
    got = CompiledProgram(plan)(list(args))
    for one, bounded in zip(got, judged(graph, list(args)), strict=True):
        assert disagreement(one, bounded) is None


SQUARE: dict[str, Callable[[Any], Any]] = {
    "solve": lambda a: np.linalg.solve(a, a[..., :1] + 1),
    "inv": np.linalg.inv,
    "det": np.linalg.det,
    "slogdet": lambda a: tuple(np.linalg.slogdet(a)),
    "eigh": lambda a: tuple(np.linalg.eigh(a)),
    "eigh of the upper triangle": lambda a: tuple(np.linalg.eigh(a, "U")),
    "eigvalsh": np.linalg.eigvalsh,
    "eig": lambda a: tuple(np.linalg.eig(a)),
    "eigvals": np.linalg.eigvals,
    "lower triangular": lambda a: tn.triangular_solve(a, a, lower=True),
    "upper triangular": lambda a: tn.triangular_solve(a, a, lower=False),
    "unit triangular": lambda a: tn.triangular_solve(a, a, lower=True, unit=True),
}
ANY: dict[str, Callable[[Any], Any]] = {
    "lu": tn.lu,
    "qr": lambda a: tuple(np.linalg.qr(a)),
    "complete qr": lambda a: tuple(np.linalg.qr(a, "complete")),
    "r": lambda a: np.linalg.qr(a, "r"),
    "svd": lambda a: tuple(np.linalg.svd(a)),
    "thin svd": lambda a: tuple(np.linalg.svd(a, full_matrices=False)),
    "svdvals": lambda a: np.linalg.svd(a, compute_uv=False),
}


# The reference calls no routine of LAPACK, or goes by logarithms; or the matrices are small.
OTHERWISE = ("lu", "det", "solve", "inv", "lower triangular", "upper triangular", "unit triangular")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SQUARE)
def test_square_matrices(name: str, dtype: str) -> None:
    for n, shape in enumerate(SHAPES):
        agrees(SQUARE[name], draw(dtype, *shape, seed=n) + 3 * np.eye(shape[-1], dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ANY)
def test_any_matrices(name: str, dtype: str) -> None:
    for n, shape in enumerate((*SHAPES, (2, 5), (5, 2), (3, 1, 4), (3, 4, 1), (33, 20), (20, 33))):
        agrees(ANY[name], draw(dtype, *shape, seed=n))


@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky(dtype: str) -> None:
    for n, shape in enumerate(SHAPES):
        agrees(np.linalg.cholesky, positive(draw(dtype, *shape, seed=n)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [n for n in SQUARE | ANY if n not in OTHERWISE])
def test_bits_are_numpys(name: str, dtype: str) -> None:
    """Small matrices are factored by the very routines that NumPy calls, in double precision."""
    function = (SQUARE | ANY)[name]
    a = draw(dtype, 3, 6, 6)
    graph = tn.trace(function, a)
    for got, want in zip(
        CompiledProgram(BACKEND.plan(graph))([a]), evaluate(graph, [a]), strict=True
    ):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["solve", "inv", "det"])
def test_small_matrices(name: str, dtype: str) -> None:
    """Of every size there is, with pivots in any row, and right sides of every width."""
    for n in range(1, 10):
        for seed in range(5):
            a = draw(dtype, 7, n, n, seed=seed)
            a[0] = np.roll(np.eye(n), seed, 0) * 3  # nothing but exchanged rows
            agrees(SQUARE[name], a)
    for k in range(1, 10):
        agrees(lambda a, b: np.linalg.solve(a, b), draw(dtype, 3, 5, 5), draw(dtype, 3, 5, k))


def test_any_number_of_threads_gives_the_same_bits() -> None:
    a = positive(draw("f8", 300, 12, 12))
    functions = [*SQUARE.values(), *ANY.values(), np.linalg.cholesky, np.fft.fft, np.cumsum]
    before = tn.config.threads
    try:
        for function in functions:
            program = CompiledProgram(BACKEND.plan(tn.trace(function, a)))
            found = []
            for threads in (1, 2, 3, 8):
                tn.config.threads = threads
                found.append(program([a]))
            for other in found[1:]:
                for one, two in zip(found[0], other, strict=True):
                    np.testing.assert_array_equal(one, two)
    finally:
        tn.config.threads = before


def test_one_singular_matrix_among_many_on_threads() -> None:
    a = positive(draw("f8", 2000, 12, 12))
    f = tn.jit(np.linalg.inv)
    want = f(a)
    a[1234] = 1.0
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        f(a)
    a[1234] = np.eye(12)
    np.testing.assert_array_equal(f(a)[:1234], want[:1234])


def test_matrices_that_are_no_rows_in_memory() -> None:
    a = draw("f8", 6, 5, 6)
    f = tn.jit(lambda a: np.linalg.inv(a.transpose(1, 0, 2) + 3 * np.eye(6)))
    np.testing.assert_allclose(f(a), np.linalg.inv(a.transpose(1, 0, 2) + 3 * np.eye(6)), 1e-12)
    np.testing.assert_allclose(tn.jit(np.linalg.inv)(a[0, :, ::-1][:, :5]),
                               np.linalg.inv(a[0, :, ::-1][:, :5]), 1e-9)  # fmt: skip


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 0)])
@pytest.mark.parametrize("name", ["solve", "inv", "det", "slogdet", "eigh", "svd", "qr"])
def test_nothing(name: str, shape: tuple[int, ...]) -> None:
    a = np.zeros(shape)
    got, want = tn.jit((SQUARE | ANY)[name])(a), (SQUARE | ANY)[name](a)
    for one, other in zip(
        *((x if isinstance(x, tuple) else (x,)) for x in (got, want)), strict=True
    ):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_array_equal(one, other)


SINGULAR = np.stack([np.eye(3), np.ones((3, 3)), np.eye(3)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_cannot_be_solved(dtype: str) -> None:
    bad = SINGULAR.astype(dtype)
    for function, message in (
        (lambda a: np.linalg.solve(a, a), "singular"),
        (np.linalg.inv, "singular"),
        (np.linalg.cholesky, "positive definite"),
    ):
        compiled = tn.jit(function)
        good = np.stack([np.eye(3)] * 3).astype(dtype)
        np.testing.assert_array_equal(compiled(good), good)
        for _ in range(2):
            with pytest.raises(np.linalg.LinAlgError, match=message) as caught:
                compiled(bad)
            assert isinstance(caught.value, tn.errors.MatrixProblem)
        np.testing.assert_array_equal(compiled(good), good)  # nothing is left of it
    assert np.array_equal(tn.jit(np.linalg.det)(bad), [1, 0, 1])
    sign, size = tn.jit(lambda a: tuple(np.linalg.slogdet(a)))(bad)
    np.testing.assert_array_equal(sign, [1, 0, 1])
    np.testing.assert_array_equal(size, [0, -np.inf, 0])


def test_an_error_names_the_line() -> None:
    def solving(a: Any, b: Any) -> Any:
        scaled = a * 1.0
        return np.linalg.solve(scaled, b)

    compiled = tn.jit(solving)
    compiled(np.eye(3), np.ones(3))
    with pytest.raises(np.linalg.LinAlgError) as caught:
        compiled(np.zeros((3, 3)), np.ones(3))
    assert "test_lapack.py" in str(caught.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite(value: float) -> None:
    a = np.stack([np.eye(3), np.eye(3)])
    a[1, 0, 2] = value
    for name in ("svd", "eig", "eigvals"):
        with pytest.raises((tn.errors.MatrixProblem, tn.errors.ValueProblem)):
            tn.jit((SQUARE | ANY)[name])(a)
    with np.errstate(all="ignore"):
        for function in (np.linalg.inv, np.linalg.det, tn.lu, SQUARE["upper triangular"]):
            graph = tn.trace(function, a)
            got, want = CompiledProgram(BACKEND.plan(graph))([a]), evaluate(graph, [a])
            for one, other in zip(got, want, strict=True):
                np.testing.assert_array_equal(np.isnan(one), np.isnan(other))


@pytest.mark.parametrize(
    "diagonal",
    [
        [1e200, 1e200, 1e-200, 1e-200],
        [1e-320, 2.0],
        [1e308, -1e308],
        [1e-200] * 3,
        [1e-160, 3e-150],
    ],
)
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_determinants_far_from_1(diagonal: list[float], dtype: str) -> None:
    a = np.diag(diagonal).astype(dtype)
    with np.errstate(all="ignore"):
        want = np.linalg.det(a)
        np.testing.assert_allclose(tn.jit(np.linalg.det)(a).real, want.real, 1e-10)


def test_a_saved_plan(tmp_path: Any) -> None:
    f = tn.jit(lambda a: (np.linalg.inv(a), np.linalg.svd(a, compute_uv=False)))
    a = draw("f8", 4, 4)
    want = f(a)
    f.plan(a).save(tmp_path / "inverse.plan")
    loaded = tn.load(tmp_path / "inverse.plan")
    for one, other in zip(loaded(a), want, strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        loaded(np.zeros((4, 4)))


def test_in_a_loop() -> None:
    a = positive(draw("f8", 3, 3))
    f = tn.jit(lambda a, x: tn.fori_loop(0, 5, lambda i, x: np.linalg.solve(a, x) + i, x))
    x = np.ones(3)
    for i in range(5):
        x = np.linalg.solve(a, x) + i
    np.testing.assert_allclose(f(a, np.ones(3)), x, 1e-12)


def test_other_threads_run_meanwhile() -> None:
    f = tn.jit(lambda a: np.linalg.svd(a, compute_uv=False), verify="off")
    a = draw("f8", 400, 400)
    f(a)
    done = threading.Event()

    def work() -> None:
        for _ in range(3):
            f(a)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    turns = 0
    while not done.wait(0.001):
        turns += 1
    thread.join()
    assert turns > 10


QUERIES: dict[str, tuple[str, int]] = {  # LAPACK's routine, and which argument is its workspace
    "svd": ("gesdd", 10),
    "eigh": ("syevd", 6),
    "eig": ("geev", 10),
}


@pytest.mark.parametrize(
    ("name", "shape"),
    [(name, (n, n)) for name in QUERIES for n in (1, 3, 40, 300)]
    + [("svd", (200, 7)), ("svd", (7, 200))],
)
def test_there_is_room_for_lapacks_best(name: str, shape: tuple[int, int]) -> None:
    """Asked with a size of -1, LAPACK says how much memory serves it best."""
    m, n = shape
    for dtype, letter in (("f8", "d"), ("c16", "z")):
        for sample in TABLE[name].samples(np.random.default_rng(0)):
            given = sample.attributes
            form = form_of(name, (TensorType(np.dtype(dtype), shape),), given)
            assert form.words["lwork"] >= best(name, letter, m, n, form.words), (dtype, given)


def best(name: str, letter: str, m: int, n: int, words: dict[str, int]) -> int:
    found = blas()
    assert found is not None
    routine, at = QUERIES[name]
    complex_ = letter == "z"
    if routine == "syevd" and complex_:
        routine = "heevd"
    run = getattr(ctypes.CDLL(found.path), f"scipy_{letter}{routine}_64_")

    def number(value: int) -> Any:
        return ctypes.byref(ctypes.c_int64(value))

    room = (ctypes.c_double * 8)()
    job = number(words["job"])
    query, info = number(-1), number(0)
    if name == "svd":
        before = [job, number(m), number(n), room, number(m), room, room, number(m), room,
                  number(words["columns"])]  # fmt: skip
        behind = [room] * complex_ + [room, info]
    elif name == "eigh":
        before = [job, number(words["uplo"]), number(n), room, number(n), room]
        other = (ctypes.c_double * 8)()
        behind = [other, number(-1)] * complex_ + [other, number(-1), info]
    else:
        values = [room] if complex_ else [room, room]
        before = [number(words["no"]), job, number(n), room, number(n), *values, room, number(n),
                  room, number(n)]  # fmt: skip
        behind = [room] * complex_ + [info]
    work = (ctypes.c_double * 2)()
    run(*before, work, query, *behind, *[ctypes.c_int64(1)] * 2)
    assert len(before) == at + (name == "eig" and not complex_)
    return int(work[0])


def test_a_signal_is_seen_between_matrices() -> None:
    """Ctrl-C waits for one matrix, as it does in NumPy, not for a whole batch."""
    f = tn.jit(lambda a: np.linalg.svd(a, compute_uv=False), verify="off")
    a = np.broadcast_to(draw("f8", 60, 60), (2000, 60, 60)).copy()
    start = time.perf_counter()
    f(a)
    whole = time.perf_counter() - start
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(whole / 10, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            f(a)
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
