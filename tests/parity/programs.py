"""Programs with a fault planted in each: what is planted, and what is to be named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tenfold as tn

DRAWN = np.random.default_rng(7)
X = DRAWN.normal(size=(9, 19)).astype("f4")
P = (np.abs(X) + 0.5).astype("f4")


@dataclass(frozen=True)
class Fault:
    """`blamed` are the ops that may be named: the node at fault, or one of the kernel's."""

    kind: str
    argument: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    blamed: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind}-{self.argument or 'any'}-{'-'.join(self.blamed)}"


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def gelu(x):
    return x * (np.tanh(x * 0.7 + x * x * x * 0.03) + 1) * 0.5


def norm(x):
    d = x - x.mean(1, keepdims=True)
    return d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-3)


def swapped(x):
    def body(c, row):
        return (c[1] * row, c[0] + row), c[0].sum()

    return tn.scan(body, (x[0], x[1]), x)


def rolled(x):
    return tn.scan(lambda c, row: (np.sin(c) * row + c, c.sum()), x[0], x)


def counted(x):
    return tn.while_loop(lambda c: c[1] < 9, lambda c: (np.cos(c[0]) * 1.1, c[1] + 1), (x, 0))


def branched(x):
    return tn.cond(x.sum() > -1e9, lambda x: np.sqrt(x * x + 2), lambda x: x - 3, x)


def kept(x):
    """Values that live in memory side by side: sorting is a step of its own."""
    a, b = np.sort(np.exp(x), axis=1), np.sort(np.sin(x), axis=1)
    c = np.sort(a + b, axis=0)
    return np.sort(c * a, axis=1) + np.sort(b * a, axis=0)


def table(x):
    return np.sort(x + np.array([[1.0], [2.5], [3.5]], "f4"), axis=1)


def scattered(x):
    made = x * 2
    np.add.at(made, np.array([3, 1, 3, 0, 3]), x[:5] + 1)
    return made.sum(1)


def placed(x):
    made = x.copy()
    made[np.array([3, 1, 8])] = x[:3]
    return made


X3 = X[:3].copy()

FAULTS = [
    # A wrong instruction.
    Fault("instruction", "exp>exp2", softmax, (X,), ("exp",)),
    Fault("instruction", "tanh>sinh", gelu, (X,), ("tanh",)),
    Fault("instruction", "sub>add", norm, (X,), ("sub",)),
    Fault("instruction", "mul>add", gelu, (X,), ("mul",)),
    Fault("instruction", "sqrt>abs", norm, (X,), ("sqrt",)),
    Fault("instruction", "max>min", lambda x: np.maximum(x, 0.25) * 3, (X,), ("max",)),
    Fault("instruction", "lt>ge", lambda x: np.where(x < 0.1, x, x * x), (X,), ("lt",)),
    Fault("instruction", "cos>sin", counted, (X,), ("cos",)),
    Fault("instruction", "sin>tan", rolled, (X,), ("sin",)),
    Fault("instruction", "sqrt>exp", branched, (X,), ("sqrt",)),
    Fault("operands", "div", softmax, (X,), ("div",)),
    Fault("operands", "sub", norm, (X,), ("sub",)),
    Fault("operands", "select", lambda x: np.where(x > 0, x, x * 3), (X,), ("select",)),
    # A wrong constant: in the code, given to a kernel, in memory.
    Fault("literal", "1>2", gelu, (X,), ("add",)),
    Fault("literal", "0>1", lambda x: np.maximum(x, 0) + x * x, (X,), ("max",)),
    Fault("constant", "", lambda x: np.exp(x * 3.5), (X,), ("mul",)),
    Fault("constant", "", counted, (X,), ("mul", "lt", "while")),
    Fault("constant", "array", table, (X3,), ("add",)),
    # A wrong index map.
    Fault("index", "shift", lambda x: np.exp(x) + 1, (X,), ("exp", "add")),
    Fault("index", "reverse", lambda x: x.T * 2, (X,), ("transpose", "mul")),
    Fault("index", "first", lambda x: x.sum(0) * 2, (X,), ("reduce_sum", "mul")),
    Fault("store", "shift", lambda x: np.sin(x) * 2, (X,), ("sin", "mul")),
    Fault("store", "reverse", softmax, (X,), ("reduce_max", "sub", "exp", "reduce_sum", "div")),
    # A wrong mask, a padded lane.
    Fault("mask", "low", lambda x: np.pad(x, 2) * 3.5, (X,), ("pad",)),
    Fault("mask", "high", lambda x: np.pad(x, ((1, 0), (0, 3))) + 1, (X,), ("pad",)),
    Fault("lane", "reduced", lambda x: (x * x).sum(1), (X,), ("reduce_sum",)),
    Fault("lane", "reduced", lambda x: np.argmax(x, axis=1), (X + np.arange(19, dtype="f4"),),
          ("argmax",)),
    Fault("lane", "parallel", lambda x: np.exp(x) * x, (X,), ("exp", "mul")),
    # An accumulator that begins wrongly, a wrong reduction.
    Fault("identity", "sum=1", softmax, (X,), ("reduce_sum",)),
    Fault("identity", "prod=2", lambda x: x.prod(1), (P,), ("reduce_prod",)),
    Fault("identity", "max=0", lambda x: x.max(1) * 2, (-P,), ("reduce_max",)),
    Fault("identity", "min=0", lambda x: x.min(0) * 2, (P,), ("reduce_min",)),
    Fault("identity", "all=0", lambda x: (x > -100).all(1), (X,), ("reduce_all",)),
    Fault("reduction", "max>min", lambda x: x.max(1) - 1, (X,), ("reduce_max",)),
    Fault("reduction", "sum>max", lambda x: x.sum(0), (X,), ("reduce_sum",)),
    # Writes at computed places.
    Fault("update", "add>max", scattered, (X,), ("scatter",)),
    Fault("update", "add>", scattered, (X,), ("scatter",)),
    Fault("lane", "sequential", scattered, (X,), ("scatter",)),
    Fault("store", "shift", placed, (X,), ("scatter", "slice")),
    Fault("index", "shift", placed, (X,), ("scatter", "slice")),
    # A slot reused too early.
    Fault("slot", "0", kept, (X,), ("sort", "add", "mul", "transpose")),
    Fault("slot", "2", kept, (X,), ("sort", "add", "mul", "transpose")),
    Fault("slot", "3", kept, (X,), ("sort", "add", "mul", "transpose")),
    # Carried values swapped, loops and branches wired wrongly.
    Fault("carry", "in", swapped, (X,), ("scan",)),
    Fault("carry", "out", swapped, (X,), ("scan",)),
    Fault("results", "", swapped, (X,), ("mul", "scan")),
    Fault("loop", "reverse", rolled, (X,), ("scan",)),
    Fault("loop", "shorter", rolled, (X,), ("scan",)),
    Fault("branch", "", branched, (X,), ("switch",)),
    # A guard.
    Fault("guard", "dtype", lambda x: x * 2, (X,), ()),
    Fault("guard", "rank", lambda x: x * 2, (X,), ()),
    Fault("guard", "extent", lambda x: x * 2, (X,), ()),
    Fault("guard", "contiguous", lambda x: x * 2, (X,), ()),
    Fault("guard", "aligned", lambda x: x * 2, (X,), ()),
]  # fmt: skip
