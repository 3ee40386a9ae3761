"""The table, walked row by row: a row that lacks something fails by name."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np
import pytest

from tenfold.graph import Builder, Graph, check
from tenfold.graph.op import (
    Composition,
    Element,
    ErrorRule,
    ErrorSpread,
    Loop,
    Op,
    Pointwise,
    Ranges,
    Routine,
    Scopes,
)
from tenfold.graph.text import parse
from tenfold.kernel.ir.kernel import ELEMENTWISE
from tenfold.ops import TABLE
from tenfold.types import TensorType

ROWS = [pytest.param(op, id=op.name) for op in TABLE.values()]


def names_of(op: Op) -> set[str]:
    return {attribute.name for attribute in op.attributes}


def types_of(arrays: Any) -> tuple[TensorType, ...]:
    return tuple(TensorType(a.dtype, a.shape) for a in arrays)


def test_rows_stand_under_their_names() -> None:
    assert TABLE
    for name, op in TABLE.items():
        assert op.name == name
        assert name.isidentifier()


def test_the_table_can_not_be_written_to() -> None:
    with pytest.raises(TypeError):
        TABLE["add"] = TABLE["sub"]  # type: ignore[index]


@pytest.mark.parametrize("op", ROWS)
def test_a_row_is_complete(op: Op) -> None:
    assert op.edges.strip(), f"{op.name} does not say what happens on the edges"
    assert op.bound >= 0
    assert op.samples(np.random.default_rng(0)), f"{op.name} has no samples"
    for column in (op.infer, op.reference, op.batch, op.samples):
        assert callable(column)
    assert (op.scopes == 0) != isinstance(op.lowering, Scopes)
    assert op.effect is None or isinstance(op.lowering, Routine)
    assert op.error is None or isinstance(op.error(), ErrorRule)
    assert op.spread is None or isinstance(op.spread(), ErrorSpread)
    assert not op.elementwise or op.scopes == 0
    assert not op.literal or (op.arity == 0 and "data" in names_of(op))
    assert not op.permutes or (op.arity == 1 and "axes" in names_of(op))
    match op.lowering:
        case Pointwise(instruction):
            assert ELEMENTWISE[instruction] == op.arity
        case Element(work) | Composition(work) | Ranges(work):
            assert callable(work)
        case Routine():
            assert op.lowering.name
            assert (op.lowering.inline is None) == (op.lowering.generate is None)
            assert not op.lowering.lines or "axis" in names_of(op)
        case Loop():
            assert "captures" in names_of(op)
            assert ({"carries", "length", "reverse"} <= names_of(op)) == op.lowering.counted


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


def loaded(code: str) -> list[str]:
    """The modules of the table that a fresh process has imported, and its rows in their order."""
    script = (
        f"import sys\nfrom tenfold.ops import TABLE\n{code}\n"
        "print(*[m for m in sys.modules if m.startswith('tenfold.ops.')], '-', *TABLE)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_a_row_is_imported_when_it_is_asked_for() -> None:
    nothing, one, last = (loaded(f"TABLE.get({name!r})") for name in ("add", "reduce_sum", "fft"))
    assert "tenfold.ops.rows.elementwise" in nothing[: nothing.index("-")]
    assert not any("reductions" in m for m in nothing[: nothing.index("-")])
    assert not any("fourier" in m for m in one[: one.index("-")])
    assert any("fourier" in m for m in last[: last.index("-")])
    rows = [found[found.index("-") :] for found in (nothing, one, last)]
    assert rows[0] == rows[1] == rows[2] == ["-", *TABLE]  # whatever was asked for first


def test_the_table_is_fixed() -> None:
    table: Any = TABLE
    with pytest.raises(TypeError, match="fixed"):
        table["add"] = TABLE["sub"]
    with pytest.raises(TypeError, match="fixed"):
        table.update(add=TABLE["sub"])
    with pytest.raises(TypeError, match="fixed"):
        del table["add"]
    assert "no such op" not in TABLE
    with pytest.raises(KeyError):
        TABLE["no such op"]
