"""What a function closes over."""

import functools
import types
from typing import Any

import numpy as np
import pytest

import tenfold as tn

SCALE = 3.0
WEIGHTS = np.arange(20.0)
PARAMS = {"w": np.arange(20.0), "layers": [np.ones(20), 2 * np.ones(20)]}
module = types.ModuleType("settings")
module.weights = np.ones(20)
X = np.ones(20)


def helper(x):
    return x * WEIGHTS


def names(f, *args):
    return [p.name for p in f.trace(*args).parameters]


def test_closure_cells():
    w = np.arange(20.0)
    f = tn.jit(lambda x: (x * w).sum())
    assert f(X) == 190
    assert names(f, X) == ["x", "w"]
    w = w * 2
    assert f(X) == 380
    assert f.traces == 1
    w = w.astype("f4")
    assert f(X) == 380
    w = np.ones((2, 20))
    assert f(X) == 40
    assert f.traces == 3


def test_globals_also_through_other_functions(monkeypatch):
    f = tn.jit(lambda x: helper(x).sum())
    assert f(X) == 190
    assert names(f, X) == ["x", "WEIGHTS"]
    monkeypatch.setitem(globals(), "WEIGHTS", WEIGHTS + 1)
    assert f(X) == 210
    assert f.traces == 1
    monkeypatch.setitem(globals(), "helper", lambda x: x * 5)
    assert f(X) == 100
    assert f.traces == 2


def test_settings_are_guarded(monkeypatch):
    f = tn.jit(lambda x: (x * SCALE).sum())
    assert f(X) == 60
    monkeypatch.setitem(globals(), "SCALE", 4.0)
    assert f(X) == 80
    assert f.traces == 2
    monkeypatch.setitem(globals(), "SCALE", float("3"))
    assert f(X) == 60
    assert f.traces == 2  # the first trace fits again


def test_containers_and_modules():
    f = tn.jit(lambda x: x * PARAMS["w"] + x * PARAMS["layers"][1] * module.weights)
    assert f(X).tolist() == (PARAMS["w"] + 2).tolist()
    assert sorted(names(f, X)) == ["PARAMS['layers'][1]", "PARAMS['w']", "module.weights", "x"]
    PARAMS["w"] = PARAMS["w"] + 1
    assert f(X).tolist() == (PARAMS["w"] + 2).tolist()
    assert f.traces == 1


class Layer:
    def __init__(self, w):
        self.w = w

    def __call__(self, x):
        return x * self.w


class Net:
    def __init__(self):
        self.first = Layer(np.arange(20.0))
        self.gain = 2

    @tn.jit
    def forward(self, x):
        return self.first(x) * self.gain

    def plain(self, x):
        return self.first(x) * self.gain


def test_fields_of_self():
    net, other = Net(), Net()
    assert net.forward(X).tolist() == (np.arange(20.0) * 2).tolist()
    assert names(net.forward, X) == ["x", "self.first.w"]
    net.first.w = net.first.w + 1
    assert net.forward(X)[0] == 2
    assert net.forward.traces == 1
    net.gain = 3
    assert net.forward(X)[0] == 3
    assert net.forward.traces == 2
    assert other.forward(X)[0] == 0
    assert net.forward is net.forward


def test_bound_methods_callable_objects_and_partials():
    net = Net()
    f = tn.jit(net.plain)
    assert f(X)[1] == 2
    net.first = Layer(np.full(20, 7.0))
    assert f(X)[1] == 14
    g = tn.jit(Layer(np.full(20, 3.0)))
    assert g(X)[0] == 3
    h = tn.jit(functools.partial(lambda w, x: w * x, np.full(20, 4.0)))
    assert h(X)[0] == 4
    assert names(h, X)[1].startswith("partial")


def test_snapshots_do_not_see_changes_in_place():
    w = np.ones(20)
    f = tn.jit(lambda x: (x * w).sum())
    assert f(X) == 20
    w[:] = 5
    assert f(X) == 20
    f.refresh()
    assert f(X) == 100


def test_small_arrays_made_while_tracing_are_constants():
    f = tn.jit(lambda x: x + np.linspace(0, 1, 16))
    g = tn.jit(lambda x: x + np.linspace(0, 1, 17))
    assert names(f, np.ones(16)) == ["x"]
    assert names(g, np.ones(17)) == ["x", "made.0"]
    assert f(np.ones(16)).tolist() == (1 + np.linspace(0, 1, 16)).tolist()
    assert g(np.ones(17)).tolist() == (1 + np.linspace(0, 1, 17)).tolist()
    assert g(np.ones(17)).tolist() == (1 + np.linspace(0, 1, 17)).tolist()
    assert g.traces == 1


def test_an_array_computed_from_captured_ones_is_made_anew_when_they_are_rebound():
    w = np.ones(20)
    f = tn.jit(lambda x: x * (w * 2))
    assert f(X)[0] == 2
    w = w + 1
    assert f(X)[0] == 4
    assert f.traces == 2


def test_small_named_arrays_are_inputs_too():
    w = np.ones(3)
    f = tn.jit(lambda x: x * w)
    assert names(f, np.ones(3)) == ["x", "w"]
    w = w + 1
    assert f(np.ones(3)).tolist() == [2, 2, 2]


def test_one_array_under_two_names_is_one_input():
    a = np.ones(20)
    b = a
    f = tn.jit(lambda x: x * a + b)
    assert len(names(f, X)) == 2


def test_captures_by_name_and_in_evaluate():
    w = np.arange(20.0)
    f = tn.jit(lambda x: x * w)
    assert f.captures(X)["w"].tolist() == w.tolist()
    assert not f.captures(X)["w"].flags.writeable
    graph = f.trace(X)
    assert tn.evaluate(graph, X, captures={"w": w + 1}).tolist() == (w + 1).tolist()
    assert tn.evaluate(graph, X, w).tolist() == w.tolist()
    with pytest.raises(tn.TenfoldError, match="the capture 'v' is not in the program"):
        tn.evaluate(graph, X, captures={"v": w})
    with pytest.raises(tn.TenfoldError, match="w: f64"):
        tn.evaluate(graph, X)


def test_drawing_from_numpys_global_random_state_is_an_error():
    with pytest.raises(tn.TenfoldError, match="random state moved"):
        tn.jit(lambda x: x + np.random.rand())(X)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=20)
    assert tn.jit(lambda x: x + noise)(X).tolist() == (X + noise).tolist()


def test_a_jitted_function_that_is_closed_over():
    inner = tn.jit(lambda x: x * WEIGHTS)
    outer = tn.jit(lambda x: inner(x) + 1)
    assert names(outer, X) == ["x", "WEIGHTS"]


def test_a_large_unrelated_attribute_is_not_walked():
    class Holder:
        def __init__(self):
            self.w = np.ones(20)
            self.junk: Any = [object() for _ in range(100)]

        def run(self, x):
            return x * self.w

    assert names(tn.jit(Holder().run), X) == ["x", "self.w"]
