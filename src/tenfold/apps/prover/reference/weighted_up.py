"""Weighted bottom-up reference: the weight of every fact's best proof, round by round.

A fact of train weighs 1. What rules give weighs the most that any rule with any grounding gives:
the product of the body's weights, in the order in which the body is written, then times the rule's
own weight. Round h takes the weights of round h - 1, so it knows the best proofs up to height h.
Plain Python sets; a fact that is used twice counts twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tenfold.apps.prover.input.program import Clause, Program, Triple

Weights = dict[Triple, float]
Index = dict[tuple[int, int | None, int | None], list[Triple]]  # facts by what they match


@dataclass(frozen=True, slots=True)
class Weighted:
    """The weight of each fact that is proved, and for those that no fact of train is: the rules
    of the last application, by their places in the program, with the weight each gives it."""

    weights: Weights
    rules: dict[Triple, dict[int, float]]


def weigh(program: Program, limit: int, without: Triple | None = None) -> Weighted:
    """The weights of all that has a proof within a height.

    >>> swap = Clause((0, -1, -2), ((0, -2, -1),))
    >>> made = Program(("p",), ("a", "b"), ((0, 0, 1),), (swap,), (0.5,))
    >>> weigh(made, 1).weights
    {(0, 0, 1): 1.0, (0, 1, 0): 0.5}
    """
    given = {fact: 1.0 for fact in program.facts if fact != without}
    known, found = given, dict[Triple, dict[int, float]]()
    for _ in range(limit):
        found = _apply_all(program, known)
        for fact in given:
            found.pop(fact, None)
        after = {**given, **{fact: max(by.values()) for fact, by in found.items()}}
        if after == known:
            break
        known = after
    return Weighted(known, found)


def _apply_all(program: Program, known: Weights) -> dict[Triple, dict[int, float]]:
    """What every rule gives from known facts: by fact, by rule, the best weight."""
    matching: Index = defaultdict(list)
    for p, s, o in known:
        for pattern in ((p, s, None), (p, None, o), (p, None, None)):
            matching[pattern].append((p, s, o))
    found: dict[Triple, dict[int, float]] = {}
    for place, (clause, weight) in enumerate(program.weighed):
        for head, product in _groundings(clause, known, matching):
            mine = found.setdefault(head, {})
            mine[place] = max(mine.get(place, 0.0), product * weight)
    return found


def _groundings(clause: Clause, known: Weights, matching: Index) -> Iterator[tuple[Triple, float]]:
    """The head under each grounding whose body is known, and the product of the body."""
    rows: list[tuple[dict[int, int], float]] = [({}, 1.0)]
    for p, s, o in clause.body:
        longer = []
        for bound, product in rows:
            x, y = bound.get(s, s), bound.get(o, o)
            if x >= 0 and y >= 0:
                if (p, x, y) in known:
                    longer.append((bound, product * known[p, x, y]))
                continue
            for fact in matching.get((p, x if x >= 0 else None, y if y >= 0 else None), ()):
                _, a, b = fact
                if s == o and a != b:
                    continue
                more = {t: c for t, c in ((s, a), (o, b)) if t < 0}
                longer.append(({**bound, **more}, product * known[fact]))
        rows = longer
    p, s, o = clause.head
    for bound, product in rows:
        yield (p, bound.get(s, s), bound.get(o, o)), product
