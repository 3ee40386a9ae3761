"""Queries: what is ranked against what. One mode replaces heads or tails, never both at once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.dataset import Dataset
from tenfold.apps.prover.input.program import Program, Triple

MODES = ("head", "tail")


@dataclass(frozen=True, slots=True)
class Query:
    """A fact that is asked, the argument replaced, and what may stand there.

    The pool is shared between queries; `known` are those that make a triple of any split, the
    query's own among them: they are no corruptions.
    """

    fact: Triple
    mode: str
    pool: frozenset[int]
    known: frozenset[int]

    @property
    def own(self) -> int:
        """The constant that is replaced."""
        return self.fact[1] if self.mode == "head" else self.fact[2]

    @property
    def kept(self) -> int:
        """The constant that stays."""
        return self.fact[2] if self.mode == "head" else self.fact[1]

    @property
    def candidates(self) -> list[int]:
        """What stands in the query's place, in rising order."""
        return sorted(self.pool - self.known)

    def corrupt(self, candidate: int) -> Triple:
        """The query with a candidate in its place.

        >>> Query((0, 1, 2), "head", frozenset({5}), frozenset({1})).corrupt(5)
        (0, 5, 2)
        """
        p, s, o = self.fact
        return (p, candidate, o) if self.mode == "head" else (p, s, candidate)


def queries(
    data: Dataset, program: Program, modes: Sequence[str] = MODES, limit: int | None = None
) -> list[Query]:
    """The test facts of a data set, mode by mode, each among all its filtered candidates."""
    facts = [program.number(f) for f in data.test[:limit]]
    pools = _Pools(data, program)
    filtered: dict[tuple[str, int, int], set[int]] = {}
    for p, s, o in facts:
        filtered["head", p, o], filtered["tail", p, s] = set(), set()
    predicate = {name: i for i, name in enumerate(program.predicates)}
    constant = {name: i for i, name in enumerate(program.constants)}
    for split in data.splits.values():
        for fact in split:
            p, s, o = predicate[fact.predicate], constant[fact.subject], constant[fact.object]
            if ("head", p, o) in filtered:
                filtered["head", p, o].add(s)
            if ("tail", p, s) in filtered:
                filtered["tail", p, s].add(o)
    known = {key: frozenset(members) for key, members in filtered.items()}
    result = []
    for mode in modes:
        if mode not in MODES:
            raise InputError(f"the mode {mode!r}", fix="say head or tail")
        for p, s, o in facts:
            own, kept = (s, o) if mode == "head" else (o, s)
            pool = pools.of(own, (p, s, o))
            result.append(Query((p, s, o), mode, pool, known[mode, p, kept]))
    return result


class _Pools:
    """The candidates for each constant's place; equal pools are one object."""

    def __init__(self, data: Dataset, program: Program) -> None:
        place = {c: i for i, c in enumerate(program.constants)}
        self.program, self.places = program, data.places
        self.pools: dict[int, frozenset[int]] = {}
        if not data.domains:
            everyone = frozenset(place[c] for c in data.entities)
            self.pools = dict.fromkeys(range(len(program.constants)), everyone)
        for members in data.domains.values():
            pool = frozenset(place[c] for c in members)
            self.pools.update(dict.fromkeys(pool, pool))

    def of(self, constant: int, asked: Triple) -> frozenset[int]:
        """What may stand in a constant's place in a query: its domain, or every entity."""
        if constant not in self.pools:
            fact = self.program.name(asked)
            raise InputError(
                f"{self.program.constants[constant]} of {fact} is in no domain, so nothing says "
                "what may stand in its place",
                where=self.places.get(fact),
                fix="add it to a line of domain2constants.txt, or remove that file to rank all",
            )
        return self.pools[constant]


def sample(asked: Sequence[Query], count: int, seed: int) -> list[Query]:
    """The same queries with at most `count` candidates each, drawn once.

    What is drawn for a query depends on the seed, the query and its mode alone.
    """
    result = []
    for query in asked:
        chosen = query.candidates
        if len(chosen) > count:
            draw = random.Random(f"{seed}:{query.mode}:{query.fact}")
            chosen = draw.sample(chosen, count)
        result.append(Query(query.fact, query.mode, frozenset(chosen), query.known))
    return result
