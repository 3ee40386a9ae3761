"""Whether rows are kept apart: proven by the graph, or refused with the op that mixes them."""

import numpy as np
import pytest

import tenfold as tn
from tenfold.transform.rows import follow, same_but_for_shapes

X = np.ones((6, 4), "f4")
W = np.ones((4, 3), "f4")
I = np.zeros(6, int)  # noqa: E741


def rows(f, *args, marks=(0,)):
    graph = tn.trace(f, *args)
    given = [marks[i] if i < len(marks) else None for i in range(len(graph.parameters))]
    return follow(graph, given)


KEPT = {
    "elementwise": (lambda x: np.tanh(x) * 2 + 1, (X,), (0,)),
    "row sums": (lambda x: x.sum(axis=1), (X,), (0,)),
    "softmax": (lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True), (X,), (0,)),
    "product": (lambda x, w: x @ w, (X, W), (0,)),
    "transposed": (lambda x: x.T * 2, (X,), (1,)),
    "new axis": (lambda x: x[:, None, :] + x[:, :, None], (X,), (0,)),
    "columns": (lambda x: x[:, 1:3], (X,), (0,)),
    "sorted rows": (lambda x: np.sort(x, axis=1), (X,), (0,)),
    "argmax": (lambda x: x.argmax(axis=1), (X,), (0,)),
    "joined columns": (lambda x: np.concatenate([x, x], axis=1), (X,), (0,)),
    "table lookup": (lambda i, w: w[i], (I % 4, W), (0,)),
    "picked columns": (lambda x: x[:, [2, 0]], (X,), (0,)),
    "scan over columns": (
        lambda x: tn.scan(lambda c, col: (c + col, c), x[:, 0] * 0, x.T)[0],
        (X,),
        (0,),
    ),
    "branch": (lambda x, p: tn.cond(p, lambda: x * 2, lambda: x), (X, np.True_), (0,)),
    "nothing of it": (lambda x, w: w * 2, (X, W), (None,)),
}


@pytest.mark.parametrize("name", KEPT)
def test_rows_are_followed(name):
    f, args, want = KEPT[name]
    assert rows(f, *args) == want


MIXED = {
    "sum over rows": (lambda x: x.sum(axis=0), "reduces over the rows"),
    "sum of all": (lambda x: x.sum(), "reduces over the rows"),
    "sorted columns": (lambda x: np.sort(x, axis=0), "works along the rows"),
    "flattened": (lambda x: x.reshape(-1), "folds the rows"),
    "turned round": (lambda x: x[::-1], "turns the rows round"),
    "first half": (lambda x: x[:3], "takes some of the rows"),
    "gram": (lambda x: x @ x.T, "combines every row"),
    "covariance": (lambda x: x.T @ x, "sums over the rows"),
    "joined": (lambda x: np.concatenate([x, x]), "joins along the rows"),
    "lookup among rows": (lambda x: x[[0, 0, 1]], "picks among the rows"),
    "scan over rows": (
        lambda x: tn.scan(lambda c, r: (c + r.sum(), c), 0.0, x),
        "goes from row to row",
    ),
    "fixed rows": (lambda x: x + np.arange(6.0)[:, None] * W[0, 0], "fixed number of rows"),
    "hook": (lambda x: tn.hook("h", x), "shows whole arrays"),
}


@pytest.mark.parametrize("name", MIXED)
def test_mixing_is_refused_by_name(name):
    f, words = MIXED[name]
    with pytest.raises(tn.TenfoldError, match=words):
        rows(f, X)


def test_a_size_used_as_a_number_shows():
    def f(x):
        return x / len(x)

    one, other = tn.trace(f, X), tn.trace(f, X[:5])
    assert "constant" in same_but_for_shapes(one, other)
    one, other = tn.trace(np.tanh, X), tn.trace(np.tanh, X[:5])
    assert same_but_for_shapes(one, other) is None
