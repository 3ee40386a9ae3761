"""Convolutions on a WebGPU adapter, against the evaluator: of whole numbers, so that floats are
exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.convolutions import Convolution, convolution_of
from tenfold.backends.webgpu.backend import BACKEND
from tenfold.backends.webgpu.library.convolution import (
    FEW,
    convolution_routine,
    direct_routine,
    tiled_routine,
)
from tenfold.backends.webgpu.library.product_tiles import FARTHEST
from tenfold.backends.webgpu.library.routine import Routine, routine_of
from tenfold.backends.webgpu.run.program import WebGPUProgram
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.graph import Builder
from tenfold.graph.op import CONVOLUTION
from tenfold.ops import TABLE
from tenfold.parity.certificate import Certificate
from tenfold.parity.check import check
from tenfold.plan import RoutineStep
from tenfold.types import DTYPES, TensorType, parse_type
from tests.backends.convolution_forms import FORMS, PROGRAMS, Shape, form
from tests.backends.webgpu.beside import Array, adapter, run_shader
from tests.backends.webgpu.here import needs_adapter
from tests.backends.webgpu.library.test_product import drawn
from tests.backends.webgpu.run.test_run import agrees

ONE_AXIS = {"strides": (1,), "dilation": (1,), "groups": 1}


def sizes_of(x: Shape, w: Shape, given: dict[str, Any], dtype: str = "f32") -> Convolution:
    found = convolution_of([TensorType(DTYPES[dtype], shape) for shape in (x, w)], given)
    assert found is not None
    return found


def made_by(routine: Routine, x: Array, w: Array, like: Array, starts: Shape = (0, 0, 0)) -> Array:
    """What a routine makes of arrays that begin at such elements."""
    arrays = [np.concatenate([np.ones(n, a.dtype), a.reshape(-1)]) for n, a in
              zip(starts, (x, w, np.full_like(like, 7)), strict=True)]  # fmt: skip
    run_shader(routine.shader, routine.bound(starts), arrays)
    assert (arrays[2][: starts[2]] == 1).all()
    return arrays[2][starts[2] :].reshape(like.shape)


def whole(x: Shape, w: Shape, given: dict[str, Any], dtype: str) -> tuple[Array, Array, Array]:
    """Drawn arrays of whole numbers, and the convolution of them."""
    random = np.random.default_rng(len(x) + w[0])
    of = DTYPES[dtype]
    low = -4 if dtype[0] != "u" else 0
    a, b = (random.integers(low, 9, shape).astype(of) for shape in (x, w))
    return a, b, TABLE["conv_valid"].reference(a, b, **given)


@needs_adapter
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "u64"])
def test_a_convolution_is_the_references(name: str, dtype: str) -> None:
    x, w, given = form(name)
    routine = convolution_routine(sizes_of(x, w, given, dtype), adapter().target)
    if routine is None:
        pytest.skip(f"the adapter has no {dtype}")
    a, b, wanted = whole(x, w, given, dtype)
    assert np.array_equal(made_by(routine, a, b, wanted), wanted)
    assert np.array_equal(made_by(routine, a, b, wanted, (3, 1, 5)), wanted)


@needs_adapter
@pytest.mark.parametrize("name", ["two axes", "three axes in groups", "depthwise"])
def test_each_way_gives_the_same(name: str) -> None:
    """Tiles of every extent, whole and in parts, and elements by themselves."""
    x, w, given = form(name)
    sizes, (a, b, wanted) = sizes_of(x, w, given), whole(x, w, given, "f32")
    routines = [direct_routine(sizes, parts) for parts in (1, 2, 5, sizes.terms)]
    cuts = [(extent, span) for extent in (16, 32, 64, 128) for span in (16, 1 << 14)]
    routines += [tiled_routine(sizes, adapter().target, cut) for cut in cuts]
    for routine in routines:
        assert np.array_equal(made_by(routine, a, b, wanted), wanted), routine.shader.schedule


@needs_adapter
def test_no_loop_is_longer_than_drivers_let_it_be() -> None:
    """There may be more terms than an invocation may go along."""
    for rows in (1, FEW + 1):
        x, w = (1, 2, 40_010), (rows, 2, 40_000)
        a, b, wanted = whole(x, w, ONE_AXIS, "i32")
        routine = convolution_routine(sizes_of(x, w, ONE_AXIS, "i32"), adapter().target)
        assert routine is not None
        assert [one.entry for one in routine.launches] == ["find_offsets", "main", "add_parts"]
        assert np.array_equal(made_by(routine, a, b, wanted), wanted)
        long = sizes_of((1, 2, 90_000), (rows, 2, 40_000), ONE_AXIS)
        cut = convolution_routine(long, WebGPUTarget(storage_bytes=1 << 30))
        assert cut is not None
        place = cut.shader.text.split("let span = N[")[1].split("]")[0]
        assert cut.launches[1].words[int(place)] <= FARTHEST


@needs_adapter
def test_steps_beyond_what_there_is() -> None:
    given = {"strides": (1 << 40, 1), "dilation": (1, 1 << 40), "groups": 1}
    for rows in (2, 9):
        x, w = (2, 30, 5, 40), (rows, 30, 5, 1)
        a, b, wanted = whole(x, w, given, "f32")
        routine = convolution_routine(sizes_of(x, w, given), adapter().target)
        assert routine is not None
        assert np.array_equal(made_by(routine, a, b, wanted), wanted)


@needs_adapter
def test_integers_wrap_and_infinities_stay_where_they_are() -> None:
    random, shapes = np.random.default_rng(8), ((2, 6, 30), (9, 6, 5))
    for dtype in ("i32", "u32"):
        a, b = (drawn(random, dtype, shape) for shape in shapes)
        wanted = TABLE["conv_valid"].reference(a, b, **ONE_AXIS)
        routine = tiled_routine(sizes_of(*shapes, ONE_AXIS, dtype), adapter().target)
        assert np.array_equal(made_by(routine, a, b, wanted), wanted)
    a, b, _ = whole(*shapes, ONE_AXIS, "f32")
    a[1, 5, 29], a[0, 2, 0], b[8, 5, 4] = np.inf, np.nan, np.inf
    with np.errstate(invalid="ignore"):
        wanted = TABLE["conv_valid"].reference(a, b, **ONE_AXIS)
    for routine in (
        tiled_routine(sizes_of(*shapes, ONE_AXIS), adapter().target, (16, 16)),
        direct_routine(sizes_of(*shapes, ONE_AXIS), 2),
    ):
        assert np.array_equal(made_by(routine, a, b, wanted), wanted, equal_nan=True)


@needs_adapter
@pytest.mark.parametrize("case", PROGRAMS)
def test_programs_of_convolutions_agree_with_the_reference(case: str) -> None:
    dtype, *shapes, given = PROGRAMS[case]
    builder, random = Builder(TABLE), np.random.default_rng(4)
    types = [TensorType(DTYPES[dtype], shape) for shape in shapes]
    graph = builder.finish(builder.node("conv", [builder.parameter(t) for t in types], given))
    program = BACKEND.compile(graph)
    assert isinstance(program, WebGPUProgram)
    steps = [step for one in program.plan.every for step in one.steps]
    assert any(isinstance(step, RoutineStep) and step.name == CONVOLUTION for step in steps)
    assert not program.plan.host_steps
    arrays = [drawn(random, dtype, type.shape) for type in types]
    found = check(program, graph, arrays, limit=None, every=True)
    assert isinstance(found.verdict, Certificate), found.verdict
    assert found.verdict.whole
    first, again = (program([a.copy() for a in arrays])[0] for _ in range(2))
    assert first.tobytes() == again.tobytes()


@needs_adapter
def test_complex_ones_are_products_of_windows() -> None:
    random = np.random.default_rng(3)
    x, w = (drawn(random, "c64", shape) for shape in ((2, 4, 12, 12), (16, 4, 3, 3)))
    program = agrees(lambda x, w: tn.conv(x, w, padding=1), x, w)
    assert {step.kind for step in program.plan.steps} == {"kernel", "routine"}


@needs_adapter
def test_an_explanation_says_which_way_one_goes() -> None:
    x, w = np.ones((2, 8, 16, 16), np.float32), np.ones((12, 8, 3, 3), np.float32)
    words = str(tn.jit(lambda a, b: tn.conv(a, b), backend="webgpu").plan(x, w).explain())
    assert "a convolution of f32: 12 out channels by 72 terms by 392 columns: tiles of 16²" in words


def test_what_an_adapter_has_no_numbers_for_is_left() -> None:
    for dtype, there in (("f32", True), ("f64", False), ("u64", False), ("c64", False)):
        types = [parse_type(f"{dtype}[2,8,40]"), parse_type(f"{dtype}[16,8,5]")]
        assert (routine_of(CONVOLUTION, types, ONE_AXIS, WebGPUTarget()) is not None) == there


def test_arrays_that_no_shader_is_shown_are_left() -> None:
    types = [parse_type("f32[9,1,4000000]"), parse_type("f32[1,1,50]")]
    assert routine_of(CONVOLUTION, types, ONE_AXIS, WebGPUTarget()) is None
    large = WebGPUTarget(storage_bytes=1 << 30)
    assert routine_of(CONVOLUTION, types, ONE_AXIS, large) is not None


def test_one_text_serves_many_sizes() -> None:
    texts = set()
    for images, channels, extent in ((2, 8, 20), (7, 9, 21), (1, 30, 33)):
        sizes = sizes_of((images, channels, extent, extent), (20, channels, 3, 3),
                         {"strides": (1, 2), "dilation": (1, 1), "groups": 1})  # fmt: skip
        texts.add(tiled_routine(sizes, WebGPUTarget()).shader.text)
    assert len(texts) == 1
