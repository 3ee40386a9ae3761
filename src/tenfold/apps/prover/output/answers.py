"""Answers: of each ranking the rank of each kind, what proves the query and what beats it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from heapq import nsmallest
from typing import Any

from tenfold.apps.prover.evaluation import Result, Run
from tenfold.apps.prover.input.program import Triple, rules_of
from tenfold.apps.prover.input.terms import Rule
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.proofs.explanation import other_reasons
from tenfold.apps.prover.proofs.index import FactIndex
from tenfold.apps.prover.proofs.named import NamedProof, named
from tenfold.apps.prover.proofs.proof import Explainer
from tenfold.apps.prover.proofs.trajectory import Retracer, Step
from tenfold.apps.prover.result import LISTED
from tenfold.apps.prover.rollout.engine import lanes_of, searching_of
from tenfold.apps.prover.rollout.queue import Lanes


@dataclass(frozen=True, slots=True)
class Answer:
    """One ranking: a query, the argument replaced, and where it stands among its candidates."""

    relation: str
    subject: str
    object: str
    mode: str  # head or tail: what is replaced
    optimistic: int
    realistic: float
    pessimistic: int
    expected: float  # the mean of 1/rank when ties are broken at random: it is no rank
    better: int  # candidates that are better
    ties: int  # candidates that are as good
    candidates: int
    outcome: str  # empty where an embedding scores without a search
    height: int | None  # of the query's lowest proof that was found
    weight: float | None  # of the query, where scores are weights
    rules: tuple[str, ...]  # whose last application proves it: a few of them, in the rules' order
    rules_count: int
    above: tuple[str, ...]  # candidates that are better: a few of them, the best first

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for a row of a file."""
        row = {name: getattr(self, name) for name in COLUMNS}
        return {**row, "rules": list(self.rules), "above": list(self.above)}


COLUMNS = tuple(f.name for f in fields(Answer))


class Answering:
    """Reads the answers and the proofs out of a run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.rules: tuple[Rule, ...] = rules_of(run.data, run.program)
        self._proved_by: dict[Triple, tuple[list[Rule], int]] = {}

    @cached_property
    def explainer(self) -> Explainer:
        """Finds proofs in the closure of the run."""
        assert self.run.closed is not None
        return Explainer(self.run.program, FactIndex(self.run.closed))

    @cached_property
    def ways(self) -> dict[int, list[Step]]:
        """The steps of each query that a rollout proved, by its place among the results.

        Runs are repeatable, so a query's way is found again rather than kept for all candidates.
        """
        run = self.run
        proved = [i for i, r in enumerate(run.results) if r.found.height is not None]
        if run.closed is not None or not proved or not self.has_traces:
            return {}
        lanes = Lanes.of([lanes_of(run.results[i].query, run.settings)[0] for i in proved])
        retracer = Retracer(run.program)
        found = {}
        ends = searching_of(run.settings, run.program)(lanes)
        for i, lane, end in zip(proved, lanes, ends, strict=True):
            exhaustive = run.settings.search == "exhaustive"
            height = (end.height or 0) if exhaustive else run.settings.height
            found[i] = [*retracer.steps(lane.triple, height, end.choices, lane.without)]
        return found

    @property
    def has_traces(self) -> bool:
        """Whether proofs can be shown: the plain reference of exhaustive search keeps none."""
        settings = self.run.settings
        how = (settings.engine, settings.search, settings.backend)
        return how != ("rollout", "exhaustive", "python")

    def answers(self) -> Iterator[Answer]:
        """The answer of each ranking, in the order of the run."""
        for place, result in enumerate(self.run.results):
            yield self.answer(place, result)

    def answer(self, place: int, result: Result) -> Answer:
        """The answer of one ranking, by its place among the results."""
        program, query, found = self.run.program, result.query, result.found
        rules, count = self.proving(place)
        fact, rank = program.name(query.fact), found.rank
        return Answer(
            fact.predicate,
            fact.subject,
            fact.object,
            query.mode,
            rank.optimistic,
            rank.realistic,
            rank.pessimistic,
            rank.reciprocal("expected"),
            rank.better,
            rank.ties,
            rank.candidates,
            "" if self.run.settings.score == "embedding" else self.outcome(result).name,
            found.height,
            found.weight,
            tuple(rule.name for rule in rules),
            count,
            tuple(program.constants[c] for c in self._above(result)),
        )

    def outcome(self, result: Result) -> Outcome:
        """How the search for the query itself ended."""
        if result.found.outcome is not None:
            return result.found.outcome
        if result.found.height is not None:
            return Outcome.PROVED
        complete = self.run.closed is not None and self.run.closed.complete
        return Outcome.REFUTED if complete else Outcome.DEPTH

    def proof(self, result: Result) -> NamedProof | None:
        """The lowest proof of a query in the closure; None where there is none."""
        if self.run.closed is None or result.found.height is None:
            return None
        proof = self.explainer.explain(result.query.fact)
        return named(proof, self.run.program, self.rules)

    def proving(self, place: int) -> tuple[list[Rule], int]:
        """A few of the rules whose last application proves a query, and how many there are."""
        result = self.run.results[place]
        if result.found.height is None:
            return [], 0
        if self.run.closed is None:
            clauses = [step.clause for step in self.ways.get(place, [])[:1]]
            numbers = [clause for clause in clauses if clause is not None]
            return [self.rules[number] for number in numbers], len(numbers)
        fact = result.query.fact
        if fact not in self._proved_by:  # heads and tails share it
            reasons = other_reasons(self.explainer, fact, self.run.settings.height)
            numbers = [reason.clause for reason in reasons]
            some = [self.rules[number] for number in numbers[:LISTED]]
            self._proved_by[fact] = some, len(numbers)
        return self._proved_by[fact]

    def _above(self, result: Result) -> tuple[int, ...]:
        """A few of the candidates that are better than a query, the best first."""
        query, found = result.query, result.found
        if self.run.closed is None or found.above or not found.rank.better:
            return found.above
        index, (p, s, o) = self.explainer.index, query.fact
        row = index.column(p, o) if query.mode == "head" else index.row(p, s)
        binary = self.run.settings.score == "binary"
        better = nsmallest(
            min(found.rank.better, LISTED),
            (
                (0 if binary else height, candidate)
                for candidate, height in row.items()
                if candidate in query.pool and candidate not in query.known
            ),
        )
        return tuple(candidate for _, candidate in better)
