"""What `tn.jit` is given: functions of every kind work, or an error says what to do."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import tenfold as tn
from tenfold.api.keywords import _OTHERS, _SAME
from tenfold.errors import TypeMismatch

X = np.arange(4.0)


@dataclass
class Point:
    x: Any
    y: Any = 2.0


class Pair(NamedTuple):
    x: Any
    y: Any


class Plain:
    pass


class Layer:
    def __init__(self, k: float) -> None:
        self.k = k
        self.trace = "not a method of what wraps it"

    def __call__(self, x: Any) -> Any:
        return x * self.k

    @tn.jit
    def method(self, x: Any) -> Any:
        return x * self.k

    @staticmethod
    @tn.jit
    def static_outside(x: Any) -> Any:
        return x + 1

    @tn.jit
    @staticmethod
    def static_inside(x: Any) -> Any:
        return x + 1

    @classmethod
    @tn.jit
    def class_outside(cls, x: Any) -> Any:
        return x + len(cls.__name__)

    @tn.jit
    @classmethod
    def class_inside(cls, x: Any) -> Any:
        return x + len(cls.__name__)

    @tn.jit(static="n")
    @staticmethod
    def with_options(x: Any, n: int) -> Any:
        return x.reshape(n, -1)

    @property
    @tn.jit
    def prop(self) -> Any:
        return np.ones(3) * self.k

    @functools.cached_property
    @tn.jit
    def cached(self) -> Any:
        return np.ones(3) * self.k


class LongerLayer(Layer):
    pass


@functools.singledispatch
def dispatched(x: Any) -> Any:
    return x + 1


def decorated_twice(f: Any) -> Any:
    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs) + 1

    return wrapper


layer, longer = Layer(3.0), LongerLayer(5.0)
WORK: dict[str, tuple[Callable[[], Any], Any]] = {
    "lambda": (lambda: tn.jit(lambda x: x + 1)(X), X + 1),
    "as a decorator with options": (lambda: tn.jit(static="n")(lambda x, n: x * n)(X, 2), X * 2),
    "*args": (lambda: tn.jit(lambda *a: a[0] + a[1])(X, X), X + X),
    "**kwargs": (lambda: tn.jit(lambda x, **k: x + k["y"])(X, y=X), X + X),
    "keyword only": (lambda: tn.jit(lambda x, *, y: x + y)(X, y=X), X + X),
    "partial": (lambda: tn.jit(functools.partial(np.add, 2))(X), X + 2),
    "partial by name": (lambda: tn.jit(functools.partial(lambda a, b: a - b, b=X))(X), X - X),
    "ufunc": (lambda: tn.jit(np.sin)(X), np.sin(X)),
    "NumPy's function": (lambda: tn.jit(np.cumsum)(X), np.cumsum(X)),
    "Python's function": (lambda: tn.jit(sum)(X), 6.0),
    "Tenfold's function": (lambda: tn.jit(tn.add)(X, X), X + X),
    "object": (lambda: tn.jit(layer)(X), X * 3),
    "method of an object": (lambda: tn.jit(layer.__call__)(X), X * 3),
    "jitted": (lambda: tn.jit(tn.jit(np.sin))(X), np.sin(X)),
    "vmap of jitted": (lambda: tn.vmap(tn.jit(np.sum))(np.ones((2, 3))), [3.0, 3.0]),
    "decorated below": (lambda: tn.jit(decorated_twice(np.sin))(X), np.sin(X) + 1),
    "decorated above": (lambda: decorated_twice(tn.jit(np.sin))(X), np.sin(X) + 1),
    "singledispatch": (lambda: tn.jit(dispatched)(X), X + 1),
    "dataclass": (lambda: tn.jit(Point)(X).x, X),
    "named tuple": (lambda: tn.jit(Pair)(X, X).y, X),
    "method": (lambda: layer.method(X), X * 3),
    "method by its class": (lambda: Layer.method(layer, X), X * 3),
    "method of a subclass": (lambda: longer.method(X), X * 5),
    "@staticmethod @tn.jit": (lambda: Layer.static_outside(X), X + 1),
    "@staticmethod @tn.jit on an object": (lambda: layer.static_outside(X), X + 1),
    "@tn.jit @staticmethod": (lambda: Layer.static_inside(X), X + 1),
    "@tn.jit @staticmethod on an object": (lambda: layer.static_inside(X), X + 1),
    "@tn.jit(…) @staticmethod": (lambda: layer.with_options(X, 2), X.reshape(2, 2)),
    "@classmethod @tn.jit": (lambda: Layer.class_outside(X), X + 5),
    "@classmethod @tn.jit of a subclass": (lambda: longer.class_outside(X), X + 11),
    "@tn.jit @classmethod": (lambda: Layer.class_inside(X), X + 5),
    "@tn.jit @classmethod of a subclass": (lambda: longer.class_inside(X), X + 11),
    "@property @tn.jit": (lambda: layer.prop, np.full(3, 3.0)),
    "@cached_property @tn.jit": (lambda: Layer(4.0).cached, np.full(3, 4.0)),
}


@pytest.mark.parametrize("name", WORK)
def test_what_works(name: str) -> None:
    call, expected = WORK[name]
    for _ in range(3):
        np.testing.assert_allclose(call(), expected, rtol=1e-15)


def generator(x: Any) -> Any:
    yield x


async def coroutine(x: Any) -> Any:
    return x


async def asynchronous_generator(x: Any) -> Any:
    yield x


class Yielding:
    def __call__(self, x: Any) -> Any:
        yield x


REFUSED: dict[str, tuple[Any, str, str]] = {
    "number": (3, "3 is not callable", "pass a function"),
    "array": (np.ones(100), "a ndarray is not callable", "call it afterwards"),
    "class": (Plain, "Plain is a class", "above its methods"),
    "generator": (generator, "generator is a generator", "tn.scan"),
    "partial of a generator": (functools.partial(generator, 1), "a generator", "tn.scan"),
    "object that yields": (Yielding(), "a generator", "tn.scan"),
    "coroutine": (coroutine, "coroutine is asynchronous", "plain function"),
    "asynchronous generator": (asynchronous_generator, "asynchronous", "plain function"),
    "lru_cache": (functools.lru_cache(np.sin), "keeps results", "f.__wrapped__"),
    "vectorize": (np.vectorize(abs), "for each element", "tn.vmap"),
    "property": (property(abs), "is not callable", "pass a function"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("jit", [tn.jit, tn.jit(static=())], ids=["jit", "with options"])
def test_what_is_refused(name: str, jit: Any) -> None:
    given, what, fix = REFUSED[name]
    with pytest.raises(TypeMismatch) as caught:
        jit(given)
    assert what in caught.value.message
    assert fix in str(caught.value.fix)


def test_what_an_object_has_is_not_taken_over() -> None:
    made = tn.jit(layer)
    assert made.trace(X).output_types[0].shape == (4,)
    assert "k" not in vars(made)


def test_objects_without_a_dict() -> None:
    class Slots:
        __slots__ = ()

        @tn.jit
        def method(self, x: Any) -> Any:
            return x

    with pytest.raises(TypeMismatch, match="__slots__"):
        Slots().method(X)


def test_a_call_that_does_not_fit_says_what_would() -> None:
    with pytest.raises(TypeError, match=r"missing a required argument: 'y'\n  .*\(x, y\)"):
        tn.jit(lambda x, y: x)(X)


@pytest.mark.parametrize("name", _SAME)
@pytest.mark.parametrize("value", [0, (0, 1), "n", ["n", "x"]])
def test_keywords_that_have_another_name_here(name: str, value: Any) -> None:
    """The call that the error shows is one that works."""

    def f(n: Any, x: Any) -> Any:
        return x * n

    with pytest.raises(TypeMismatch, match="is not taken") as caught:
        tn.jit(f, **{name: value})
    shown = str(caught.value.fix).removeprefix("write ").partition("): ")[0] + ")"
    made = eval(shown, {"tn": tn, "f": f})
    assert getattr(made.options, _SAME[name]) == value
    assert caught.value.where is not None
    assert __file__ in caught.value.where


@pytest.mark.parametrize("name", _OTHERS)
def test_keywords_of_others(name: str) -> None:
    with pytest.raises(TypeMismatch, match=f"keyword '{name}' is not taken") as caught:
        tn.jit(**{name: True})
    assert caught.value.fix


def test_a_keyword_that_nobody_has() -> None:
    with pytest.raises(TypeMismatch, match=r"no keyword 'statik'") as caught:
        tn.jit(np.sin, statik=0)
    assert "static, donate, compile" in str(caught.value.fix)
