"""What a `for` goes over, when the program counts the rounds: how many, and what each is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tenfold.errors import ConcreteError, ControlError, TypeMismatch
from tenfold.frozen import frozen
from tenfold.trace.array import Array
from tenfold.trace.control.agree import form
from tenfold.trace.operand import as_value, weak_of
from tenfold.trace.scope import current
from tenfold.trace.source import describe, here
from tenfold.trace.surface.emit import is_traced
from tenfold.types import I64

_NUMBERS = (bool, int, float, complex)


@frozen(eq=False)
class Rounds:
    """How many rounds there are, an int or traced; and what the one of a number is given."""

    count: Any
    at: Callable[[Any], Any]


class TracedIterable:
    """Something to go over that knows its rounds. In Python it goes as the builtin does."""

    def rounds(self) -> Rounds | None:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError


class Range(TracedIterable):
    """range() of traced bounds."""

    def __init__(self, *bounds: Any) -> None:
        for bound in bounds:
            if is_traced(bound) and (bound.shape or bound.type.kind not in "iub"):
                raise TypeMismatch(
                    f"range() of a traced {bound.type}, not an integer scalar",
                    where=describe(here()),
                    fix="cast it: range(n.astype(int)), or int(n)",
                )
        bounds = tuple([number(b, int) if is_traced(b) else b for b in bounds])
        first, end, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        if not is_traced(step) and step == 0:
            raise ControlError("range() with step 0", where=describe(here()))
        self.first, self.end, self.step = first, end, step

    def rounds(self) -> Rounds:
        first, end, step = self.first, self.end, self.step
        if is_traced(step):
            up, down = (end - first + step - 1) // step, (first - end - step - 1) // -step
            count = np.where(step > 0, up, down)
        elif step > 0:
            count = (end - first + (step - 1)) // step
        else:
            count = (first - end + (-step - 1)) // -step
        return Rounds(count, lambda k: first + k * step)

    def __iter__(self) -> Iterator[Any]:
        raise ConcreteError(
            "range() of a traced number is gone over outside a for statement",
            where=describe(here()),
            fix="go over it with a for statement, or make the number static",
        )


class Enumerate(TracedIterable):
    """enumerate()."""

    def __init__(self, items: Any, start: Any = 0) -> None:
        self.items, self.first = items, start

    def rounds(self) -> Rounds | None:
        inner = rounds(self.items)
        return inner and Rounds(inner.count, lambda k: (self.first + k, inner.at(k)))

    def __iter__(self) -> Iterator[Any]:
        return iter(enumerate(self.items, self.first))


class Zip(TracedIterable):
    """zip()."""

    def __init__(self, *items: Any, strict: bool = False) -> None:
        self.items, self.strict = items, strict

    def rounds(self) -> Rounds | None:
        every = [rounds(item) for item in self.items]
        found = [r for r in every if r is not None]
        counts = [r.count for r in found]
        if len(found) < len(every) or not counts or any(is_traced(c) for c in counts):
            return None
        return Rounds(min(counts), lambda k: tuple([r.at(k) for r in found]))

    def __iter__(self) -> Iterator[Any]:
        return iter(zip(*self.items, strict=self.strict))


class Reversed(TracedIterable):
    """reversed()."""

    def __init__(self, items: Any) -> None:
        self.items = items

    def rounds(self) -> Rounds | None:
        inner = rounds(self.items)
        return inner and Rounds(inner.count, lambda k: inner.at(inner.count - 1 - k))

    def __iter__(self) -> Iterator[Any]:
        return iter(reversed(self.items))


def rounds(items: Any) -> Rounds | None:
    """The rounds of a for over this; None where only Python can tell."""
    if isinstance(items, TracedIterable):
        return items.rounds()
    if isinstance(items, range):
        return Rounds(len(items), lambda k: items.start + k * items.step)
    if isinstance(items, Array | np.ndarray) and items.shape:
        return Rounds(len(items), lambda k: _entry(items, k))
    if isinstance(items, list | tuple) and items and not hasattr(items, "_fields"):
        return _of_sequence(items)
    return None


def _entry(items: Any, k: Any) -> Any:
    """An entry of an array; of one from outside the trace it can't be written."""
    entry = traced(items)[k]
    entry._readonly |= not is_traced(items)
    return entry


def _of_sequence(items: Sequence[Any]) -> Rounds | None:
    kinds = {type(item) for item in items}
    if len(kinds) == 1 and kinds <= set(_NUMBERS):
        weak = weak_of(items[0])
        return Rounds(len(items), lambda k: number(traced(np.array(items))[k], weak))
    arrays = all(isinstance(item, Array | np.ndarray | np.generic) for item in items)
    if not arrays or len({form(item) for item in items}) > 1:
        return None
    return Rounds(len(items), lambda k: np.stack([traced(i) for i in items])[k])


def traced(items: Any) -> Any:
    """An array of the trace for an array from outside it."""
    scope = current()
    assert scope is not None
    return items if is_traced(items) else Array(scope, as_value(items, scope))


def number(array: Any, weak: type | None) -> Any:
    """A traced scalar as the Python number of this type."""
    if weak is None or array._weak is weak:
        return array
    scope = current()
    assert scope is not None
    return Array(scope, as_value(array, scope, I64 if weak is int else None), weak=weak)
