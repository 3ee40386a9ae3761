"""The doors of one function: which calls native code answers, and how it finds the plan.

Calls that look alike but for the types of their leaves form a group. In a group the newest few
doors stand one behind another, in native code, which takes a few hundredths of a microsecond each.
Behind them is the hall, in Python: it finds the door by the types of the leaves, and packs arrays
that are not contiguous. Groups stand one behind another too; those of calls with containers take
them apart once (`unpack`). What no door takes goes on to `slow`, which binds, looks up or traces.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from tenfold.api.call.door import Door, Types
from tenfold.api.call.unpack import decline, unpacker
from tenfold.api.entry import Entry
from tenfold.locks import Lock

ROW = 4  # how many doors, or groups, stand one behind another
_EITHER = Parameter.POSITIONAL_OR_KEYWORD

Function = Callable[..., Any]
Table = dict[Types, tuple[Function, bool]]  # what takes leaves of these types; packed if need be


class _Group:
    """The doors of calls that look alike."""

    def __init__(self) -> None:
        self.row: list[tuple[Entry, Door]] = []  # the newest first; there is always one
        self.table: Table = {}

    def before(self, slow: Function) -> Function:
        """What takes their calls; the others go on to `slow`."""
        row, first = self.row, self.row[0][1]
        front = _hall(self.table, slow if first.flat else decline)
        for _, door in reversed(row):
            if door.watched is not None:
                front = door.native(front)
        if first.flat:
            return front
        return unpacker(first.signature, first.call, first.traced, front, slow, first.apart)


class Doors:
    """Which calls of a function native code answers. What adds is called under `lock`; what drops
    may be called at any time."""

    def __init__(self, jitted: Function, slow: Function, signature: Signature, lock: Lock) -> None:
        self._slow = slow
        self._lock = lock
        self._last = _by_name(signature, jitted, slow)
        self._known: dict[int, Entry] = {}
        self._groups: dict[Any, _Group] = {}
        self._row: list[_Group] = []  # the newest first

    def __contains__(self, entry: Entry) -> bool:
        return id(entry) in self._known

    def add(self, entry: Entry, door: Door) -> Function:
        """One more, which is tried first. What stands before them all."""
        self._known[id(entry)] = entry
        if door.types is not None:
            group = self._groups.setdefault(door.alike, _Group())
            # What is donated is not packed: the copy would be given up, and apart from all else.
            group.table[door.types] = self._alone(entry, door), not door.program.donated
            others = [pair for pair in group.row if pair[0] is not entry]
            group.row = [(entry, door), *others][:ROW]
            self._row = [group, *(one for one in self._row if one is not group)][:ROW]
        front = self._last
        for group in reversed(self._row):
            front = group.before(front)
        return front

    def drop(self, entry: Entry, door: Door) -> bool:
        """One less; whether what stood before them all is to do so no more."""
        self._known.pop(id(entry), None)
        group = self._groups.get(door.alike)
        if group is None or door.types is None:
            return False
        group.table.pop(door.types, None)
        if not group.table:
            self._groups.pop(door.alike, None)
        if all(one is not entry for one, _ in group.row):
            return False
        self.close()
        return True

    def close(self) -> None:
        """Hold none."""
        self._row = []
        self._known.clear()
        self._groups.clear()

    def _alone(self, entry: Entry, door: Door) -> Function:
        """What the hall finds: `slow` answers what the door does not take."""
        slow = self._slow if door.flat else decline
        native, lock = door.native(slow), self._lock
        if door.watched is not None:
            return native

        def look(*leaves: Any) -> Any:
            with lock:
                same = entry.fits() and door.has(entry.captured())
            return native(*leaves) if same else slow(*leaves)

        return look


def _hall(table: Table, slow: Function) -> Function:
    find, ndarray, scalar, pack = table.get, np.ndarray, np.generic, np.array
    nobody = None, False

    def hall(*leaves: Any, **names: Any) -> Any:
        if names:
            return slow(*leaves, **names)
        kinds = [
            (a.dtype, a.shape) if (t := type(a)) is ndarray or issubclass(t, scalar) else None
            for a in leaves
        ]
        door, packs = find(tuple(kinds), nobody)
        if door is None:
            return slow(*leaves)
        if not packs:
            return door(*leaves)
        packed = [a if (f := a.flags).c_contiguous and f.aligned else pack(a, order="C")
                  for a in leaves]  # fmt: skip
        return door(*packed)

    return hall


def _by_name(signature: Signature, jitted: Function, slow: Function) -> Function:
    """What stands behind all doors: calls with keywords that could be given by position go in
    again that way, for native code takes no keywords; all others go to `slow`."""
    names = ["" if p.kind is not _EITHER else p.name for p in signature.parameters.values()]

    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            first = len(args)
            rest = [kwargs[n] for n in names[first : first + len(kwargs)] if n in kwargs]
            if len(rest) == len(kwargs):
                return jitted(*args, *rest)
        return slow(*args, **kwargs)

    return call
