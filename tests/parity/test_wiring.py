"""A plan of judged kernels that is wired as one that was checked answers before its own check."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from faults import plant
from fresh import settle

import tenfold as tn
from tenfold.api import checking
from tenfold.cache import plans
from tenfold.parity.replay import guards
from tenfold.parity.slots import _lives, _meeting, shared_memory
from tenfold.parity.wiring import wiring_of, wirings
from tenfold.promote.background import submit

sys.path.insert(0, str(Path(__file__).parent))
from programs import kept, softmax, swapped

RANDOM = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    """No plan and no wiring from before, nothing under way, none left behind. Checks come to their
    end however slow the machine is."""
    monkeypatch.setattr(tn.config, "cache", None)
    monkeypatch.setattr(checking, "LEAST", 600.0)
    monkeypatch.setattr(checking, "MOST", 600.0)
    settle()
    plans.clear()
    wirings.clear()
    yield
    settle()
    plans.clear()
    wirings.clear()


def drawn(*shape):
    return RANDOM.normal(size=shape).astype("f4")


def jitted(function, **options):
    return tn.jit(lambda *args: function(*args), **{"verify": "first", **options})


def learnt(function, *arguments, **options):
    """A function of which one plan was checked to the end."""
    f = jitted(function, **options)
    f(*arguments)
    assert f.ready(60)
    assert f.certificate(*arguments).complete
    tn.stats.reset()
    return f


class Busy:
    """The background does nothing of ours meanwhile."""

    def __enter__(self):
        self.go = threading.Event()
        self.job = submit(lambda: self.go.wait(60))

    def __exit__(self, *error):
        self.go.set()
        self.job.done.wait(60)


def counts():
    found = tn.stats()
    return found["checks"], found["known_wirings"]


def test_a_new_size_answers_before_its_check_which_goes_on_behind():
    f = learnt(softmax, drawn(9, 19))
    x = drawn(12, 23)
    with Busy():
        np.testing.assert_allclose(f(x), softmax(x), rtol=1e-5)
        found = f.certificate(x)
        assert not found.complete
        assert found.left == ("its own values",)
        assert "by its kernels and wiring" in str(found)
        assert found.kernels
    assert f.ready(60)
    found = f.certificate(x)
    assert found.complete
    assert found.whole
    assert found.inputs_digest
    assert "by its kernels and wiring" in str(found)
    assert counts() == (0, 1)


def test_native_code_answers_calls_like_it_at_once():
    f = learnt(softmax, drawn(9, 19))
    x = drawn(12, 23)
    with Busy():
        f(x)
        tn.stats.reset()
        f(x)
        assert tn.stats()["slow_calls"] == 0


def test_a_first_plan_of_a_wiring_is_checked_before():
    tn.stats.reset()
    f = jitted(softmax)
    f(drawn(9, 19))
    assert counts() == (1, 0)
    f(drawn(12, 23).astype("f8"))
    assert counts() == (2, 0)


@pytest.mark.parametrize(
    ("verify", "strict"), [("always", False), (60.0, False), ("first", True), ("off", False)]
)
def test_who_asks_for_more_or_for_nothing_gets_that(verify, strict):
    learnt(softmax, drawn(9, 19), strict=strict)
    f = jitted(softmax, verify=verify, strict=strict)
    x = drawn(12, 23)
    f(x)
    assert counts() == (int(verify != "off"), 0)
    if verify == "off":
        assert f.certificate(x) is None
    else:
        assert f.certificate(x).complete


def test_loops_and_sorts_are_wired_too():
    for function in (swapped, kept):
        f = learnt(function, drawn(9, 19))
        f(drawn(12, 23))
        assert counts() == (0, 1)
        settle()


# Faults in what is new.


def refuted(f, *arguments):
    """What is said of a plan that was refuted behind."""
    f(*arguments)
    assert f.ready(60)
    with pytest.warns(tn.ParityWarning, match="disagrees") as said:
        f(*arguments)
    return "\n".join(str(one.message) for one in said)


def test_a_wrong_extent_is_found_behind_and_reported():
    f = learnt(softmax, drawn(9, 19))
    x = drawn(12, 23)
    with plant("size", "extent"):
        assert "it had answered 1 calls before" in refuted(f, x)
    assert counts()[1] == 1
    np.testing.assert_allclose(f(x), softmax(x), rtol=1e-5)  # the reference answers


def test_a_wiring_of_which_a_plan_was_wrong_is_not_trusted_again():
    f = learnt(softmax, drawn(9, 19))
    with plant("size", "extent"):
        refuted(f, drawn(12, 23))
    tn.stats.reset()
    for rows in (13, 14):
        f(drawn(rows, 23))
    assert counts() == (2, 0)


def test_a_size_that_does_not_fit_its_slot_is_checked_before():
    f = learnt(kept, drawn(9, 19))
    with plant("size", "buffer"):
        f(drawn(12, 23))
    assert counts() == (1, 0)


@pytest.mark.parametrize("argument", ["0", "2", "3"])
def test_a_slot_reused_too_early_is_found_before_it_answers(argument):
    f = learnt(kept, drawn(9, 19))
    with plant("slot", argument), pytest.warns(tn.ParityWarning, match="disagrees"):
        f(drawn(12, 23))
    assert counts() == (1, 0)


@pytest.mark.parametrize(
    ("kind", "argument", "function"),
    [
        ("constant", "", lambda x: np.exp(x * 3.5)),
        ("carry", "in", swapped),
        ("carry", "out", swapped),
        ("results", "", swapped),
        ("loop", "reverse", swapped),
        ("loop", "shorter", swapped),
    ],
)
def test_another_wiring_is_checked_before_it_answers(kind, argument, function):
    f = learnt(function, drawn(9, 19))
    with plant(kind, argument), pytest.warns(tn.ParityWarning, match="disagrees"):
        f(drawn(12, 23))
    assert counts() == (1, 0)


# What makes a wiring.


def wired(function, *arguments, **options):
    f = jitted(function, verify="off", **options)
    f(*arguments)
    program = f.program_for(*arguments)[2]
    return wiring_of(program, program.graph)


X, Y = drawn(9, 19), drawn(9, 19)


def base(x, y):
    return np.sort(x * 2.5 + y, axis=1) * 3.5, x[:, 1:]


SAME = [
    (base, (drawn(12, 23), drawn(12, 23)), {}),
    (lambda x, y: (np.sort(x * 4.5 + y, axis=1) * 6.5, x[:, 1:]), (X, Y), {}),
]
OTHER = [
    (base, (X.astype("f8"), Y.astype("f8")), {}),
    (base, (X, drawn(9, 1)), {}),
    (base, (drawn(1, 19), drawn(1, 19)), {}),
    (base, (X, drawn(19)), {}),
    (base, (X, Y), {"donate": 0}),
    (base, (X, Y), {"strict": True}),
    (lambda x, y: base(x, y)[::-1], (X, Y), {}),
    (lambda x, y: base(y, x), (X, Y), {}),
    (lambda x, y: base(x, x), (X, Y), {}),
    (lambda x, y: (np.sort(x * 2.5 - y, axis=1) * 3.5, x[:, 1:]), (X, Y), {}),
    (lambda x, y: (np.sort(x * 2.5 + y, axis=0) * 3.5, x[:, 1:]), (X, Y), {}),
    (lambda x, y: (np.sort(x * 2.5 + y, axis=1) * 2.5, x[:, 1:]), (X, Y), {}),
    (lambda x, y: (np.sort(x * 2.5 + y, axis=1) * 1, x[:, 1:]), (X, Y), {}),
    (lambda x, y: (np.sort(x * 2.5 + y, axis=1) * 3.5, x[:, 2:]), (X, Y), {}),
    (lambda x, y: (np.sort(x * 2.5 + y, axis=1) * 3.5, y[:, 1:]), (X, Y), {}),
]


@pytest.mark.parametrize(("function", "arguments", "options"), SAME)
def test_what_is_one_wiring(function, arguments, options):
    found = wired(function, *arguments, **options)
    assert found is not None
    assert found == wired(base, X, Y)


@pytest.mark.parametrize(("function", "arguments", "options"), OTHER)
def test_what_is_another_wiring(function, arguments, options):
    found = wired(function, *[a.copy() for a in arguments], **options)
    assert found is not None
    assert found != wired(base, X, Y)


def test_what_calls_python_or_branches_has_none():
    assert wired(lambda x: tn.cond(x.sum() > 0, lambda: x + 1, lambda: x * 2), X) is None
    assert wired(lambda x: tn.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x), X) is None


def test_slots_that_meet_are_found_as_one_by_one():
    for _ in range(300):
        count = int(RANDOM.integers(2, 25))
        starts, first = RANDOM.integers(0, 30, count), RANDOM.integers(0, 12, count)
        regions = [
            (int(s), int(s + n)) for s, n in zip(starts, RANDOM.integers(1, 8, count), strict=True)
        ]
        last = dict(enumerate(first + RANDOM.integers(0, 5, count)))
        first = dict(enumerate(first))
        order = sorted(first, key=first.__getitem__)
        expected = {
            (a, b, regions[a][0] == regions[b][0])
            for a in range(count)
            for b in range(a + 1, count)
            if regions[a][0] < regions[b][1] and regions[b][0] < regions[a][1]
            and first[a] <= last[b] and first[b] <= last[a]
        }  # fmt: skip
        found = _meeting(order, regions, first, last)
        assert len(found) == len(expected)
        assert set(found) == expected


def test_what_is_written_range_by_range_is_in_use_from_the_first_on():
    """A value of two ranges, and one made between these: they share no memory."""

    def joined(x):
        made = x
        parts = []
        for k in range(20):
            made = np.sort(np.sin(made) * (k + 2.5), axis=k % 2)
            parts.append(made)
        return np.sort(np.concatenate(parts), axis=0)

    f = jitted(joined, verify="off")
    f(X)
    plan = f.program_for(X)[2].plan
    regions, first, _ = _lives(plan)
    ranges = [n for n, (start, end) in enumerate(regions) if end == start + 1]
    assert len(ranges) > 9
    wholes = {b if a in ranges else a for a, b, _ in shared_memory(plan) if {a, b} & {*ranges}}
    assert len(wholes) == 1
    assert first[min(wholes)] < min(first[n] for n in ranges) < max(first[n] for n in ranges)


# Threads and processes.


def test_many_threads_with_many_sizes():
    f = learnt(softmax, drawn(9, 19))
    sizes = [(10 + n % 17, 20) for n in range(120)]

    def call(shape):
        x = np.full(shape, 0.5, "f4")
        np.testing.assert_allclose(f(x), 1 / shape[1], rtol=1e-5)

    with warnings.catch_warnings(), ThreadPoolExecutor(8) as pool:
        warnings.simplefilter("error")
        list(pool.map(call, sizes))
    checks, known = counts()
    assert checks + known >= 17
    assert known > 0


SCRIPT = """
    import os, sys
    import numpy as np, tenfold as tn
    from tenfold.promote.background import submit
    import threading
    f = tn.jit(lambda x: np.exp(x - x.max(1, keepdims=True)) * 2.5, verify="first")
    f(np.ones((9, 19)))
    assert f.ready(60)
"""
FORK = """
    go = threading.Event()
    job = submit(go.wait)
    x = np.ones((12, 23))
    f(x)
    assert not f.certificate(x).complete
    go.set()
    child = os.fork()
    y = f(x)
    for _ in range(9):
        f(x)
    assert f.ready(60)
    assert f.certificate(x).complete, f.certificate(x)
    f(np.ones((13, 24)))
    known = tn.stats()["known_wirings"]
    assert known == 2, known
    if child:
        _, status = os.waitpid(child, 0)
        print(status, (y == 2.5).all())
"""
END = """
    for n in range(10, 40):
        f(np.ones((n, 23)))
    print(tn.stats()["known_wirings"] > 20)
"""


def run(text, **environment):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT) + textwrap.dedent(text)],
        env={**os.environ, "TENFOLD_CACHE": "off", **environment},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert not done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_both_sides_of_a_fork_go_on():
    assert run(FORK) == "0 True\n"


def test_the_process_may_end_before_the_checks_behind(tmp_path):
    assert run(END) == "True\n"
    assert run(END, TENFOLD_CACHE=str(tmp_path)) == "True\n"


# Guards.


def test_guards_are_tried_once_for_a_wiring(monkeypatch):
    tried = []
    plain = guards.try_arguments

    def try_arguments(*given):
        tried.append(given)
        return plain(*given)

    monkeypatch.setattr(guards, "try_arguments", try_arguments)
    f = learnt(softmax, drawn(9, 19))
    assert len(tried) == 1
    first = f.certificate(drawn(9, 19)).guards
    assert first > 3
    x = drawn(12, 23)
    f(x)
    assert len(tried) == 1
    assert f.certificate(x).guards == first
    jitted(softmax, verify=60.0)(drawn(13, 24))
    assert len(tried) == 2


def test_an_entry_that_writes_to_its_argument_is_another():
    def scaled(x):
        x *= 2.5
        return np.sin(x)

    f = learnt(scaled, drawn(9, 19))
    x = drawn(12, 23)
    y, wanted = x.copy(), np.sin(x * np.float32(2.5))
    np.testing.assert_allclose(f(y), wanted, rtol=1e-5)
    assert counts() == (0, 1)
    x.flags.writeable = False
    with pytest.raises(tn.errors.TenfoldError):
        f(x)


def test_what_a_function_closes_over_is_tried_each_time(monkeypatch):
    scale = 2.5

    def scaled(x):
        return np.sin(x) * scale

    f = tn.jit(scaled, verify="first")
    f(drawn(9, 19))
    assert f.ready(60)
    watched = []
    plain = guards.try_watched
    monkeypatch.setattr(
        guards, "try_watched", lambda *given: watched.append(len(given[2])) or plain(*given)
    )
    x = drawn(12, 23)
    np.testing.assert_allclose(f(x), np.sin(x) * np.float32(2.5), rtol=1e-5)
    assert watched
    assert watched[0] > 0
    scale = 3.5
    np.testing.assert_allclose(f(x), np.sin(x) * np.float32(3.5), rtol=1e-5)


def test_very_large_graphs_have_no_wiring(monkeypatch):
    f = learnt(softmax, drawn(5, 7))
    monkeypatch.setitem(wiring_of.__globals__, "LARGE", 1)
    x = drawn(6, 7)
    np.testing.assert_allclose(f(x), softmax(x), rtol=1e-5)
    assert counts() == (1, 0)
    assert f.ready(60)
    assert f.certificate(x).complete
