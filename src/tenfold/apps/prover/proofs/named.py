"""Named: proofs by the names of facts and rules, with the rules' weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tenfold.apps.prover.input.program import Program, Triple
from tenfold.apps.prover.input.terms import Fact, Rule
from tenfold.apps.prover.proofs.proof import Proof


@dataclass(frozen=True, slots=True)
class ProofStep:
    """A fact of a proof: the rule that gives it and the facts it is given from. A fact that is
    known has no rule."""

    fact: Fact
    rule: Rule | None
    body: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class NamedProof:
    """A proof: its steps, what is proved first, and each fact once."""

    steps: tuple[ProofStep, ...]
    height: int  # 0 for a known fact, 1 more than the highest of the body for a rule
    weight: float  # the product of the rules' weights, each as often as it is used

    @property
    def fact(self) -> Fact:
        """What is proved."""
        return self.steps[0].fact

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that it uses, each once, the last to be applied first."""
        return tuple(dict.fromkeys(step.rule for step in self.steps if step.rule))

    def __str__(self) -> str:
        return "\n".join(_tree(self))


def named(proof: Proof, program: Program, rules: tuple[Rule, ...]) -> NamedProof:
    """A proof by names. Heights and weights are its own, not those of the best proofs."""
    steps: list[ProofStep] = []
    for fact in _from_the_top(proof):
        reason = proof.reasons[fact]
        rule = None if reason is None else rules[reason.clause]
        body = () if reason is None else tuple(map(program.name, reason.body))
        steps.append(ProofStep(program.name(fact), rule, body))
    heights: dict[Fact, int] = {}
    weights: dict[Fact, float] = {}
    by_fact = {step.fact: step for step in steps}
    for one in _bottom_up(by_fact, steps[0].fact):
        step = by_fact[one]
        heights[one], weights[one] = 0, 1.0
        if step.rule is not None:
            heights[one] = 1 + max((heights[b] for b in step.body), default=0)
            weights[one] = math.prod((weights[b] for b in step.body), start=step.rule.weight)
    return NamedProof(tuple(steps), heights[steps[0].fact], weights[steps[0].fact])


def _from_the_top(proof: Proof) -> Iterator[Triple]:
    """The facts of a proof, each before those it rests on where it is first used."""
    seen, left = {proof.fact}, [proof.fact]
    while left:
        fact = left.pop()
        yield fact
        reason = proof.reasons[fact]
        new = [one for one in dict.fromkeys(reason.body if reason else ()) if one not in seen]
        seen.update(new)
        left.extend(reversed(new))


def _bottom_up(steps: dict[Fact, ProofStep], top: Fact) -> Iterator[Fact]:
    """The facts of a proof, each after those it rests on."""
    done: set[Fact] = set()
    left = [top]
    while left:
        fact = left[-1]
        waiting = [one for one in steps[fact].body if one not in done]
        if waiting:
            left.extend(waiting)
            continue
        left.pop()
        if fact not in done:
            done.add(fact)
            yield fact


def _tree(proof: NamedProof) -> Iterator[str]:
    """Lines that draw a proof; a fact that is used again is not drawn again."""
    steps = {step.fact: step for step in proof.steps}
    drawn: set[Fact] = set()
    left: list[tuple[Fact, str, str]] = [(proof.fact, "", "")]
    while left:
        fact, lead, below = left.pop()
        step = steps[fact]
        if step.rule is None:
            yield f"{lead}{fact}  known"
            continue
        again = fact in drawn and bool(step.body)
        drawn.add(fact)
        note = "  as above" if again else f"  by {said(step.rule)}"
        yield f"{lead}{fact}{note}"
        rest = () if again else step.body
        for number, one in reversed([*enumerate(rest)]):
            last = number == len(rest) - 1
            mark, more = ("└─ ", "   ") if last else ("├─ ", "│  ")
            left.append((one, below + mark, below + more))


def said(rule: Rule) -> str:
    """A rule with its name and weight.

    >>> from tenfold.apps.prover.input.terms import Atom, Variable
    >>> said(Rule(Atom("p", Variable("X"), "a"), (Atom("q", Variable("X"), "b"),), "r7", 0.5))
    'r7 (0.5): p(X,a) :- q(X,b).'
    """
    return f"{rule.name} ({rule.weight:g}): {rule}"
