"""Axes of vmap: which axis of each array the lanes lie along."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index, itemgetter
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch, ValueProblem
from tenfold.trace.containers import LEAF, Structure, flatten, sorted_keys, width
from tenfold.trace.control.agree import shown
from tenfold.trace.source import describe, here
from tenfold.types import TensorType

Axis = int | None


def is_axis(item: Any) -> bool:
    """Whether something stands for the axis of all that stands in its place."""
    return item is None or (isinstance(item, (int, np.integer)) and not isinstance(item, bool))


def spread_axes(what: str, name: str, given: Any, structure: Structure, root: str) -> list[Axis]:
    """An axis for each leaf of a structure; a number or None in `given` is for all that stands
    in its place, so that a prefix of the containers is enough."""
    prefix, axes = flatten(given, is_axis, by_key=True)
    wrong = next((a for a in axes if not is_axis(a)), None)
    if wrong is not None:
        raise TypeMismatch(
            f"{what}: {name} holds a {type(wrong).__name__}, {wrong!r}",
            where=describe(here()),
            fix="give integers, None where the lanes share it, and containers of these",
        )
    found: list[Axis] = []
    remaining = iter([None if a is None else index(a) for a in axes])
    structure, places = sorted_keys(structure)  # whatever order the dicts are in
    tokens = structure.walk(root)
    for token in prefix.tokens:
        path, actual = next(tokens)
        if token == LEAF:
            axis = next(remaining)
            open_ = 1  # parts of what stands here that are still to come
            while True:
                open_ += width(actual) - 1
                if actual == LEAF:
                    found.append(axis)
                if not open_:
                    break
                _, actual = next(tokens)
        elif token != actual:
            raise TypeMismatch(
                f"{what}: {name} does not fit {root}\n"
                f"  {path}: {shown(token)} in {name}, {shown(actual)} in {root}",
                where=describe(here()),
                fix="give one number for all, or the same containers as far as they go",
            )
    return [axis for _, axis in sorted(zip(places, found, strict=True), key=itemgetter(0))]


def counted(what: str, path: str, type: TensorType, axis: int, name: str, added: int = 0) -> int:
    """The axis counted from the front, of an array that gets so many axes added."""
    rank = type.rank + added
    if -rank <= axis < rank:
        return axis % rank
    number = "no axes" if not rank else "one axis" if rank == 1 else f"{rank} axes"
    fix = f"give an axis from {-rank} to {rank - 1}" if rank else "stack the lanes into one array"
    if not added:
        fix += f", or {name}=None for what all lanes share"
    raise ShapeError(
        f"{what}: axis {axis} of {path}, which is {type} and has {number}"
        + (" with the lanes" if added else ""),
        where=describe(here()),
        fix=fix,
    )


def lanes_of(what: str, extents: Sequence[tuple[str, int, int]], size: Any) -> int:
    """The number of lanes, on which the (path, axis, extent) of all that is mapped agree."""
    if size is not None and (isinstance(size, bool) or not isinstance(size, (int, np.integer))):
        raise TypeMismatch(
            f"{what}: size is {size!r}", where=describe(here()), fix="give the number of lanes"
        )
    if size is not None and size < 0:
        raise ValueProblem(
            f"{what}: size is {size}", where=describe(here()), fix="give 0 lanes or more"
        )
    said = [(f"axis {axis} of {path} has {extent}", extent) for path, axis, extent in extents]
    if size is not None:
        said.append((f"size is {size}", int(size)))
    if not said:
        raise ValueProblem(
            f"{what}: nothing says how many lanes there are",
            where=describe(here()),
            fix="map at least one array with in_axes, or say size=n",
        )
    if len({extent for _, extent in said}) > 1:
        raise ShapeError(
            f"{what}: the number of lanes differs\n  " + "\n  ".join(text for text, _ in said),
            where=describe(here()),
            fix="give all mapped axes one extent, or in_axes=None for what all lanes share",
        )
    return said[0][1]
