"""Sorts along any axis beside effects, which have no result of their own."""

import numpy as np
import pytest

import tenfold as tn

X = np.array([[3.0, 1.0], [2.0, 5.0], [4.0, 0.0]])


def shown(f, x):
    """What the function gives and what its hooks see, compiled and by the reference."""
    answers = []
    for how in ("now", "never"):
        seen: list[np.ndarray] = []
        got = tn.jit(lambda x, seen=seen: f(x, seen.append), compile=how)(x)
        answers.append((np.asarray(got).tolist(), [np.asarray(s).tolist() for s in seen]))
    assert answers[0] == answers[1]
    return answers[0]


ROUTINES = {
    "sort": lambda x: np.sort(x, axis=0),
    "argsort": lambda x: np.argsort(x, axis=0, kind="stable"),
    "top_k": lambda x: tn.top_k(x.T, 2)[0],
    "searchsorted": lambda x: np.searchsorted(np.sort(x[:, 0]), x[:, 1]),
    "product": lambda x: x.T @ x,
    "fft": lambda x: np.fft.fft(x, axis=0),
    "inverse": lambda x: np.linalg.inv(x[:2]),
    "running sum": lambda x: np.cumsum(x, axis=0),
    "convolution": lambda x: np.convolve(x[:, 0], x[:, 1]),
}


@pytest.mark.parametrize("name", ROUTINES)
def test_effects_stand_beside_routines(name):
    routine = ROUTINES[name]

    def f(x, see):
        tn.hook("before", x, see)
        made = routine(x)
        tn.hook("after", made, see)
        return made

    got, seen = shown(f, X)
    assert seen == [X.tolist(), got]


def test_effects_stand_beside_sorts_in_scopes():
    def f(x, see):
        def body(carry, row):
            tn.hook("row", row, see)
            carry = np.sort(carry + row, axis=0)
            return tn.cond(carry[0, 0] > 3, lambda: noted(carry), lambda: carry), None

        def noted(carry):
            tn.print(carry[0, 0], label="a sum")
            return np.sort(carry, axis=0)

        return tn.scan(body, x, x)[0]

    _, seen = shown(f, X)
    assert seen == X.tolist()
