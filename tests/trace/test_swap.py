"""NumPy's constructors are swapped while a function is traced, for that thread alone."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.trace.array import Array
from tenfold.trace.function import Leaf, trace_function
from tenfold.trace.swap import swap as swapping
from tenfold.trace.swap.constructors import substitutes
from tenfold.trace.swap.substitute import FunctionSubstitute, Substitute
from tenfold.types import TensorType

X = np.arange(4.0)
ALL = substitutes()
FUNCTIONS = [one for one in ALL if isinstance(one, FunctionSubstitute)]


def standing() -> list[Any]:
    """What stands in NumPy's modules under the names that are swapped."""
    return [vars(one.module)[one.name] for one in ALL]


ORIGINALS = [one.original for one in ALL]


def trace(function: Callable[..., Any]) -> Any:
    """Trace a function that may keep what it finds."""
    return trace_function(function, [Leaf(TensorType(X.dtype, X.shape))], lambda a: function(*a))


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Any:
    yield
    assert all(map(lambda a, b: a is b, standing(), ORIGINALS))


def test_they_are_swapped_inside_and_put_back() -> None:
    seen: list[Any] = []
    trace(lambda x: seen.extend(standing()) or x)
    assert all(isinstance(one, Substitute) for one in seen)


def test_nested_traces_swap_once() -> None:
    seen: list[bool] = []

    def inner(x: Any) -> Any:
        tn.trace(lambda y: y + np.ones(4), X)
        seen.append(isinstance(np.zeros, Substitute))
        return x + np.zeros(4)

    trace(inner)
    assert seen == [True]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_they_are_put_back_after_errors(kind: type[BaseException]) -> None:
    def wrong(x: Any) -> Any:
        raise kind

    with pytest.raises(kind):
        tn.trace(wrong, X)


def test_they_are_put_back_wherever_an_interrupt_comes() -> None:
    """At each call of the swapping itself in turn, and at each line that moves something."""
    settling = {swapping._settle.__code__, swapping._settle_numpy.__code__}
    reached = True
    turn = 0
    while reached:
        turn += 1
        count, reached = 0, False

        def interrupt(frame: Any, event: str, argument: Any, turn: int = turn) -> Any:
            nonlocal count, reached
            code = frame.f_code
            if code.co_filename != swapping.__file__ or code is swapping.swapped.__code__:
                return None
            count += event == "call" or (event == "line" and code in settling)
            if count == turn and not reached:
                reached = True
                raise KeyboardInterrupt
            return interrupt

        before = sys.gettrace()
        sys.settrace(interrupt)
        try:
            swapping.swapped(lambda: None)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        assert all(map(lambda a, b: a is b, standing(), ORIGINALS)), turn
        assert not swapping._open
    assert turn > 100


def test_other_threads_see_numpy() -> None:
    found: list[Any] = []

    def work() -> None:
        made = [np.zeros(3), np.array([1, 2]), np.arange(3), np.eye(2), np.r_[1, 2], np.mgrid[0:2]]
        found.extend(type(one) for one in made)
        found.append(np.empty(3, order="F", dtype="f4").dtype)

    def function(x: Any) -> Any:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert isinstance(np.zeros(3), Array)
        return x

    trace(function)
    assert found == [np.ndarray] * 6 + [np.dtype("f4")]


def test_traces_of_several_threads_end_in_any_order() -> None:
    first_is_in, second_is_done = threading.Event(), threading.Event()
    seen: list[bool] = []

    def first(x: Any) -> Any:
        first_is_in.set()
        second_is_done.wait(20)
        seen.append(isinstance(np.zeros(3), Array))
        return x

    thread = threading.Thread(target=lambda: trace(first))
    thread.start()
    first_is_in.wait(20)
    tn.trace(lambda x: x + np.ones(4), X)
    assert isinstance(np.zeros, Substitute)  # the first trace goes on
    assert type(np.zeros(3)) is np.ndarray
    second_is_done.set()
    thread.join()
    assert seen == [True]


def test_host_functions_see_numpy() -> None:
    kinds: list[type] = []

    def host(x: Any) -> Any:
        kinds.append(type(np.zeros(3)))
        return np.asarray(x) + np.ones(4)

    def function(x: Any) -> Any:
        return tn.call_host(host, tn.spec((4,), "float64"), x)

    assert tn.jit(function)(X).tolist() == (X + 1).tolist()
    assert set(kinds) == {np.ndarray}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_of_a_fork_has_the_traces_of_its_own_thread() -> None:
    def child(check: Callable[[], bool]) -> int:
        process = os.fork()
        if process == 0:
            os._exit(0 if check() else 1)
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

    codes: list[int] = []

    def function(x: Any) -> Any:
        codes.append(child(lambda: isinstance(np.zeros(3), Array)))
        swapping._open[-1] = swapping._Swap({}, -1)  # as if another thread were tracing
        del swapping._open[next(key for key in swapping._open if key != -1)]
        codes.append(child(lambda: np.zeros is ORIGINALS[0]))
        return x

    kept = dict(swapping._open)
    try:
        trace(function)
    finally:
        swapping._open.clear()
        swapping._open.update(kept)
        swapping._settle()
    assert codes == [0, 0]


def test_what_somebody_else_puts_there_is_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    mine: Any = lambda *args: 7  # noqa: E731
    monkeypatch.setattr(np, "eye", mine)
    assert tn.jit(lambda x: x + np.eye(4))(X).tolist() == (X + 7).tolist()
    assert np.eye is mine
    monkeypatch.undo()


# What stands for a function is like it.


@pytest.mark.parametrize("one", FUNCTIONS, ids=lambda one: one.name)
def test_substitutes_are_like_what_they_stand_for(one: FunctionSubstitute) -> None:
    original = one.original
    for name in ("__name__", "__doc__", "__module__", "__qualname__"):
        assert getattr(one, name) == getattr(original, name)
    try:
        expected = inspect.signature(original)
    except ValueError:
        with pytest.raises(ValueError, match="signature"):
            inspect.signature(one)
    else:
        assert inspect.signature(one) == expected
    assert one == original
    assert original == one
    assert {original: 1}[one] == 1
    assert repr(one) == repr(original)


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_substitutes_are_pickled_and_copied_as_what_they_stand_for(one: Substitute) -> None:
    for made in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
        assert made is one.original


def test_compiled_code_gets_numpys_arrays() -> None:
    """What np.random makes inside is made by compiled code, which has no frame of its own."""

    def function(x: Any) -> Any:
        return x + np.random.default_rng(7).normal(size=4) + np.zeros(4)

    assert tn.jit(function)(X).tolist() == function(X).tolist()


def test_libraries_get_numpys_arrays_of_what_is_known() -> None:
    linalg = pytest.importorskip("scipy.linalg")
    special = pytest.importorskip("scipy.special")

    def function(x: Any) -> Any:
        matrix = np.eye(4) * 2
        return linalg.solve(matrix, np.ones(4)) * x, linalg.expm(np.zeros((4, 4))) @ x, matrix

    for got, expected in zip(tn.jit(function)(X), function(X), strict=True):
        np.testing.assert_allclose(got, expected)
    np.testing.assert_allclose(tn.jit(lambda x: special.logsumexp(x))(X), special.logsumexp(X))


# Other names for them.


def _module(text: str) -> Any:
    module: Any = ModuleType("module")
    exec(compile(text, "module.py", "exec"), vars(module))
    return module


FROM = """
from numpy import zeros, array as made, r_
import numpy
import functools

def function(x):
    a = zeros(4)
    a[1:] = x[1:]
    return a, made([x[0], 1]), r_[x, 0]

def nested(x):
    def inner():
        a = zeros(4)
        a += x
        return a
    return inner()

def alias(x, *shape):
    make = numpy.zeros
    a, b, c = make(4), make(*shape), [functools.partial(zeros, 4)(), *map(numpy.ones, [4])]
    for one in (a, b, *c):
        one[0] = x[0]
    return a, b, c
"""


@pytest.mark.parametrize(("name", "more"), [("function", ()), ("nested", ()), ("alias", (4,))])
def test_names_of_the_users_own(name: str, more: tuple[int, ...]) -> None:
    module = _module(FROM)
    function = getattr(module, name)
    jitted = tn.jit(lambda x: function(x, *more))
    for _ in range(2):
        got, expected = jitted(X), function(X, *more)
        for a, b in zip(np.concatenate(got, None), np.concatenate(expected, None), strict=True):
            assert a == b
    assert module.zeros is np.zeros
    assert module.r_ is np.r_


def test_closures_and_fields() -> None:
    zeros = np.zeros

    class Model:
        def __init__(self) -> None:
            self.ones = np.ones

        def __call__(self, x: Any) -> Any:
            a, b = zeros(4), self.ones(4)
            a[0], b[1] = x[1], x[2]
            return a + b

    model = Model()
    assert tn.jit(model)(X).tolist() == model(X).tolist()
    assert zeros is np.zeros is ORIGINALS[0]
    assert vars(model) == {"ones": np.ones}


def test_names_stay_guarded_while_another_thread_traces() -> None:
    """A swapped name makes no other thread trace anew."""
    module = _module(FROM)
    f = tn.jit(module.function)
    f(X)
    before = tn.stats()["traces"]
    inside, done = threading.Event(), threading.Event()

    def function(x: Any) -> Any:
        a = module.zeros(4)
        inside.set()
        done.wait(20)
        a[0] = x[0]
        return a

    variable = swapping.Variable(vars(module), "zeros")
    leaf = Leaf(TensorType(X.dtype, X.shape))
    thread = threading.Thread(
        target=lambda: trace_function(
            function, [leaf], lambda a: function(*a), variables=[variable]
        )
    )
    thread.start()
    inside.wait(20)
    assert isinstance(module.zeros, Substitute)
    got = f(X)
    done.set()
    thread.join()
    assert got[0].tolist() == module.function(X)[0].tolist()
    assert tn.stats()["traces"] == before


def test_what_is_not_swapped_says_what_to_write() -> None:
    def function(x: Any, make: Any = np.zeros) -> Any:
        made = make(4)
        made[0] = x[0]
        return made

    with pytest.raises(tn.errors.ConcreteError, match=r"w = np\.array\(w\)"):
        tn.jit(lambda x: function(x))(X)


def test_classes_stay_classes() -> None:
    def program(x: Any) -> Any:
        walk = np.nditer(np.arange(3))

        class Walk(np.ndenumerate):  # type: ignore[type-arg]
            pass

        assert isinstance(walk, np.nditer)
        assert not isinstance(x, np.nditer)
        assert issubclass(Walk, np.ndenumerate)
        assert len(list(Walk(np.arange(3)))) == 3
        return x

    assert tn.jit(program)(np.ones(2)).tolist() == [1, 1]
