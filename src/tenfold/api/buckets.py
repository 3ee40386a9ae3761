"""Buckets: calls whose number of rows varies share a few plans, by padding.

Arguments named in `buckets` are padded along their first axis to the next size of the list. That
is allowed only where the graph shows that rows do not meet each other; outputs come back with the
rows that were given.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.api.arguments import Binder, Call
from tenfold.errors import ShapeError, ValueProblem
from tenfold.graph import Graph
from tenfold.transform.rows import follow, same_but_for_shapes
from tenfold.types import TensorType


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
        self._proven: dict[Any, list[int | None]] = {}

    def size_for(self, rows: int) -> int:
        """The size that so many rows are padded to; past the largest, a multiple of it."""
        at = bisect_left(self.sizes, rows)
        if at < len(self.sizes):
            return self.sizes[at]
        return -(-rows // self.sizes[-1]) * self.sizes[-1]

    def marks(self, call: Call) -> list[bool]:
        """Which leaves of a call have rows."""
        return [_top(name) in self.names for name in call.leaf_names()]

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
        """The leaves with their rows padded with zeros to this size."""
        padded = []
        for leaf, marked in zip(call.leaves, self.marks(call), strict=True):
            if marked and isinstance(leaf, TensorType):
                leaf = TensorType(leaf.dtype, (size, *leaf.shape[1:]))
            elif marked:
                array = np.asarray(leaf)
                whole = np.zeros((size, *array.shape[1:]), array.dtype)
                whole[: array.shape[0]] = array
                leaf = whole
            padded.append(leaf)
        return padded

    def prove(self, key: Any, trace: Callable[[int], Graph], size: int, call: Call) -> Any:
        """The axis of rows of each output; ValueProblem where padding is not neutral."""
        if key not in self._proven:
            graph = trace(size)
            marks: list[int | None] = [0 if marked else None for marked in self.marks(call)]
            others = [None] * (len(graph.parameters) - len(marks))
            found = follow(graph, [*marks, *others])
            different = same_but_for_shapes(graph, trace(size + 1))
            if different is not None:
                raise ValueProblem(
                    f"the program depends on the number of rows itself ({different})",
                    fix="leave this argument out of buckets",
                )
            self._proven[key] = list(found)
        return self._proven[key]


def unpad(output: Any, axis: int | None, rows: int) -> Any:
    """An output with the rows that were given."""
    if axis is None:
        return output
    cut = [slice(None)] * output.ndim
    cut[axis] = slice(0, rows)
    return output[tuple(cut)].copy()


def _top(name: str) -> str:
    return name.split("[")[0].split(".")[0]
