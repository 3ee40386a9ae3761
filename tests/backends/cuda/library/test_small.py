"""Small matrices, solved by functions of ours on a simulated GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cuda.assemble import shared_module
from tenfold.backends.cuda.library.small import small_routine
from tenfold.backends.cuda.target import named
from tenfold.backends.llvm.target import llvmlite_version
from tenfold.backends.llvm.text import join
from tenfold.errors import MatrixProblem
from tenfold.ops import TABLE
from tenfold.parity.certificate import Certificate
from tenfold.parity.check import check
from tenfold.reference import evaluate
from tenfold.types import TensorType
from tests.backends.cuda.against import graph_of, ordinary
from tests.backends.cuda.simulated import SimulatedGpu, simulated

Array = np.ndarray[Any, Any]
NAMES = ("cholesky", "solve", "inv", "det", "slogdet", "triangular_solve", "lu")
WAYS = [{"lower": lower, "unit": unit} for lower in (False, True) for unit in (False, True)]
DTYPES = ("f32", "f64", "c64", "c128")
SHAPES = ((3, 3), (1, 1), (9, 4, 4), (2, 17, 17), (3, 3, 5, 5))
MOST = (32, 32)


def arguments(name: str, dtype: str, shape: tuple[int, ...]) -> list[Array]:
    x = ordinary(dtype, shape)
    if name == "cholesky":
        x = (x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1])).astype(x.dtype)
    if name == "triangular_solve":  # well-conditioned also where the diagonal stands for ones
        x = (x / (2 * shape[-1]) + np.eye(shape[-1]) * 1.5).astype(x.dtype)
    return [x, ordinary(dtype, (*shape[:-1], 5))] if name.endswith("solve") else [x]


def program_of(function: Any, *arrays: Array) -> Any:
    program = simulated(SimulatedGpu()).compile(tn.trace(function, *arrays))
    assert not program.plan.host_steps
    return program


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_results_are_what_numpy_gives(name: str, dtype: str) -> None:
    backend = simulated(SimulatedGpu())
    for shape in (*SHAPES, MOST) if dtype == "f64" else SHAPES:
        arrays = arguments(name, dtype, shape)
        for given in WAYS if name == "triangular_solve" else [{}]:
            graph = graph_of(name, arrays, **given)
            program = backend.compile(graph)
            assert not program.plan.host_steps
            for made, expected in zip(program(arrays), evaluate(graph, arrays), strict=True):
                expected = np.asarray(expected)
                assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
                near = 1e-4 if dtype in ("f32", "c64") else 1e-10
                size = np.abs(expected).max(initial=1.0)
                np.testing.assert_allclose(made, expected, rtol=near, atol=near * size)


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_certified(name: str) -> None:
    backend = simulated(SimulatedGpu())
    for sample in TABLE[name].samples(np.random.default_rng(2)):
        arrays = [np.asarray(array) for array in sample.inputs]
        graph = graph_of(name, arrays, **dict(sample.attributes))
        found = check(backend.compile(graph), graph, arrays)
        assert isinstance(found.verdict, Certificate), found.verdict


@pytest.mark.parametrize(
    ("function", "bad"),
    [
        (lambda x: np.linalg.solve(x, x[..., :2]), np.ones((4, 4))),
        (lambda x: np.linalg.inv(x), np.zeros((4, 4))),
        (lambda x: tn.triangular_solve(x, x[..., :3]), np.diag([1.0, 2.0, 0.0, 1.0])),
        (lambda x: np.linalg.cholesky(x), np.diag([1.0, 2.0, -1.0, 1.0])),
    ],
)
def test_one_of_many_that_is_unsolved_raises_at_the_users_line(function: Any, bad: Array) -> None:
    many = np.stack([np.eye(4) * (n + 1) for n in range(9)])
    program = program_of(function, many)
    np.testing.assert_allclose(program([many])[0], function(many))
    wrong = many.copy()
    wrong[7] = bad
    for _ in range(2):
        with pytest.raises(MatrixProblem, match=r"test_small\.py"):
            program([wrong])
    np.testing.assert_allclose(program([many])[0], function(many))


@pytest.mark.parametrize(
    ("function", "matrix"),
    [
        (lambda x: np.linalg.det(x), np.ones((4, 4))),
        (lambda x: np.linalg.det(x), np.full((3, 3), np.inf)),
        (lambda x: np.linalg.slogdet(x)[1], np.zeros((3, 4, 4))),
        (lambda x: np.linalg.inv(x), np.full((4, 4), np.nan)),
        (lambda x: np.linalg.cholesky(x), np.diag([1.0, np.inf, 1.0])),
        (lambda x: np.linalg.inv(x), np.eye(3) * 1e-310),  # whose inverse is infinite
    ],
)
def test_what_is_no_error_is_numpys(function: Any, matrix: Array) -> None:
    program = program_of(function, matrix)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(program([matrix])[0], function(matrix))


@pytest.mark.parametrize("size", [1e200, 1e-200])
@pytest.mark.parametrize("dtype", ["f64", "c128"])
def test_very_large_and_very_small_numbers(size: float, dtype: str) -> None:
    x = ordinary(dtype, (3, 6, 6)) * size
    np.testing.assert_allclose(program_of(lambda x: np.linalg.inv(x), x)([x])[0], np.linalg.inv(x))
    sign, log = program_of(lambda x: np.linalg.slogdet(x), x)([x])
    np.testing.assert_allclose(sign, np.linalg.slogdet(x)[0], atol=1e-12)
    np.testing.assert_allclose(log, np.linalg.slogdet(x)[1])


def test_a_determinant_with_large_factors() -> None:
    x = np.diag([1e200, 1e200, 1e-150, 1e-250, -3.0])[[1, 0, 2, 4, 3]]
    np.testing.assert_allclose(program_of(lambda x: np.linalg.det(x), x)([x])[0], np.linalg.det(x))


def test_in_a_loop_beside_kernels() -> None:
    def function(x: Any, b: Any) -> Any:
        def body(c: Any) -> Any:
            return c[0] - 1, np.tanh(np.linalg.solve(x, c[1])) + b

        return tn.while_loop(lambda c: c[0] > 0, body, (6, b))[1]

    x, b = ordinary("f64", (5, 6, 6)) + 4 * np.eye(6), ordinary("f64", (5, 6, 2))
    program = program_of(function, x, b)
    graph = tn.trace(function, x, b)
    np.testing.assert_allclose(program([x, b])[0], evaluate(graph, [x, b])[0], rtol=1e-8)
    singular = x.copy()
    singular[3] = 1.0
    with pytest.raises(MatrixProblem, match="singular"):
        program([singular, b])
    np.testing.assert_allclose(program([x, b])[0], evaluate(graph, [x, b])[0], rtol=1e-8)


def test_rows_are_taken_in_lapacks_order() -> None:
    """Where several are as great, it is the first as they stand by then; a column of zeros is left
    as it is."""
    random = np.random.default_rng(5)
    x = random.integers(-1, 2, (40, 7, 7)).astype(np.float64)
    x[3, :, 2] = 0
    graph = graph_of("lu", [x])
    made = simulated(SimulatedGpu()).compile(graph)([x])
    for ours, theirs in zip(made, evaluate(graph, [x]), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    np.testing.assert_allclose(made[0] @ made[1] @ made[2], x, atol=1e-12)


def test_a_plan_says_by_whom() -> None:
    x = np.eye(5, dtype=np.float32)
    said = program_of(lambda x: np.linalg.inv(x), x).plan.explain()
    assert "inv of f32[5,5]: by an elimination of ours, whose bits are its own" in said


def test_which_matrices_are_small() -> None:
    def there(name: str, *shapes: tuple[int, ...]) -> bool:
        types = [TensorType(np.dtype(np.float32), shape) for shape in shapes]
        return small_routine(name, types, {}) is not None

    assert there("solve", (9, 32, 32), (9, 32, 32))
    assert not there("solve", (9, 32, 32), (9, 32, 33))
    assert not there("solve", (9, 33, 33), (9, 33, 1))
    assert not there("det", (0, 0))
    assert not there("qr", (4, 4))
    assert there("lu", (3, 4, 4))
    assert not there("lu", (3, 4, 5))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_llvm_takes_the_largest(name: str, dtype: str) -> None:
    target = named("sm_80", llvmlite_version())
    shapes = [(4, 32, 32)] * (2 if name.endswith("solve") else 1)
    types = [TensorType(ordinary(dtype, (1,)).dtype, shape) for shape in shapes]
    routine = small_routine(name, types, WAYS[-1])
    assert routine is not None
    made = shared_module(join([routine.text(target)]), target)
    assert f".entry {routine.key}(" in made.ptx
