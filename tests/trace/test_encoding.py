"""Structures as text: they read back, import nothing, and stand in for unknown classes."""

from __future__ import annotations

import enum
import gc
from collections import namedtuple
from dataclasses import dataclass, field, make_dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenfold.errors import GraphError
from tenfold.trace.containers import flatten
from tenfold.trace.control.encoding import decode, encode

Pair = namedtuple("Pair", "left right")


class Mode(enum.Enum):
    FAST = 1


@dataclass
class Layer:
    weight: Any
    size: Any = field(default=3, metadata={"static": True})


keys = st.one_of(st.integers(), st.text(max_size=5), st.booleans(), st.binary(max_size=3))
static = st.one_of(st.none(), st.text(), st.sampled_from([Mode.FAST, int, ...]), st.binary())
containers = st.recursive(
    st.one_of(st.integers(), static),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=3),
        st.tuples(inner, inner).map(lambda p: Pair(*p)),
        st.tuples(inner, static).map(lambda p: Layer(*p)),
    ),
    max_leaves=12,
)


@given(containers)
def test_a_structure_reads_back(container: Any) -> None:
    structure, leaves = flatten(container)
    text = encode(structure)
    assert decode(text) == structure
    assert decode(text).unflatten(leaves) == container
    assert encode(decode(text)) == text


def test_one_array_alone_is_a_star() -> None:
    assert encode(flatten(3)[0]) == "*"
    assert decode("*").unflatten([3]) == 3


def test_static_values_without_a_literal() -> None:
    for value in (float("inf"), -0.0, (1, 2), frozenset({1}), len, slice(1, None)):
        layer = Layer(1, value)
        made = decode(encode(flatten(layer)[0])).unflatten([1])
        assert made.size is value or made.size == value
        assert repr(made.size) == repr(value)


def test_an_unknown_class_has_a_stand_in() -> None:
    passing = make_dataclass("Passing", ["a", "b"])
    gone = namedtuple("gone", "x y")
    text = encode(flatten([passing(1, 2), gone(3, 4)])[0])
    assert decode(text).unflatten([1, 2, 3, 4]) == [passing(1, 2), gone(3, 4)]
    del passing, gone
    gc.collect()
    assert decode(text).unflatten([1, 2, 3, 4]) == [{"a": 1, "b": 2}, (3, 4)]
    strange = (
        "[('list', 2), ('static', ('enum', 'os.Nothing', 'X')), ('named', 'os.P', ('a',)), '*']"
    )
    assert decode(strange).unflatten([1]) == ["X", (1,)]


@pytest.mark.parametrize(
    "text", ["", "[", "[('tuple',)]", "[3]", "__import__('os')", "[('data', 1)]"]
)
def test_what_is_no_structure(text: str) -> None:
    with pytest.raises(GraphError, match="is no structure"):
        decode(text)
