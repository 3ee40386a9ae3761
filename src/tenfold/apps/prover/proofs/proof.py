"""Proof: why a fact holds, as steps that a checker replays, and the checker.

A proof says of each fact it uses either that it is given, or which clause gives it from which
other facts. The checker shares nothing with the engines: it unifies each clause with the facts
it is said to join, and sees that no fact rests on itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tenfold.apps.prover.errors import ProofError
from tenfold.apps.prover.input.program import Program, Triple
from tenfold.apps.prover.proofs.grounding import bind_head, groundings
from tenfold.apps.prover.proofs.index import FactIndex
from tenfold.apps.prover.reference.top_down import Searcher, unify


class Reason(NamedTuple):
    """A clause, by its place in the program, and the facts its body is matched with."""

    clause: int
    body: tuple[Triple, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """A fact, and the reason for it and for each fact it rests on; None: it is given."""

    fact: Triple
    reasons: Mapping[Triple, Reason | None]


class Explainer:
    """Finds a lowest proof of any fact of a closure: by the first clause that gives it so low."""

    def __init__(self, program: Program, index: FactIndex) -> None:
        self.program, self.index = program, index
        self.clauses: dict[int, list[int]] = {}
        self._found: dict[Triple, Reason | None] = {}
        for number, clause in enumerate(program.clauses):
            self.clauses.setdefault(clause.head[0], []).append(number)

    def explain(self, fact: Triple) -> Proof:
        """A proof of a fact, no higher than its lowest.

        >>> from tenfold.apps.prover.input.program import Clause
        >>> swap = Clause((0, -1, -2), ((0, -2, -1),))
        >>> made = Program(("p",), ("a", "b"), ((0, 0, 1),), (swap,))
        >>> index = FactIndex.of({(0, 0, 1): 0, (0, 1, 0): 1})
        >>> Explainer(made, index).explain((0, 1, 0)).reasons[0, 1, 0]
        Reason(clause=0, body=((0, 0, 1),))
        """
        return self.rest_on(fact, self.reason(fact))

    def rest_on(self, fact: Triple, reason: Reason | None) -> Proof:
        """The proof that begins with a reason and goes on with lowest proofs."""
        reasons: dict[Triple, Reason | None] = {fact: reason}
        left = [*reversed(reason.body)] if reason else []
        while left:
            now = left.pop()
            if now in reasons:
                continue
            reasons[now] = found = self.reason(now)
            left.extend(reversed(found.body if found else ()))
        return Proof(fact, reasons)

    def check_all(self) -> int:
        """How many facts were proved anew, each at its height, step by step; or an error."""
        reasons = {fact: self.reason(fact) for fact, _ in self.index.facts()}
        found = check_reasons(self.program, reasons)
        for fact, height in self.index.facts():
            if found.get(fact) != height:
                raise _wrong(self.program, fact, f"its proof has not the height {height}")
        return len(found)

    def reason(self, fact: Triple) -> Reason | None:
        """What gives a fact at its lowest; None: it is given."""
        if fact not in self._found:
            self._found[fact] = self._reason(fact)
        return self._found[fact]

    def _reason(self, fact: Triple) -> Reason | None:
        height = self.index.height(fact)
        if height is None:
            raise ProofError(f"{self.program.name(fact)} has no proof", fix="ask for one that has")
        if not height:
            return None
        for number in self.clauses.get(fact[0], ()):
            for reason in self.reasons_by(number, fact, height):
                return reason
        raise ProofError(
            f"no clause gives {self.program.name(fact)} at height {height}",
            fix="the heights are not those of this program's closure",
        )

    def reasons_by(self, number: int, fact: Triple, below: int | None = None) -> Iterator[Reason]:
        """The ways in which a clause gives a fact, out of facts of less than some height."""
        clause = self.program.clauses[number]
        binding = bind_head(clause, fact)
        if binding is not None:
            for body in groundings(clause.body, binding, self.index, below):
                yield Reason(number, body)


def check_proof(program: Program, proof: Proof, without: Triple | None = None) -> int:
    """The height of a proof, after every step of it was replayed; an error where one is wrong."""
    if proof.fact not in proof.reasons:
        raise _wrong(program, proof.fact, "it has no reason")
    heights = check_reasons(program, proof.reasons, without)
    if proof.fact not in heights:
        raise _wrong(program, proof.fact, "it rests on itself")
    return heights[proof.fact]


def check_reasons(
    program: Program, reasons: Mapping[Triple, Reason | None], without: Triple | None = None
) -> dict[Triple, int]:
    """The height of each fact by its reason; what rests on itself has none.

    Every clause is unified with the facts it is said to join.
    """
    given = set(program.facts) - {without}
    for fact, reason in reasons.items():
        if reason is None:
            if fact not in given:
                raise _wrong(program, fact, "it is said to be given, and is not")
            continue
        if not 0 <= reason.clause < len(program.clauses):
            raise _wrong(program, fact, f"there is no clause {reason.clause}")
        clause = program.clauses[reason.clause]
        if len(reason.body) != len(clause.body):
            raise _wrong(program, fact, f"clause {reason.clause} has {len(clause.body)} body atoms")
        atoms, facts = (clause.head, *clause.body), (fact, *reason.body)
        if any(atom[0] != one[0] for atom, one in zip(atoms, facts, strict=True)):
            raise _wrong(program, fact, f"clause {reason.clause} has other predicates")
        pairs = [
            p for a, f in zip(atoms, facts, strict=True) for p in zip(a[1:], f[1:], strict=True)
        ]
        if unify(tuple(pairs)) is None:
            raise _wrong(program, fact, f"clause {reason.clause} does not unify with its facts")
        lost = [one for one in reason.body if one not in reasons]
        if lost:
            raise _wrong(program, fact, f"it rests on {program.name(lost[0])}, which has no reason")
    return _heights(reasons)


def _heights(reasons: Mapping[Triple, Reason | None]) -> dict[Triple, int]:
    """The heights, built up from what is given; a fact that rests on itself is never reached."""
    users: dict[Triple, list[Triple]] = {fact: [] for fact in reasons}
    waiting: dict[Triple, int] = {}
    for fact, reason in reasons.items():
        body = set(reason.body) if reason else set()
        waiting[fact] = len(body)
        for one in body:
            users[one].append(fact)
    heights: dict[Triple, int] = {}
    ready = [fact for fact, count in waiting.items() if not count]
    while ready:
        fact = ready.pop()
        reason = reasons[fact]
        heights[fact] = 1 + max((heights[b] for b in reason.body), default=0) if reason else 0
        for user in users[fact]:
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    return heights


def check_choices(
    searcher: Searcher,
    fact: Triple,
    height: int,
    choices: tuple[int, ...],
    without: Triple | None = None,
) -> None:
    """Replay the choices of a rollout by plain unification; an error unless they end in a proof."""
    state = searcher.settle(((*fact, height),), without)
    for number, choice in enumerate(choices):
        successors = [*searcher.successors(state, without)] if state else []
        if not 0 <= choice < len(successors):
            raise ProofError(
                f"step {number} takes successor {choice} of {len(successors)}",
                fix="the trace is not of this query",
            )
        state = successors[choice]
    if state:
        raise ProofError(f"{len(state)} goals are left after {len(choices)} steps", fix="no proof")


def _wrong(program: Program, fact: Triple, what: str) -> ProofError:
    return ProofError(f"{program.name(fact)}: {what}", fix="the proof is wrong: look at its maker")
