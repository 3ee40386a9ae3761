"""Donation: arguments that the caller gives up, so that a plan may use their memory.

What is given up lies apart from all else that the program reads. What the function updates in
place is written back into the caller's array when the call ends; else what was in it is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from tenfold.api.call.arguments import parameter_of
from tenfold.errors import MutationError

Array = np.ndarray[Any, Any]

_WORK = 10_000  # steps spent on telling whether views between each other's elements share any


def is_donated(name: str, donate: Collection[str]) -> bool:
    """Whether a leaf of this name belongs to a donated argument."""
    return parameter_of(name) in donate


def donated_leaves(names: Sequence[str], donate: Collection[str]) -> tuple[int, ...]:
    """The numbers of the leaves that the caller gives up."""
    return tuple(n for n, name in enumerate(names) if is_donated(name, donate)) if donate else ()


def check_donated(
    function: str,
    names: Sequence[str],
    leaves: Sequence[Any],
    donated: Collection[int],
    updates: Iterable[int],
    captures: Iterable[tuple[str, Any]] = (),
) -> None:
    """Raise where what the caller gives up can't be written into."""
    _check_apart(function, names, leaves, donated, captures)
    _check_writeable(function, names, leaves, [n for n in updates if n in donated])


def _check_apart(
    function: str,
    names: Sequence[str],
    leaves: Sequence[Any],
    donated: Iterable[int],
    captures: Iterable[tuple[str, Any]],
) -> None:
    """Raise where a donated array shares memory with another argument or a captured array."""
    others = [*zip(names, leaves, strict=True), *captures]
    for number in donated:
        given = leaves[number]
        if not isinstance(given, np.ndarray) or not given.flags.writeable:
            continue  # it is copied first
        for position, (name, other) in enumerate(others):
            if position != number and isinstance(other, np.ndarray) and _share(given, other):
                kind = "argument" if position < len(leaves) else "captured array"
                raise MutationError(
                    f"{function}: the donated argument {names[number]!r} shares memory with the "
                    f"{kind} {name!r}, which writing into it would change",
                    fix=f"pass a copy of one of them ({names[number]}.copy()), or leave "
                    f"{parameter_of(names[number])!r} out of donate",
                )


def _share(a: Array, b: Array) -> bool:
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _check_writeable(
    function: str, names: Sequence[str], leaves: Sequence[Any], updates: Iterable[int]
) -> None:
    """Raise where an argument that the function updates can't be written to."""
    for number in updates:
        given = leaves[number]
        if not isinstance(given, np.ndarray) or not given.flags.writeable:
            what = "is read-only" if isinstance(given, np.ndarray) else "is no array"
            raise MutationError(
                f"{function}: the argument {names[number]!r} is updated in place, and what was "
                f"given {what}",
                fix=f"pass a NumPy array that can be written to: np.array({names[number]})",
            )


def write_back(
    updates: Sequence[int], donated: Collection[int], leaves: Sequence[Any], outputs: Sequence[Any]
) -> None:
    """Write what the function made of its arguments, its last outputs, into the caller's arrays."""
    first = len(outputs) - len(updates)
    for number, made in zip(updates, outputs[first:], strict=True):
        if number in donated:
            np.copyto(leaves[number], made)
