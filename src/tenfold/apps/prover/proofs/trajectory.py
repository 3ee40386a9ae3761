"""Trajectory: the states a rollout went through to a proof, and what led from each to the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tenfold.apps.prover.errors import ProofError
from tenfold.apps.prover.input.program import Program, Triple
from tenfold.apps.prover.reference.top_down import Searcher, State, unify


class Step(NamedTuple):
    """A state, and the fact or the clause that its first goal was resolved with."""

    state: State
    fact: Triple | None
    clause: int | None  # its place in the program


class Retracer:
    """Goes the way of a rollout again, by plain unification.

    >>> from tenfold.apps.prover.input.program import Clause
    >>> swap = Clause((0, -1, -2), ((0, -2, -1),))
    >>> made = Program(("p",), ("a", "b"), ((0, 0, 1),), (swap,))
    >>> [*Retracer(made).steps((0, 1, 0), 5, (0,))]
    [Step(state=((0, 1, 0, 5),), fact=None, clause=0)]
    """

    def __init__(self, program: Program) -> None:
        self.program, self.searcher = program, Searcher(program)
        self.facts: dict[tuple[int, int | None, int | None], list[Triple]] = {}
        for p, s, o in program.facts:
            for key in ((p, s, o), (p, s, None), (p, None, o), (p, None, None)):
                self.facts.setdefault(key, []).append((p, s, o))

    def steps(
        self, fact: Triple, height: int, choices: tuple[int, ...], without: Triple | None = None
    ) -> Iterator[Step]:
        """The steps from a fact that is asked to a state without goals."""
        state = self.searcher.settle(((*fact, height),), without)
        for number, choice in enumerate(choices):
            successors = [*self.searcher.successors(state, without)] if state else []
            if choice >= len(successors):
                raise ProofError(
                    f"step {number} takes successor {choice} of {len(successors)}",
                    fix="the trace is not of this query",
                )
            yield Step(state, *self._source(state, choice, without))
            state = successors[choice]

    def _source(
        self, state: State, choice: int, without: Triple | None
    ) -> tuple[Triple | None, int | None]:
        """The fact or the clause that gives a state's successor: facts come first."""
        p, s, o, _ = state[0]
        key = (p, s if s >= 0 else None, o if o >= 0 else None)
        facts = [
            fact
            for fact in self.facts.get(key, ())
            if fact != without and unify(((s, fact[1]), (o, fact[2]))) is not None
        ]
        if choice < len(facts):
            return facts[choice], None
        apart = min(0, s, o)
        clauses = []
        for number, clause in enumerate(self.program.clauses):
            x, y = (t + apart if t < 0 else t for t in clause.head[1:])
            if clause.head[0] == p and unify(((s, x), (o, y))) is not None:
                clauses.append(number)
        return None, clauses[choice - len(facts)]
