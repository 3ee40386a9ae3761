"""Donated arguments: what the caller finds in them, and what may be donated together."""

import threading

import numpy as np
import pytest

import tenfold as tn

HOW = ["now", "never", "background"]


def add_one(x):
    x += 1


def bumped(x, y):
    x[1:] *= 2
    x += y
    return x.sum()


@pytest.mark.parametrize("how", HOW)
def test_an_update_reaches_the_caller_where_nothing_is_returned(how):
    f = tn.jit(add_one, donate="x", compile=how)
    x = np.zeros((3, 4))
    for count in range(1, 5):  # the first by Python, then by native code
        assert f(x) is None
        assert x.tolist() == np.full((3, 4), float(count)).tolist()
        f.ready(60)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("shape", [(5,), (0,), (2, 3), (1, 1)])
def test_updates_are_those_of_numpy(how, shape):
    f = tn.jit(bumped, donate="x", compile=how)
    x, y = np.arange(np.prod(shape)).reshape(shape) * 1.5, np.full(shape, -0.0)
    mine = x.copy()
    for _ in range(3):
        np.testing.assert_allclose(f(x, y=y), bumped(mine, y))
        np.testing.assert_array_equal(x, mine)
        f.ready(60)


@pytest.mark.parametrize("layout", ["columns", "reversed", "swapped", "Fortran"])
def test_updates_reach_arrays_laid_out_in_any_way(layout):
    base = np.arange(24.0).reshape(4, 6)
    x = {
        "columns": base[:, ::2],
        "reversed": base[::-1],
        "swapped": base.astype(">f8"),
        "Fortran": np.asfortranarray(base),
    }[layout]
    mine = x.copy()
    f = tn.jit(add_one, donate="x")
    for _ in range(3):
        f(x)
        add_one(mine)
        np.testing.assert_array_equal(x, mine)


def test_updates_reach_arrays_in_containers():
    def step(state, g):
        state["w"] -= g
        state["m"][0][...] = g * 2
        return {"norm": (g * g).sum()}

    f = tn.jit(step, donate="state")
    state = {"w": np.ones(4), "m": [np.zeros(4)], "n": np.ones(2)}
    for _ in range(3):
        assert f(state, np.full(4, 0.25)) == {"norm": 0.25}
    assert state["w"].tolist() == [0.25] * 4
    assert state["m"][0].tolist() == [0.5] * 4


def test_updates_reach_the_rows_that_were_padded():
    def f(x):
        x *= 2
        return x[:, 0]

    jitted = tn.jit(f, donate="x", buckets={"x": [4]})
    for rows in (3, 4, 1, 0, 3):
        x = np.arange(rows * 2.0).reshape(rows, 2)
        want = x * 2
        assert jitted(x).tolist() == want[:, 0].tolist()
        np.testing.assert_array_equal(x, want)


def test_what_is_only_read_is_not_written():
    f = tn.jit(lambda x: x.sum() * 2, donate="x")
    x = np.ones(5)
    x.flags.writeable = False
    assert f(x) == f(x) == 10


@pytest.mark.parametrize("how", HOW)
def test_what_can_not_be_written_to_is_refused(how):
    f = tn.jit(add_one, donate="x", compile=how)
    x = np.zeros(3)
    f(x.copy())
    f(x.copy())
    x.flags.writeable = False
    with pytest.raises(tn.TenfoldError, match="'x' is updated in place"):
        f(x)
    assert x.tolist() == [0, 0, 0]


def test_an_error_comes_before_any_update():
    def f(x, i):
        x += 1
        return x[i]

    jitted = tn.jit(f, donate="x", compile="never")
    x = np.zeros(3)
    with pytest.raises(IndexError):
        jitted(x, np.array(7))
    assert x.tolist() == [0, 0, 0]


def test_what_is_left_to_check_is_checked_on_what_was_given(monkeypatch):
    from tenfold.api import checking

    checked = []

    def note(program, graph, arrays):
        if arrays[0].size == 1000:  # not of what another test left to the background
            checked.append(np.array(arrays[0]))

    monkeypatch.setattr(checking, "go_on", note)
    f = tn.jit(lambda x: np.sort(np.tanh(x) + 1), donate="x", verify=0.0)
    x = np.linspace(1, -1, 1000)
    before = x.copy()
    f(x)
    assert not np.array_equal(x, before)  # the plan works in its memory
    assert np.array_equal(checked[0], before)


# Arguments that overlap.


def add(x, y):
    x += y
    return x * 2


@pytest.mark.parametrize("how", HOW)
def test_a_donated_argument_that_overlaps_another_is_refused(how):
    f = tn.jit(add, donate="x", compile=how)
    a = np.arange(20.0)
    for _ in range(3):  # before there is a plan, and with one
        for x, y in ((a, a), (a[:10], a[5:15]), (a[10:], a[1:11]), (a[::-1], a)):
            with pytest.raises(tn.TenfoldError, match="shares memory with the argument 'y'"):
                f(x, y)
        assert a.tolist() == list(range(20))
        np.testing.assert_array_equal(f(a[:10].copy(), a[:10]), a[:10] * 4)
        f(a.copy(), a)
        f.ready(60)
    if how == "now":
        assert f.plan(a, a).certificate
        assert f.certificate(a, a).complete


def test_what_lies_between_is_no_overlap():
    f = tn.jit(add, donate="x")
    for _ in range(3):
        a = np.arange(20.0)
        np.testing.assert_array_equal(f(a[::2], a[1::2]), np.arange(1.0, 40, 4) * 2)
        b = np.arange(20.0)
        np.testing.assert_array_equal(f(b[:10], b[10:]), (b[10:] + np.arange(10)) * 2)


def test_both_donated_and_the_same():
    def swap(x, y):
        x[...], y[...] = y + 0, x + 0

    f = tn.jit(swap, donate=("x", "y"))
    a, b = np.zeros(3), np.ones(3)
    for _ in range(2):
        f(a, b)
    f(a, b)
    assert (a.tolist(), b.tolist()) == ([1, 1, 1], [0, 0, 0])
    with pytest.raises(tn.TenfoldError, match="shares memory"):
        f(a, a)


def test_a_donated_argument_that_is_captured_is_refused():
    w = np.ones(4)

    def f(x):
        x += 1
        return x * w

    jitted = tn.jit(f, donate="x")
    for _ in range(3):
        assert jitted(np.ones(4)).tolist() == [2] * 4
        for given in (w, w[::-1]):
            with pytest.raises(tn.TenfoldError, match="shares memory with the captured array 'w'"):
                jitted(given)
    assert w.tolist() == [1] * 4


def test_threads_donate_their_own():
    f = tn.jit(add_one, donate="x")
    arrays = [np.full(1000, float(i)) for i in range(8)]

    def run(x):
        for _ in range(50):
            f(x)

    threads = [threading.Thread(target=run, args=(x,)) for x in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [float(x[0]) for x in arrays] == [i + 50.0 for i in range(8)]
    assert all((x == x[0]).all() for x in arrays)
