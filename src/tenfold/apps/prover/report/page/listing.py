"""Listing: the queries of a page one by one, with their proofs, as data that its script reads."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tenfold.apps.prover.input.program import Program, Triple
from tenfold.apps.prover.input.terms import Rule
from tenfold.apps.prover.output.answers import Answer, Answering
from tenfold.apps.prover.proofs.named import NamedProof, said
from tenfold.apps.prover.proofs.trajectory import Step
from tenfold.apps.prover.reference.top_down import State

LISTED = 2000  # rankings of a page: more would make it slow
_LEFT_OUT = ("relation", "subject", "object", "expected")


class Listing:
    """Rankings, their proofs and the rules of these; a run with many has some of them, evenly."""

    def __init__(self, answering: Answering, most: int = LISTED) -> None:
        self.answering = answering
        self.every = max(1, -(-len(answering.run.results) // most))
        self.uses: Counter[Rule] = Counter()  # rules, and in how many of the proofs
        self._rules: dict[Rule, int] = {}
        self._proofs: list[Any] = []
        self._places: dict[Triple, int] = {}
        self.queries = [
            self._query(place) for place in range(0, len(answering.run.results), self.every)
        ]

    def as_json(self) -> str:
        """The data, as it may stand in a page."""
        made = {
            "closure": self.answering.run.closed is not None,
            "without": "The plain reference keeps no traces: another backend shows proofs.",
            "rules": [said(rule) for rule in self._rules],
            "proofs": self._proofs,
            "queries": self.queries,
        }
        return json.dumps(made, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")

    def _query(self, place: int) -> dict[str, Any]:
        result = self.answering.run.results[place]
        answer: Answer = self.answering.answer(place, result)
        row = {k: v for k, v in answer.as_dict().items() if k not in _LEFT_OUT}
        proof = None if answer.height is None else self._proof(place)
        return {
            **row,
            "fact": f"{answer.relation}({answer.subject},{answer.object})",
            "rules": [self._rule(rule) for rule in self.answering.proving(place)[0]],
            "proof": proof,
        }

    def _rule(self, rule: Rule) -> int:
        return self._rules.setdefault(rule, len(self._rules))

    def _proof(self, place: int) -> int | None:
        """The number of a query's proof; head and tail of a fact share one."""
        result = self.answering.run.results[place]
        proof = self.answering.proof(result)
        if proof is not None:
            self.uses.update(proof.rules)
            fact = result.query.fact
            if fact not in self._places:
                self._places[fact] = self._add(self._tree(proof))
            return self._places[fact]
        steps = self.answering.ways.get(place)
        if steps is None:
            return None
        clauses = {step.clause for step in steps if step.clause is not None}
        self.uses.update(self.answering.rules[clause] for clause in clauses)
        program = self.answering.run.program
        drawn = [[_goals(program, step.state), self._by(step)] for step in steps]
        return self._add([*drawn, ["no goals left: proved", ""]])

    def _add(self, made: Any) -> int:
        self._proofs.append(made)
        return len(self._proofs) - 1

    def _tree(self, proof: NamedProof) -> list[Any]:
        numbers = {step.fact: i for i, step in enumerate(proof.steps)}
        return [
            [
                str(step.fact),
                -1 if step.rule is None else self._rule(step.rule),
                [numbers[fact] for fact in step.body],
            ]
            for step in proof.steps
        ]

    def _by(self, step: Step) -> str:
        if step.fact is not None:
            return f"by the fact {self.answering.run.program.name(step.fact)}"
        assert step.clause is not None
        return f"by {said(self.answering.rules[step.clause])}"


def _goals(program: Program, state: State) -> str:
    return ", ".join(program.written(goal[:3]) for goal in state)
