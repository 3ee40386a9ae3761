"""Step: all successors of many states, one a row, as one pure function.

A state is a column of words, a goal each; a state without goals is proved. Successors come from
facts in their order, then from clauses in theirs, just as the top-down reference gives them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.columns import Traced, spread
from tenfold.apps.prover.resolution.matching import Without, entries
from tenfold.apps.prover.resolution.patterns import renamed, resolved
from tenfold.apps.prover.resolution.tables import Tables, take
from tenfold.apps.prover.resolution.trying import Heads, tried
from tenfold.apps.prover.resolution.words import Goals, parted


class Step(NamedTuple):
    """The successors of the first states, as many of these as there is room for."""

    taken: Traced  # how many states
    cut: Traced  # [states]: whether a clause fits and no height is left for it
    row: Traced  # [rows]: the state of each successor
    k: Traced  # [rows]: which of the state's successors it is
    inside: Traced  # [rows]: whether there is a successor
    words: Traced  # [goals, rows]: with gaps, variables numbered in order of appearance
    variables: Traced  # [rows]: how many variables


def stepped(
    words: Traced, live: Traced, without: Without, tables: Tables, rows: int, names: int, tries: int
) -> Step:
    """The successors of states [goals, states] that are live, in so many rows.

    `tables` are apart from the `names` variables that a state may have. There is room to try so
    many clauses, of all states together.
    """
    facts = entries(words, live, without, tables)
    heads = Heads(tables.starts, tables.general, tables.heads[0], tables.heads[1])
    clauses = tried(facts.goal, live, heads, tries)
    counts = facts.count + clauses.count
    ends = np.cumsum(counts)
    # the first state whose successors do not fit is left out, with those after it
    taken = ((ends <= rows) & clauses.whole).sum()
    total = np.where(tn.arange(live.shape[0]) < taken, ends, 0).max()
    row = spread(np.minimum(ends, total), rows)
    slot = tn.arange(rows)
    inside = slot < total
    k = np.where(inside, slot - (ends[row] - counts[row]), 0)
    by_fact = k < facts.count[row]
    entry = facts.first[row] + k
    entry = np.where(entry >= facts.skip[row], entry + 1, entry)
    clause = clauses.nth(row, k - facts.count[row])
    x, y = (
        np.where(by_fact, take(column, entry), take(terms, clause))
        for column, terms in zip((tables.subjects, tables.objects), tables.heads, strict=True)
    )
    goal = Goals(*(take(part, row) for part in facts.goal))
    made = resolved(words, goal, (x, y), clause, by_fact, take(without.key, row), tables, row)
    named, variables = renamed(made, tables, names)
    return Step(taken, clauses.cut, row, k, inside, named, variables)


def hopeless(first: Traced, tables: Tables) -> tuple[Traced, Traced]:
    """Which states have no successors, since their first goal is ground, no fact, and has no height
    left; and whether that cuts off a clause. There may be others: these are seen at a glance."""
    p, s, o, left = parted(first, tables.bits)
    ground = (first != 0) & (s >= 0) & (o >= 0) & (left <= 0)
    p = np.maximum(p, 0)
    none = take(tables.starts, p + 1) == take(tables.starts, p)
    cut = tables.general[p]
    return ground & (none | cut), ground & cut
