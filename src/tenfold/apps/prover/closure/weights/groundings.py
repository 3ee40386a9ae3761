"""Groundings: every grounding of some rules over given facts, the best of each kind in a table.

A rule's body is matched atom by atom; a row is a binding with the places of its facts. When it is
whole, its weight is the product of its facts' weights in the order of the body, then times the
rule's; it goes to the table where the rule's offset and the place of its head say, if it is greater
than what is there. Rules are data: one traced loop takes any of them, in pieces of bounded size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.backend import padded, traced
from tenfold.apps.prover.closure.joins import Ints, Packing
from tenfold.apps.prover.closure.lookups import Lookup, lookup
from tenfold.apps.prover.closure.weights.chains import Floats, Matrices, chain_of, ground_chains
from tenfold.apps.prover.columns import END, Traced, spread
from tenfold.apps.prover.input.program import Clause, Program, Triple

NONE = -1.0  # the weight of what has no proof
PIECE = 1 << 15  # rows of a piece to begin with


class Rules(NamedTuple):
    """Rules as tables, their atoms in the order in which they are matched."""

    atoms: Traced  # [rules, longest, 3]; predicate -1 where a body is shorter
    turns: Traced  # [rules, longest]: where in the body the atom stands
    heads: Traced  # [rules, 3]
    weights: Traced  # [rules]
    offsets: Traced  # [rules]: of a head's place in the table
    firsts: Traced  # [rules]: where the facts of the first atom begin in the index
    work: Traced  # [rules]: how many facts match the first atoms up to this rule
    variables: Traced  # 0, 1, 2, … up to the most variables of a rule


class Rows(NamedTuple):
    """Bindings, a column each; `item` rises, and says which fact of which first atom it is of."""

    bound: Traced  # [variables, rows], -1 while free
    places: Traced  # [longest, rows]: of the facts, by their atom's place in the body
    rule: Traced
    item: Traced
    live: Traced


class Facts(NamedTuple):
    """What rules are grounded over, and the weight of each by its place; the last weighs 1, and
    stands for atoms that a shorter body has not."""

    stored: Lookup
    weights: Traced


@dataclass(frozen=True, slots=True)
class Given:
    """Facts with their weights, sorted; and as matrices, where these can be made."""

    facts: Facts
    matrices: Matrices | None
    packing: Packing

    @staticmethod
    def of(keys: Ints, weights: Floats, program: Program, packing: Packing) -> Given:
        """Some facts of a program's closure."""
        room = np.ones(padded(len(keys) + 1, 64))
        room[: len(keys)] = weights
        sizes = (len(program.predicates), len(program.constants))
        return Given(
            Facts(lookup(keys, np.arange(len(keys)), packing), room),
            Matrices.of(keys, weights, packing, *sizes),
            packing,
        )


def ground(
    clauses: Sequence[tuple[Clause, float]],
    offsets: Sequence[int],
    given: Given,
    wanted: Ints,
    table: Floats,
    backend: str,
    rows: int | None = None,
) -> Floats:
    """The table after all groundings of some rules with a body; `wanted` are the keys of heads,
    sorted: what a head's place there and its rule's offset come to is its place in the table.

    `rows` is the size of a piece to begin with.
    """
    facts, packing = given.facts, given.packing
    whole = [one for one in zip(clauses, offsets, strict=True) if one[0][0].body]
    if given.matrices is not None:
        chains = [chain_of(clause) for (clause, _), _ in whole]
        paid = given.matrices.pay({body for body in chains if body})
        dense = [
            (body, clause, weight, offset)
            for body, ((clause, weight), offset) in zip(chains, whole, strict=True)
            if body and body in paid
        ]
        table = table.copy()
        ground_chains(dense, given.matrices, wanted, table, packing, backend)
        whole = [one for body, one in zip(chains, whole, strict=True) if body not in paid]
    if not whole:
        return table
    rules = _rules(whole, facts.stored, packing)
    heads = np.full(padded(len(wanted) + 1, 64), END)
    heads[: len(wanted)] = wanted
    room = np.full(padded(len(table) + 1, 64), NONE)  # what is not wanted goes to the last place
    room[: len(table)] = table
    at, total, size = np.int64(0), int(rules.work[-1]), rows or PIECE
    while at < total:
        shapes = (size, len(heads), len(room), len(facts.weights), *(c.shape for c in rules))
        pieces = np.int64(1 if run.is_new(backend, *shapes) else 1 << 62)
        before = at
        room, at = run.on(backend)(room, at, rules, facts, heads, packing, pieces, rows=size)
        size *= 2 if at == before else 1
    return np.asarray(room[: len(table)], np.float64)


def _rules(
    whole: Sequence[tuple[tuple[Clause, float], int]], index: Lookup, packing: Packing
) -> Rules:
    longest = max((len(clause.body) for (clause, _), _ in whole), default=1)
    most = max((clause.variables for (clause, _), _ in whole), default=0)
    count = padded(len(whole), 16)
    atoms = np.full((count, longest, 3), -1, np.int64)
    turns = np.zeros((count, longest), np.int64)
    heads = np.zeros((count, 3), np.int64)
    weights, given = np.zeros(count), np.zeros(count, np.int64)
    for i, ((clause, weight), offset) in enumerate(whole):
        order = _order(clause.body)
        atoms[i, : len(order)] = [clause.body[at] for at in order]
        turns[i, : len(order)] = order
        turns[i, len(order) :] = range(len(order), longest)
        heads[i], weights[i], given[i] = clause.head, weight, offset
    first, last = ranges(atoms[:, 0], index.keys, packing)
    sizes = np.where(np.arange(count) < len(whole), last - first, 0)
    variables = np.arange(padded(most, 4))
    return Rules(atoms, turns, heads, weights, given, first, np.cumsum(sizes), variables)


def _order(body: tuple[Triple, ...]) -> list[int]:
    """The atoms as they are matched: always one with the most terms known."""
    order: list[int] = []
    known: set[int] = set()
    left = list(range(len(body)))
    while left:
        scores = [sum(t >= 0 or t in known for t in body[at][1:]) for at in left]
        order.append(left.pop(scores.index(max(scores))))
        known.update(body[order[-1]][1:])
    return order


def ranges(atom: Traced, index: Traced, packing: Packing) -> tuple[Traced, Traced]:
    """From where to where in an index the facts lie that an atom matches; free terms are below 0.

    Where both terms are free and the same, some of these match it.
    """
    p, s, o = np.maximum(atom[:, 0], 0), atom[:, 1], atom[:, 2]
    base = p << 2 * packing.bits
    step = np.int64(1) << packing.bits
    known, other = s >= 0, o >= 0
    low = np.where(
        known,
        base | (np.maximum(s, 0) << packing.bits) | np.maximum(o, 0),
        np.where(other, packing.reverse + (base | (np.maximum(o, 0) << packing.bits)), base),
    )
    width = np.where(known & other, 1, np.where(known | other, step, step * step))
    return np.searchsorted(index, low), np.searchsorted(index, low + width)


@traced("rows")
def run(
    table: Traced,
    at: Traced,
    rules: Rules,
    facts: Facts,
    heads: Traced,
    packing: Packing,
    pieces: Traced,
    rows: int,
) -> tuple[Traced, Traced]:
    """The table and how many items are done, after so many pieces at most.

    It ends where the first item of a piece needs more rows than there are.
    """
    total = rules.work[-1]
    longest = rules.atoms.shape[1]

    def piece(carry: tuple[Traced, ...]) -> tuple[Traced, ...]:
        table, at, done, _ = carry
        found, taken = _first(at, rules, facts, packing, rows), np.minimum(total, at + rows)

        def extend(turn: Traced, carry: tuple[Rows, Traced]) -> tuple[Rows, Traced]:
            return _extended(*carry, turn, rules, facts, packing, rows)

        if longest > 1:
            found, taken = tn.fori_loop(1, longest, extend, (found, taken))
        table = _kept(table, found, taken, rules, facts, heads, packing)
        return table, taken, done + 1, taken == at

    zero = pieces * 0
    made = tn.while_loop(
        lambda c: (c[1] < total) & (c[2] < pieces) & ~c[3], piece, (table, at, zero, zero > 0)
    )
    return made[0], made[1]


def _first(at: Traced, rules: Rules, facts: Facts, packing: Packing, rows: int) -> Rows:
    """The next items, each rule's first atom matched with one of its facts."""
    item = at + tn.arange(rows)
    live = item < rules.work[-1]
    rule = np.minimum(np.searchsorted(rules.work, item, side="right"), rules.work.shape[0] - 1)
    before = np.where(rule > 0, rules.work[np.maximum(rule - 1, 0)], 0)
    place = np.where(live, rules.firsts[rule] + item - before, 0)
    free = tn.full((rules.variables.shape[0], rows), -1, np.int64)
    absent = facts.weights.shape[0] - 1
    none = tn.full((rules.atoms.shape[1], rows), absent, np.int64)
    return _matched(Rows(free, none, rule, item, live), place, np.int64(0), rules, facts, packing)


def _matched(
    rows: Rows, place: Traced, turn: Traced, rules: Rules, facts: Facts, packing: Packing
) -> Rows:
    """Rows with the fact at a place of the index in their atom of this turn, if it has one."""
    atom = rules.atoms[rows.rule, turn]
    there = atom[:, 0] >= 0
    key = facts.stored.keys[place]
    mask = (np.int64(1) << packing.bits) - 1
    one, two = (key >> packing.bits) & mask, key & mask
    backward = key >= packing.reverse
    s, o = np.where(backward, two, one), np.where(backward, one, two)
    subject, object = atom[:, 1], atom[:, 2]
    fits = ((subject < 0) | (subject == s)) & ((object < 0) | (object == o))
    fits = fits & ((subject != object) | (s == o))
    variable = rules.variables[:, None]
    bound = np.where(there & (-1 - subject == variable), s, rows.bound)
    bound = np.where(there & (-1 - object == variable), o, bound)
    mine = tn.arange(rules.atoms.shape[1])[:, None] == rules.turns[rows.rule, turn]
    places = np.where(mine & there, facts.stored.values[place].astype(np.int64), rows.places)
    return rows._replace(bound=bound, places=places, live=rows.live & (fits | ~there))


def _extended(
    rows: Rows,
    taken: Traced,
    turn: Traced,
    rules: Rules,
    facts: Facts,
    packing: Packing,
    size: int,
) -> tuple[Rows, Traced]:
    """Each row with each fact that matches its atom of this turn, as far as there is room.

    `taken` comes down to the first item whose rows do not all fit: it is left for the next piece.
    """
    atom = rules.atoms[rows.rule, turn]
    s, o = (_value(atom[:, i], rows.bound) for i in (1, 2))
    first, last = ranges(np.stack([atom[:, 0], s, o], axis=1), facts.stored.keys, packing)
    counts = np.where(rows.live, np.where(atom[:, 0] < 0, 1, last - first), 0)
    ends = np.cumsum(counts)
    taken = np.minimum(taken, np.where(ends > size, rows.item, END).min())
    total = np.where(rows.item < taken, ends, 0).max()
    ends = np.minimum(ends, total)
    slot = tn.arange(size)
    row = spread(ends, size)
    inside = slot < total
    place = np.where(inside, first[row] + slot - (ends[row] - counts[row]), 0)
    place = np.minimum(place, facts.stored.keys.shape[0] - 1)
    item = np.where(inside, rows.item[row], END)
    longer = Rows(rows.bound[:, row], rows.places[:, row], rows.rule[row], item, inside)
    return _matched(longer, place, turn, rules, facts, packing), taken


def _value(term: Traced, bound: Traced) -> Traced:
    """What a term stands for under each row: a constant, or -1 while it is free."""
    slot = np.maximum(-1 - term, 0)
    return np.where(term >= 0, term, bound[slot, tn.arange(bound.shape[1])])


def _kept(
    table: Traced,
    rows: Rows,
    taken: Traced,
    rules: Rules,
    facts: Facts,
    heads: Traced,
    packing: Packing,
) -> Traced:
    """The table with the weights of whole rows, where they are the greatest so far."""
    weight = facts.weights[rows.places[0]]
    for place in range(1, rules.atoms.shape[1]):
        weight = weight * facts.weights[rows.places[place]]
    weight = weight * rules.weights[rows.rule]
    head = rules.heads[rows.rule]
    s, o = _value(head[:, 1], rows.bound), _value(head[:, 2], rows.bound)
    key = (head[:, 0] << 2 * packing.bits) | (s << packing.bits) | o
    place = np.minimum(np.searchsorted(heads, key), heads.shape[0] - 1)
    good = rows.live & (rows.item < taken) & (heads[place] == key)
    none = table.shape[0] - 1
    np.maximum.at(table, np.where(good, rules.offsets[rows.rule] + place, none), weight)
    return table
