"""Factorings and solutions by cuSOLVER: what it is asked for, with LAPACK in place of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cuda.library import factoring, small
from tenfold.backends.cuda.library.cusolver import Cusolver, Factoring, load_cusolver
from tenfold.errors import DeviceProblem, MatrixProblem, ValueProblem
from tenfold.ops import TABLE
from tenfold.parity.certificate import Certificate
from tenfold.parity.check import check
from tenfold.reference import evaluate
from tests.backends.cuda.against import graph_of, ordinary
from tests.backends.cuda.fake_cusolver import FakeCusolver
from tests.backends.cuda.simulated import SimulatedGpu, remember_printed, simulated

Array = np.ndarray[Any, Any]
DTYPES = ("f32", "f64", "c64", "c128")
SQUARES = ((3, 3), (1, 1), (2, 34, 34), (2, 3, 5, 5))
MATRICES = (*SQUARES, (5, 3), (3, 5), (2, 3, 6, 4), (2, 33, 40))
GIVEN: dict[str, list[dict[str, Any]]] = {
    "cholesky": [{}],
    "solve": [{}],
    "triangular_solve": [
        {"lower": lower, "unit": unit} for lower in (False, True) for unit in (False, True)
    ],
    "inv": [{}],
    "det": [{}],
    "slogdet": [{}],
    "qr": [{"mode": mode} for mode in ("reduced", "complete", "r")],
    "eigh": [{"lower": lower, "vectors": False} for lower in (True, False)],
    "svd": [{"full_matrices": False, "compute_uv": False}],
}


@pytest.fixture(autouse=True)
def none_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small, "MOST", 0)


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small matrices are factored one by one, too."""
    monkeypatch.setattr(factoring, "LEAST", 1)


def backend_with(fake: FakeCusolver) -> Any:
    return simulated(SimulatedGpu(cusolver=fake))


def arguments(name: str, dtype: str, shape: tuple[int, ...]) -> list[Array]:
    x = ordinary(dtype, shape)
    if name == "cholesky":
        x = (x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1])).astype(x.dtype)
    if name == "triangular_solve":  # well-conditioned also where the diagonal stands for ones
        x = (x / (2 * shape[-1]) + np.eye(shape[-1]) * 1.5).astype(x.dtype)
    return [x, ordinary(dtype, (*shape[:-1], 3))] if name.endswith("solve") else [x]


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.usefixtures("one_by_one")
def test_results_are_what_numpy_gives(name: str, dtype: str) -> None:
    backend = backend_with(FakeCusolver())
    for shape in MATRICES if name in ("qr", "svd") else SQUARES:
        for given in GIVEN[name]:
            arrays = arguments(name, dtype, shape)
            graph = graph_of(name, arrays, **given)
            program = backend.compile(graph)
            assert not program.plan.host_steps
            for _ in range(2):  # inputs are not written over
                for made, expected in zip(program(arrays), evaluate(graph, arrays), strict=True):
                    expected = np.asarray(expected)
                    assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
                    near = 1e-4 if dtype in ("f32", "c64") else 1e-10
                    size = np.abs(expected).max(initial=1.0)
                    np.testing.assert_allclose(made, expected, rtol=near, atol=near * size)


@pytest.mark.parametrize("name", GIVEN)
def test_samples_are_certified(name: str) -> None:
    backend = backend_with(FakeCusolver())
    for sample in TABLE[name].samples(np.random.default_rng(1)):
        arrays = [np.asarray(array) for array in sample.inputs]
        graph = graph_of(name, arrays, **dict(sample.attributes))
        found = check(backend.compile(graph), graph, arrays)
        assert isinstance(found.verdict, Certificate), found.verdict


@pytest.mark.parametrize(
    ("function", "matrix", "error"),
    [
        (lambda x: np.linalg.solve(x, x), np.ones((4, 4)), MatrixProblem),
        (lambda x: np.linalg.inv(x), np.ones((4, 4)), MatrixProblem),
        (lambda x: tn.triangular_solve(x, x[:, :2]), np.diag([1.0, 0.0, 2.0]), MatrixProblem),
        (lambda x: np.linalg.cholesky(x), -np.eye(4), MatrixProblem),
        (lambda x: np.linalg.svd(x, compute_uv=False), np.full((3, 3), np.nan), ValueProblem),
    ],
)
def test_what_is_unsolved_raises_at_the_users_line(
    function: Any, matrix: Array, error: type[Exception]
) -> None:
    backend = backend_with(FakeCusolver())
    program = backend.compile(tn.trace(function, matrix))
    assert not program.plan.host_steps
    for _ in range(2):
        with pytest.raises(error, match=r"test_cusolver\.py"):
            program([matrix])
        well = np.eye(len(matrix)) * 2
        if error is MatrixProblem:  # nothing is left of it
            np.testing.assert_allclose(program([well])[0], function(well))


@pytest.mark.parametrize(
    ("function", "matrix"),
    [
        (lambda x: np.linalg.det(x), np.ones((4, 4))),
        (lambda x: np.linalg.slogdet(x)[1], np.ones((4, 4))),
        (lambda x: np.linalg.inv(x), np.full((4, 4), np.nan)),
        (lambda x: np.linalg.det(x), np.full((4, 4), np.inf)),
        (lambda x: np.linalg.qr(x)[1], np.full((4, 4), np.nan)),
    ],
)
def test_what_is_unsolved_but_no_error_is_numpys(function: Any, matrix: Array) -> None:
    program = backend_with(FakeCusolver()).compile(tn.trace(function, matrix))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(program([matrix])[0], function(matrix))


def test_what_the_library_gives_up_on_is_the_evaluators() -> None:
    fake = FakeCusolver(leaves=("syevd",))
    x = np.diag(np.arange(1.0, 5.0))
    program = backend_with(fake).compile(tn.trace(lambda x: np.linalg.eigvalsh(x), x))
    np.testing.assert_array_equal(program([x])[0], np.arange(1.0, 5.0))
    assert "cusolverDnDsyevd" in fake.calls


def test_steps_of_the_library_stand_between_graphs_and_in_loops() -> None:
    def program(x: Any, b: Any) -> Any:
        c = tn.fori_loop(0, 5, lambda i, c: np.linalg.solve(x, c) + 1, b)
        return np.linalg.det(x + 1) * 2, np.linalg.inv(x) @ c, np.tanh(c).sum()

    x, b = ordinary("f64", (6, 6)) + 8 * np.eye(6), ordinary("f64", (6, 2))
    graph = tn.trace(program, x, b)
    fake = FakeCusolver()
    compiled = backend_with(fake).compile(graph)
    assert not compiled.plan.host_steps
    for made, expected in zip(compiled([x, b]), evaluate(graph, [x, b]), strict=True):
        np.testing.assert_allclose(made, expected, rtol=1e-9)
    assert fake.calls.count("cusolverDnDgetrf") == 7
    assert fake.calls.count("cusolverDnDgetrf_bufferSize") == 1
    assert {x.shape for x in compiled([x, b])[1:]} == {(6, 2), ()}


def test_an_index_and_a_matrix_that_are_wrong_in_one_program() -> None:
    """Each is told at its own line, whichever comes first."""

    def program(x: Any, i: Any) -> Any:
        return np.linalg.inv(x[i])

    x = np.ones((2, 3, 3)) + np.eye(3) * np.array([0.0, 1.0])[:, None, None]
    compiled = backend_with(FakeCusolver()).compile(tn.trace(program, x, 1))
    np.testing.assert_allclose(compiled([x, np.array(1)])[0], np.linalg.inv(x[1]))
    with pytest.raises(MatrixProblem, match="singular"):
        compiled([x, np.array(0)])
    with pytest.raises(IndexError):
        compiled([x, np.array(7)])


def test_a_program_says_by_whom_and_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    remember_printed(monkeypatch)
    backend = backend_with(FakeCusolver())
    x = ordinary("f32", (5, 5)) + 6 * np.eye(5, dtype=np.float32)
    graph = tn.trace(lambda x: np.linalg.inv(x), x)
    program = backend.compile(graph)
    assert "inv of f32[5,5]: by cuSOLVER 12.0.4, whose bits are its own" in program.plan.explain()
    assert backend.target().versions["cuSOLVER"] == "12.0.4"
    code = backend.read_code(backend.code_of(program, True).pack())
    assert code.unusable() is None
    np.testing.assert_array_equal(code.restore(lambda: program.plan)([x])[0], program([x])[0])


@pytest.mark.parametrize(
    ("function", "shape", "reason"),
    [
        (lambda x: np.linalg.inv(x), (7, 4, 4), "many small matrices are LAPACK's"),
        (lambda x: np.linalg.eigh(x)[1], (4, 4), "signs of vectors are LAPACK's own"),
        (lambda x: np.linalg.svd(x)[0], (4, 4), "signs of vectors are LAPACK's own"),
        (lambda x: np.linalg.eigvals(x), (4, 4), "cuSOLVER does not do it as LAPACK does"),
    ],
)
def test_why_it_is_the_hosts(function: Any, shape: tuple[int, ...], reason: str) -> None:
    plan = backend_with(FakeCusolver()).plan(tn.trace(function, np.ones(shape)))
    assert reason in plan.explain()
    assert plan.host_steps


def test_a_status_is_said_in_words(tmp_path: Any) -> None:
    gpu = SimulatedGpu(cusolver=FakeCusolver())
    with pytest.raises(DeviceProblem, match=r"cuSOLVER 12\.0\.4: a value is not valid"):
        gpu.solver().factor(Factoring("gesvd", "f64", 2, 3), 0, [([0, 0], 0)], 0, print)
    assert Cusolver(FakeCusolver(version=(11, 7, 2))).version == "11.7.2"
    path = tmp_path / "libcusolver.so.12"
    path.write_bytes(b"no library")
    with pytest.raises(DeviceProblem, match="no cuSOLVER that can be loaded"):
        load_cusolver(str(path))
