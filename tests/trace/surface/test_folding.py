"""ufunc.reduce of every ufunc beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.errors import ShapeError, TypeMismatch, ValueProblem

WHOLE = (np.bitwise_or, np.bitwise_and, np.bitwise_xor, np.gcd, np.lcm)
# Not arctan2, of which NumPy 2.4 looks only at the first and the last element.
FLOATS = (np.logaddexp, np.logaddexp2, np.hypot, np.true_divide, np.copysign)
BOTH = (np.fmax, np.fmin, np.subtract, np.logical_xor, np.floor_divide)


@pytest.mark.parametrize("ufunc", [*WHOLE, *FLOATS, *BOTH])
def test_reduce(ufunc: Any, compare: Any, draw: Any) -> None:
    for dtype in ("i32",) if ufunc in WHOLE else ("f64",) if ufunc in FLOATS else ("i32", "f64"):
        for shape in ((5, 4), (7,), (1,), (2, 3, 4)):
            x = draw(dtype, shape)
            if ufunc is np.floor_divide:
                x = np.where(x == 0, 1, x).astype(x.dtype)
            compare(lambda x: ufunc.reduce(x), x)
            compare(lambda x: ufunc.reduce(x, axis=-1, keepdims=True), x)
            compare(lambda x: ufunc.reduce(x, axis=0, initial=3), x)
        compare(lambda x: ufunc.reduce(x), draw(dtype, ()))
    if ufunc in (*WHOLE[:4], np.logaddexp, np.fmax, np.logical_xor):
        compare(lambda x: ufunc.reduce(x, axis=None), draw("i32" if ufunc in WHOLE else "f64"))
        compare(
            lambda x: ufunc.reduce(x, axis=(0, 2)),
            draw("i32" if ufunc in WHOLE else "f64", (2, 3, 4)),
        )


def test_reduce_of_nothing_and_of_some(compare: Any, draw: Any) -> None:
    for ufunc in (np.bitwise_and, np.bitwise_xor, np.gcd):
        compare(lambda x: ufunc.reduce(x), np.zeros((0, 3), np.int16))  # noqa: B023
        compare(lambda x: ufunc.reduce(x, where=x > 2), draw("i32"))  # noqa: B023
    compare(lambda x: np.bitwise_and.reduce(x, where=x > 2), draw("u8"))
    compare(lambda x: np.logaddexp.reduce(x, axis=1), np.zeros((2, 0)))
    compare(lambda x: np.fmax.reduce(x), np.array([np.nan, 1.0, 3.0, np.nan]))


def test_arctan2_takes_every_element(run: Any) -> None:
    x = np.array([0.25, -0.25, 1.25, 0.1875])
    (got,) = run(np.arctan2.reduce, x)
    np.testing.assert_allclose(got, np.arctan2(np.arctan2(np.arctan2(*x[:2]), x[2]), x[3]))


def test_refusals(trace: Any, draw: Any) -> None:
    with pytest.raises(ValueProblem, match="whose order counts"):
        trace(lambda x: np.subtract.reduce(x, axis=None), draw("f64"))
    with pytest.raises(ShapeError, match="over an empty axis"):
        trace(lambda x: np.subtract.reduce(x), draw("f64", (0, 2)))
    with pytest.raises(TypeMismatch, match="another dtype"):
        trace(lambda x: np.less.reduce(x), draw("f64"))
    with pytest.raises(ValueProblem, match="no identity"):
        trace(lambda x: np.fmax.reduce(x, where=x > 1), draw("f64"))


def test_pairs_take_few_nodes(trace: Any) -> None:
    graph = trace(lambda x: np.bitwise_xor.reduce(x), np.zeros(1 << 16, np.int64))
    assert len(graph.nodes) < 60
