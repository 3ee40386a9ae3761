"""Proof: why a fact holds, as steps that a checker replays, and the checker.

A proof says of each fact it uses either that it is given, or which clause gives it from which
other facts. The checker shares nothing with the engines: it unifies each clause with the facts
it is said to join, and sees that no fact rests on itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tenfold.apps.prover.errors import ProofError
from tenfold.apps.prover.input.program import Program, Triple
from tenfold.apps.prover.reference.top_down import Searcher, unify, walk


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
    """Finds a lowest proof of any fact of a closure."""

    def __init__(self, program: Program, heights: Mapping[Triple, int]) -> None:
        self.program, self.heights = program, heights
        self.objects: dict[tuple[int, int], list[int]] = {}
        self.subjects: dict[tuple[int, int], list[int]] = {}
        self.pairs: dict[int, list[tuple[int, int]]] = {}
        for p, s, o in sorted(heights):
            self.objects.setdefault((p, s), []).append(o)
            self.subjects.setdefault((p, o), []).append(s)
            self.pairs.setdefault(p, []).append((s, o))

    def explain(self, fact: Triple) -> Proof:
        """A proof of a fact, no higher than its lowest.

        >>> from tenfold.apps.prover.input.program import Clause
        >>> swap = Clause((0, -1, -2), ((0, -2, -1),))
        >>> made = Program(("p",), ("a", "b"), ((0, 0, 1),), (swap,))
        >>> Explainer(made, {(0, 0, 1): 0, (0, 1, 0): 1}).explain((0, 1, 0)).reasons[0, 1, 0]
        Reason(clause=0, body=((0, 0, 1),))
        """
        if fact not in self.heights:
            raise ProofError(f"{self.program.name(fact)} has no proof", fix="ask for one that has")
        reasons: dict[Triple, Reason | None] = {}
        left = [fact]
        while left:
            now = left.pop()
            if now in reasons:
                continue
            reasons[now] = reason = self._reason(now) if self.heights[now] else None
            left.extend(reason.body if reason else ())
        return Proof(fact, reasons)

    def check_all(self) -> int:
        """How many facts were proved anew, each at its height, step by step; or an error."""
        reasons = {
            fact: self._reason(fact) if height else None for fact, height in self.heights.items()
        }
        found = check_reasons(self.program, reasons)
        for fact, height in self.heights.items():
            if found.get(fact) != height:
                raise _wrong(self.program, fact, f"its proof has not the height {height}")
        return len(found)

    def _reason(self, fact: Triple) -> Reason:
        below = self.heights[fact]
        for number, clause in enumerate(self.program.clauses):
            if clause.head[0] != fact[0]:
                continue
            found = unify(((clause.head[1], fact[1]), (clause.head[2], fact[2])))
            if found is None:
                continue
            stack: list[tuple[dict[int, int], tuple[Triple, ...]]] = [(found, ())]
            while stack:
                binding, done = stack.pop()
                if len(done) == len(clause.body):
                    return Reason(number, done)
                for matched in self._matches(clause.body[len(done)], binding, below):
                    _, s, o = clause.body[len(done)]
                    more = dict(binding)
                    for term, value in ((s, matched[1]), (o, matched[2])):
                        if walk(term, more) < 0:
                            more[walk(term, more)] = value
                    stack.append((more, (*done, matched)))
        raise ProofError(
            f"no clause gives {self.program.name(fact)} at height {below}",
            fix="the heights are not those of this program's closure",
        )

    def _matches(self, atom: Triple, binding: dict[int, int], below: int) -> list[Triple]:
        p, s, o = atom[0], walk(atom[1], binding), walk(atom[2], binding)
        if s >= 0 and o >= 0:
            found = [(p, s, o)]
        elif s >= 0:
            found = [(p, s, other) for other in self.objects.get((p, s), ())]
        elif o >= 0:
            found = [(p, other, o) for other in self.subjects.get((p, o), ())]
        else:
            found = [(p, a, b) for a, b in self.pairs.get(p, ()) if s != o or a == b]
        return [fact for fact in found if self.heights.get(fact, below) < below]


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
