"""Padded calls give what calls without padding give, or are refused; at every number of rows."""

import numpy as np
import pytest

import tenfold as tn

SIZES = [1, 4, 8]


def drawn(rows):
    return np.random.default_rng(rows).normal(size=(rows, 3)) - 1


def agrees(f, rows, sizes=SIZES, jitted=None):
    """Whether a padded call gives what the bare one gives; an error for one that is refused."""
    x = drawn(rows)
    got = (jitted or tn.jit(f, buckets={"x": sizes}))(x)
    want = tn.jit(f)(x)
    assert got.shape == want.shape
    return bool(np.allclose(got, want, rtol=1e-12, equal_nan=True))


def test_what_runs_over_rows_is_refused():
    for f in (
        lambda x: tn.top_k(x[:, 0], 2)[0],
        lambda x: np.searchsorted(x[:, 0], x[:, 0]),
        lambda x: np.cumsum(x, axis=0),
        lambda x: np.convolve(x[:, 0], np.ones(2), "same"),
    ):
        with pytest.raises(tn.TenfoldError, match="rows"):
            agrees(f, 3)


# Each of these is another program at some sizes alone.
BRANCHES = {
    "larger": lambda x: x * 2 if x.shape[0] > 3 else x * 3,
    "odd": lambda x: x * 2 if x.shape[0] % 2 else x + 3,
    "two": lambda x: x * 2 if len(x) == 2 else x * 3,
    "at seven": lambda x: x - 1 if x.size == 21 else x,
    "mean": lambda x: x * (1 / max(x.shape[0], 1)),
    "root": lambda x: x * np.sqrt(len(x)) if len(x) in (2, 6) else x,
    "bytes": lambda x: x * float(x.nbytes > 60),
    "table": lambda x: x @ (np.arange(30.0).reshape(3, 10) / max(len(x), 1)),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_a_size_that_is_looked_at_is_found_out(name):
    f = BRANCHES[name]
    jitted = tn.jit(f, buckets={"x": SIZES})
    refused = []
    for rows in (4, 8, 3, 7, 1, 2, 5, 6, 0, 16, 11):
        try:
            assert agrees(f, rows, jitted=jitted)
        except tn.TenfoldError as error:
            refused.append((rows, str(error)))
    assert refused
    assert not {rows for rows, _ in refused} & {0, 1, 4, 8, 16}
    assert all("depends on the number of rows itself" in why for _, why in refused)


def test_what_a_function_raises_is_raised_for_the_rows_given():
    def f(x):
        if len(x) == 2:
            raise KeyError("two")
        return x * 2

    with pytest.raises(KeyError):
        agrees(f, 2)

    def g(x):
        if len(x) == 4:
            raise KeyError("four")
        return x * 2

    with pytest.raises(KeyError) as error:
        agrees(g, 3)
    assert "traced for 4 rows, which 3 are padded to" in error.value.__notes__[0]


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 5, 8, 9, 17])
def test_rows_that_raise_are_not_made_up(rows):
    """Rows that pad are a row over again: zeros would be out of range here."""
    table = np.arange(10.0)

    def f(x):
        return tn.asarray(table)[12 - x[:, 0].astype(int)]

    x = np.full((rows, 1), 5.0)
    got = tn.jit(f, buckets={"x": [4, 8]})(x)
    assert got.tolist() == [7.0] * rows


@pytest.mark.parametrize("shape", [(20,), (3, 20)])
def test_arrays_made_while_tracing_are_compared(shape):
    def row_by_row(x):
        return x + np.ones((len(x), 20))[:, :3]

    def scaled(x):
        return x * np.full(shape, 1.0 / len(x)).sum()

    def weights(x):
        return x @ np.full((3, 20), 1.0 / len(x))

    assert agrees(row_by_row, 3)
    for f in (scaled, weights):
        with pytest.raises(tn.TenfoldError, match="number of rows itself"):
            agrees(f, 3)


def test_settings_that_change_are_looked_at_again():
    scale = 2.0

    def f(x):
        return x * scale if len(x) > 3 else x * 2

    jitted = tn.jit(f, buckets={"x": [4]})
    assert agrees(f, 3, jitted=jitted)
    scale = 3.0
    with pytest.raises(tn.TenfoldError, match="number of rows itself"):
        agrees(f, 3, jitted=jitted)
    assert agrees(f, 4, jitted=jitted)


def test_captured_arrays_are_swapped():
    w = np.ones(3)

    def f(x):
        return x * w

    jitted = tn.jit(f, buckets={"x": [4]})
    assert agrees(f, 3, jitted=jitted)
    w = np.full(3, 5.0)
    assert agrees(f, 3, jitted=jitted)
    assert agrees(f, 2, jitted=jitted)


def test_what_is_given_back_may_not_tell_the_size():
    for f in (
        lambda x: (x * 2, len(x)),
        lambda x: {"x": x, "n": f"{len(x)} rows"},
        lambda x: [x] * len(x),
    ):
        with pytest.raises(tn.TenfoldError, match="number of rows itself"):
            tn.jit(f, buckets={"x": [4]})(drawn(3))


def test_functions_for_the_host_may_not_know_the_size():
    seen = []

    def f(x, w):
        n = len(x)
        tn.hook("h", w, lambda v: seen.append(n))
        return x * 2

    def g(x, w):
        tn.hook("h", w, seen.append)
        return x * 2

    with pytest.raises(tn.TenfoldError, match="function for the host"):
        tn.jit(f, buckets={"x": [4]})(drawn(3), np.ones(2))
    tn.jit(g, buckets={"x": [4]})(drawn(3), np.ones(2))
    assert len(seen) == 1


def test_a_size_is_traced_once():
    f = tn.jit(lambda x: x * 2, buckets={"x": [8]})
    for _ in range(3):
        for rows in (3, 5, 8):
            f(drawn(rows))
    assert f.traces == 3  # at 3, 5 and 8 rows


def test_an_exact_size_is_not_copied():
    f = tn.jit(lambda x: x.sum(axis=0), buckets={"x": [4]})
    np.testing.assert_allclose(f(drawn(4)), drawn(4).sum(axis=0))
    with pytest.raises(tn.TenfoldError, match="runs over the rows"):
        f(drawn(3))
