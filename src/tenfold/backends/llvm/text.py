"""Pieces of LLVM IR as text, and their joining into one module."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tenfold.frozen import frozen

_DEFINED = re.compile(r'^define [^\n]*?@("[^"]+"|[\w.$-]+)\(', re.MULTILINE)
_DECLARED = re.compile(r'@("[^"]+"|[\w.$-]+)')


@frozen
class Fragment:
    """Definitions, and the declarations they need, a line each: a module may hold each once."""

    declarations: tuple[str, ...]
    body: str


def merged(fragments: Iterable[Fragment]) -> Fragment:
    """Several fragments as one."""
    parts = list(fragments)
    needs = dict.fromkeys(line for part in parts for line in part.declarations)
    return Fragment(tuple(needs), "\n".join(part.body for part in parts))


def join(fragments: Iterable[Fragment]) -> str:
    """One module of several fragments; what one of them defines is not declared.

    >>> f = Fragment(("declare void @g()",), "define void @f() {\\n  ret void\\n}")
    >>> g = Fragment(("declare void @f()", "declare void @h()"), "define void @g() { ... }")
    >>> print(join([f, g]))
    declare void @h()
    define void @f() {
      ret void
    }
    define void @g() { ... }
    """
    fragments = list(fragments)
    lines = dict.fromkeys(line for fragment in fragments for line in fragment.declarations)
    bodies = [fragment.body.strip("\n") for fragment in fragments]
    defined = {name.strip('"') for body in bodies for name in _DEFINED.findall(body)}
    kept = [line for line in lines if _DECLARED.search(line)[1].strip('"') not in defined]  # type: ignore[index]
    return "\n".join([*kept, *bodies])
