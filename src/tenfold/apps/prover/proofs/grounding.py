"""Grounding: the facts that a clause's body is matched with to give a fact.

One variable is bound at a time, the one that fewest constants fit: what fits is what all atoms say
in which no other variable is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tenfold.apps.prover.input.program import Clause, Triple
from tenfold.apps.prover.proofs.index import FactIndex, Row

Binding = dict[int, int]


def bind_head(clause: Clause, fact: Triple) -> Binding | None:
    """What a clause's variables stand for when it gives a fact; None where it can't.

    >>> bind_head(Clause((0, -1, -1), ()), (0, 4, 4)), bind_head(Clause((0, -1, -1), ()), (0, 4, 5))
    ({-1: 4}, None)
    """
    if clause.head[0] != fact[0]:
        return None
    binding: Binding = {}
    for term, constant in zip(clause.head[1:], fact[1:], strict=True):
        if (binding.setdefault(term, constant) if term < 0 else term) != constant:
            return None
    return binding


def bound(atom: Triple, binding: Binding) -> Triple:
    """An atom under a binding."""
    return (atom[0], binding.get(atom[1], atom[1]), binding.get(atom[2], atom[2]))


def groundings(
    body: tuple[Triple, ...], binding: Binding, index: FactIndex, below: int | None = None
) -> Iterator[tuple[Triple, ...]]:
    """The facts that the atoms of a body stand for, for each way to match them with facts, in an
    order that depends on nothing else; `below`: only with facts whose heights are less.

    >>> index = FactIndex.of({(0, 1, 2): 0, (0, 2, 3): 0, (0, 2, 4): 1})
    >>> [*groundings(((0, -1, -2), (0, -2, -3)), {-1: 1}, index)]
    [((0, 1, 2), (0, 2, 3)), ((0, 1, 2), (0, 2, 4))]
    >>> [*groundings(((0, -1, -2), (0, -2, -3)), {-1: 1}, index, below=1)]
    [((0, 1, 2), (0, 2, 3))]
    """
    atoms = [bound(atom, binding) for atom in body]
    for atom in atoms:
        if min(atom) >= 0 and not _holds(index.height(atom), below):
            return
    stack: list[tuple[list[Triple], Iterator[tuple[int, int]]]] = []
    left: list[Triple] | None = atoms
    while True:
        if left is not None:
            choice = _choose(left, index, below)
            if choice is None:
                yield tuple(left)
            else:
                stack.append((left, iter(choice)))
        if not stack:
            return
        before, choices = stack[-1]
        chosen = next(choices, None)
        if chosen is None:
            stack.pop()
            left = None
        else:
            left = [bound(atom, dict((chosen,))) for atom in before]


def _choose(
    atoms: list[Triple], index: FactIndex, below: int | None
) -> list[tuple[int, int]] | None:
    """A variable with what it may stand for, or None where all are bound."""
    fits: dict[int, list[Row]] = {}
    loose: dict[int, list[Row]] = {}  # atoms with another variable left: they only say what may be
    for p, s, o in atoms:
        if s < 0 and s == o:
            fits.setdefault(s, []).append(index.loops(p))
        elif s < 0 <= o:
            fits.setdefault(s, []).append(index.column(p, o))
        elif o < 0 <= s:
            fits.setdefault(o, []).append(index.row(p, s))
        elif s < 0 and o < 0:
            loose.setdefault(s, []).append(index.subjects(p))
            loose.setdefault(o, []).append(index.objects(p))
    if not fits and not loose:
        return None
    rows = fits or loose
    variable = min(rows, key=lambda v: (min(map(len, rows[v])), -v))
    first, *others = sorted([*rows[variable], *loose.get(variable, [])], key=len)
    every = (first, *others)
    found: Iterable[int] = first
    if others:
        found = sorted(set(first).intersection(*others))
    return [(variable, c) for c in found if below is None or all(row[c] < below for row in every)]


def _holds(height: int | None, below: int | None) -> bool:
    return height is not None and (below is None or height < below)
