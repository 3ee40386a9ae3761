"""Settings that a function reads: a change is seen by the next call, by type and bits."""

import argparse
import collections
import dataclasses
import enum
import functools
import os
import types
from typing import Any

import numpy as np
import pytest

import tenfold as tn

X = np.ones(20)


def follows(function, change, traces=2):
    """The jitted function gives what the function gives, before a change and after it, also by
    native code."""
    f = tn.jit(function)
    for _ in range(3):
        assert f(X).tobytes() == function(X).tobytes()
    change()
    for _ in range(3):
        assert f(X).tobytes() == function(X).tobytes()
    assert f.traces == traces
    assert type(f).__call__ is not tn.Jitted.__call__, "native code answers"
    return f


@pytest.mark.parametrize("kind", [types.SimpleNamespace, argparse.Namespace])
def test_fields_of_namespaces(kind):
    cfg = kind(gain=2.0, inner=kind(shift=1.0))
    f = follows(lambda x: x * cfg.gain + cfg.inner.shift, lambda: setattr(cfg, "gain", 3.0))
    cfg.inner.shift = 5.0
    assert f(X)[0] == 8
    cfg.inner = kind(shift=7.0)
    assert f(X)[0] == 10


class Base:
    gain = 2.0

    def scaled(self, x):
        return x * self.gain


class Model(Base):
    shift = 1.0

    def __init__(self):
        self._rate = 4.0

    def run(self, x):
        return self.scaled(x) + self.shift

    @property
    def rate(self):
        return self._rate * 2

    def rated(self, x):
        return x * self.rate

    @staticmethod
    def doubled(x):
        return x * 2

    @classmethod
    def shifted(cls, x):
        return x + cls.shift

    def both(self, x):
        return self.doubled(x) + self.shifted(x)

    @functools.cached_property
    def kept(self):
        return self._rate + 1

    def use_kept(self, x):
        return x * self.kept


@pytest.fixture
def model():
    """A model of a class of its own, so that the class can be changed."""

    class Root(Base):
        gain = 2.0

    class Own(Model, Root):
        pass

    return Own()


def test_class_attributes(model):
    follows(model.run, lambda: setattr(type(model), "shift", 5.0))


def test_inherited_attributes(model):
    follows(model.run, lambda: setattr(type(model).__mro__[2], "gain", 5.0))


def test_a_field_that_hides_a_class_attribute(model):
    follows(model.run, lambda: setattr(model, "gain", 5.0))


def test_methods_of_classes_and_objects(model):
    f = follows(model.run, lambda: setattr(type(model), "scaled", lambda self, x: x * 7))
    model.scaled = lambda x: x * 9
    assert f(X)[0] == 10


def test_static_and_class_methods(model):
    f = follows(model.both, lambda: setattr(type(model), "shift", 8.0))
    type(model).doubled = staticmethod(lambda x: x * 3)
    assert f(X)[0] == 12


def test_properties(model):
    f = follows(model.rated, lambda: setattr(model, "_rate", 5.0))
    type(model).rate = property(lambda self: 77.0)
    assert f(X)[0] == 77


def test_cached_properties(model):
    f = tn.jit(model.use_kept)
    for _ in range(3):
        assert f(X)[0] == 5
    assert f.traces == 2  # once without and once with what is kept
    model.kept = 9.0
    assert f(X)[0] == 9
    assert f.traces == 3


class Slotted:
    __slots__ = ("gain", "w")


def test_slots():
    held = Slotted()
    held.gain, held.w = 2.0, np.ones(20)
    f = follows(lambda x: x * held.gain * held.w, lambda: setattr(held, "gain", 3.0))
    held.w = np.full(20, 2.0)
    assert f(X)[0] == 6
    assert f.traces == 2


@dataclasses.dataclass
class Config:
    gain: float = 1.0
    w: Any = None


def test_dataclasses_are_swapped_whole_when_their_settings_are_equal():
    held = types.SimpleNamespace(config=Config(2.0, np.ones(20)))

    def function(x):
        return x * held.config.gain * held.config.w

    follows(function, lambda: setattr(held, "config", Config(2.0, np.full(20, 3.0))), traces=1)
    follows(function, lambda: setattr(held, "config", Config(4.0, np.full(20, 3.0))))


def test_sequences_by_length_and_items():
    plain, arrays, line = [1.0], [np.ones(20)], collections.deque([1.0, 2.0])
    follows(lambda x: x * len(plain), lambda: plain.append(1.0))
    follows(lambda x: x * plain[0], lambda: plain.__setitem__(0, 1))
    follows(lambda x: sum((x * a for a in arrays), x), lambda: arrays.append(np.full(20, 3.0)))
    follows(lambda x: x * arrays[0], lambda: arrays.__setitem__(0, np.full(20, 9.0)), traces=1)
    follows(lambda x: x * line[0] + len(line), lambda: line.append(1.0))
    follows(lambda x: x * line[0], lambda: line.__setitem__(0, 5.0))


def test_items_far_down_a_list():
    long = list(range(20_000))
    follows(lambda x: x * long[15_000], lambda: long.__setitem__(15_000, 3))


def test_dicts_by_keys_and_their_order():
    plain = {"a": 1.0, "b": 2.0}
    arrays = {"v": np.ones(20)}
    follows(lambda x: x * len(plain), lambda: plain.__setitem__("c", 3.0))
    follows(
        lambda x: x * next(iter(plain.values())), lambda: plain.__setitem__("a", plain.pop("a"))
    )
    follows(
        lambda x: sum((x * a for a in arrays.values()), x),
        lambda: arrays.__setitem__("w", np.full(20, 2.0)),
    )
    default = collections.defaultdict(float, a=1.0)
    follows(lambda x: x * default["a"], lambda: default.__setitem__("a", 2.0))
    proxy = types.MappingProxyType(plain)
    follows(lambda x: x * proxy["b"], lambda: plain.__setitem__("b", 7.0))
    user = collections.UserDict(a=1.0)
    follows(lambda x: x * user["a"], lambda: user.__setitem__("a", 2.0))


def test_sets_and_bytes():
    some, raw = {1.0}, bytearray(b"ab")
    follows(lambda x: x * len(some), lambda: some.add(4.0))
    some.clear()
    some.add(1.0)
    follows(lambda x: x * len(repr(some)), lambda: (some.clear(), some.add(1)))
    follows(lambda x: x * raw[0], lambda: raw.__setitem__(0, 5))


def test_the_environment(monkeypatch):
    monkeypatch.setenv("TENFOLD_TEST_GAIN", "2")

    def inside(x):
        import os

        return x * float(os.environ["TENFOLD_TEST_GAIN"])

    def change():
        monkeypatch.setenv("TENFOLD_TEST_GAIN", os.environ["TENFOLD_TEST_GAIN"] + "0")

    follows(lambda x: x * float(os.environ["TENFOLD_TEST_GAIN"]), change)
    follows(lambda x: x * float(os.getenv("TENFOLD_TEST_GAIN", "1")), change)
    follows(inside, change)


@pytest.mark.parametrize(
    "values",
    [(0.0, -0.0), (1, 1.0), (1, True), ("a", b"a"), ((2,), (2.0,)), (0j, complex(0, -0.0))],
)
def test_type_and_bits(values):
    cell = values[0]

    def change():
        nonlocal cell
        cell = values[1]

    follows(lambda x: x * len(repr(cell)) + (str(cell)[0] == "-"), change)


def test_a_nan_is_itself():
    cell = [float("nan")]
    single = float("nan")

    def change():
        nonlocal single
        cell[0] = float("nan")
        single = float("nan")

    follows(lambda x: np.where(np.isnan(x * cell[0] * single), x, 0), change, traces=1)


class Mode(enum.Enum):
    ONE = 1
    TWO = 2


def scaled(k, x, *, m=1.0):
    return x * k * m


def test_enums_partials_defaults_and_modules():
    mode = Mode.ONE

    def change():
        nonlocal mode
        mode = Mode.TWO

    follows(lambda x: x * mode.value, change)
    part = functools.partial(scaled, 2.0, m=3.0)
    follows(lambda x: part(x), lambda: part.keywords.__setitem__("m", 5.0))

    def with_defaults(x, k=2.0, *, m=(1.0,)):
        return x * k * m[0]

    follows(lambda x: with_defaults(x), lambda: setattr(with_defaults, "__defaults__", (5.0,)))
    follows(
        lambda x: with_defaults(x), lambda: with_defaults.__kwdefaults__.__setitem__("m", (4.0,))
    )
    module = types.ModuleType("settings_of_mine")
    module.gain, module.act = 2.0, lambda x: x * 3
    follows(lambda x: module.act(x) * module.gain, lambda: setattr(module, "gain", 5.0))
    follows(lambda x: module.act(x), lambda: setattr(module, "act", lambda x: x * 4))


def test_closures_over_closures():
    def make():
        k, q = [1.0], 2.0

        def inner(x):
            return x * k[0] * q

        def change():
            nonlocal q
            q += 3

        return lambda x: inner(x), change, k

    top, change, k = make()
    follows(top, change)
    follows(top, lambda: k.__setitem__(0, 3.0))


class Attributes(dict):
    __getattr__ = dict.__getitem__


class Behind:
    def __init__(self):
        self._data = {"gain": 1.0}

    def __getattr__(self, key):
        return self._data[key]


def test_fields_that_are_asked_for_by_name():
    cfg, key = types.SimpleNamespace(gain=2.0), "gain"
    follows(lambda x: x * getattr(cfg, key), lambda: setattr(cfg, "gain", 3.0))
    follows(lambda x: x * vars(cfg)["gain"], lambda: setattr(cfg, "gain", 4.0))
    follows(lambda x: x * getattr(cfg, "other", 1.0), lambda: setattr(cfg, "other", 4.0))
    follows(lambda x: x * (2 if hasattr(cfg, "third") else 1), lambda: setattr(cfg, "third", 4.0))
    held = Attributes(gain=1.0, inner=Attributes(shift=2.0))
    follows(lambda x: x * held.gain + held.inner.shift, lambda: held.update(gain=5.0))
    follows(lambda x: x * held.gain + held.inner.shift, lambda: held.inner.update(shift=5.0))
    behind = Behind()
    follows(lambda x: x * behind.gain, lambda: behind._data.update(gain=5.0))


def test_one_array_at_two_places_that_part():
    a = b = np.ones(20)

    def change():
        nonlocal b
        b = np.full(20, 5.0)

    follows(lambda x: x * a + b, change)
    one = types.SimpleNamespace(w=np.ones(20))
    pair = types.SimpleNamespace(a=one, b=one)
    follows(
        lambda x: x * pair.a.w + pair.b.w,
        lambda: setattr(pair, "b", types.SimpleNamespace(w=np.full(20, 5.0))),
    )


def test_fields_of_static_arguments():
    cfg = Config(2.0)
    cfg.__class__.__hash__ = object.__hash__
    f = tn.jit(lambda x, c: x * c.gain, static="c")
    for gain in (2.0, 3.0, -0.0):
        cfg.gain = gain
        for _ in range(3):
            assert f(X, cfg)[0] == gain
    assert f.traces == 3


def test_a_container_that_holds_itself():
    loop: list[Any] = [2.0]
    loop.append(loop)
    follows(lambda x: x * loop[1][1][0], lambda: loop.__setitem__(0, 3.0))


def test_a_custom_op_and_a_wrapped_function():
    cfg = types.SimpleNamespace(gain=2.0)
    op = tn.custom("gained", lambda x: x * cfg.gain)
    follows(lambda x: op(x), lambda: setattr(cfg, "gain", 3.0))

    @functools.wraps(scaled)
    def wrapper(x):
        return x * cfg.gain

    follows(lambda x: wrapper(x), lambda: setattr(cfg, "gain", 4.0))


def test_explain_captures():
    cfg = types.SimpleNamespace(gain=2.0)
    w, names, lock = np.ones(20), ["a", "b"], np.poly1d([1, 2])
    f = tn.jit(
        lambda x: np.tanh(x * w) * cfg.gain * len(names) * lock.order * os.path.sep.count("/")
    )
    for call in (lambda: None, lambda: f(X)):
        call()
        lines = f.explain_captures().splitlines()
        assert "closes over" in lines[0]
        rows = [line.strip().split("  ") for line in lines[1:]]
        kinds = {row[0].strip(): next(k for k in KINDS if k in map(str.strip, row)) for row in rows}
        assert kinds == {
            "w": "array",
            "cfg": "setting",
            "cfg.gain": "setting",
            "names": "setting",
            "lock": "not guarded",
        }
    assert "2.0; by type and bits" in f.explain_captures()
    assert "f64[20]; another array of this type is taken in" in f.explain_captures()
    assert (
        tn.jit(lambda x: x).explain_captures()
        == "test_explain_captures.<locals>.<lambda> closes over nothing"
    )


KINDS = ("array", "setting", "constant", "not guarded")
