"""Mine: the best rules of some facts, and the file that keeps them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.notice import Notice
from tenfold.apps.prover.input.terms import Atom, Fact, Rule, Term, Variable
from tenfold.apps.prover.mining.constants import mine_constants
from tenfold.apps.prover.mining.found import COLUMNS, NONE, Found, confidence
from tenfold.apps.prover.mining.graph import Graph, Ints, graph_of
from tenfold.apps.prover.mining.paths import Walks, mine_paths

X, Y, A, B = (Variable(name) for name in "xyab")


@dataclass(frozen=True, slots=True)
class Mined:
    """Rules, best first, and of how many predictions of each how many were right."""

    rules: tuple[Rule, ...]
    supports: tuple[tuple[int, int], ...]
    notices: tuple[Notice, ...]


def mine(facts: Iterable[Fact], count: int, walks: Walks | None = None) -> Mined:
    """The best rules: paths of up to three steps, and rules with constants.

    >>> born = [Fact("born", f"p{i}", f"c{i % 3}") for i in range(60)]
    >>> lives = [Fact("lives", f"p{i}", f"c{i % 3}") for i in range(59)]
    >>> made = mine([*born, *lives], 2)
    >>> for rule, (right, made_in_all) in zip(made.rules, made.supports):
    ...     print(rule, right, "of", made_in_all, round(rule.weight, 3))
    born(x,y) :- lives(x,y). 59 of 59 0.855
    lives(x,y) :- born(x,y). 59 of 60 0.843
    """
    walks = walks or Walks()
    graph = graph_of(facts)
    found = Found(count, np.bincount(graph.relation, minlength=len(graph.relations)))
    mine_paths(graph, found, walks)
    mine_constants(graph, found, walks)
    best = found.best()
    rules = tuple(
        _rule(graph, row, f"m{i + 1}", weight)
        for i, (row, weight) in enumerate(zip(best.T, confidence(best).tolist(), strict=True))
    )
    supports = tuple((right, made) for right, made in best[:2].T.tolist())
    return Mined(rules, supports, _notices(found, walks, len(rules)))


def _rule(graph: Graph, row: Ints, name: str, weight: float) -> Rule:
    part = dict(zip(COLUMNS, row.tolist(), strict=True))

    def atom(step: int, source: Term, target: Term) -> Atom:
        back, relation = divmod(step, len(graph.relations))
        ends = (target, source) if back else (source, target)
        return Atom(graph.relations[relation], *ends)

    if part["own"] != NONE:
        other = A if part["other"] == NONE else graph.entities[part["other"]]
        head = atom(part["head"], X, graph.entities[part["own"]])
        return Rule(head, (atom(part["first"], X, other),), name, weight)
    steps = [part[one] for one in ("first", "second", "third") if part[one] != NONE]
    places = [X, *(A, B)[: len(steps) - 1], Y]
    body = tuple(map(atom, steps, places, places[1:]))
    return Rule(atom(part["head"], X, Y), body, name, weight)


def _notices(found: Found, walks: Walks, kept: int) -> tuple[Notice, ...]:
    made = [f"{kept:,} of {found.seen:,} rules are kept that train bears out at least twice"]
    if walks.sampled:
        made.append(
            f"{walks.sampled:,} bodies have too many groundings to follow all: "
            "their confidences are those of a sample of subjects"
        )
    if walks.left_out:
        made.append(
            f"{walks.left_out:,} bodies of two atoms are not tried with a third: "
            "they join fewer facts than those that are"
        )
    return tuple(Notice("mined", message) for message in made)


_BARE = re.compile(r"""[^\s(),'"]+""")


def write_rules(path: Path, mined: Mined) -> None:
    """Write mined rules as `id:weight:body -> head`, each after its support, whole or not at all.

    Weights are written so that they are read again bit for bit.
    """
    lines = ["% rules mined from train; before each: predictions that were right of all it made"]
    for rule, (right, made) in zip(mined.rules, mined.supports, strict=True):
        lines += [f"% {right} of {made}", written(rule)]
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        os.replace(partial, path)
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror or error}", fix="give --mine-to a file that can be written"
        ) from None


def written(rule: Rule) -> str:
    """A rule as it is written in a file.

    >>> written(Rule(Atom("p q", X, "new york"), (Atom("r", X, Y),), "m1", 0.5))
    "m1:0.5:r(x,y) -> 'p q'(x,'new york')"
    """
    body = ", ".join(map(_atom, rule.body))
    return f"{rule.name}:{rule.weight!r}:{body} -> {_atom(rule.head)}"


def _atom(atom: Atom) -> str:
    terms: Sequence[Term] = atom[1:]
    first, second = (str(t) if isinstance(t, Variable) else _quoted(t) for t in terms)
    plain = _BARE.fullmatch(atom.predicate) and not re.search("->|:-", atom.predicate)
    return f"{atom.predicate if plain else _quoted(atom.predicate)}({first},{second})"


def _quoted(name: str) -> str:
    if "\n" in name:
        raise InputError(
            f"{name!r} has a line break, which no file of rules can hold",
            fix="leave --mine-to out, or rename it in the data",
        )
    doubled = name.replace("'", "''")
    return f"'{doubled}'"
