"""Products of our own, by the simulator: integers against NumPy exactly, floats by the bound of a
sum of so many terms."""

from __future__ import annotations

from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tenfold.backends.cpu.backend import BACKEND as CPU
from tenfold.backends.cuda.assemble import ModuleCode
from tenfold.backends.cuda.compile import to_ptx
from tenfold.backends.cuda.library.product import (
    APART,
    LONG,
    product_routine,
)
from tenfold.backends.cuda.library.product_tiles import cut_of, tiles_routine
from tenfold.backends.cuda.library.routine import GpuRoutine
from tenfold.backends.cuda.library.vectors import DTYPES as VECTORS
from tenfold.backends.cuda.library.vectors import ROWS, vector_routine
from tenfold.backends.cuda.target import named
from tenfold.backends.llvm.target import llvmlite_version
from tenfold.backends.llvm.text import join
from tenfold.backends.matrices import MatrixProduct
from tenfold.graph import Builder
from tenfold.graph.op import Types
from tenfold.ops import TABLE
from tenfold.parity.certificate import Certificate
from tenfold.parity.check import check
from tenfold.plan import RoutineStep
from tenfold.types import DTYPES, TensorType, parse_type
from tests.backends.cuda.fake_cublas import FakeCublas
from tests.backends.cuda.simulated import SimulatedGpu, simulated

Array = np.ndarray[Any, Any]
TURNS = [(a, b) for a in (False, True) for b in (False, True)]
EPS = {"f32": 2.0**-24, "f64": 2.0**-53, "f16": 2.0**-24, "bf16": 2.0**-24,
       "c64": 2.0**-23, "c128": 2.0**-52}  # fmt: skip
UNIT = {"f16": 2.0**-11, "bf16": 2.0**-8}


def drawn(random: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Array:
    of = DTYPES[dtype]
    if dtype[0] in "iu":
        bounds = np.iinfo(of)
        return random.integers(bounds.min, bounds.max, shape, of, endpoint=True)
    made: Any = random.normal(size=shape)
    if dtype[0] == "c":
        made = made + 1j * random.normal(size=shape)
    return made.astype(of)


def launched(routine: GpuRoutine, gpu: SimulatedGpu, arrays: list[Array], shift: int = 0) -> Array:
    """What a routine makes of two arrays, as it lies in the last one."""
    (module,) = gpu.load([ModuleCode(gpu.target, join([routine.text(gpu.target)]))])
    places = []
    for array in arrays:
        place = gpu.alloc(array.nbytes + shift) + shift
        gpu.upload(place, np.ascontiguousarray(array), 0)
        places.append(place)
    if routine.scratch:
        places.append(gpu.alloc(routine.scratch))
    for one in routine.functions:
        words = [places[n].to_bytes(8, "little") for n in one.arrays]
        words += [value.to_bytes(size, "little", signed=True) for value, size in one.words]
        gpu.launch(module.function(one.function), one.blocks, one.threads, words, 0)
    gpu.download(arrays[-1], places[len(arrays) - 1], 0)
    return arrays[-1]


def multiplied(p: MatrixProduct, routine: GpuRoutine | None, shift: int = 0) -> None:
    """Multiply drawn matrices by a routine, and compare."""
    assert routine is not None
    random = np.random.default_rng(prod((p.m, p.n, p.k)))
    a, b = (
        drawn(random, dtype, (p.batch, *shape))
        for dtype, shape in zip(p.dtypes, ((p.m, p.k), (p.k, p.n)), strict=False)
    )
    lies = [x.swapaxes(1, 2) if turn else x for x, turn in ((a, p.left), (b, p.right))]
    result = np.zeros((p.batch, p.m, p.n), DTYPES[p.dtype])
    made = launched(routine, SimulatedGpu(), [*map(np.ascontiguousarray, lies), result], shift)
    if p.dtype[0] in "iu":
        expected = np.matmul(a.astype(DTYPES[p.dtype]), b.astype(DTYPES[p.dtype]))
        assert np.array_equal(made, expected)
        return
    wide: Any = np.clongdouble if p.dtype[0] == "c" else np.longdouble
    exact = np.matmul(a.astype(wide), b.astype(wide))
    whole = np.matmul(np.abs(a.astype(wide)), np.abs(b.astype(wide)))
    bound = (p.k / 2 + 2) * EPS[p.dtype] * whole + UNIT.get(p.dtype, 0) * np.abs(exact)
    assert (np.abs(made.astype(wide) - exact) <= bound).all()


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "c64", "c128", "i32", "u64"])
@pytest.mark.parametrize(("left", "right"), TURNS)
@pytest.mark.parametrize(("m", "n", "k"), [(20, 36, 40), (17, 19, 21)])
def test_tiles_multiply(dtype: str, left: bool, right: bool, m: int, n: int, k: int) -> None:
    p = MatrixProduct((dtype,) * 3, 2, m, n, k, left, right)
    multiplied(p, tiles_routine(p, True))


@pytest.mark.parametrize("extent", [16, 32, 64, 128])
@pytest.mark.parametrize(("left", "right"), [(False, False), (True, True)])
def test_tiles_of_every_extent_multiply(extent: int, left: bool, right: bool) -> None:
    p = MatrixProduct(("f32",) * 3, 1, extent + 4, 2 * extent - 8, 36, left, right)
    multiplied(p, tiles_routine(p, True, (extent, 1)))
    odd = MatrixProduct(("f32",) * 3, 1, extent - 1, extent + 1, 5, left, right)
    multiplied(odd, tiles_routine(odd, True, (extent, 1)))


@pytest.mark.parametrize("dtypes", [("i8", "u8", "i32"), ("u8", "u8", "u32"), ("i16", "i8", "i32"),
                                    ("i16", "i16", "i32")])  # fmt: skip
@pytest.mark.parametrize(("left", "right"), TURNS)
def test_narrow_integers_wrap_in_32_bits(
    dtypes: tuple[str, str, str], left: bool, right: bool
) -> None:
    p = MatrixProduct(dtypes, 1, 24, 20, 300, left, right)
    multiplied(p, tiles_routine(p, True))


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("k", [1, 37, 1500])
@pytest.mark.parametrize("results", [3, 70])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("matrix", [0, 1])
def test_vectors_multiply(dtype: str, k: int, results: int, turned: bool, matrix: int) -> None:
    m, n = (results, 1) if matrix == 0 else (1, results)
    left, right = (turned, False) if matrix == 0 else (False, turned)
    p = MatrixProduct((dtype,) * 3, 1, m, n, k, left, right)
    multiplied(p, vector_routine(p, True))


@pytest.mark.parametrize("dtypes", [("f32",) * 3, ("f64",) * 3, ("bf16",) * 3, ("c64",) * 3,
                                    ("i64",) * 3, ("u8", "i8", "i32")])  # fmt: skip
@pytest.mark.parametrize(("k", "parts"), [(64, 2), (150, 3), (33, 5)])
def test_terms_in_parts_are_added_up(dtypes: tuple[str, str, str], k: int, parts: int) -> None:
    p = MatrixProduct(dtypes, 2, 20, 24, k, False, True)
    routine = tiles_routine(p, True, (16, parts))
    assert routine is not None
    assert len(routine.launches) == 2
    multiplied(p, routine)


def test_long_sums_of_few_results_have_enough_blocks() -> None:
    for m, n, k in ((64, 64, 100000), (1, 100, 1 << 20), (300, 20, 30000)):
        p = MatrixProduct(("f32",) * 3, 1, m, n, k, False, False)
        routine = tiles_routine(p, True)
        assert routine is not None
        assert routine.launches[0].blocks >= 128
    assert _found(("f32[1,300000]", "f32[300000,64]"), "").startswith("tn_product")
    assert _found(("f32[1,300000]", "f32[300000,500]"), "").startswith("tn_columns")


@pytest.mark.parametrize("chip", ["sm_80", "sm_90"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "c64", "i32"])
def test_llvm_makes_ptx_of_it(chip: str, dtype: str) -> None:
    target = named(chip, llvmlite_version())
    p = MatrixProduct((dtype,) * 3, 1, 64, 64, 64, False, True)
    routine = tiles_routine(p, True, (16, 2))
    assert routine is not None
    texts = [routine.text(target)]
    if dtype in VECTORS:
        texts += [
            vector_routine(MatrixProduct((dtype,) * 3, 1, 64, 1, 64, left, False), True).text(
                target
            )
            for left in (False, True)
        ]
    ptx = to_ptx(join(texts), target)
    assert ptx.count(".entry") == (4 if dtype in VECTORS else 2)
    assert ".local" not in ptx


def test_many_rows_have_a_warp_each() -> None:
    p = MatrixProduct(("f32",) * 3, 1, ROWS + 3, 1, 50, False, False)
    routine = vector_routine(p, False)
    assert routine.launches[0].blocks == -(-(ROWS + 3) // 8)
    multiplied(p, routine)


def test_arrays_at_odd_places_are_read_one_by_one() -> None:
    p = MatrixProduct(("f32",) * 3, 1, 20, 24, 16, False, False)
    multiplied(p, tiles_routine(p, False), shift=4)
    with pytest.raises(Exception, match="which 16 does not divide"):
        multiplied(p, tiles_routine(p, True), shift=4)


def test_infinite_terms_stay_where_they_are() -> None:
    """What lies beyond the last term is not multiplied, nor what lies beyond the last line."""
    p = MatrixProduct(("f32",) * 3, 1, 3, 5, 7, False, False)
    a, b = np.ones((3, 7), np.float32), np.ones((7, 5), np.float32)
    a[2, 6], b[6, 4] = np.inf, np.nan
    routine = tiles_routine(p, True)
    assert routine is not None
    made = launched(routine, SimulatedGpu(), [a, b, np.zeros((3, 5), np.float32)])
    with np.errstate(invalid="ignore"):
        assert np.array_equal(made, a @ b, equal_nan=True)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_sixteen_bit_floats_are_rounded_once(dtype: str) -> None:
    of: Any = DTYPES[dtype]
    random = np.random.default_rng(5)
    a, b = (random.integers(-9, 10, s).astype(of) for s in ((16, 64), (64, 16)))
    routine = tiles_routine(MatrixProduct((dtype,) * 3, 1, 16, 16, 64, False, False), True)
    assert routine is not None
    made = launched(routine, SimulatedGpu(), [a, b, np.zeros((16, 16), of)])
    expected = (a.astype(np.float32) @ b.astype(np.float32)).astype(of)  # sums are exact
    assert made.tobytes() == expected.tobytes()
    assert of is np.dtype(ml_dtypes.bfloat16) or of is np.dtype(np.float16)


def _found(
    types: tuple[str, str], cublas: str = "13.1.0", aligned: bool = False, **given: Any
) -> str:
    shapes = [parse_type(text) for text in types]
    axes = {"lhs_contract": (1,), "rhs_contract": (0,), "lhs_batch": (), "rhs_batch": (), **given}
    target = named("sm_90", cublas=cublas)
    routine = product_routine(shapes, shapes[0], axes, target=target, aligned=aligned)
    if routine is None:
        return "none"
    return routine.made_by or routine.key


def test_the_choice_is_by_shapes_and_dtypes() -> None:
    assert _found(("f32[64,64]", "f32[64,64]")) == "cublasLt 13.1.0"
    assert _found(("f32[64,64]", "f32[64,64]"), "") == "tn_product_f32_f32_f32_16_nn_111"
    assert _found(("i32[64,64]", "i32[64,64]")) == "tn_product_i32_i32_i32_16_nn_111"
    narrow = {"dtype": "i32"}
    assert _found(("i8[64,64]", "u8[64,64]"), **narrow) == "tn_product_i8_u8_i32_16_nn_111"
    assert _found((f"f32[{LONG},500]", "f32[500,1]")) == "tn_rows_f32_256_1"
    assert _found((f"f32[{LONG - 1},500]", "f32[500,1]")) == "cublasLt 13.1.0"
    assert _found((f"f32[{ROWS},500]", "f32[500,1]")) == "tn_rows_f32_32_1"
    assert _found(("f32[1,500]", f"f32[500,{APART}]")) == "tn_columns_f32"
    assert _found(("f32[1,500]", f"f32[500,{APART - 1}]")) == "cublasLt 13.1.0"
    batch = {"lhs_contract": (2,), "rhs_contract": (1,), "lhs_batch": (0,), "rhs_batch": (0,)}
    assert _found(("f32[200,16,16]", "f32[200,16,16]"), **batch).startswith("tn_product")
    assert _found(("f32[200,16,64]", "f32[200,64,16]"), **batch) == "cublasLt 13.1.0"
    turned = {"dtype": "i32", "rhs_contract": (1,)}
    assert _found(("i8[50,64]", "i8[48,64]"), aligned=True, **turned) == "cublasLt 13.1.0"
    assert _found(("i8[50,64]", "i8[48,64]"), **turned).startswith("tn_product")
    assert _found(("i8[50,64]", "i8[50,64]"), aligned=True, **turned).startswith("tn_product")
    assert _found(("i8[50,64]", "u8[48,64]"), aligned=True, **turned).startswith("tn_product")
    assert _found(("c64[64,64]", "c64[64,64]"), "").startswith("tn_product_c64")


def test_tiles_fill_a_gpu_and_are_filled() -> None:
    def tile(batch: int, m: int, n: int) -> int:
        return cut_of(MatrixProduct(("f32",) * 3, batch, m, n, 64, False, False))[0]

    assert tile(1, 2048, 2048) == 128
    assert tile(4096, 16, 16) == 16
    assert tile(4096, 20, 20) == 32
    assert tile(1, 100000, 16) == 16


CASES: dict[str, tuple[str, Types, dict[str, Any]]] = {
    f"{dtype} {name}": ("contract", tuple(parse_type(dtype + s) for s in shapes), given)
    for dtype in ("f32", "f64", "f16", "bf16", "c64", "i64")
    for name, shapes, given in (
        ("matrices", ("[70,33]", "[33,40]"), {"lhs_contract": (1,), "rhs_contract": (0,)}),
        ("turned", ("[33,128]", "[68,33]"), {"lhs_contract": (0,), "rhs_contract": (1,)}),
        ("in parts", ("[20,1100]", "[1100,20]"), {"lhs_contract": (1,), "rhs_contract": (0,)}),
        ("a vector", ("[300,64]", "[64]"), {"lhs_contract": (1,), "rhs_contract": (0,)}),
        (
            "a batch",
            ("[3,68,33]", "[3,33,40]"),
            {"lhs_contract": (2,), "rhs_contract": (1,), "lhs_batch": (0,), "rhs_batch": (0,)},
        ),
    )
    if (dtype != "i64" or name == "turned")  # the others are kernels
    and (dtype == "f32" or name != "in parts")  # which takes a while
}


@pytest.mark.parametrize("case", CASES)
def test_programs_of_products_agree_with_the_reference(case: str) -> None:
    op, types, given = CASES[case]
    builder = Builder(TABLE)
    values = [builder.parameter(type) for type in types]
    axes = {"lhs_batch": (), "rhs_batch": (), **given}
    graph = builder.finish(builder.node(op, values, axes))
    program = simulated(SimulatedGpu()).compile(graph)
    random = np.random.default_rng(8)
    arrays = [drawn(random, case.split()[0], type.shape) for type in types]
    found = check(program, graph, arrays)
    assert isinstance(found.verdict, Certificate), found.verdict
    assert isinstance(program.plan.steps[0], RoutineStep)


@pytest.mark.parametrize("dtype", ["i8", "i16", "u8", "u16"])
def test_programs_of_narrow_integers_are_exact(dtype: str) -> None:
    builder = Builder(TABLE)
    types = [TensorType(DTYPES[dtype], shape) for shape in ((40, 30), (30, 36))]
    values = [builder.parameter(type) for type in types]
    axes = {"lhs_contract": (1,), "rhs_contract": (0,), "lhs_batch": (), "rhs_batch": ()}
    graph = builder.finish(builder.node("contract", values, axes))
    random = np.random.default_rng(9)
    a, b = (drawn(random, dtype, type.shape) for type in types)
    gpu = SimulatedGpu(cublas=FakeCublas())
    (made,) = simulated(gpu).compile(graph)([a, b])
    assert any(name.startswith("tn_product") for name, _, _ in gpu.launches)
    assert np.array_equal(made, a @ b)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("cublas", [False, True])
def test_sixteen_bit_floats_are_multiplied_as_they_are(dtype: str, cublas: bool) -> None:
    """In a loop, too: neither operand is cast, and a check knows of that."""
    builder, body = Builder(TABLE), Builder(TABLE)
    type = TensorType(DTYPES[dtype], (40, 40))
    axes = {"lhs_contract": (1,), "rhs_contract": (0,), "lhs_batch": (), "rhs_batch": ()}
    given = [body.parameter(type), body.parameter(type)]
    (made,) = body.node("contract", [given[1], given[0]], axes)
    scope = body.finish([*body.node("tanh", [made])])
    values = [builder.parameter(type) for _ in range(2)]
    loop = {"length": 3, "captures": 1, "carries": 1, "reverse": False, "unroll": 1}
    graph = builder.finish(builder.node("scan", values, loop, [scope]))
    fake = FakeCublas() if cublas else None
    program = simulated(SimulatedGpu(cublas=fake)).compile(graph)
    (below,) = program.plan.plans
    assert isinstance(below.steps[0], RoutineStep)
    assert all(node.op != "cast" for node in below.graph.nodes)
    assert any(node.op == "cast" for node in CPU.plan(graph).plans[0].graph.nodes)
    random = np.random.default_rng(10)
    arrays = [(drawn(random, dtype, type.shape) / 8).astype(DTYPES[dtype]) for _ in range(2)]
    program(arrays)
    assert fake is None or fake.calls.count("cublasLtMatmul") == 3
    found = check(program, graph, arrays)
    assert isinstance(found.verdict, Certificate), found.verdict


def test_bytes_are_the_librarys_where_it_has_them() -> None:
    builder = Builder(TABLE)
    types = [TensorType(DTYPES["i8"], shape) for shape in ((40, 32), (48, 32))]
    values = [builder.parameter(type) for type in types]
    wide = [builder.node("cast", [value], {"dtype": "i32"})[0] for value in values]
    axes = {"lhs_contract": (1,), "rhs_contract": (1,), "lhs_batch": (), "rhs_batch": ()}
    graph = builder.finish(builder.node("contract", wide, axes))
    a, b = (drawn(np.random.default_rng(11), "i8", type.shape) for type in types)
    fake = FakeCublas()
    program = simulated(SimulatedGpu(cublas=fake)).compile(graph)
    (made,) = program([a, b])
    assert fake.calls.count("cublasLtMatmul") == 1
    assert np.array_equal(made, a.astype(np.int32) @ b.astype(np.int32).T)
    found = check(program, graph, [a, b])
    assert isinstance(found.verdict, Certificate), found.verdict
