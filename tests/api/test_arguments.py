"""Signatures: what one trace serves for."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import tenfold as tn

X = np.ones(3)


@pytest.mark.parametrize(
    "values",
    [
        ((2,), (2.0,), (True,)),
        (0.0, -0.0),
        (1, 1.0, True),
        ("a", b"a"),
        (((0.0,),), ((-0.0,),)),
    ],
    ids=repr,
)
def test_statics_are_told_apart_by_type_and_bits(values):
    f = tn.jit(lambda x, s: x * len(repr(s)) + ("-" in repr(s)), static="s")
    for _ in range(3):
        for value in values:
            assert f(X, value)[0] == len(repr(value)) + ("-" in repr(value))
    assert f.traces == len(values)


def test_a_static_nan_is_itself():
    f = tn.jit(lambda x, s: x + 1, static="s")
    for _ in range(3):
        f(X, float("nan"))
        f(X, (np.float64("nan"),))
    assert f.traces == 2


@dataclass(frozen=True)
class Box:
    x: Any
    gain: Any = field(default=0.0, metadata={"static": True})


def test_static_fields_are_told_apart_by_type_and_bits():
    f = tn.jit(lambda box: box.x * len(repr(box.gain)))
    for _ in range(3):
        for gain in ((2,), (2.0,), 0.0, -0.0, 0):
            assert f(Box(X, gain))[0] == len(repr(gain))
    assert f.traces == 5


def test_slices_are_part_of_the_signature():
    f = tn.jit(lambda x, s: x[s].sum())
    assert f(np.arange(4.0), slice(1, 3)) == 3
    assert f(np.arange(4.0), slice(0, 3)) == 3
    assert f(np.arange(4.0), slice(2, 4)) == 5
    assert f(np.arange(4.0), slice(2, 4)) == 5
    assert f.traces == 3
