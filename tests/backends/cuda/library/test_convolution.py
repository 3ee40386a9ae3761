"""Convolutions of our own, by the simulator, against the evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.backends.cuda.assemble import ModuleCode
from tenfold.backends.cuda.library.convolution import convolution_routine
from tenfold.backends.llvm.text import join
from tenfold.graph import Builder
from tenfold.ops import TABLE
from tenfold.parity.certificate import Certificate
from tenfold.parity.check import check
from tenfold.plan import RoutineStep
from tenfold.types import DTYPES, TensorType
from tests.backends.convolution_forms import FORMS, PROGRAMS, form
from tests.backends.cuda.library.test_product import drawn
from tests.backends.cuda.simulated import SimulatedGpu, simulated

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "u64"])
@pytest.mark.parametrize("aligned", [True, False])
def test_a_convolution_is_the_references(name: str, dtype: str, aligned: bool) -> None:
    """Of whole numbers, so that floats are exact."""
    *shapes, given = form(name)
    random = np.random.default_rng(len(name))
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


@pytest.mark.parametrize("case", PROGRAMS)
def test_programs_of_convolutions_agree_with_the_reference(case: str) -> None:
    dtype, *shapes, given = PROGRAMS[case]
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
