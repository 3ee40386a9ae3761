"""cublasLt by ctypes: what it is asked for, with a library that multiplies by
NumPy in place of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tenfold.backends.cuda.find import CUBLAS
from tenfold.backends.cuda.library import cublas
from tenfold.backends.cuda.library.cublas import Cublas, Multiplication, Multiplier
from tenfold.backends.cuda.library.cublas_product import CublasProduct
from tenfold.backends.cuda.target import named
from tenfold.backends.matrices import MatrixProduct
from tenfold.errors import DeviceProblem
from tenfold.graph import Builder, Graph
from tenfold.ops import TABLE
from tenfold.parity.certificate import Certificate
from tenfold.parity.check import check
from tenfold.reference import evaluate
from tenfold.types import parse_type
from tests.backends.cuda.fake_cublas import FakeCublas
from tests.backends.cuda.simulated import SimulatedGpu, simulated

Array = np.ndarray[Any, Any]
DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.complex64, np.complex128]


def drawn(random: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> Array:
    made = random.integers(-4, 5, shape).astype(np.float64)
    if np.dtype(dtype).kind == "c":
        made = made + 1j * random.integers(-4, 5, shape)
    return made.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(("left", "right"), [(a, b) for a in (False, True) for b in (False, True)])
def test_a_multiplication_gives_what_numpy_gives(
    dtype: Any, batch: int, left: bool, right: bool
) -> None:
    gpu, random = SimulatedGpu(cublas=FakeCublas()), np.random.default_rng(1)
    m, n, k = 3, 5, 4
    a, b = drawn(random, dtype, (batch, m, k)), drawn(random, dtype, (batch, k, n))
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    expected = a.astype(wide) @ b.astype(wide)
    lies = [x.swapaxes(1, 2) if turned else x for x, turned in ((a, left), (b, right))]
    places = []
    for array in lies:
        places.append(gpu.alloc(array.nbytes))
        gpu.upload(places[-1], np.ascontiguousarray(array), 0)
    result, workspace = gpu.alloc(expected.size * a.itemsize), gpu.alloc(1024)
    gpu.memory.fill(workspace, 1024, 0)
    name = "bf16" if dtype is ml_dtypes.bfloat16 else f"{np.dtype(dtype).kind}{8 * a.itemsize}"
    one = Multiplication(name, batch, m, n, k, left, right, 1024, 16)
    gpu.multiplier().multiply(one, 0, *places, result, workspace)
    made = np.empty(expected.shape, dtype)
    gpu.download(made, result, 0)
    assert np.array_equal(made.astype(wide), expected)


def test_an_algorithm_is_asked_for_once_and_may_be_given() -> None:
    fake = FakeCublas()
    gpu = SimulatedGpu(cublas=fake)
    one = Multiplication("f32", 1, 2, 2, 2, False, False, 0, 16)
    place = gpu.alloc(64)
    gpu.memory.fill(place, 64, 0)
    for _ in range(3):
        gpu.multiplier().multiply(one, 0, place, place, place, 0)
    assert fake.calls.count("cublasLtMatmulAlgoGetHeuristic") == 1
    assert fake.calls.count("cublasLtMatmulDescCreate") == 1
    assert fake.calls.count("cublasLtMatmul") == 3
    kept = gpu.multiplier().algorithms
    assert kept == {one: bytes(range(64))}
    other = Multiplier(Cublas(fake))
    other.algorithms.update(kept)
    other.multiply(one, 0, place, place, place, 0)
    assert fake.calls.count("cublasLtMatmulAlgoGetHeuristic") == 1


def test_partial_sums_are_not_rounded_and_alignment_is_told() -> None:
    fake = FakeCublas()
    gpu = SimulatedGpu(cublas=fake)
    place = gpu.alloc(4096)
    gpu.memory.fill(place, 4096, 0)
    one = Multiplication("f16", 1, 4, 4, 4, False, False, 512, 2)
    gpu.multiplier().multiply(one, 0, place, place, place + 1024, place + 2048)
    (asked,) = fake.asked
    # Bytes of workspace; the scheme COMPUTE_TYPE; multiples at which A, B, C and D begin.
    assert asked == {"there": True, 1: 512, 3: 2, 5: 2, 6: 2, 7: 2, 8: 2}


def test_a_refusal_says_what_and_by_whom() -> None:
    gpu = SimulatedGpu(cublas=FakeCublas(refuses=True))
    one = Multiplication("f32", 1, 2, 2, 2, False, False, 0, 16)
    with pytest.raises(DeviceProblem, match=r"cublasLt 13\.1\.0: it does not do such a product"):
        gpu.multiplier().multiply(one, 0, 0, 0, 0, 0)


def test_the_environment_may_name_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find: Callable[[int], Cublas | None] = cublas.find_cublas.__wrapped__
    monkeypatch.setenv(CUBLAS.variable, "off")
    assert find(13) is None
    monkeypatch.setenv(CUBLAS.variable, str(tmp_path / "none.so"))
    (tmp_path / "none.so").write_bytes(b"no library")
    with pytest.raises(DeviceProblem, match="no cublasLt that this driver can serve"):
        find(13)


def test_a_target_names_the_library() -> None:
    with_library, without = named("sm_90", cublas="13.1.0"), named("sm_90")
    assert with_library.versions["cublasLt"] == "13.1.0"
    assert without.versions["cublasLt"] == "none"
    assert with_library.digest != without.digest


def _product(dtype: str, a: str, b: str, **given: tuple[int, ...]) -> Graph:
    builder = Builder(TABLE)
    values = [builder.parameter(parse_type(f"{dtype}{shape}")) for shape in (a, b)]
    axes = {"lhs_batch": (), "rhs_batch": (), **given}
    return builder.finish(builder.node("contract", values, axes))


@pytest.mark.parametrize("dtype", ["f32", "f64", "c64", "c128"])
@pytest.mark.parametrize(
    ("a", "b", "given"),
    [
        ("[40,30]", "[30,20]", {"lhs_contract": (1,), "rhs_contract": (0,)}),
        ("[30,40]", "[20,30]", {"lhs_contract": (0,), "rhs_contract": (1,)}),
        (
            "[3,20,15]",
            "[3,25,15]",
            {"lhs_contract": (2,), "rhs_contract": (2,), "lhs_batch": (0,), "rhs_batch": (0,)},
        ),
        ("[4,10,6,5]", "[6,5,24]", {"lhs_contract": (2, 3), "rhs_contract": (0, 1)}),
    ],
)
def test_a_plan_has_its_products_made_by_the_library(
    dtype: str, a: str, b: str, given: dict[str, Any]
) -> None:
    fake = FakeCublas()
    gpu, graph = SimulatedGpu(cublas=fake), _product(dtype, a, b, **given)
    random = np.random.default_rng(2)
    arrays = [drawn(random, p.type.dtype, p.type.shape) for p in graph.parameters]
    (made,) = simulated(gpu).compile(graph)(arrays)
    assert fake.calls.count("cublasLtMatmul") == 1
    (expected,) = evaluate(graph, arrays)
    assert np.array_equal(made, expected)


def test_what_is_prepared_is_not_asked_for_again() -> None:
    fake = FakeCublas()
    gpu = SimulatedGpu(cublas=fake)
    product = MatrixProduct(("f32",) * 3, 1, 4, 4, 4, False, True)
    call = CublasProduct(product, "13.1.0")
    call.prepare(gpu, True)
    before = len(fake.calls)
    places = [gpu.alloc(call.scratch) for _ in range(4)]
    for place in places:
        gpu.memory.fill(place, 64, 0)
    call.call(gpu, 0, places)
    assert fake.calls[before:] == ["cublasLtMatmul"]
    call.call(gpu, 0, [places[0] + 4, *places[1:]])
    assert [asked[5] for asked in fake.asked] == [16, 4]


def test_a_program_of_products_is_certified() -> None:
    fake = FakeCublas()
    backend = simulated(SimulatedGpu(cublas=fake))
    graph = _product("f32", "[40,30]", "[30,20]", lhs_contract=(1,), rhs_contract=(0,))
    assert backend.target().versions["cublasLt"] == "13.1.0"
    program = backend.compile(graph)
    random = np.random.default_rng(3)
    arrays = [random.normal(size=p.type.shape).astype(np.float32) for p in graph.parameters]
    found = check(program, graph, arrays)
    assert isinstance(found.verdict, Certificate), found.verdict
    assert ("cublasLt", "13.1.0") in found.verdict.versions


def test_a_program_of_products_is_kept_and_read_again() -> None:
    backend = simulated(SimulatedGpu(cublas=FakeCublas()))
    graph = _product("f32", "[40,30]", "[30,20]", lhs_contract=(1,), rhs_contract=(0,))
    program = backend.compile(graph)
    code = backend.read_code(backend.code_of(program, True).pack())
    assert code.unusable() is None
    random = np.random.default_rng(4)
    arrays = [drawn(random, p.type.dtype, p.type.shape) for p in graph.parameters]
    (made,) = code.restore(lambda: program.plan)(arrays)
    np.testing.assert_array_equal(made, evaluate(graph, arrays)[0])


def test_a_plan_says_which_library_multiplies() -> None:
    graph = _product("f32", "[40,30]", "[30,20]", lhs_contract=(1,), rhs_contract=(0,))
    plan = simulated(SimulatedGpu(cublas=FakeCublas())).plan(graph)
    words = "by cublasLt 13.1.0, whose bits are its own"
    assert words in plan.explain()
    assert words not in simulated(SimulatedGpu()).plan(graph).explain()
