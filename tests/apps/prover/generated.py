"""Small random programs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

from hypothesis import strategies as st

from tenfold.apps.prover.input.program import Clause, Program, Triple

PREDICATES = ("p", "q", "r")
CONSTANTS = ("a", "b", "c", "d")


@st.composite
def programs(draw: st.DrawFn, body: int = 2, clauses: int = 4) -> Program:
    """Programs over three predicates and four constants, with constants and repeats in rules."""
    place = st.integers(0, len(CONSTANTS) - 1)
    triple = st.tuples(st.integers(0, len(PREDICATES) - 1), place, place)
    term = st.one_of(st.integers(-3, -1), st.integers(-3, -1), place)
    atom = st.tuples(st.integers(0, len(PREDICATES) - 1), term, term)
    facts = draw(st.lists(triple, max_size=7))
    made = []
    for _ in range(draw(st.integers(0, clauses))):
        atoms = draw(
            st.lists(atom, min_size=0 if draw(st.integers(0, 9)) == 0 else 1, max_size=body)
        )
        bound = [t for a in atoms for t in a[1:] if t < 0]
        end = st.one_of(st.sampled_from(bound), st.sampled_from(bound), place) if bound else place
        head = (draw(st.integers(0, len(PREDICATES) - 1)), draw(end), draw(end))
        made.append(renamed(head, tuple(atoms)))
    return Program(PREDICATES, CONSTANTS, tuple(sorted(set(facts))), tuple(dict.fromkeys(made)))


# some of them multiply with rounding, some to the same number in different ways
CONFIDENCES = (1.0, 0.9, 0.7, 0.5, 0.3, 0.21, 0.15, 0.1)


@st.composite
def weighted(draw: st.DrawFn, body: int = 2, clauses: int = 4) -> Program:
    """Such programs with a weight for each rule."""
    made = draw(programs(body, clauses))
    count = len(made.clauses)
    drawn = draw(st.lists(st.sampled_from(CONFIDENCES), min_size=count, max_size=count))
    return replace(made, weights=tuple(drawn))


@st.composite
def chains(draw: st.DrawFn) -> Program:
    """Programs whose clauses are chains from one end of the head to the other, so that no variable
    ever stands in more goals than where it came up."""
    place = st.integers(0, len(CONSTANTS) - 1)
    predicate = st.integers(0, len(PREDICATES) - 1)
    facts = draw(st.lists(st.tuples(predicate, place, place), max_size=9))
    made = []
    for _ in range(draw(st.integers(1, 4))):
        length = draw(st.integers(1, 3))
        # from -1 to -2 by way of others; an end may be a constant
        stops = [-1, *range(-3, -2 - length, -1), -2]
        ends = {-1: -1, -2: -2, draw(st.sampled_from([-1, -2])): draw(st.one_of(place, place))}
        ends = ends if draw(st.integers(0, 3)) == 0 else {}
        links = [(ends.get(a, a), ends.get(b, b)) for a, b in pairwise(stops)]
        if length > 1 and draw(st.booleans()):
            links.append((stops[1], draw(place)))  # a middle one in three atoms
        atoms = [
            (draw(predicate), *(link if draw(st.booleans()) else link[::-1])) for link in links
        ]
        head = (draw(predicate), ends.get(-1, -1), ends.get(-2, -2))
        made.append(renamed(head, tuple(draw(st.permutations(atoms)))))
    return Program(PREDICATES, CONSTANTS, tuple(sorted(set(facts))), tuple(dict.fromkeys(made)))


def renamed(head: Triple, body: tuple[Triple, ...]) -> Clause:
    """The clause with its variables numbered in order of appearance."""
    names: dict[int, int] = {}

    def atom(a: Triple) -> Triple:
        s, o = (t if t >= 0 else names.setdefault(t, -1 - len(names)) for t in a[1:])
        return (a[0], s, o)

    return Clause(atom(head), tuple(map(atom, body)))


def everything(program: Program) -> list[Triple]:
    """Every ground atom."""
    constants = range(len(program.constants))
    return list(product(range(len(program.predicates)), constants, constants))
