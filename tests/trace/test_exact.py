"""Values told apart by type and bits."""

import itertools
import struct
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from tenfold.trace.exact import exact, same


class Pair(NamedTuple):
    a: float
    b: float


@dataclass(frozen=True)
class Gain:
    a: float


DIFFERENT = [
    *(0.0, -0.0, 0, False, None, "a", b"a", 1, 1.0, True, 1 + 0j, complex(1, -0.0)),
    *((2,), (2.0,), (2, ()), Pair(1, 2), (1, 2), Pair(1.0, 2), Gain(0.0), Gain(-0.0)),
    *(np.float64(1), np.float32(1), np.int64(1), np.float64("nan"), float("nan"), float("inf")),
    *(frozenset({1}), frozenset({1.0}), slice(1), slice(1.0), ((0.0,),), ((-0.0,),)),
]


@pytest.mark.parametrize("value", DIFFERENT, ids=repr)
def test_a_value_is_the_same_as_a_copy_of_itself(value):
    copy = struct.unpack("d", struct.pack("d", value))[0] if type(value) is float else value
    assert same(value, copy)
    assert hash(exact(value)) == hash(exact(copy))


def test_no_two_of_these_are_the_same():
    for one, other in itertools.combinations(DIFFERENT, 2):
        assert not same(one, other), (one, other)
        assert exact(one) != exact(other)
