"""Programs whose plans have every kind of step, slot and kernel."""

from __future__ import annotations

import numpy as np

import tenfold as tn


def elementwise(x, y):
    return np.tanh(x * 1.5 + y) - 2.5


def reductions(x, y):
    h = np.exp(x - x.max(axis=1, keepdims=True))
    return h / h.sum(axis=1, keepdims=True), y.argmax(axis=0)


def product(x, y):
    return np.maximum(x @ y.T + 1.25, 0).sum(axis=0)


def loops(x, y):
    carry, stacked = tn.scan(lambda c, row: (c + row, c * 2), y[0], x)
    grown = tn.while_loop(lambda s: s.sum() < 1000, lambda s: s * 2 + 1, np.abs(carry) + 1)
    return stacked, grown


def branches(x, y):
    return tn.cond(x.sum() > 0, lambda: np.sort(x, axis=1), lambda: y * 2)


def indexing(x, y):
    return x[np.argsort(x[:, 0])], np.concatenate([x, y], axis=1)[::-1], np.where(x > y, x, 3.5)


def copies(x, y):
    return x, x, np.ones(20, "float32") * 0.5


EVERY = (elementwise, reductions, product, loops, branches, indexing, copies)


def inputs(seed=0):
    random = np.random.default_rng(seed)
    return [random.standard_normal((5, 7)).astype("float32") for _ in range(2)]
