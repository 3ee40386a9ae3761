"""Buckets: calls whose number of rows varies share a few plans, by padding.

Arguments named in `buckets` are padded along their first axis to the next size of the list, by
their last row over again: so what pads can raise nothing that a row does not. For each number of
rows that is met the function is traced once more, at that number, and padding is allowed only where
the two graphs show that it changes nothing; outputs come back with the rows that were given.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from types import BuiltinMethodType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.api.call.arguments import Binder, Call, parameter_of
from tenfold.errors import ShapeError, ValueProblem
from tenfold.types import TensorType

if TYPE_CHECKING:
    from tenfold.api.specialisation import CapturedArray, Specialisation


class Buckets:
    """The sizes that rows are padded to, and which arguments have rows."""

    def __init__(self, sizes: Mapping[str, Sequence[int]], binder: Binder) -> None:
        for name, given in sizes.items():
            if name not in binder.names or name in binder.static:
                raise ValueProblem(
                    f"jit: buckets names {name!r}, which is no array argument",
                    fix=f"its arguments are {', '.join(binder.names) or 'none'}",
                )
            if not given or any(not isinstance(n, int) or n < 1 for n in given):
                raise ValueProblem(
                    f"jit: buckets[{name!r}] is {given!r}",
                    fix="give a list of whole numbers above 0",
                )
        lists = {tuple(sorted(set(given))) for given in sizes.values()}
        if len(lists) != 1:
            raise ValueProblem(
                "jit: the lists of buckets differ", fix="give every argument the same sizes"
            )
        self.sizes = lists.pop()
        self.names = frozenset(sizes)

    def size_for(self, rows: int) -> int:
        """The size that so many rows are padded to; past the largest, a multiple of it."""
        if not rows:
            return 0  # there is no row to pad by
        at = bisect_left(self.sizes, rows)
        if at < len(self.sizes):
            return self.sizes[at]
        return -(-rows // self.sizes[-1]) * self.sizes[-1]

    def marks(self, call: Call) -> list[bool]:
        """Which leaves of a call have rows."""
        return [parameter_of(name) in self.names for name in call.leaf_names()]

    def rows(self, call: Call) -> int:
        """How many rows a call has."""
        found: dict[str, int] = {}
        for leaf, name, marked in zip(
            call.leaves, call.leaf_names(), self.marks(call), strict=True
        ):
            if marked:
                shape = leaf.shape if isinstance(leaf, TensorType) else np.shape(leaf)
                if not shape:
                    raise ShapeError(
                        f"the argument {name!r} has buckets but no axis", fix="pass an array"
                    )
                found[name] = int(shape[0])
        if len(set(found.values())) != 1:
            listed = ", ".join(f"{name}: {n}" for name, n in found.items())
            raise ShapeError(
                f"the arguments with buckets have different numbers of rows ({listed})",
                fix="pass arrays with equal first axes",
            )
        return next(iter(found.values()))

    def pad(self, call: Call, size: int) -> list[Any]:
        """The leaves with their rows padded to this size."""
        padded = []
        for leaf, marked in zip(call.leaves, self.marks(call), strict=True):
            if marked and isinstance(leaf, TensorType):
                leaf = TensorType(leaf.dtype, (size, *leaf.shape[1:]))
            elif marked:
                array = np.asarray(leaf)
                leaf = np.empty((size, *array.shape[1:]), array.dtype)
                leaf[: array.shape[0]] = array
                leaf[array.shape[0] :] = array[-1]
            padded.append(leaf)
        return padded


Axes = tuple[int | None, ...]


def prove(few: Specialisation, many: Specialisation, rows: int, size: int) -> Axes:
    """The axis of rows of each output, for a function traced at so many rows and at the size they
    are padded to; ValueProblem where padding is not neutral."""
    from tenfold.plan.rows import different, follow  # the planner: where all is on disk, not needed

    one, other = few.traced, many.traced
    axes = follow(one.graph, other.graph, rows, size)
    given, wanted = ((t.outputs, t.weak, t.limits, t.updates, t.returned) for t in (one, other))
    if given != wanted:
        raise different("what it gives")
    if not all(map(_same_callback, one.callbacks, other.callbacks)):
        raise different("a function for the host that is made while tracing")
    for a, b in zip_longest(few.captures, many.captures):
        if a is None or b is None or a.name != b.name or not _same_array(a, b):
            raise different(f"the array {(a or b).name!r}")
    return axes


_METHODS = (MethodType, BuiltinMethodType)  # made anew each time, equal where their objects are


def _same_callback(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """Whether two traces met one callable: the same, or made anew of nothing but its text."""
    if one is other or (type(one) in _METHODS and type(other) in _METHODS and one == other):
        return True
    parts = ("__code__", "__defaults__", "__kwdefaults__")
    plain = type(one) is type(other) is FunctionType
    return (
        plain
        and one.__closure__ is None
        and all(getattr(one, part) == getattr(other, part) for part in parts)
    )


def _same_array(one: CapturedArray, other: CapturedArray) -> bool:
    """Whether two traces closed over one array, or made arrays of which the first rows are one's
    and the other's bits."""
    if one.places or other.places:
        return one.array is other.array
    a, b = one.snapshot, other.snapshot
    first = b[tuple(map(slice, a.shape))] if a.ndim == b.ndim else b
    return (a.dtype, a.shape) == (b.dtype, first.shape) and a.tobytes() == first.tobytes()


def unpad(output: Any, axis: int | None, rows: int) -> Any:
    """An output with the rows that were given."""
    if axis is None:
        return output
    cut = [slice(None)] * output.ndim
    cut[axis] = slice(0, rows)
    return output[tuple(cut)].copy()
