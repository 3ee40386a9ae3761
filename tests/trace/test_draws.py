"""Random numbers drawn while tracing: the error names the call and what tn.random has for it."""

from __future__ import annotations

import inspect
import random
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.random import standard_normal

import tenfold as tn
from tenfold.errors import ConcreteError, TraceError, TypeMismatch
from tenfold.trace.draws import INSTEAD

RNG = np.random.default_rng(0)
X = np.ones(3)


class Model:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(1)

    def noisy(self, x: Any) -> Any:
        return np.power(x, 2) + self.rng.gamma(2.0, size=3)


def _inner(x: Any) -> Any:
    return x + RNG.laplace(size=3)


def test_every_way_to_draw_is_known() -> None:
    for kind in (np.random.Generator, np.random.RandomState, random.Random):
        names = {n for n in dir(kind) if not n.startswith("_")}
        others = {"bit_generator", "get_state", "set_state", "getstate", "setstate", "VERSION"}
        assert names - others <= set(INSTEAD)


@pytest.mark.parametrize("text", sorted(set(INSTEAD.values()) - {""}))
def test_what_is_named_is_there(text: str) -> None:
    found = re.match(r"tn\.random\.(\w+)\((.*?)\)(?:\.|,|$)", text)
    assert found is not None
    parameters = inspect.signature(getattr(tn.random, found[1])).parameters
    given = re.sub(r"\(.*?\)", "shape", found[2])
    names = [part.split("=")[0].strip() for part in given.split(",") if "=" in part]
    assert set(names) <= set(parameters)
    assert len([p for p in given.split(",") if "=" not in p]) <= len(parameters)


@pytest.mark.parametrize(
    ("f", "call", "words"),
    [
        (lambda x: x + RNG.standard_normal(3), "RNG.standard_normal", "normal(key, shape)"),
        (lambda x: x + np.random.rand(), "np.random.rand", "uniform(key, shape)"),
        (lambda x: x + standard_normal(3), "standard_normal", "normal(key, shape)"),
        (lambda x: x + random.gauss(0, 1), "random.gauss", "normal(key, shape, loc=m"),
        (Model().noisy, "self.rng.gamma", "gamma(key, a, shape, scale=s)"),
        (lambda x: _inner(x), "RNG.laplace", "laplace(key, shape"),
        (lambda x: x * RNG.wald(1.0, 1.0), "tn.random has nothing for RNG.wald", "outside"),
    ],
)
def test_a_draw_is_named(f: Any, call: str, words: str) -> None:
    with pytest.raises(TraceError, match="moved while") as caught:
        tn.jit(f)(X)
    assert call in str(caught.value)
    assert words in str(caught.value)
    assert "test_draws.py" in (caught.value.where or "")


def _written_out(x: Any) -> Any:
    rng = np.random.default_rng(0)
    return rng.poisson(
        lam=x,
        size=3,
    )


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: RNG.normal(x, 2.0), "for RNG.normal write tn.random.normal(key, shape, loc=m"),
        (lambda x: RNG.integers(0, x.argmax()), "tn.random.integers(key, low, high, shape)"),
        (lambda x: RNG.permutation(x), "tn.random.permutation(key, x)"),
        (lambda x: RNG.choice(x), "tn.random.choice(key, a, shape)"),
        (lambda x: np.random.exponential(x), "tn.random.exponential(key, shape, scale=s)"),
        (_written_out, "for rng.poisson write tn.random.poisson(key, lam, shape)"),
    ],
)
def test_a_traced_argument_is_refused(f: Any, words: str) -> None:
    state = RNG.bit_generator.state
    with pytest.raises(ConcreteError) as caught:
        tn.jit(f)(X)
    assert words in str(caught.value)
    assert RNG.bit_generator.state == state


def test_other_functions_of_these_names_are_none_of_it() -> None:
    class Other:
        choice = staticmethod(float)

    other = Other()
    with pytest.raises(ConcreteError) as caught:
        tn.jit(lambda x: other.choice(x.sum()))(X)
    assert "tn.random" not in str(caught.value)


def test_a_generator_is_no_argument() -> None:
    with pytest.raises(TypeMismatch, match=r"tn\.random\.key\(seed\)"):
        tn.jit(lambda rng, x: rng.normal(x))(RNG, X)


def test_a_seed_inside_is_as_in_numpy() -> None:
    got = tn.jit(lambda x: x + np.random.default_rng(7).normal(size=3))(X)
    np.testing.assert_array_equal(got, X + np.random.default_rng(7).normal(size=3))


def test_a_state_that_is_loaded_meanwhile_has_not_moved() -> None:
    # As a check in the background may do. Whether it is loaded has to be known: a new process.
    lines = (
        "import sys, numpy as np, tenfold as tn",
        "assert 'numpy.random' not in sys.modules",
        "def f(x):",
        "    import numpy.random",
        "    return x + 1",
        "def g(x):",
        "    return x + np.random.rand()",
        "tn.trace(f, np.ones(3))",
        "try: tn.trace(g, np.ones(3))",
        "except tn.errors.TraceError: print('drawn')",
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "drawn", done.stderr
