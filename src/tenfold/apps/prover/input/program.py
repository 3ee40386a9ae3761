"""Program: facts and rules in numbers, which the references and the engines share.

A constant is its place in the sorted list of constants, a predicate likewise; the variables of a
rule are -1, -2, … in the order in which its head, then its body, name them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.dataset import Dataset
from tenfold.apps.prover.input.terms import Atom, Fact, Rule, Variable

Triple = tuple[int, int, int]  # predicate, subject, object; in a pattern, a variable is below 0


class Clause(NamedTuple):
    """A rule in numbers."""

    head: Triple
    body: tuple[Triple, ...]

    @property
    def variables(self) -> int:
        """How many variables it has."""
        return max(0, -min(t for atom in (self.head, *self.body) for t in atom[1:]))


@dataclass(frozen=True, slots=True)
class Program:
    """Facts and clauses in numbers, each once, facts sorted; and the names behind them."""

    predicates: tuple[str, ...]
    constants: tuple[str, ...]
    facts: tuple[Triple, ...]
    clauses: tuple[Clause, ...]
    weights: tuple[float, ...] = ()  # of the clauses; none: each weighs 1

    @property
    def weighed(self) -> list[tuple[Clause, float]]:
        """The clauses, in their order, each with its weight."""
        weights = self.weights or (1.0,) * len(self.clauses)
        return list(zip(self.clauses, weights, strict=True))

    def number(self, fact: Fact) -> Triple:
        """A fact in numbers.

        >>> made = program([Fact("p", "a", "b")], [])
        >>> made.number(Fact("p", "b", "a"))
        (0, 1, 0)
        """
        return (
            _place(self.predicates, fact.predicate, "predicate"),
            _place(self.constants, fact.subject, "constant"),
            _place(self.constants, fact.object, "constant"),
        )

    def written(self, atom: Triple) -> str:
        """An atom by name, its variables X1, X2, …

        >>> program([Fact("p", "a", "b")], []).written((0, 1, -1))
        'p(b,X1)'
        """
        s, o = (f"X{-t}" if t < 0 else self.constants[t] for t in atom[1:])
        return f"{self.predicates[atom[0]]}({s},{o})"

    def name(self, triple: Triple) -> Fact:
        """The fact behind its numbers."""
        p, s, o = triple
        return Fact(self.predicates[p], self.constants[s], self.constants[o])


def program(
    facts: Iterable[Fact],
    rules: Iterable[Rule],
    mentioned: Iterable[Fact] = (),
    offered: Iterable[str] = (),
) -> Program:
    """Facts and rules in numbers; `mentioned` are facts that are only asked about, `offered`
    constants that only stand for others."""
    facts, rules, mentioned = tuple(facts), tuple(rules), tuple(mentioned)
    atoms = [a for r in rules for a in (r.head, *r.body)]
    predicates = {f.predicate for f in (*facts, *mentioned)} | {a.predicate for a in atoms}
    constants = {c for f in (*facts, *mentioned) for c in f[1:]} | set(offered)
    constants.update(t for a in atoms for t in a[1:] if not isinstance(t, Variable))
    p_of = {name: i for i, name in enumerate(sorted(predicates))}
    c_of = {name: i for i, name in enumerate(sorted(constants))}
    numbered = {(p_of[f.predicate], c_of[f.subject], c_of[f.object]) for f in facts}
    clauses: dict[Clause, float] = {}
    for rule in rules:  # one that stands twice has its first weight
        clauses.setdefault(_clause(rule, p_of, c_of), rule.weight)
    return Program(
        tuple(p_of),
        tuple(c_of),
        tuple(sorted(numbered)),
        tuple(clauses),
        tuple(clauses.values()),
    )


def program_of(data: Dataset) -> Program:
    """What a data set knows, with numbers for all that it asks about or offers as a candidate."""
    offered = (c for members in data.domains.values() for c in members)
    return program(data.train, data.rules, (*data.valid, *data.test), offered)


def rules_of(data: Dataset, program: Program) -> tuple[Rule, ...]:
    """The rule behind each clause of a data set's program: the first that says it."""
    p_of = {name: i for i, name in enumerate(program.predicates)}
    c_of = {name: i for i, name in enumerate(program.constants)}
    found: dict[Clause, Rule] = {}
    for rule in data.rules:
        found.setdefault(_clause(rule, p_of, c_of), rule)
    return tuple(found[clause] for clause in program.clauses)


def _clause(rule: Rule, p_of: dict[str, int], c_of: dict[str, int]) -> Clause:
    seen: dict[Variable, int] = {}

    def atom(a: Atom) -> Triple:
        s, o = (
            seen.setdefault(t, -1 - len(seen)) if isinstance(t, Variable) else c_of[t]
            for t in a[1:]
        )
        return (p_of[a.predicate], s, o)

    return Clause(atom(rule.head), tuple(map(atom, rule.body)))


def _place(names: tuple[str, ...], name: str, kind: str) -> int:
    at = bisect_left(names, name)
    if at < len(names) and names[at] == name:
        return at
    raise InputError(f"the {kind} {name!r} is not known", fix=f"name a {kind} of the data")
