"""Paths: rules whose body leads from one end of the head to the other, an atom after the other."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from tenfold.apps.prover.input.program import Clause, Triple


class Link(NamedTuple):
    """A predicate of a path, gone through from subject to object or the other way."""

    predicate: int
    inverse: bool


class Path(NamedTuple):
    """What a rule says of matrices: the head's holds the product of the links'."""

    head: int
    links: tuple[Link, ...]


def path_of(clause: Clause) -> Path | None:
    """The path that a rule is, or None: for constants, variables that stand twice in an atom or in
    three, and atoms apart.

    >>> path_of(Clause((0, -1, -2), ((2, -2, -3), (1, -1, -3))))
    Path(head=0, links=(Link(predicate=1, inverse=False), Link(predicate=2, inverse=True)))
    >>> path_of(Clause((0, -1, -1), ((1, -1, -2),)))
    """
    head, start, end = clause.head
    uses = Counter(t for atom in clause.body for t in atom[1:])
    whole = start != end and uses[start] == uses[end] == 1 and max(uses) < 0
    if not whole or any(uses[t] != 2 for t in uses if t not in (start, end)):
        return None
    links: list[Link] = []
    left, at = list(clause.body), start
    while left:
        atom = next((a for a in left if at in a[1:]), None)
        if atom is None or atom[1] == atom[2]:
            return None
        left.remove(atom)
        links.append(Link(atom[0], atom[2] == at))
        at = _other(atom, at)
    return Path(head, tuple(links))


def _other(atom: Triple, end: int) -> int:
    return atom[1] if atom[2] == end else atom[2]
