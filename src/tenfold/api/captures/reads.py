"""What code names: the globals, attributes and modules that it may read or write."""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any

from tenfold.frozen import frozen

# With one of these, code reads or writes fields whose names stand in no instruction.
_DYNAMIC = frozenset(("getattr", "hasattr", "vars", "attrgetter", "methodcaller", "__dict__"))
_DYNAMIC_WRITES = frozenset(("setattr", "delattr", "vars", "__dict__", "__setattr__"))
_MUTATORS = frozenset(
    ("append", "appendleft", "extend", "extendleft", "insert", "remove", "pop", "popleft", "add")
)
_MUTATORS |= {
    "clear",
    "sort",
    "reverse",
    "update",
    "setdefault",
    "popitem",
    "discard",
    "__setitem__",
}
_ATTRIBUTES = frozenset(("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM"))
_GLOBALS = frozenset(("LOAD_GLOBAL", "LOAD_NAME"))
_WRITES = frozenset(("STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL"))
_ITEM_WRITES = frozenset(("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"))


@frozen
class Chain:
    """A name with attributes behind it, as code reads them: `datetime.datetime.now`."""

    names: tuple[str, ...]
    module: bool  # whether the first names a module that is imported inside
    code: CodeType
    line: int
    given: int | None  # how many arguments it is called with at once, if it is


@frozen
class Reads:
    """What a code object and the functions written inside it name."""

    globals: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()  # imported inside
    texts: frozenset[str] = frozenset()  # strings that may name fields
    any_field: bool = False  # fields may be read that are not named
    written: frozenset[str] = frozenset()  # globals and fields
    any_written: bool = False  # fields may be written that are not named
    changes_items: bool = False  # of containers
    chains: tuple[Chain, ...] = ()

    @staticmethod
    def join(all_: list[Reads]) -> Reads:
        """What any of these names."""
        return Reads(
            frozenset(name for r in all_ for name in r.globals),
            frozenset(name for r in all_ for name in r.attributes),
            frozenset(name for r in all_ for name in r.modules),
            frozenset(name for r in all_ for name in r.texts),
            any(r.any_field for r in all_),
            frozenset(name for r in all_ for name in r.written),
            any(r.any_written for r in all_),
            any(r.changes_items for r in all_),
            tuple(chain for r in all_ for chain in r.chains),
        )


_known: dict[CodeType, Reads] = {}


def reads_of(code: CodeType) -> Reads:
    """What code names, its inner functions included."""
    found = _known.get(code)
    if found is None:
        if len(_known) > 4096:
            _known.clear()
        found = _known[code] = _read(code)
    return found


def nested(code: CodeType) -> list[CodeType]:
    """A code object and those of the functions written inside it."""
    found = [code]
    for outer in found:
        found.extend(c for c in outer.co_consts if isinstance(c, CodeType))
    return found


def _read(code: CodeType) -> Reads:
    globals_: set[str] = set()
    attributes: set[str] = set()
    modules: set[str] = set()
    written: set[str] = set()
    items = False
    codes = nested(code)
    for inner in codes:
        for step in dis.get_instructions(inner):
            name = step.opname
            if name in _GLOBALS:
                globals_.add(step.argval)
            elif name in _ATTRIBUTES:
                attributes.add(step.argval)
            elif name == "IMPORT_NAME":
                modules.update((step.argval, step.argval.partition(".")[0]))
            elif name in _WRITES or (name == "STORE_DEREF" and step.argval in inner.co_freevars):
                written.add(step.argval)
            elif name in _ITEM_WRITES:
                items = True
    named = globals_ | attributes
    dynamic = not _DYNAMIC.isdisjoint(named)
    texts = _texts(codes) if dynamic else ()
    return Reads(
        frozenset(globals_),
        frozenset(attributes),
        frozenset(modules),
        frozenset(texts),
        dynamic,
        frozenset(written),
        not _DYNAMIC_WRITES.isdisjoint(named),
        items or not _MUTATORS.isdisjoint(attributes),
        tuple([chain for inner in codes for chain in _chains(inner)]),
    )


def _chains(code: CodeType) -> list[Chain]:
    found: list[Chain] = []
    imported: dict[str, tuple[str, ...]] = {}  # what local names stand for
    names: tuple[str, ...] = ()
    module, line = False, code.co_firstlineno
    for step in dis.get_instructions(code):
        if step.starts_line is not None:
            line = step.positions.lineno if step.positions else line  # type: ignore[assignment]
        name = step.opname
        if name in _ATTRIBUTES and names:
            names = (*names, step.argval)
            continue
        if name in ("STORE_FAST", "STORE_DEREF") and names and module:
            imported[step.argval] = names
        elif names:
            given = step.arg if name in ("PRECALL", "CALL") else None
            if name in ("PUSH_NULL", "CACHE"):
                continue
            found.append(Chain(names, module, code, line, given))
        names = ()
        if name == "IMPORT_NAME":
            names, module = (step.argval,), True
        elif name in _GLOBALS or name == "LOAD_DEREF":
            names, module = (step.argval,), False
        elif name.startswith("LOAD_FAST") and step.argval in imported:
            names, module = imported[step.argval], True
    return found


def _texts(codes: list[CodeType]) -> list[str]:
    found: list[Any] = [c for code in codes for c in code.co_consts]
    return [c for c in found if isinstance(c, str) and c.isidentifier()]
