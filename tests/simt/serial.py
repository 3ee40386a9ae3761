"""Atomic operations of many threads, as if one thread came after the other, in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .types import SIGNED

Array = NDArray[Any]
_MANY = 256  # operations on one place from which on they go by a running operation

# By name: the operation of NumPy, and whether its operands have signs.
_RUNNING: dict[str, tuple[np.ufunc, bool]] = {
    "add": (np.add, False),
    "fadd": (np.add, False),
    "and": (np.bitwise_and, False),
    "or": (np.bitwise_or, False),
    "xor": (np.bitwise_xor, False),
    "umax": (np.maximum, False),
    "umin": (np.minimum, False),
    "max": (np.maximum, True),
    "min": (np.minimum, True),
}


def one_by_one(what: str, view: Array, at: Array, given: Array, kind: np.dtype[Any]) -> Array:
    """Do an operation for each thread; what each finds. `view` holds unsigned integers."""
    if what == "sub":
        return one_by_one("add", view, at, np.negative(given), kind)

    def once(old: Array, some: Array) -> Array:
        return _applied(what, old.view(kind), given[some]).view(view.dtype)

    order, starts, counts = _grouped(at)
    made = np.empty(at.size, view.dtype)
    for start, count in zip(starts[counts > _MANY], counts[counts > _MANY], strict=True):
        here = order[start : start + count]
        chain = _chain(what, view[at[here[0]]].view(kind), given[here]).view(view.dtype)
        made[here] = chain[:-1]
        view[at[here[0]]] = chain[-1]
    _in_rounds(view, at, made, once, order, starts, counts)
    return made.view(kind)


def serial_exchange(view: Array, at: Array, expected: Array, new: Array) -> tuple[Array, Array]:
    """Compare and exchange for each thread: what each finds, and whether it was as expected."""

    def once(old: Array, some: Array) -> Array:
        return np.where(old == expected[some], new[some], old)

    order, starts, counts = _grouped(at)
    made = np.empty(at.size, view.dtype)
    _in_rounds(view, at, made, once, order, starts, counts, most=at.size)
    return made, made == expected


def _grouped(at: Array) -> tuple[Array, Array, Array]:
    """Threads in the order of their places, where each place begins, and how many are there."""
    order = np.argsort(at, kind="stable")
    _, starts, counts = np.unique(at[order], return_index=True, return_counts=True)
    return order, starts, counts


def _in_rounds(
    view: Array,
    at: Array,
    made: Array,
    once: Callable[[Array, Array], Array],
    order: Array,
    starts: Array,
    counts: Array,
    most: int = _MANY,
) -> None:
    """One operation a place in each round."""
    few = counts <= most
    starts, counts = starts[few], counts[few]
    for turn in range(int(counts.max(initial=0))):
        going = counts > turn
        starts, counts = starts[going], counts[going]
        here = order[starts + turn]
        old = view[at[here]]
        made[here] = old
        view[at[here]] = once(old, here)


def _applied(what: str, old: Array, given: Array) -> Array:
    if what == "xchg":
        return given
    if what == "uinc_wrap":
        return np.asarray(np.where(old >= given, old.dtype.type(0), old + old.dtype.type(1)))
    operation, signed = _RUNNING[what]
    if signed:
        kind = SIGNED[old.dtype.itemsize]
        return np.asarray(operation(old.view(kind), given.view(kind)))
    return np.asarray(operation(old, given))


def _chain(what: str, first: Any, given: Array) -> Array:
    """What a place holds at first and after each of many operations."""
    if what == "uinc_wrap":
        return _counted(first, given)
    values = np.concatenate((first[None], given))
    if what == "xchg":
        return values
    operation, signed = _RUNNING[what]
    if signed:
        values = values.view(SIGNED[values.dtype.itemsize])
    return np.asarray(operation.accumulate(values, dtype=values.dtype))


def _counted(first: Any, limits: Array) -> Array:
    made = np.empty(limits.size + 1, limits.dtype)
    made[0] = first
    for n, limit in enumerate(limits):
        made[n + 1] = 0 if made[n] >= limit else made[n] + limits.dtype.type(1)
    return made
