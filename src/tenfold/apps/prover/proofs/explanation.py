"""Explanation: why a fact holds, by which other rules it holds too, or which subgoal fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from tenfold.apps.prover.input.program import Program, Triple
from tenfold.apps.prover.input.terms import Fact, Rule, Variable
from tenfold.apps.prover.proofs.grounding import bind_head, bound, groundings
from tenfold.apps.prover.proofs.named import NamedProof, named, said
from tenfold.apps.prover.proofs.proof import Explainer, Reason

SHOWN = 10  # alternatives, and rules that fail
TRIED = 200  # ways of a rule that are looked at for one that does not rest on the fact itself
COUNTED = 1000  # ways to match a part of a body


@dataclass(frozen=True, slots=True)
class Failure:
    """A rule whose head fits and whose body does not hold: how far it comes, and what fails."""

    rule: Rule
    holds: tuple[str, ...]  # the subgoals before it, which hold together
    ways: int  # in which they do, counted up to 1000
    example: tuple[Fact, ...]  # the first of these ways
    fails: str | None  # the subgoal; None: the body holds, at the greatest height looked at

    def __str__(self) -> str:
        name = said(self.rule)
        if self.fails is None:
            return f"{name}\n  its body holds, but its proof is higher than was looked for"
        if not self.holds:
            return f"{name}\n  {self.fails} has no proof"
        more = "1000 ways or more" if self.ways >= COUNTED else f"{self.ways} ways"
        ways = "one way" if self.ways == 1 else f"{more}, as {_list(self.example)}"
        return f"{name}\n  {_list(self.holds)} holds in {ways}; none of them has {self.fails}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is known of a fact: its proofs, the lowest first, or why no rule gives it."""

    fact: Fact
    height: int | None  # of the lowest proof; None: there is none
    proofs: tuple[NamedProof, ...]  # the lowest, then one by each other rule: a few of them
    alternatives: int  # how many other rules give it
    failures: tuple[Failure, ...]  # a few of the rules that do not, those that come furthest first
    tried: int  # rules whose head fits
    limit: int  # the greatest height looked at
    complete: bool  # whether nothing follows beyond it

    @property
    def proved(self) -> bool:
        return self.height is not None

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for a file."""
        return {
            "fact": list(self.fact),
            "height": self.height,
            "proofs": [_plain(proof) for proof in self.proofs],
            "alternatives": self.alternatives,
            "failures": [
                {**asdict(one), "rule": _rule(one.rule), "example": [*map(list, one.example)]}
                for one in self.failures
            ],
            "tried": self.tried,
            "limit": self.limit,
            "complete": self.complete,
        }

    def to_pandas(self) -> Any:
        """The steps of all proofs as a DataFrame, where pandas is installed."""
        from tenfold.apps.prover.output.frames import frame

        return frame(
            [
                {
                    "proof": number,
                    "fact": str(step.fact),
                    "rule": step.rule.name if step.rule else None,
                    "weight": step.rule.weight if step.rule else None,
                    "body": [str(fact) for fact in step.body],
                }
                for number, proof in enumerate(self.proofs)
                for step in proof.steps
            ],
            ("proof", "fact", "rule", "weight", "body"),
        )


def other_reasons(explainer: Explainer, fact: Triple, limit: int) -> Iterator[Reason]:
    """A way to give a fact by each rule that does, in the order of the rules, with proofs of the
    body that do not rest on the fact itself."""
    height = explainer.index.height(fact)
    for number in explainer.clauses.get(fact[0], ()):
        low = next(explainer.reasons_by(number, fact, height), None) if height else None
        if low is not None:  # what is lower than a fact does not rest on it
            yield low
            continue
        for reason in islice(explainer.reasons_by(number, fact, limit), TRIED):
            below = (explainer.explain(one).reasons for one in reason.body)
            if fact not in reason.body and not any(fact in reasons for reasons in below):
                yield reason
                break


def explained(
    explainer: Explainer, rules: tuple[Rule, ...], fact: Triple, limit: int, complete: bool
) -> Explanation:
    """What a closure up to a height says of a fact."""
    program, height = explainer.program, explainer.index.height(fact)
    fitting = [
        number
        for number in explainer.clauses.get(fact[0], ())
        if bind_head(program.clauses[number], fact) is not None
    ]
    proofs: list[NamedProof] = []
    failures: list[Failure] = []
    others: list[Reason] = []
    if height is None:
        failures = [_failure(explainer, rules, number, fact) for number in fitting]
        failures.sort(key=lambda one: len(one.holds) / max(1, len(one.rule.body)), reverse=True)
    else:
        first = explainer.reason(fact)
        proofs = [named(explainer.rest_on(fact, first), program, rules)]
        others = [
            reason
            for reason in other_reasons(explainer, fact, limit)
            if first is None or reason.clause != first.clause
        ]
        proofs += [
            named(explainer.rest_on(fact, reason), program, rules) for reason in others[:SHOWN]
        ]
    return Explanation(
        program.name(fact),
        height,
        tuple(proofs),
        len(others),
        tuple(failures[:SHOWN]),
        len(fitting),
        limit,
        complete,
    )


def _failure(explainer: Explainer, rules: tuple[Rule, ...], number: int, fact: Triple) -> Failure:
    program, index = explainer.program, explainer.index
    clause = program.clauses[number]
    binding = bind_head(clause, fact) or {}
    atoms = tuple(bound(atom, binding) for atom in clause.body)
    rule = rules[number]
    terms = (term for atom in (rule.head, *rule.body) for term in atom[1:])
    names = [*dict.fromkeys(term for term in terms if isinstance(term, Variable))]

    def written(atom: Triple) -> str:
        """An atom by name, its variables as the rule calls them."""
        s, o = (str(names[-1 - t]) if t < 0 else program.constants[t] for t in atom[1:])
        return f"{program.predicates[atom[0]]}({s},{o})"

    for atom in atoms:
        if next(groundings((atom,), {}, index), None) is None:
            return Failure(rule, (), 0, (), written(atom))
    for count in range(len(atoms), 0, -1):
        ways = [*islice(groundings(atoms[:count], {}, index), COUNTED)]
        if ways:
            holds = tuple(map(written, atoms[:count]))
            example = tuple(map(program.name, ways[0]))
            fails = written(atoms[count]) if count < len(atoms) else None
            return Failure(rule, holds, len(ways), example, fails)
    return Failure(rule, (), 1, (), None)  # an empty body, and no height to apply it at


def _lines(made: Explanation) -> Iterator[str]:
    if made.height is not None:
        known = "known" if not made.height else f"proved, height {made.height}"
        yield f"{made.fact}: {known}, weight {made.proofs[0].weight:g}"
        yield str(made.proofs[0])
        if made.alternatives:
            count = made.alternatives
            rules = "rule gives" if count == 1 else "rules give"
            yield f"\n{count} other {rules} it, too:"
        for proof in made.proofs[1:]:
            yield f"\nheight {proof.height}, weight {proof.weight:g}"
            yield str(proof)
        if made.alternatives >= len(made.proofs):
            yield f"\n… and {made.alternatives - len(made.proofs) + 1} more"
        return
    yield f"{made.fact}: {_unproved(made)}"
    if not made.tried:
        yield f"no rule has a head that {made.fact} fits, and it is not among the known facts"
    for failure in made.failures:
        yield f"\n{failure}"
    if made.tried > len(made.failures):
        yield f"\n… and {made.tried - len(made.failures)} more rules"


def _unproved(made: Explanation) -> str:
    if made.complete:
        return "no proof, at any height"
    return f"no proof up to height {made.limit}; a greater --height might find one"


def _list(parts: tuple[object, ...]) -> str:
    return ", ".join(map(str, parts))


def _rule(rule: Rule) -> dict[str, Any]:
    return {"name": rule.name, "weight": rule.weight, "text": str(rule)}


def _plain(proof: NamedProof) -> dict[str, Any]:
    return {
        "height": proof.height,
        "weight": proof.weight,
        "steps": [
            {
                "fact": list(step.fact),
                "rule": _rule(step.rule) if step.rule else None,
                "body": [*map(list, step.body)],
            }
            for step in proof.steps
        ],
    }


def number_of(program: Program, fact: Fact) -> Triple:
    """A fact in numbers, or an error that names what is near."""
    from difflib import get_close_matches

    from tenfold.apps.prover.errors import InputError

    for kind, names, name in (
        ("predicate", program.predicates, fact.predicate),
        ("constant", program.constants, fact.subject),
        ("constant", program.constants, fact.object),
    ):
        if name not in names:
            near = get_close_matches(name, names, 3) if len(names) <= 100_000 else []
            fix = (
                f"name one of the data, such as {', '.join(near)}"
                if near
                else "name one of the data"
            )
            raise InputError(f"the {kind} {name!r} of {fact} is not in the data", fix=fix)
    return program.number(fact)
