"""Convolutions of our own, by the simulator, against the evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.backends.cuda.assemble import ModuleCode
from tenfold.backends.cuda.library.convolution import FEW, convolution_routine
from tenfold.backends.llvm.text import join
from tenfold.graph import Builder
from tenfold.ops import TABLE
from tenfold.parity.certificate import Certificate
from tenfold.parity.check import check
from tenfold.plan import RoutineStep
from tenfold.types import DTYPES, TensorType
from tests.backends.cuda.library.test_product import drawn
from tests.backends.cuda.simulated import SimulatedGpu, simulated

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
# Shapes of the input and the kernel, strides, dilation, groups.
FORMS: dict[str, tuple[Shape, Shape, Shape, Shape, int]] = {
    "one axis": ((2, 3, 20), (10, 3, 4), (1,), (1,), 1),
    "one axis, strides and dilation": ((2, 4, 31), (6, 4, 3), (2,), (3,), 1),
    "two axes": ((2, 5, 9, 8), (18, 5, 3, 3), (1, 1), (1, 1), 1),
    "two axes, strides and dilation": ((1, 4, 13, 12), (8, 4, 3, 2), (2, 3), (2, 1), 1),
    "groups": ((2, 6, 8, 9), (15, 2, 3, 3), (1, 1), (1, 1), 3),
    "few out channels": ((2, 8, 9, 7), (FEW, 8, 3, 3), (1, 2), (1, 1), 1),
    "depthwise": ((2, 7, 9, 8), (7, 1, 3, 3), (2, 2), (1, 1), 7),
    "depthwise, twice as many": ((1, 5, 9, 8), (10, 1, 3, 2), (1, 1), (1, 2), 5),
    "three axes": ((1, 3, 5, 6, 7), (9, 3, 2, 3, 2), (1, 2, 1), (1, 1, 2), 1),
    "three axes in groups": ((2, 4, 4, 5, 6), (12, 2, 2, 2, 3), (1, 1, 1), (1, 1, 1), 2),
    "points": ((3, 12, 4, 8), (20, 12, 1, 1), (1, 1), (1, 1), 1),
}


def _given(form: str) -> tuple[Shape, Shape, dict[str, Any]]:
    x, w, strides, dilation, groups = FORMS[form]
    return x, w, {"strides": strides, "dilation": dilation, "groups": groups}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "u64"])
@pytest.mark.parametrize("aligned", [True, False])
def test_a_convolution_is_the_references(form: str, dtype: str, aligned: bool) -> None:
    """Of whole numbers, so that floats are exact."""
    *shapes, given = _given(form)
    random = np.random.default_rng(len(form))
    of = DTYPES[dtype]
    x, w = (random.integers(0, 9, shape).astype(of) for shape in shapes)
    types = [TensorType(of, array.shape) for array in (x, w)]
    (expected,) = [TABLE["conv_valid"].reference(x, w, **given)]
    routine = convolution_routine(types, None, given, aligned=aligned)
    assert routine is not None
    gpu = SimulatedGpu()
    (module,) = gpu.load([ModuleCode(gpu.target, join([routine.text(gpu.target)]))])
    places = []
    for array in (x, w, np.zeros_like(expected), np.zeros(routine.scratch, np.uint8)):
        places.append(gpu.alloc(array.nbytes))
        gpu.upload(places[-1], array, 0)
    for one in routine.launches:
        words = [places[n].to_bytes(8, "little") for n in one.arrays]
        words += [value.to_bytes(size, "little", signed=True) for value, size in one.words]
        gpu.launch(module.function(one.function), one.blocks, one.threads, words, 0)
    made = np.empty_like(expected)
    gpu.download(made, places[2], 0)
    assert np.array_equal(made, expected)


CASES: dict[str, tuple[str, Shape, Shape, dict[str, Any]]] = {
    "padded": (
        "f32", (2, 4, 12, 12), (16, 4, 3, 3),
        {"strides": (1, 1), "low": (1, 1), "high": (1, 1), "x_dilation": (1, 1),
         "dilation": (1, 1), "groups": 1},
    ),
    "strides and padding in f16": (
        "f16", (2, 4, 12, 12), (32, 4, 3, 3),
        {"strides": (2, 1), "low": (1, 0), "high": (1, 2), "x_dilation": (1, 1),
         "dilation": (1, 1), "groups": 1},
    ),
    "transposed": (
        "f32", (1, 16, 40), (24, 16, 4),
        {"strides": (1,), "low": (3,), "high": (3,), "x_dilation": (2,), "dilation": (1,),
         "groups": 1},
    ),
    "transposed, with strides": (
        "f64", (1, 16, 40), (24, 16, 5),
        {"strides": (3,), "low": (3,), "high": (3,), "x_dilation": (2,), "dilation": (2,),
         "groups": 1},
    ),
    "depthwise": (
        "f32", (2, 24, 14, 14), (24, 1, 5, 5),
        {"strides": (2, 2), "low": (2, 2), "high": (2, 2), "x_dilation": (1, 1),
         "dilation": (1, 1), "groups": 24},
    ),
    "bytes": (
        "i8", (2, 6, 12, 12), (12, 3, 3, 3),
        {"strides": (1, 1), "low": (0, 0), "high": (0, 0), "x_dilation": (1, 1),
         "dilation": (1, 1), "groups": 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_programs_of_convolutions_agree_with_the_reference(case: str) -> None:
    dtype, *shapes, given = CASES[case]
    builder, random = Builder(TABLE), np.random.default_rng(4)
    types = [TensorType(DTYPES[dtype], shape) for shape in shapes]
    graph = builder.finish(builder.node("conv", [builder.parameter(t) for t in types], given))
    gpu = SimulatedGpu()
    program = simulated(gpu).compile(graph)
    steps = [step for one in program.plan.every for step in one.steps]
    assert any(isinstance(step, RoutineStep) and step.name == "convolution" for step in steps)
    assert not program.plan.host_steps
    found = check(program, graph, [drawn(random, dtype, type.shape) for type in types])
    assert isinstance(found.verdict, Certificate), found.verdict
    assert any(name.startswith("tn_convolution_") for name, _, _ in gpu.launches)


def test_what_has_no_routine_is_not_taken() -> None:
    types = [TensorType(DTYPES["c64"], shape) for shape in ((1, 2, 9), (3, 2, 3))]
    given = {"strides": (1,), "dilation": (1,), "groups": 1}
    assert convolution_routine(types, None, given) is None
