"""Weighted top-down reference: the best proof of a goal, from the goal down, with tables.

A goal with some height left is answered by facts and by the bodies of clauses, solved from left to
right with less height; answers are kept by goal and height. It shares nothing with the bottom-up
one: only what a goal leads to is ever looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tenfold.apps.prover.input.program import Clause, Program, Triple

Answers = dict[tuple[int, int], float]  # subject and object, and the weight of the best proof
FREE, ALIKE = -1, -2  # terms of a goal: any constant; the object, the same as the subject


class Weigher:
    """A program and what was asked of it; `without` is a fact that is not to be used.

    >>> swap = Clause((0, -1, -2), ((0, -2, -1),))
    >>> made = Program(("p",), ("a", "b"), ((0, 0, 1),), (swap,), (0.5,))
    >>> Weigher(made).rules((0, 1, 0), 3)
    [(0, 0.5)]
    """

    def __init__(self, program: Program, without: Triple | None = None) -> None:
        self.facts = frozenset(fact for fact in program.facts if fact != without)
        self.matching: dict[Triple, list[tuple[int, int]]] = defaultdict(list)
        for p, s, o in sorted(self.facts):
            for pattern in ((p, s, o), (p, s, FREE), (p, FREE, o), (p, FREE, FREE)):
                self.matching[pattern].append((s, o))
            if s == o:
                self.matching[p, FREE, ALIKE].append((s, o))
        self.clauses: dict[int, list[tuple[int, Clause, float]]] = defaultdict(list)
        for place, (clause, weight) in enumerate(program.weighed):
            self.clauses[clause.head[0]].append((place, clause, weight))
        self.tables: dict[tuple[Triple, int], Answers] = {}

    def rules(self, goal: Triple, height: int) -> list[tuple[int, float]]:
        """The rules that prove a ground goal in their last step, each with its best weight."""
        found = []
        for place, clause, weight in self.clauses[goal[0]] if height else ():
            best = max((p for _, p in self._by_clause(goal, clause, height)), default=None)
            if best is not None:
                found.append((place, best * weight))
        return found

    def given(self, goal: Triple) -> bool:
        """Whether a goal is a fact that may be used."""
        return goal in self.facts

    def _answers(self, goal: Triple, height: int) -> Answers:
        """All that a goal is answered with, by the best proofs within a height."""
        if (goal, height) in self.tables:
            return self.tables[goal, height]
        found = dict.fromkeys(self.matching.get(goal, ()), 1.0)
        for _, clause, weight in self.clauses[goal[0]] if height else ():
            for pair, product in self._by_clause(goal, clause, height):
                if (goal[0], *pair) not in self.facts:
                    found[pair] = max(found.get(pair, 0.0), product * weight)
        self.tables[goal, height] = found
        return found

    def _by_clause(
        self, goal: Triple, clause: Clause, height: int
    ) -> Iterator[tuple[tuple[int, int], float]]:
        """Each way in which a clause's body gives an answer, with the product of the body."""
        _, s, o = goal
        x, y = clause.head[1:]
        bound: dict[int, int] = {}
        for term, value in ((x, s), (y, o)):
            if value >= 0 and bound.setdefault(term, value if term < 0 else term) != value:
                return
        for full, product in self._solve(clause.body, bound, 1.0, height - 1):
            pair = (full.get(x, x), full.get(y, y))
            if _fits(pair, s, o):
                yield pair, product

    def _solve(
        self, body: tuple[Triple, ...], bound: dict[int, int], product: float, height: int
    ) -> Iterator[tuple[dict[int, int], float]]:
        if not body:
            yield bound, product
            return
        p, s, o = body[0]
        x, y = bound.get(s, s), bound.get(o, o)
        asked = (p, max(x, FREE), ALIKE if s == o and y < 0 else max(y, FREE))
        for (a, b), weight in self._answers(asked, height).items():
            full = {**bound, **{t: c for t, c in ((s, a), (o, b)) if t < 0}}
            yield from self._solve(body[1:], full, product * weight, height)


def _fits(pair: tuple[int, int], s: int, o: int) -> bool:
    a, b = pair
    return s in (FREE, a) and (o in (FREE, b) or (o == ALIKE and a == b))
