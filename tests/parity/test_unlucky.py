"""Faults that the first call's values do not show: all are found, and bisect names them.

Arguments are chosen so that the planted fault changes nothing, or only what steps that are looked
at one by one do not show."""

import sys
from pathlib import Path

import numpy as np
import pytest
from faults import plant
from fresh import forget_code

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.cache import plans
from tenfold.parity.certificate import Certificate
from tenfold.parity.check import check

sys.path.insert(0, str(Path(__file__).parent))
from programs import Fault

Z = np.zeros((9, 19), "f4")
O = np.ones((9, 19), "f4")  # noqa: E741
P = np.random.default_rng(1).uniform(0.5, 2.0, (9, 19)).astype("f4")
N = (-P).copy()
I = np.arange(1, 172, dtype="i4").reshape(9, 19)  # noqa: E741
APART = np.array([4, 1, 7, 0])
F4 = np.float32


def product(a, b, c):
    return a * b - c


def added(x, i, u):
    y = x.copy()
    np.add.at(y, i, u)
    return y


def put(x, i, u):
    y = x.copy()
    y[i] = u
    return y


def lowest(x, i, u):
    y = x.copy()
    np.minimum.at(y, i, u)
    return y


FAULTS = [
    # One op in place of another that gives the same on these values.
    Fault("instruction", "sub>add", product, (P, P, Z), ("sub",)),
    Fault("instruction", "add>sub", lambda a, b: np.tanh(a + b), (P, Z), ("add",)),
    Fault("instruction", "mul>div", lambda a, b: a * b, (P, O), ("mul",)),
    Fault("instruction", "div>mul", lambda a, b: a / b + 1, (P, O), ("div",)),
    Fault("instruction", "max>min", lambda a, b: np.maximum(a, b), (P, P), ("max",)),
    Fault("instruction", "max>fmax", lambda a, b: np.maximum(a, b) * 2, (P, O), ("max",)),
    Fault("instruction", "fmin>min", lambda a, b: np.fmin(a, b) * 2, (P, O), ("fmin",)),
    Fault("instruction", "exp>exp2", lambda x: np.exp(x) - 3, (Z,), ("exp",)),
    Fault("instruction", "exp>cosh", lambda x: np.exp(x), (Z,), ("exp",)),
    Fault("instruction", "log>log2", lambda x: np.log(x) + 1, (O,), ("log",)),
    Fault("instruction", "log1p>expm1", lambda x: np.log1p(x), (Z,), ("log1p",)),
    Fault("instruction", "sin>tan", lambda x: np.sin(x) * 2, (Z,), ("sin",)),
    Fault("instruction", "tanh>sinh", lambda x: np.tanh(x), (Z,), ("tanh",)),
    Fault("instruction", "sqrt>cbrt", lambda x: np.sqrt(x) + x, (O,), ("sqrt",)),
    Fault("instruction", "floor>trunc", lambda x: np.floor(x) * 2, (P,), ("floor",)),
    Fault("instruction", "ceil>round", lambda x: np.ceil(x), (O,), ("ceil",)),
    Fault("instruction", "trunc>floor", lambda x: np.trunc(x), (P,), ("trunc",)),
    Fault("instruction", "abs>neg", lambda x: np.abs(x) + 1, (N,), ("abs",)),
    Fault("instruction", "mod>fmod", lambda a, b: np.mod(a, b), (P, O), ("mod",)),
    Fault("instruction", "isnan>isinf", lambda x: np.isnan(x) | (x > 1), (P,), ("isnan",)),
    Fault("instruction", "lt>le", lambda x: np.where(x < F4(1.5), x, -x), (P,), ("lt",)),
    Fault("instruction", "ge>gt", lambda x: (x >= F4(1.5)).sum(1), (P,), ("ge",)),
    Fault("instruction", "and>or", lambda a, b: a & b, (I > 5, I > 5), ("and",)),
    Fault("instruction", "xor>or", lambda a, b: a ^ b, (I, np.zeros_like(I)), ("xor",)),
    Fault("instruction", "floordiv>div", lambda a, b: a // b, (O, O), ("floordiv",)),
    Fault("instruction", "atan2>hypot", lambda a, b: np.arctan2(a, b), (Z, Z), ("atan2",)),
    Fault("instruction", "copysign>max", lambda a, b: np.copysign(a, b), (P, P), ("copysign",)),
    Fault("operands", "sub", lambda a, b: a - b, (P, P), ("sub",)),
    Fault("operands", "div", lambda a, b: a / b, (P, P), ("div",)),
    Fault("operands", "select", lambda m, a, b: np.where(m, a, b), (P > 1, P, P), ("select",)),
    Fault("operands", "lt", lambda a, b: a < b, (P, P), ("lt",)),
    # Elements from elsewhere, where all are alike.
    Fault("index", "reverse", lambda x: x.T * 2, (O,), ("transpose", "mul")),
    Fault("index", "first", lambda x: np.exp(x) + 1, (O,), ("exp", "add")),
    Fault("index", "shift", lambda x: x[:, ::-1] * x, (O,), ("reverse", "mul")),
    Fault("store", "reverse", lambda x: np.sin(x) * 2, (O,), ("sin", "mul")),
    # Reductions whose order, identity or kind does not matter here.
    Fault("identity", "max=0", lambda x: x.max(1), (P,), ("reduce_max",)),
    Fault("identity", "min=0", lambda x: x.min(1), (N,), ("reduce_min",)),
    Fault("reduction", "max>min", lambda x: x.max(1) * 2, (O,), ("reduce_max",)),
    Fault("reduction", "any>all", lambda x: (x > 1).any(1), (O,), ("reduce_any",)),
    Fault("reduction", "sum>max", lambda x: x.sum(0), (Z,), ("reduce_sum",)),
    Fault("mask", "low", lambda x: np.pad(x, 2) * 3, (Z,), ("pad",)),
    # Repeated indices, which the first call does not have.
    Fault("order", "", put, (Z, APART, P[:4]), ("scatter",)),
    Fault("update", "add>", added, (Z, APART, P[:4]), ("scatter",)),
    Fault("update", "min>max", lowest, (P, APART, P[APART]), ("scatter",)),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _fresh():
    plans.clear()
    yield
    plans.clear()


def test_there_are_enough():
    assert len(FAULTS) >= 40


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_found_on_values_of_its_own(fault):
    with plant(fault.kind, fault.argument):
        f = tn.jit(fault.function)
        with pytest.warns(tn.ParityWarning, match="disagrees"):
            f(*fault.arguments)
        found = tn.bisect(f, *fault.arguments, script=None)
        assert found.node is not None
        assert found.node.op in fault.blamed, str(found)
    assert not _warned(fault)


def _warned(fault):
    """Whether the sound plan is refused, too."""
    plans.clear()
    f = tn.jit(fault.function)
    f(*fault.arguments)
    return f.certificate(*fault.arguments).state != "whole"


# Loops that go wrong in rounds that are not looked at one by one.

ROUNDS = 30
STEPS = np.arange(ROUNDS, dtype="i8")
ROWS = np.random.default_rng(5).normal(size=(ROUNDS, 6)).astype("f4")


def late(rows, steps):
    def body(c, given):
        row, i = given
        return c * F4(0.5) + tn.where(i < 1000003, row, -row), c.sum()

    return tn.scan(body, rows[0], (rows, steps))


def late_reverse(rows, steps):
    def body(c, given):
        row, i = given
        return c * F4(0.5) + tn.where(i < 1000003, row, -row), c.sum()

    return tn.scan(body, rows[0], (rows, steps), reverse=True)


def late_while(rows, steps):
    def body(v):
        c, i = v
        return c * F4(0.5) + tn.where(i < 1000003, F4(1), F4(-1)), i + 1

    return tn.while_loop(lambda v: v[1] < ROUNDS, body, (rows[0], steps[0]))


@pytest.mark.parametrize("function", [late, late_reverse, late_while])
@pytest.mark.parametrize("first", [9, 10, 17, 18])
def test_a_loop_that_goes_wrong_late(function, first):
    with plant("number", f"1000003>{first}"):
        f = tn.jit(function)
        with pytest.warns(tn.ParityWarning, match="disagrees"):
            f(ROWS, STEPS)


# The words of the whole plan are not those of its steps.


def rounds_of(count):
    def f(x):
        def body(v):
            c, i = v
            return np.sin(c) + x, i + 1

        return tn.while_loop(lambda v: v[1] < count, body, (x, 0))[0]

    return f


def scan_of(change):
    def f(x):
        rows = np.arange(12, dtype="f4")

        def body(c, row):
            moved = c * F4(0.5) + row
            return change(c, moved, row), c.sum()

        return tn.scan(body, x, rows)

    return f


def swapped(count):
    """Two carries that change places each round."""

    def f(x):
        def body(v):
            a, b, i = v
            return b + 1, a * F4(0.5), i + 1

        return tn.while_loop(lambda v: v[2] < count, body, (x, x * 2, 0))[:2]

    return f


PAIRS = {
    "a while that stops at round 7": (rounds_of(12), rounds_of(7)),
    "a while of a round too many": (rounds_of(12), rounds_of(13)),
    "carries not moved after round 5": (
        scan_of(lambda c, moved, row: moved),
        scan_of(lambda c, moved, row: tn.where(row < 5, moved, c)),
    ),
    "a scan wrong after round 8": (
        scan_of(lambda c, moved, row: moved),
        scan_of(lambda c, moved, row: tn.where(row > 8, -moved, moved)),
    ),
    "carries swapped once too often": (swapped(8), swapped(9)),
    "the last step lost": (
        lambda x: np.sort(np.exp(x), axis=0) * 2,
        lambda x: np.sort(np.exp(x), axis=0) * 1,
    ),
    "a reversed view read forwards": (lambda x: x[::-1] * 2 + x, lambda x: x * 2 + x),
    "another element of an integer": (
        lambda x: np.argsort(x, axis=0),
        lambda x: np.argsort(-x, axis=0),
    ),
    "a bool the other way": (lambda x: (x > 0).any(0), lambda x: (x > 0).all(0)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_the_plan_that_answers_is_judged_as_a_whole(name):
    """The steps are right; what answers calls does something else."""
    right, wrong = PAIRS[name]
    x = np.random.default_rng(2).normal(size=(5, 4)).astype("f4")
    graph = tn.trace(right, x)
    arrays = [x, *(np.arange(12, dtype="f4") for _ in graph.parameters[1:])]
    program, other = (
        BACKEND.compile(graph),
        BACKEND.compile(tn.trace(wrong, x)),
    )
    assert isinstance(check(program, graph, arrays).verdict, Certificate)
    program.given, program.weight = other.given, other.weight
    program.arena_bytes = max(program.arena_bytes, other.arena_bytes)
    found = check(program, graph, arrays).verdict
    assert not isinstance(found, Certificate), name
    assert found.kind == "whole"


# Writes that go too far.


@pytest.mark.parametrize("shape", [(5,), (16,), (3, 7)])
def test_a_write_past_the_end_is_found(shape):
    x = np.ones(shape, "f4")
    graph = tn.trace(lambda x: np.sin(x) + 1, x)
    with plant("lane", "wide"):
        program = BACKEND.compile(graph)
    found = check(program, graph, [x]).verdict
    assert not isinstance(found, Certificate)
    assert "written to" in str(found)


def test_a_write_beside_a_slot_of_the_arena_is_found():
    def f(x):
        return np.sort(np.sin(x), axis=0) + np.sort(np.cos(x), axis=0)

    x = np.ones((5, 3), "f4")
    graph = tn.trace(f, x)
    with plant("lane", "wide"):
        program = BACKEND.compile(graph)
    assert not isinstance(check(program, graph, [x]).verdict, Certificate)


# What is kept is what was judged.


def test_a_plan_that_is_written_down_wrongly_is_not_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(tn.config, "cache", tmp_path)
    forget_code(monkeypatch)

    def f(x):
        return np.sort(x + np.array([[1.0], [2.5], [3.5]], "f4"), axis=1)

    x = P[:3].copy()
    with plant("frozen"):
        with pytest.warns(tn.ParityWarning, match="not kept in the cache"):
            got = tn.jit(f)(x)
        np.testing.assert_array_equal(got, f(x))
        with pytest.raises(tn.ParityError, match="written down"):
            tn.jit(f).plan(x).to_bytes()
    assert not list(tmp_path.rglob("*.plan"))
