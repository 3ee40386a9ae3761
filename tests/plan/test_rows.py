"""Whether rows are kept apart: shown by two graphs, or refused with the op that lets them meet."""

import numpy as np
import pytest

import tenfold as tn
from tenfold.graph import Builder
from tenfold.ops import TABLE
from tenfold.parity.find.narrow import narrowed
from tenfold.plan.rows import follow
from tenfold.reference import evaluate
from tenfold.types import KIND, TensorType

X = np.ones((6, 4), "f4")
W = np.ones((4, 3), "f4")
I = np.zeros(6, int)  # noqa: E741


def rows(f, x, *others, fewer=3, **options):
    """The axes of rows of what a function gives, for arrays whose first axis is that of rows."""
    few, many = tn.trace(f, x[:fewer], *others), tn.trace(f, x, *others)
    return follow(few, many, fewer, len(x), **options)


KEPT = {
    "elementwise": (lambda x: np.tanh(x) * 2 + 1, (X,), (0,)),
    "row sums": (lambda x: x.sum(axis=1), (X,), (0,)),
    "softmax": (lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True), (X,), (0,)),
    "product": (lambda x, w: x @ w, (X, W), (0,)),
    "transposed": (lambda x: x.T * 2, (X,), (1,)),
    "new axis": (lambda x: x[:, None, :] + x[:, :, None], (X,), (0,)),
    "columns": (lambda x: x[:, 1:3], (X,), (0,)),
    "sorted rows": (lambda x: np.sort(x, axis=1), (X,), (0,)),
    "top of rows": (lambda x: tn.top_k(x, 2)[1], (X,), (0,)),
    "running sums of rows": (lambda x: np.cumsum(x, axis=1), (X,), (0,)),
    "images": (lambda x: tn.conv(x[:, None], np.ones((2, 1, 3), "f4")), (X,), (0,)),
    "argmax": (lambda x: x.argmax(axis=1), (X,), (0,)),
    "joined columns": (lambda x: np.concatenate([x, x], axis=1), (X,), (0,)),
    "table lookup": (lambda i, w: w[i], (I % 4, W), (0,)),
    "padded columns": (lambda x: np.pad(x, ((0, 0), (1, 2))), (X,), (0,)),
    "windows of columns": (
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=1) * 2,
        (X,),
        (0,),
    ),
    "picked columns": (lambda x: x[:, [2, 0]], (X,), (0,)),
    "a column set": (lambda x: with_column(x), (X,), (0,)),
    "split axis": (lambda x: x.reshape(-1, 2, 2).transpose(1, 0, 2), (X,), (1,)),
    "numbered": (lambda x: x + tn.iota((len(x), 1)), (X,), (0,)),
    "matrices": (lambda x: np.linalg.inv(x[:, :, None] * x[:, None] + np.eye(4)), (X,), (0,)),
    "divisors": (lambda x: np.gcd(x.astype(int), 6), (X,), (0,)),
    "scan over columns": (
        lambda x: tn.scan(lambda c, col: (c + col, c), x[:, 0] * 0, x.T)[0],
        (X,),
        (0,),
    ),
    "loop": (lambda x: tn.fori_loop(0, 3, lambda i, c: c * 2 + x, x), (X,), (0,)),
    "lanes": (lambda x: tn.vmap(lambda r: tn.cond(r[0] > 0, lambda: r, lambda: -r))(x), (X,), (0,)),
    "branch": (lambda x, p: tn.cond(p, lambda: x * 2, lambda: x), (X, np.True_), (0,)),
    "nothing of it": (lambda x, w: w * 2, (X, W), (None,)),
    "a hook beside it": (lambda x, w: (tn.hook("h", w), x * 2)[1], (X, W), (0,)),
}


def with_column(x):
    x = x.copy()
    x[:, 1] = x[:, 2] * 2
    x[:, [0, 3]] = 7
    return x


@pytest.mark.parametrize("fewer", [1, 2, 5])
@pytest.mark.parametrize("name", KEPT)
def test_rows_are_followed(name, fewer):
    f, args, want = KEPT[name]
    assert rows(f, *args, fewer=fewer) == want


MIXED = {
    "sum over rows": (lambda x: x.sum(axis=0), "reduce_sum runs over the rows"),
    "sum of all": (lambda x: x.sum(), "runs over the rows"),
    "sorted columns": (lambda x: np.sort(x, axis=0), "sort runs over the rows"),
    "running sums": (lambda x: np.cumsum(x, axis=0), "cumsum runs over the rows"),
    "top of columns": (lambda x: tn.top_k(x[:, 0], 2)[0], "top_k runs over the rows"),
    "searched": (lambda x: np.searchsorted(x[:, 0], x[:, 0]), "searchsorted runs over the rows"),
    "filtered": (lambda x: tn.conv(x.T[None], np.ones((2, 4, 2), "f4")), "folds the rows"),
    "flattened": (lambda x: x.reshape(-1), "folds the rows"),
    "turned round": (lambda x: x[::-1], "moves the rows"),
    "first half": (lambda x: x[:2], "takes some of the rows"),
    "last": (lambda x: x[-1], "takes some of the rows"),
    "gram": (lambda x: x @ x.T, "combines every row"),
    "covariance": (lambda x: x.T @ x, "contract runs over the rows"),
    "joined": (lambda x: np.concatenate([x, x]), "folds the rows"),
    "lookup among rows": (lambda x: x[[0, 0, 1]], "picks among the rows"),
    "counted": (lambda x: counted(x), "places that are not rows"),
    "a row set": (lambda x: with_row(x), "dynamic_update|scatter|depends on the number"),
    "scan over rows": (
        lambda x: tn.scan(lambda c, r: (c + r.sum(), c), 0.0, x),
        "goes from row to row",
    ),
    "loop over rows": (
        lambda x: tn.fori_loop(0, 3, lambda i, c: c + x.sum(0), x[0] * 0),
        "over the rows|some of the rows",
    ),
    "fixed rows": (lambda x: x[:, 0] + np.arange(6.0)[: len(x)][::-1], "number of rows"),
    "hook": (lambda x: tn.hook("h", x), "shows whole arrays"),
    "a number": (lambda x: x / len(x), "number of rows"),
    "a branch": (lambda x: x * 2 if len(x) > 3 else x + 2, "number of rows.*add against mul"),
}


def counted(x):
    made = tn.zeros(3)
    np.add.at(made, x[:, 0].astype(int), 1.0)
    return made


def with_row(x):
    x = x.copy()
    x[1] = 5
    return x


@pytest.mark.parametrize("name", MIXED)
def test_mixing_is_refused_by_name(name):
    f, words = MIXED[name]
    with pytest.raises(tn.TenfoldError, match=words):
        rows(f, X)


def test_rows_that_stand_anywhere_have_no_numbers():
    def f(x):
        return x + tn.iota((len(x), 1))

    def first_of_a_table(x, w):
        return x + w[: len(x)]

    for given in (f, X), (first_of_a_table, X, np.ones((9, 4), "f4")):
        assert rows(*given) == (0,)
        with pytest.raises(tn.TenfoldError, match="by their numbers"):
            rows(*given, numbered=False)
    assert rows(np.tanh, X, numbered=False) == (0,)
    assert rows(lambda x, w: x + w[1:2], X, X, numbered=False) == (0,)


# Every op of the table, with each axis of its samples as that of rows.

SAMPLES = 60  # of each op: the first of each shape, and more


def variants(op):
    """Graphs of one node at fewer and at more rows, with arguments for both."""
    found, seen = [], set()
    for sample in op.samples(np.random.default_rng(0)):
        arrays = [np.asarray(a) for a in sample.inputs]
        form = tuple(a.shape for a in arrays), repr(sample.attributes)
        if form in seen and len(found) > SAMPLES:
            continue
        seen.add(form)
        builder = Builder(TABLE)
        inputs = [builder.parameter(TensorType(a.dtype, a.shape)) for a in arrays]
        made = builder.node(op.name, inputs, sample.attributes, sample.scopes)
        few = builder.finish(made)
        for extent in sorted({n for type in few.types for n in type.shape if n}):
            many = narrowed(few, extent, extent + 3)
            if many is not None and many != few:
                padded = [grown(a, extent, extent + 3) for a in arrays]
                found.append((few, many, extent, arrays, padded))
    return found


def grown(array, extent, size):
    """An array with every axis of this extent made longer, by other rows of its own."""
    for axis in range(array.ndim):
        if array.shape[axis] == extent:
            array = np.take(array, [*range(extent), *[0] * (size - extent)][:size], axis)
    return array


@pytest.mark.parametrize("op", [pytest.param(op, id=name) for name, op in TABLE.items()])
def test_what_is_let_through_is_neutral(op):
    kept = 0
    for few, many, extent, arrays, padded in variants(op):
        try:
            axes = follow(few, many, extent, extent + 3)
        except tn.TenfoldError:
            continue
        kept += 1
        for one, other, axis in zip(
            evaluate(few, arrays), evaluate(many, padded), axes, strict=True
        ):
            cut = tuple(slice(extent) if i == axis else slice(None) for i in range(other.ndim))
            wide = complex if KIND[one.dtype] in "fc" else one.dtype
            np.testing.assert_allclose(other[cut].astype(wide), one.astype(wide), rtol=1e-2)
    assert bool(kept) == (op.name not in APART), f"{kept} kept"


# Ops of which no sample keeps rows: those that show arrays to the host, loops, whose samples add
# their rows up, and those whose samples do something along every axis.
APART = {"hook", "print", "call_host", "while", "scan", "constant", "pad", "windows"}
