"""jit: signatures, static arguments, containers, methods, threads."""

import dataclasses
import enum
import functools
import itertools
import threading
from collections import namedtuple
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn

Point = namedtuple("Point", "x y")


@dataclasses.dataclass
class Model:
    w: Any
    b: Any
    name: str = "model"
    depth: int = dataclasses.field(default=2, metadata={"static": True})


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


X = np.arange(6.0).reshape(2, 3)


def test_decorator_function_and_decorator_with_options():
    @tn.jit
    def f(x):
        return x + 1

    @tn.jit(static="n")
    def g(x, n):
        return x * n

    assert f(X).tolist() == (X + 1).tolist()
    assert g(X, 3).tolist() == (X * 3).tolist()
    assert tn.jit(np.exp)(X).tolist() == np.exp(X).tolist()
    assert f.__name__ == "f"
    assert repr(f).startswith("<tn.jit of ")


def test_one_trace_for_each_signature():
    f = tn.jit(lambda x: x * 2)
    f(X), f(X + 1), f(np.array(X))
    assert f.traces == 1
    f(X.astype("f4"))
    f(X[:1])
    f(X.astype("f4"))
    assert f.traces == 3
    f(2), f(3)
    assert f.traces == 4  # a Python number is one signature whatever its value
    f(2.0)
    assert f.traces == 5


def test_positional_and_keyword_arguments_share_a_trace():
    @tn.jit
    def f(x, y, *, z):
        return x - y * z

    want = X - 2 * X * X
    for got in (f(X, 2 * X, z=X), f(X, y=2 * X, z=X), f(z=X, y=2 * X, x=X)):
        assert got.tolist() == want.tolist()
    assert f.traces == 1


def test_defaults_are_the_functions_own():
    weights = np.arange(20.0)

    @tn.jit
    def f(x, k=3, w=weights):
        return (x * w).sum() * k

    assert f(np.ones(20)) == 570
    assert f(np.ones(20), 2) == 380
    assert f(np.ones(20), w=np.ones(20)) == 60
    assert [p.name for p in f.trace(np.ones(20)).parameters] == ["x", "w"]


def test_variable_arguments():
    @tn.jit
    def f(x, *rest, **named):
        return x + sum(rest) - named["a"] * named["b"]

    assert f(X, X, X, a=X, b=2).tolist() == (X + X + X - X * 2).tolist()
    assert [p.name for p in f.trace(X, X, a=X, b=X).parameters] == [
        "x",
        "rest[0]",
        "named['a']",
        "named['b']",
    ]


def test_wrong_calls_raise_as_python_does():
    f = tn.jit(lambda x: x)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        f()
    with pytest.raises(TypeError, match="too many positional arguments"):
        f(X, X)


def test_static_arguments_are_python_values():
    @tn.jit(static=("axis", "mode"))
    def f(x, axis, mode=Mode.FAST):
        total = x.sum(axis=axis)
        return total if mode is Mode.FAST else -total

    assert f(X, 0).tolist() == X.sum(0).tolist()
    assert f(X, axis=1, mode=Mode.SLOW).tolist() == (-X.sum(1)).tolist()
    f(X, 0)
    assert f.traces == 2
    f(X, True)  # True is not 1
    f(X, 1)
    assert f.traces == 4
    with pytest.raises(tn.TenfoldError, match="not hashable"):
        f(X, [0])


def test_static_by_position_and_unknown_names():
    f = tn.jit(lambda x, n: x * n, static=1)
    assert f(X, 2).tolist() == (X * 2).tolist()
    with pytest.raises(tn.TenfoldError, match="static='m' names no parameter"):
        tn.jit(lambda x: x, static="m")(X)


def test_containers_in_and_out():
    @tn.jit
    def f(t, d, p, m):
        assert isinstance(p, Point)
        assert isinstance(m, Model)
        assert m.name == "model"
        assert m.depth == 2
        return [t[0] + t[1][0], {"d": d["b"] - d["a"]}, Point(p.y, p.x), m, None, "word"]

    out = f((X, [X]), {"b": X, "a": 1.0}, Point(X, 2 * X), Model(X, 3 * X))
    assert out[0].tolist() == (2 * X).tolist()
    assert out[1]["d"].tolist() == (X - 1).tolist()
    assert out[2].x.tolist() == (2 * X).tolist()
    assert isinstance(out[3], Model)
    assert out[3].b.tolist() == (3 * X).tolist()
    assert out[3].depth == 2
    assert out[4:] == [None, "word"]


def test_static_fields_of_a_dataclass_are_part_of_the_signature():
    @tn.jit
    def f(m):
        x = m.w
        for _ in range(m.depth):
            x = x * 2
        return dataclasses.replace(m, w=x)

    assert f(Model(X, X)).w.tolist() == (X * 4).tolist()
    assert f(Model(X, X, depth=3)).w.tolist() == (X * 8).tolist()
    assert f.traces == 2


def test_a_dict_in_another_order_is_traced_apart():
    f = tn.jit(lambda d: d["a"] - d["b"])
    assert f({"a": X, "b": X + 1}).tolist() == f({"b": X + 1, "a": X}).tolist()
    assert f.traces == 2


def test_a_container_inside_itself_is_an_error():
    items: list[Any] = [X]
    items.append(items)
    with pytest.raises(tn.TenfoldError, match="contains itself"):
        tn.jit(lambda x: x)(items)


def test_a_deep_container():
    deep: Any = X
    for _ in range(5000):
        deep = [deep]
    out = tn.jit(lambda x: x)(deep)
    for _ in range(5000):
        (out,) = out
    assert out.tolist() == X.tolist()


def test_numpy_in_gives_numpy_out():
    f = tn.jit(lambda x: (x, x.sum(), x[0, 0], x > 1))
    whole, total, first, mask = f(X.astype("f4"))
    assert type(whole) is np.ndarray
    assert type(total) is np.float32
    assert type(first) is np.float32
    assert mask.dtype == bool


def test_python_numbers_stay_python_numbers():
    f = tn.jit(lambda x, n: (x + n, n * 2, n / 2, n > 1))
    out, double, half, more = f(np.ones(2, "u1"), 3)
    assert out.dtype == np.uint8
    assert (double, half) == (6, 1.5)
    assert type(double) is int
    assert type(half) is float
    assert bool(more) is True


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "complex64"])
def test_a_literal_takes_the_arrays_dtype(dtype):
    x = np.ones(3, dtype)
    f = tn.jit(lambda x: (x + 1, 2 * x, x**2))
    assert [o.dtype for o in f(x)] == [x.dtype] * 3


def test_a_literal_takes_bfloat16():
    x = np.ones(3, ml_dtypes.bfloat16)
    assert tn.jit(lambda x: x * 1.5 + 1)(x).dtype == ml_dtypes.bfloat16


def test_a_python_integer_that_does_not_fit():
    with pytest.raises(OverflowError, match="300 does not fit uint8"):
        tn.jit(lambda x: x + 300)(np.ones(2, "u1"))
    with pytest.raises(OverflowError, match="does not fit int64"):
        tn.jit(lambda n: n)(2**63)
    f = tn.jit(lambda x, n: x + n)
    assert f(np.ones(2, "u1"), 7).tolist() == [8, 8]
    with pytest.raises(OverflowError, match="300 does not fit uint8"):
        f(np.ones(2, "u1"), 300)


def test_outputs_alias_neither_inputs_nor_each_other():
    x = X.copy()
    a, b, c = tn.jit(lambda x: (x, x, x.T))(x)
    a[:] = -1
    b[:] = -2
    assert x.tolist() == X.tolist()
    assert c.tolist() == X.T.tolist()


def test_layouts_of_the_caller_do_not_matter():
    f = tn.jit(lambda x: x * 2 + x[::-1])
    big = np.arange(24.0).reshape(4, 6)
    for x in (big[::2], big[:, ::-2], big.T[::-1], np.asfortranarray(big), big[:0], big[:, :0]):
        assert f(x).tolist() == (x * 2 + x[::-1]).tolist()
    swapped = big.astype(">f8")
    assert f(swapped).tolist() == (big * 2 + big[::-1]).tolist()
    assert f(swapped).dtype == np.float64


def test_arguments_that_are_no_arrays():
    f = tn.jit(lambda x: x)
    with pytest.raises(tn.TenfoldError, match="the argument 'x' is a object") as caught:
        f(object())
    assert "static='x'" in str(caught.value)
    with pytest.raises(tn.TenfoldError, match="object is no dtype"):
        f(np.array([None]))
    with pytest.raises(tn.TenfoldError, match="the argument 'x'"):
        f(np.array(["a"]))


def test_not_callable():
    with pytest.raises(tn.TenfoldError, match="not callable"):
        tn.jit(3)


def test_jit_inside_jit_is_one_program():
    inner = tn.jit(lambda x: x + 1)
    outer = tn.jit(lambda x: inner(x) * 2)
    assert outer(X).tolist() == ((X + 1) * 2).tolist()
    assert inner.traces == 0
    assert [n.op for n in outer.trace(X).nodes] == ["constant", "add", "constant", "mul"]


def test_a_function_called_through_reduce():
    f = tn.jit(lambda *xs: functools.reduce(lambda a, b: a * 2 + b, xs))
    assert f(X, X, X).tolist() == ((X * 2 + X) * 2 + X).tolist()


def test_an_error_of_the_function_is_its_own_and_leaves_it_usable():
    calls = itertools.count()

    @tn.jit
    def f(x):
        if next(calls) == 0:
            raise KeyError("mine")
        return x

    with pytest.raises(KeyError, match="mine"):
        f(X)
    assert f(X).tolist() == X.tolist()
    assert f.traces == 1


def test_many_threads_one_trace():
    f = tn.jit(lambda x: np.sin(x) * 2)
    start = threading.Barrier(8)
    results: list[Any] = []

    def run(i):
        start.wait()
        results.append((i, f(X + i)))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert f.traces == 1
    for i, got in results:
        assert got.tolist() == (np.sin(X + i) * 2).tolist()


def test_specs_instead_of_arrays():
    graph = tn.trace(lambda x, n: x * n, tn.spec((2, 3), "float32"), tn.spec((), int))
    assert str(graph.parameters[0].type) == "f32[2,3]"
    with pytest.raises(tn.TenfoldError, match="not a shape"):
        tn.spec((2, -1))


def test_donated_arguments_may_be_updated():
    @tn.jit(donate="x")
    def f(x, y):
        x += y
        x[0] = 0
        return x

    x = X.copy()
    assert f(x, X).tolist() == [[0, 0, 0], [6, 8, 10]]
    with pytest.raises(tn.TenfoldError, match="both static and donated"):
        tn.jit(lambda x: x, donate="x", static="x")(X)
