"""What a function draws, changes or asks a clock for while it is traced."""

import collections
import datetime
import functools
import os
import random
import secrets
import threading
import time
import types
import uuid

import numpy as np
import pytest
from numpy.random import default_rng

import tenfold as tn

X = np.ones(20)
RNG = np.random.default_rng(0)
LEGACY = np.random.RandomState(0)
PYTHON = random.Random(0)
COUNT = 0


class Owner:
    total = 0

    def __init__(self):
        self.n, self.log, self.table = 0, [], {}
        self.count = np.zeros(1)
        self.rng = np.random.default_rng(1)

    def counts(self, x):
        self.n += 1
        return x + self.n

    def keeps(self, x):
        self.last = x
        return x * 2

    def logs(self, x):
        self.log.append(1)
        return x * 2

    def draws(self, x):
        return x + self.rng.normal()

    def counts_in_class(self, x):
        Owner.total += 1
        return x * Owner.total

    def counts_in_array(self, x):
        self.count += 1
        return x + float(self.count[0])

    def counts_in_item(self, x):
        self.table["n"] = self.table["n"] + 1
        return x * self.table["n"]

    def sets(self, x):
        setattr(self, "field", 3)  # noqa: B010
        return x * 2

    def deletes(self, x):
        del self.n
        return x * 2

    def leaks(self, x):
        self.table["x"] = x
        return x * 2

    def memoises(self, x):
        if "w" not in self.table:
            self.table["w"] = np.arange(20.0)
        return x * self.table["w"]


def counts_globally(x):
    global COUNT
    COUNT += 1
    return x + COUNT


DRAWN = {
    "a global Generator": (lambda x: x + RNG.normal(), "RNG"),
    "a global RandomState": (lambda x: x + LEGACY.rand(), "LEGACY"),
    "a global Random": (lambda x: x + PYTHON.random(), "PYTHON"),
    "a field": (Owner().draws, "self.rng"),
    "Python's module": (lambda x: x + random.random(), "Python's random module"),
    "NumPy's module": (lambda x: x + np.random.rand(), "NumPy's global random state"),
    "made inside": (lambda x: x + np.random.default_rng().normal(), "without a seed"),
    "made inside by name": (lambda x: x + default_rng().normal(), "without a seed"),
    "an old one made inside": (lambda x: x + np.random.RandomState().rand(), "without a seed"),
    "bits": (lambda x: x + np.random.PCG64().random_raw(), "without a seed"),
}


@pytest.mark.parametrize(("function", "says"), DRAWN.values(), ids=DRAWN)
def test_drawing_random_numbers_is_an_error_that_names_tn_random(function, says):
    with pytest.raises(tn.TenfoldError, match=says) as raised:
        tn.jit(function)(X)
    assert "tn.random" in str(raised.value)


def test_a_normal_number_that_was_held_back_is_drawn_too():
    def draws(x):
        return x + np.random.randn()

    np.random.seed(0)
    assert tn.jit(lambda x: x + 1)(X)[0] == 2  # a trace at which none was held back
    for _ in range(2):
        np.random.randn()  # the second of a pair is held back: to draw it moves no bit
        with pytest.raises(tn.TenfoldError, match="NumPy's global random state"):
            tn.jit(draws)(X)
        np.random.randn()


def test_a_draw_from_another_kind_of_bits_is_seen():
    before = np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.PCG64(3))
    try:
        assert tn.jit(lambda x: x + 1)(X)[0] == 2
        with pytest.raises(tn.TenfoldError, match="NumPy's global random state"):
            tn.jit(lambda x: x + np.random.rand())(X)
    finally:
        np.random.set_bit_generator(before)


def test_a_generator_made_inside_without_a_seed_is_blamed_on_its_line():
    with pytest.raises(tn.TenfoldError, match=r"test_snapshot\.py:\d+, in"):
        tn.jit(lambda x: x + np.random.default_rng().normal())(X)


def test_numbers_from_a_seed_are_the_same_in_every_call_anyway():
    def function(x):
        return x + np.random.default_rng(7).normal() + random.Random(3).random()

    f = tn.jit(function)
    assert [f(X).tolist() for _ in range(3)] == [function(X).tolist()] * 3


def test_generators_at_rest_are_no_matter():
    f = tn.jit(lambda x, rng=RNG: x * 2 if rng is RNG else x)
    assert f(X)[0] == 2
    assert np.random.default_rng().normal() != np.random.default_rng().normal()


def test_other_threads_make_generators_meanwhile():
    inside, made, errors = threading.Event(), threading.Event(), []

    def other():
        inside.wait(60)
        try:
            np.random.default_rng()
        except tn.TenfoldError as error:
            errors.append(error)
        made.set()

    def function(x):
        inside.set()
        assert made.wait(60)
        return x * 2

    thread = threading.Thread(target=other)
    thread.start()
    assert tn.jit(function)(X)[0] == 2
    thread.join()
    assert not errors


CHANGED = {
    "counts": "self.n",
    "keeps": "self.last",
    "logs": "self.log",
    "counts_in_class": "Owner.total",
    "counts_in_array": "self.count",
    "counts_in_item": "self.table",
    "sets": "self.field",
    "deletes": "self.n",
    "leaks": "self.table",
}


@pytest.mark.parametrize(("method", "name"), CHANGED.items(), ids=CHANGED)
def test_changing_an_object_is_an_error_that_names_it(method, name):
    owner = Owner()
    owner.table["n"] = 0
    with pytest.raises(tn.TenfoldError, match=f"Owner.{method} changes {name}"):
        tn.jit(getattr(owner, method))(X)


def test_the_line_that_writes_is_named():
    with pytest.raises(tn.TenfoldError, match=r"test_snapshot\.py:\d+, in Owner\.counts"):
        tn.jit(Owner().counts)(X)


def test_changing_variables_is_an_error():
    outer = 0

    def counts(x):
        nonlocal outer
        outer += 1
        return x + outer

    with pytest.raises(tn.TenfoldError, match="changes outer"):
        tn.jit(lambda x: counts(x))(X)
    with pytest.raises(tn.TenfoldError, match="changes COUNT"):
        tn.jit(counts_globally)(X)


@pytest.mark.parametrize(
    ("held", "change"),
    [
        ([], lambda h: h.append(1)),
        (collections.deque(), lambda h: h.append(1)),
        (set(), lambda h: h.add(1)),
        ({"a": 1}, lambda h: h.pop("a")),
        ([np.ones(20)], lambda h: h.__setitem__(0, np.ones(20))),
        (types.SimpleNamespace(a=1), lambda h: setattr(h, "a", 2)),
    ],
    ids=lambda v: type(v).__name__,
)
def test_changing_what_is_closed_over_is_an_error(held, change):
    def function(x):
        change(held)
        return x * 2

    with pytest.raises(tn.TenfoldError, match="function changes held"):
        tn.jit(function)(X)


def test_what_is_made_inside_may_be_changed():
    def function(x):
        parts, held, table, n = [], types.SimpleNamespace(n=0), {}, 0

        def step(v):
            nonlocal n
            n += 1
            parts.append(v)
            table[n] = v
            held.n += 1
            return v + 1

        return step(step(x)) * n + len(parts) + held.n + len(table)

    f = tn.jit(function)
    assert [f(X).tolist() for _ in range(3)] == [function(X).tolist()] * 3
    assert f.traces == 1


def test_memoising_is_let_be():
    owner = Owner()
    f = tn.jit(owner.memoises)
    for _ in range(3):
        assert f(X).tolist() == np.arange(20.0).tolist()
    assert f.traces == 2
    owner.table["w"] = np.ones(20)
    assert f(X).tolist() == [1] * 20
    table = functools.cache(lambda n: np.arange(float(n)))
    g = tn.jit(lambda x: x * table(20))
    assert g(X).tolist() == g(X).tolist() == np.arange(20.0).tolist()


def clocked(x):
    import time as t
    from datetime import datetime as d

    return x * (t.time() > 0) * (d.now().year > 0)


CLOCKS = {
    "time.time": lambda x: x * (time.time() > 0),
    "time.perf_counter": lambda x: x * (time.perf_counter() > 0),
    "time.monotonic": lambda x: x * (time.monotonic() > 0),
    "datetime.now": lambda x: x * (datetime.datetime.now().year > 0),
    "date.today": lambda x: x * (datetime.date.today().year > 0),
    "os.urandom": lambda x: x * len(os.urandom(1)),
    "uuid.uuid4": lambda x: x * len(uuid.uuid4().bytes),
    "secrets.token_bytes": lambda x: x * len(secrets.token_bytes(1)),
    "random.Random without a seed": lambda x: x * (random.Random().random() < 1),
}


@pytest.mark.parametrize(("name", "function"), CLOCKS.items(), ids=CLOCKS)
def test_clocks_are_a_warning_at_their_line(name, function):
    with pytest.warns(tn.TraceWarning, match=name) as seen:
        tn.jit(function)(X)
    (one,) = seen
    assert one.filename == __file__
    assert one.lineno == function.__code__.co_firstlineno


def test_clocks_that_are_imported_inside():
    with pytest.warns(tn.TraceWarning) as seen:
        tn.jit(lambda x: clocked(x))(X)
    assert {one.lineno for one in seen} == {clocked.__code__.co_firstlineno + 4}
    assert len(seen) == 2
