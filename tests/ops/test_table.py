"""The table, walked row by row: a row that lacks something fails by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np
import pytest

from tenfold.graph import Builder, Graph, check
from tenfold.graph.op import Composition, Element, Op, Pointwise, Ranges, Routine, Scopes
from tenfold.graph.text import parse
from tenfold.kernel.ir.kernel import ELEMENTWISE
from tenfold.ops import TABLE
from tenfold.types import TensorType

ROWS = [pytest.param(op, id=op.name) for op in TABLE.values()]
WANTED = """
    add sub mul div floordiv mod fmod pow max min fmax fmin neg abs sign floor ceil trunc round
    sqrt cbrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh
    asinh acosh atanh sigmoid erf erfc atan2 hypot logaddexp copysign nextafter eq ne lt le gt ge
    and or xor not shl shr isnan isinf isfinite signbit popcount real imag conj complex select
    clip cast bitcast reduce_sum reduce_prod reduce_max reduce_min reduce_any reduce_all argmax
    argmin reduce reshape transpose broadcast pad slice reverse concatenate iota constant gather
    scatter dynamic_slice dynamic_update contract sort argsort lu qr svd switch while scan custom
    hook print call_host erf_inv lgamma digamma gcd threefry cumsum cumprod cummax cummin windows
    conv searchsorted top_k cholesky eigh eig solve triangular_solve det slogdet fft rfft irfft
    finite
"""


def types_of(arrays: Any) -> tuple[TensorType, ...]:
    return tuple(TensorType(a.dtype, a.shape) for a in arrays)


def test_the_table_has_the_core_set() -> None:
    assert set(WANTED.split()) <= set(TABLE)


def test_the_table_can_not_be_written_to() -> None:
    with pytest.raises(TypeError):
        TABLE["add"] = TABLE["sub"]  # type: ignore[index]


@pytest.mark.parametrize("op", ROWS)
def test_a_row_is_complete(op: Op) -> None:
    assert TABLE[op.name] is op
    assert op.name.isidentifier()
    assert op.edges.strip(), f"{op.name} does not say what happens on the edges"
    assert op.bound >= 0
    assert op.samples(np.random.default_rng(0)), f"{op.name} has no samples"
    for column in (op.infer, op.reference, op.batch, op.samples):
        assert callable(column)
    assert (op.scopes == 0) != isinstance(op.lowering, Scopes)
    assert not op.effect or isinstance(op.lowering, Routine)
    match op.lowering:
        case Pointwise(instruction):
            assert ELEMENTWISE[instruction] == op.arity
        case Element(work) | Composition(work) | Ranges(work):
            assert callable(work)
        case Routine(name):
            assert name
        case Scopes():
            pass


@pytest.mark.parametrize("op", ROWS)
def test_the_type_rule_says_what_the_reference_gives(op: Op, call: Callable[..., Any]) -> None:
    shapes = set()
    for sample in op.samples(np.random.default_rng(1)):
        given = dict(op.normalise(sample.attributes))
        expected = op.infer(types_of(sample.inputs), given, sample.scopes)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            results = call(op, sample.inputs, sample.attributes, sample.scopes)
        assert all(isinstance(r, np.ndarray) for r in results), (op.name, sample)
        assert types_of(results) == expected, (op.name, sample)
        shapes.update(t.shape for t in (*types_of(sample.inputs), *expected))
    if op.arity is not None and op.scopes == 0:
        assert any(0 in shape for shape in shapes), f"{op.name} is never tried on nothing"


@pytest.mark.parametrize("op", ROWS)
def test_a_reference_leaves_its_inputs_alone(op: Op, call: Callable[..., Any]) -> None:
    for sample in op.samples(np.random.default_rng(2)):
        for array in sample.inputs:
            array.setflags(write=False)
        call(op, sample.inputs, sample.attributes, sample.scopes)


@pytest.mark.parametrize("op", ROWS)
def test_attributes_normalise_once_and_for_all(op: Op) -> None:
    for sample in op.samples(np.random.default_rng(3)):
        once = op.normalise(sample.attributes)
        assert repr(op.normalise(dict(once))) == repr(once)
        packed = msgpack.packb(once, use_bin_type=True)
        assert repr(msgpack.unpackb(packed, use_list=False)) == repr(once)
        loose = {k: list(v) if isinstance(v, tuple) else v for k, v in sample.attributes.items()}
        assert repr(op.normalise(loose)) == repr(once)


@pytest.mark.parametrize("op", ROWS)
def test_a_node_of_each_row_survives_text_and_file(op: Op) -> None:
    for sample in op.samples(np.random.default_rng(4))[::5]:
        builder = Builder(TABLE)
        inputs = [builder.parameter(t) for t in types_of(sample.inputs)]
        outputs = builder.node(op.name, inputs, sample.attributes, sample.scopes)
        graph = builder.finish(outputs)
        assert check(graph, TABLE) is graph
        assert Graph.from_bytes(graph.to_bytes()) == graph
        assert parse(str(graph), lambda g: check(g, TABLE)) == graph
