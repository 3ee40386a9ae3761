"""What rounding makes of a program, and what it does not."""

from __future__ import annotations

import numpy as np

import tenfold as tn
from tenfold.parity.replay.perturb import farther
from tenfold.reference import evaluate

x = np.linspace(0.5, 1.5, 40)


def rounds(x):
    return tn.fori_loop(0, 20, lambda i, s: np.sin(s) * 1.5 + s / 3, x)


def judged(x, change):
    """What is found of a result that is off by some units, and changed."""
    graph = tn.trace(rounds, x)
    (wanted,) = evaluate(graph, [x])
    got = wanted * (1 + 2.0**-47)
    change(got)
    return farther(graph, [x], [got], [wanted])


def test_nan_agrees_with_nan_beside_values_that_rounding_moved():
    assert judged(np.where(x > 1.2, np.nan, x), lambda got: None) is None


def test_a_number_in_place_of_nan_or_infinity_is_found():
    def last(value):
        return lambda got: got.__setitem__(-1, value)

    for given in (np.nan, np.inf):
        number, text = judged(np.where(x > 1.2, given, x), last(1.0))
        assert number == 0
        assert "1.0 instead of" in text
    assert judged(x, last(np.nan)) is not None
