"""Regions: parts of a function traced in scopes of their own.

A part reads and binds the function's variables, which are cells of its closure, and updates
arrays. All of that is found when it has been traced, and put back as it was.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from types import CellType, FunctionType
from typing import Any

from tenfold.errors import TenfoldError
from tenfold.frozen import mutable
from tenfold.trace.array import Array
from tenfold.trace.containers import flatten
from tenfold.trace.control.agree import LeafForm
from tenfold.trace.control.inner import Inner, trace_inner
from tenfold.trace.convert.exits import AT_END, NOTHING, Exit
from tenfold.trace.convert.statements import Site
from tenfold.trace.operand import as_value
from tenfold.trace.scope import Handle, Scope, current
from tenfold.trace.surface.emit import is_traced

Part = Callable[[], Any]


class Cells:
    """The variables that the parts of a statement bind."""

    def __init__(self, site: Site, part: FunctionType | None = None) -> None:
        names = part.__code__.co_freevars if part is not None else ()
        cells = (part.__closure__ or ()) if part is not None else ()
        closure = dict(zip(names, cells, strict=True))
        self.cells: dict[str, CellType] = {}
        for name in site.names:
            # private names have their class's before them
            found = name if name in closure else next(n for n in closure if n.endswith(name))
            self.cells[name] = closure[found]

    def read(self) -> dict[str, Any]:
        return {name: content(cell) for name, cell in self.cells.items()}

    def aliased(self) -> set[str]:
        """The variables whose arrays somebody else holds, too: under another name, or as a view's
        root. To be asked before the statement holds them."""
        scope = current()
        assert scope is not None
        found = set()
        for name, cell in self.cells.items():
            key = id(content(cell))
            if isinstance(content(cell), Array):
                known = scope.references.get(key, _ALONE) + (key in (scope.taken_over or ()))
                if _references(cell) > known:
                    found.add(name)
        return found

    def note(self, scope: Scope, aliased: Collection[str]) -> None:
        """Let a scope know how many references our own make to the arrays of its variables."""
        for name, cell in self.cells.items():
            array = content(cell)
            if isinstance(array, Array):
                key = id(array)
                del array
                scope.references[key] = 0 if name in aliased else _references(cell)

    def write(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            if value is not NOTHING:
                self.cells[name].cell_contents = value
            elif content(self.cells[name]) is not NOTHING:
                del self.cells[name].cell_contents


def content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it has none
        return NOTHING


def _references(cell: CellType) -> int:
    """How many there are to what a cell holds."""
    return sys.getrefcount(cell.cell_contents)


_ALONE = _references(CellType(Array.__new__(Array)))


@mutable
class Region:
    """A part that was traced: its scope, and what it made of variables and arrays."""

    inner: Inner
    values: dict[str, Any]
    exit: Exit
    updated: dict[int, tuple[Array, Array]]  # outer arrays, and what they are inside at the end
    last: dict[int, tuple[Array, Array]]  # arrays among the values, and what they are at the end

    def give(self, leaf: Any, wanted: LeafForm) -> None:
        """Make a leaf of the values the next output."""
        if isinstance(leaf, Array):
            leaf = self.last.get(id(leaf), (leaf, leaf))[1]
        self.inner.give(leaf, wanted.type)


def trace_region(
    what: str,
    cells: Cells,
    start: Callable[[Scope], Mapping[str, Any]],
    part: Part,
    moved: Callable[[Scope], list[tuple[Array, Array]]] = lambda scope: [],
    aliased: Collection[str] = (),
) -> Region:
    """Trace a part. Its variables have the values that `start` gives, and outer arrays those that
    `moved` gives; afterwards all are as they were."""
    before = cells.read()
    found: list[Any] = []

    def call(scope: Scope) -> Any:
        scope.taken_over = {}
        try:
            cells.write(start(scope))
            for array, inside in moved(scope):
                scope.taken_over[id(array)] = Handle.take(array, scope, inside._value)
                array._version += 1  # for its views
            cells.note(scope, aliased)
            exit = part() or AT_END
            values = cells.read()
            now = {
                key: (handle.array, Array(scope, handle.array._value))
                for key, handle in scope.taken_over.items()
                if handle.array._view is None and handle.array._value != handle.inside
            }
            found.extend(
                (values, exit, now, _last(scope, [*values.values(), exit.kind, exit.value]))
            )
        finally:
            for handle in scope.taken_over.values():
                handle.restore()
            cells.write(before)
        return ()

    inner = trace_inner(what, call)
    return Region(inner, *found)


def _last(scope: Scope, values: list[Any]) -> dict[int, tuple[Array, Array]]:
    """The traced arrays in these values and what they are now: a view inside follows its root,
    which is about to be put back. What can't be read can't be given on either."""
    found = {}
    for value in values:
        with suppress(TenfoldError):
            for leaf in flatten(value)[1]:
                if is_traced(leaf):
                    now = Array(scope, as_value(leaf, scope), weak=leaf._weak)
                    found[id(leaf)] = leaf, now
    return found
