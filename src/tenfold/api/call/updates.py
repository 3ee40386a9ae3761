"""Updates: arguments that a function updates in place, as the caller finds them when the call ends.

What became of them are the last outputs of the graph. They are written into the caller's arrays
after the last step that can fail or be interrupted, all together; so an error leaves every argument
as it was. Checks and the reference see copies.

What a call writes into lies apart from all else that it reads: arguments that overlap would give
other values than in NumPy, where a write is seen at once. So for donated arguments too, which a
plan may compute in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from itertools import repeat
from operator import setitem
from typing import Any

import numpy as np

from tenfold.api.call.arguments import parameter_of
from tenfold.errors import MutationError
from tenfold.trace.array import Array
from tenfold.trace.lazy.lazy import leaf as lazy_leaf
from tenfold.trace.source import Raw, describe

_WORK = 10_000  # steps spent on telling whether views between each other's elements share any


def donated_leaves(names: Sequence[str], donate: Collection[str]) -> tuple[int, ...]:
    """The numbers of the leaves that the caller gives up, so that a plan may use their memory."""
    if not donate:
        return ()
    return tuple(n for n, name in enumerate(names) if parameter_of(name) in donate)


def check_written(
    function: str,
    names: Sequence[str],
    leaves: Sequence[Any],
    updates: Collection[int],
    donated: Iterable[int] = (),
    captures: Iterable[tuple[str, Any]] = (),
    lines: Sequence[Raw | None] = (),
) -> None:
    """Raise where what the call writes into can't be written to, or is something else's too. Lazy
    arrays come as such. `lines` say where each update happens."""
    where = dict(zip(updates, lines, strict=False))
    for number in updates:
        name, wrong = names[number], _unwriteable(leaves[number])
        if wrong:
            raise MutationError(
                f"{function}: the argument {name!r} is updated in place, and what was given "
                f"{wrong}",
                where=describe(where.get(number)),
                fix=f"pass a NumPy array that can be written to: np.array({name}), or copy it in "
                f"the function: {name} = {name}.copy()",
            )
    others = [*zip(names, leaves, strict=True), *captures]
    for number in dict.fromkeys((*updates, *donated)):
        given, updated = leaves[number], number in updates
        if not updated and _unwriteable(given):
            continue  # it is copied first
        for position, (name, other) in enumerate(others):
            if position != number and _share(given, other):
                kind = "argument" if position < len(leaves) else "captured array"
                other = f"{kind} {name!r}"
                error = _overlap(function, names[number], updated, other)
                error.where = describe(where.get(number))
                raise error


def _overlap(function: str, name: str, updated: bool, other: str) -> MutationError:
    said = (
        f"the argument {name!r} is updated in place and"
        if updated
        else f"the donated argument {name!r}"
    )
    fix = f"pass a copy of one of them: {name}.copy()"
    if not updated:
        fix += f"; or leave {parameter_of(name)!r} out of donate"
    return MutationError(
        f"{function}: {said} shares memory with the {other}, which that would change", fix=fix
    )


def _unwriteable(given: Any) -> str | None:
    """Why an argument can't be written to; None if it can."""
    if isinstance(given, Array):
        return "is a read-only view" if given._readonly else None
    if not isinstance(given, np.ndarray):
        return f"is a {type(given).__name__}, no array"
    if not given.flags.writeable:
        return "is read-only"
    if given.size and any(
        not step and n > 1 for step, n in zip(given.strides, given.shape, strict=True)
    ):
        return "holds an element in several places"
    return None


def _share(a: Any, b: Any) -> bool:
    """Whether a write to one is seen in the other. A lazy array's memory is nobody else's."""
    if isinstance(a, Array) or isinstance(b, Array):
        return isinstance(a, Array) and isinstance(b, Array) and _whole(a) is _whole(b)
    if not isinstance(b, np.ndarray) or not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _whole(array: Array) -> Array:
    return array if array._view is None else array._view.root


def write_back(updates: Sequence[int], leaves: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Write what the function made of its arguments, its last outputs, into the caller's arrays."""
    targets: list[Any] = []
    values: list[Any] = []
    for number, made in zip(updates, outputs[len(outputs) - len(updates) :], strict=True):
        given = leaves[number]
        if isinstance(given, Array):
            given._update(lazy_leaf(made))  # before any other: it may refuse
        else:
            targets.append(np.asarray(given))  # of no subclass: nothing of Python's runs
            values.append(made)
    for target, made in zip(targets, values, strict=True):
        if not target.flags.writeable or target.shape != made.shape:
            raise MutationError(
                "an argument that is updated in place was made read-only, or got another shape, "
                "while the program ran; no argument was written to",
                fix="leave the arguments of a call alone in hooks and host calls",
            )
    # No line of Python between two of them: Ctrl-C comes before them all or after.
    deque(map(setitem, targets, repeat(...), values), maxlen=0)
