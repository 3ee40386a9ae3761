"""Top-down reference: SLD resolution, leftmost goal first, by iterative deepening.

A state is a list of goals, its variables renamed in order of appearance. Every goal carries the
height that is left to it; a rule leaves its body one less. A state seen before, up to the names of
its variables, is not looked at again. Plain Python, with facts by index.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tenfold.apps.prover.input.program import Clause, Program, Triple
from tenfold.apps.prover.outcome import Outcome

Goal = tuple[int, int, int, int]  # predicate, two terms, the height left
State = tuple[Goal, ...]
Substitution = dict[int, int]


@dataclass(frozen=True, slots=True)
class Answer:
    """How a search ended, the height of the lowest proof, and how many states it looked at."""

    outcome: Outcome
    height: int | None
    states: int


class Searcher:
    """A program whose facts and clauses are indexed for search.

    >>> from tenfold.apps.prover.input.program import program
    >>> from tenfold.apps.prover.input.terms import Atom, Fact, Rule, Variable
    >>> x, y = Variable("X"), Variable("Y")
    >>> swap = Rule(Atom("p", x, y), (Atom("p", y, x),))
    >>> Searcher(program([Fact("p", "a", "b")], [swap])).prove((0, 1, 0), 5).height
    1
    """

    def __init__(self, program: Program) -> None:
        self.facts = frozenset(program.facts)
        self.objects: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.subjects: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.pairs: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for p, s, o in program.facts:
            self.objects[p, s].append(o)
            self.subjects[p, o].append(s)
            self.pairs[p].append((s, o))
        self.clauses: dict[int, list[Clause]] = defaultdict(list)
        for clause in program.clauses:
            self.clauses[clause.head[0]].append(clause)

    def prove(
        self, goal: Triple, limit: int, without: Triple | None = None, budget: int | None = None
    ) -> Answer:
        """The lowest proof of a goal; `without` is a fact that is not to be used.

        `budget` is how many states are looked at before giving up.
        """
        states = 0
        for height in range(limit + 1):
            seen, found, cut = self._search((*goal, height), without, budget, states)
            states += seen
            if found:
                return Answer(Outcome.PROVED, height, states)
            if budget is not None and states >= budget:
                return Answer(Outcome.GAVE_UP, None, states)
            if not cut:
                return Answer(Outcome.REFUTED, None, states)
        return Answer(Outcome.DEPTH, None, states)

    def _search(
        self, goal: Goal, without: Triple | None, budget: int | None, spent: int
    ) -> tuple[int, bool, bool]:
        """States looked at, whether one was proved, whether the height cut anything off."""
        start = self.settle((goal,), without)
        visited = {start}
        stack = [start]
        looked, cut = 0, False
        while stack:
            state = stack.pop()
            looked += 1
            if not state:
                return looked, True, cut
            if budget is not None and spent + looked >= budget:
                return looked, False, cut
            if state[0][3] == 0 and next(self.by_rules(state, heights=False), None) is not None:
                cut = True
            for successor in reversed([*self.successors(state, without)]):
                if successor not in visited:
                    visited.add(successor)
                    stack.append(successor)
        return looked, False, cut

    def successors(self, state: State, without: Triple | None = None) -> Iterator[State]:
        """The states one step on: by facts in their order, then by rules in theirs."""
        for raw in (*self.by_facts(state, without), *self.by_rules(state)):
            yield self.settle(raw, without)

    def by_facts(self, state: State, without: Triple | None) -> Iterator[State]:
        """The other goals under each fact that matches the first goal."""
        p, s, o, _ = state[0]
        if s >= 0 and o >= 0:
            matches = [(s, o)] if (p, s, o) in self.facts else []
        elif s >= 0:
            matches = [(s, other) for other in self.objects.get((p, s), ())]
        elif o >= 0:
            matches = [(other, o) for other in self.subjects.get((p, o), ())]
        else:
            matches = self.pairs.get(p, [])
        for subject, object in matches:
            if (p, subject, object) == without:
                continue
            found = unify(((s, subject), (o, object)))
            if found is not None:
                yield apply(state[1:], found)

    def by_rules(self, state: State, heights: bool = True) -> Iterator[State]:
        """The other goals after the body of each clause whose head unifies with the first goal."""
        p, s, o, left = state[0]
        if heights and left == 0:
            return
        apart = min(0, *(t for goal in state for t in goal[1:3]))
        for clause in self.clauses.get(p, ()):
            _, x, y = _shift(clause.head, apart)
            found = unify(((s, x), (o, y)))
            if found is not None:
                body = tuple((*_shift(atom, apart), left - 1) for atom in clause.body)
                yield apply((*body, *state[1:]), found)

    def settle(self, goals: State, without: Triple | None) -> State:
        """A state in its one form: no known facts, no goal twice, variables in order.

        Of a goal that stands twice the first place is kept, with the lesser height.
        """
        left: dict[Triple, int] = {}
        for p, s, o, height in goals:
            goal = (p, s, o)
            if goal in self.facts and goal != without:
                continue
            left[goal] = min(height, left.get(goal, height))
        names: dict[int, int] = {}

        def rename(term: int) -> int:
            return term if term >= 0 else names.setdefault(term, -1 - len(names))

        return tuple((p, rename(s), rename(o), height) for (p, s, o), height in left.items())


def _shift(atom: Triple, apart: int) -> Triple:
    """An atom of a clause with its variables below those in use."""
    p, s, o = atom
    return p, (s + apart if s < 0 else s), (o + apart if o < 0 else o)


def unify(pairs: tuple[tuple[int, int], ...]) -> Substitution | None:
    """The most general unifier of pairs of terms; None where there is none.

    >>> unify(((-1, 4), (-1, -2)))
    {-1: 4, -2: 4}
    >>> unify(((-1, 4), (-1, 5))) is None
    True
    """
    found: Substitution = {}
    for left, right in pairs:
        left, right = walk(left, found), walk(right, found)
        if left == right:
            continue
        if left < 0:
            found[left] = right
        elif right < 0:
            found[right] = left
        else:
            return None
    return found


def walk(term: int, found: Substitution) -> int:
    """What a term stands for in the end."""
    while term in found:
        term = found[term]
    return term


def apply(goals: State, found: Substitution) -> State:
    """Goals under a substitution."""
    return tuple((p, walk(s, found), walk(o, found), height) for p, s, o, height in goals)
