"""Weighted rollout: every proof of a candidate, and the best of those that end in the same rule.

A state is a list of goals, as elsewhere, the first resolved first; where a rule put its body there
is a mark behind it. `products[l]` is the product, so far, of the body whose goals have the height l
left: only one such body is open at a time. When a mark comes first its body is proved: the product
times the rule's weight goes into the product of the body around it. So weights are multiplied in
the order in which bodies are written, as in a closure. The mark of the first rule gives the answer.

States that are alike are one if no product of the one is less than the other's: it would end no
better. A goal that stands twice is proved twice, as it counts twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.backend import padded, traced
from tenfold.apps.prover.closure.allowance import Allowance, Stopped
from tenfold.apps.prover.closure.joins import Ints, Packing
from tenfold.apps.prover.closure.weights.chains import Floats
from tenfold.apps.prover.columns import END, Traced, compact, spread
from tenfold.apps.prover.input.program import Program
from tenfold.apps.prover.resolution.resolution import (
    PAD,
    Base,
    States,
    base_of,
    match,
    nth_clause,
)
from tenfold.apps.prover.resolution.unify import unify
from tenfold.apps.prover.rollout.draws import mix
from tenfold.apps.prover.rollout.queue import Lane

MARK = -2  # the predicate of the mark of clause 0; that of clause c is MARK - c
ROWS = 1 << 10  # successors of a piece to begin with


class Open(NamedTuple):
    """States that are not proved yet, one a row."""

    goals: Traced  # [rows, A, 4]: predicate, two terms, the height left; PAD behind the last
    products: Traced  # [rows, heights]
    lane: Traced


def weigh_all(
    program: Program,
    lanes: Sequence[Lane],
    height: int,
    batch: int,
    backend: str,
    memory: int | None = None,
) -> list[list[float] | None]:
    """For each lane the weights of the rules that prove it in their last step, in their order;
    None of one whose proofs, enumerated alone, come to more bytes than the memory.

    No lane may be a fact that it may use: such a one needs no rule.

    >>> from tenfold.apps.prover.input.program import Clause
    >>> swap = Clause((0, -1, -2), ((0, -2, -1),))
    >>> made = Program(("p",), ("a", "b"), ((0, 0, 1),), (swap,), (0.5,))
    >>> weigh_all(made, [Lane((0, 1, 0))], 3, 1, "evaluator")
    [[0.5]]
    """
    base = base_of(program)
    ordered = sorted(program.weighed, key=lambda one: one[0].head[0])  # as the base has them
    weights = np.ones(len(base.heads))
    weights[: len(ordered)] = [weight for _, weight in ordered]
    most = max((clause.variables for clause, _ in ordered), default=1)
    result: list[list[float] | None] = [None] * len(lanes)
    rows = ROWS
    waiting = [range(i, min(i + batch, len(lanes))) for i in range(0, len(lanes), batch)]
    while waiting:
        part = waiting.pop()
        some = [lanes[i] for i in part]
        try:
            table, rows = _weigh(
                some, base, weights, height, max(1, most), batch, rows, backend, Allowance(memory)
            )
        except Stopped:  # those that do not fit together are parted
            if len(part) > 1:
                middle = (part.start + part.stop) // 2
                waiting += [range(part.start, middle), range(middle, part.stop)]
            continue
        for i, row in zip(part, table, strict=False):
            result[i] = row[row >= 0].tolist()
    return result


def _weigh(
    lanes: Sequence[Lane],
    base: Base,
    weights: Floats,
    height: int,
    most: int,
    batch: int,
    rows: int,
    backend: str,
    allowance: Allowance,
) -> tuple[Floats, int]:
    """The weight that each clause gives each lane, -1 for none; and the rows that were enough."""
    without = _without(lanes, Packing(base.bits, base.reverse), batch)
    table = np.full((batch, len(base.heads)), -1.0)
    level = _begun(lanes, base, height)
    while len(level.lane):
        after: list[Open] = []
        at = 0
        while at < len(level.lane):
            chunk = Open(*(_cut(column, at, rows) for column in level))
            count = np.int64(min(rows, len(level.lane) - at))
            given = (chunk, count, without, base, weights, np.int64(most))
            next_, made, taken, ended = step.on(backend)(*given, rows=rows)
            if taken == 0:
                rows *= 2
                continue
            clause, value = (column[:taken] for column in ended)
            good = clause >= 0
            np.maximum.at(table, (chunk.lane[:taken][good], clause[good]), value[good])
            # copies, so that what was not made is not kept
            after.append(Open(*(column[:made].copy() for column in next_)))
            allowance.check(0, _bytes([level, chunk, next_, *after]) + _bytes(after))
            at += int(taken)
        level = Open(*(np.concatenate(columns) for columns in zip(*after, strict=True)))
    return table, rows


def _bytes(parts: Sequence[Open]) -> int:
    return sum(column.nbytes for part in parts for column in part)


def _without(lanes: Sequence[Lane], packing: Packing, batch: int) -> Ints:
    """The key of the fact that each lane may not use, or -1."""
    keys = [packing.keys([lane.without])[0] if lane.without else -1 for lane in lanes]
    return np.array([*keys, *[-1] * (batch - len(lanes))], np.int64)


def _begun(lanes: Sequence[Lane], base: Base, height: int) -> Open:
    """A state with one goal for each lane. There is room for all that can come of it: in each
    height the rest of a body and its mark."""
    size = padded(1 + height * base.bodies.shape[1], 4)
    goals = np.zeros((len(lanes), size, 4), np.int64)
    goals[:, :, 0] = PAD
    goals[:, 0, :3] = [lane.triple for lane in lanes]
    goals[:, 0, 3] = height
    return Open(goals, np.ones((len(lanes), height + 1)), np.arange(len(lanes)))


def _cut(column: Traced, at: int, rows: int) -> Traced:
    """Some rows of a column, filled up with zeros."""
    part = column[at : at + rows]
    return np.concatenate([part, np.zeros((rows - len(part), *part.shape[1:]), part.dtype)])


@traced("rows")
def step(
    states: Open,
    count: Traced,
    without: Traced,
    base: Base,
    weights: Traced,
    most: Traced,
    rows: int,
) -> tuple[Open, Traced, Traced, tuple[Traced, Traced]]:
    """The successors of the first `count` states, as far as there is room for them, and how many
    they are; how many states were taken; and the clause and weight of those that were proved.

    `most` is how many variables a clause has at most: each height has so many names of its own.
    """
    place = tn.arange(rows)
    first = states.goals[:, 0]
    p, s, o, left = (first[:, i] for i in range(4))
    live = place < count
    closing = live & (p <= MARK)
    names = np.stack(
        [p, np.where(s < 0, -1, s), np.where(o < 0, np.where(o == s, -1, -2), o), left], axis=1
    )
    open_ = live & ~closing
    asked = States(names[:, None], open_.astype(np.int64))
    found = match(asked, without[states.lane], base, max(4 * rows, base.each.shape[0]))
    clause = np.where(closing, MARK - p, -1)
    level = np.where(closing, left, 0)
    proved = states.products[place, level] * weights[np.maximum(clause, 0)]
    last = closing & (states.goals[:, 1, 0] == PAD)
    counts = np.where(closing & ~last, 1, np.where(open_, found.facts + found.rules, 0))
    ends = np.cumsum(counts)
    taken = np.minimum(((ends <= rows) & found.clauses.whole).sum(), count)
    total = np.where(place < taken, ends, 0).max()
    row = spread(np.minimum(ends, total), rows)
    inside = place < total
    k = np.where(inside, place - (ends[row] - counts[row]), 0)
    by_fact = ~closing[row] & (k < found.facts[row])
    by_rule = ~closing[row] & ~by_fact
    chosen, x, y = _source(found, row, k, by_fact, base)
    depth = left[row]

    def apart(terms: Traced, by: Traced) -> Traced:
        return np.where(terms < 0, terms - by * most, terms)

    head = np.stack([x, y], axis=1)
    head = np.where(by_fact[:, None], head, apart(head, depth[:, None]))
    s, o = s[row], o[row]
    # where a mark is closed nothing is bound
    _, binding = unify(
        s, o, np.where(closing[row], s, head[:, 0]), np.where(closing[row], o, head[:, 1])
    )
    body = base.bodies[chosen]
    terms = apart(body[:, :, 1:], depth[:, None, None])
    below = np.broadcast_to((depth - 1)[:, None, None], (*body.shape[:2], 1))
    new = np.concatenate([body[:, :, :1], terms, below], axis=2)
    new = np.where(by_rule[:, None, None], new, PAD)
    zero = depth * 0
    mark = np.stack([np.where(by_rule, MARK - chosen, PAD), zero, zero, depth - 1], axis=1)
    goals = np.concatenate([new, mark[:, None], states.goals[row][:, 1:]], axis=1)
    goals = _settled(goals, binding, without[states.lane[row]], base, states.goals.shape[1])
    heights = tn.arange(states.products.shape[1])
    products = states.products[row]
    # a closed body's product goes into that of the body around it, and an open one begins at 1
    around = (heights == (depth + 1)[:, None]) & closing[row][:, None]
    products = np.where(around, products * proved[row][:, None], products)
    fresh = heights == np.where(closing[row], depth, depth - 1)[:, None]
    products = np.where(fresh & ~by_fact[:, None], 1.0, products)
    next_ = Open(goals, products, states.lane[row])
    places, made = compact(inside & ~_outdone(next_, inside), rows)
    kept = Open(*(column[places] for column in next_))
    return kept, made, taken, (np.where(last, clause, -1), proved)


def _source(
    found: Traced, row: Traced, k: Traced, by_fact: Traced, base: Base
) -> tuple[Traced, Traced, Traced]:
    """The clause of each successor, and the terms of the fact or of the clause's head."""
    place = found.first[row] + k
    place = np.where(place >= found.skip[row], place + 1, place)
    key = base.keys[np.where(by_fact, np.minimum(place, base.keys.shape[0] - 1), 0)]
    mask = (1 << base.bits) - 1
    high, low = (key >> base.bits) & mask, key & mask
    turned = (key >= base.reverse) & (key < 2 * base.reverse)
    clause = nth_clause(found, row, k)
    head = base.heads[clause]
    x = np.where(by_fact, np.where(turned, low, high), head[:, 0])
    y = np.where(by_fact, np.where(turned, high, low), head[:, 1])
    return clause, x, y


def _settled(goals: Traced, binding: Traced, without: Traced, base: Base, size: int) -> Traced:
    """Goals under a binding, without known facts and without gaps."""
    p, left = goals[:, :, 0], goals[:, :, 3]
    shaped = type(binding)(*(part[:, None] for part in binding))
    s, o = shaped(goals[:, :, 1]), shaped(goals[:, :, 2])
    ground = (p >= 0) & (s >= 0) & (o >= 0)
    key = (np.maximum(p, 0) << 2 * base.bits) | (np.maximum(s, 0) << base.bits) | np.maximum(o, 0)
    near = np.minimum(np.searchsorted(base.keys, key), base.keys.shape[0] - 1)
    known = ground & (base.keys[near] == key) & (key != without[:, None])
    used = (p != PAD) & ~known
    order = np.argsort(~used, axis=1, kind="stable")[:, :size]
    rows = tn.arange(goals.shape[0])[:, None]
    there = used[rows, order]
    columns = (
        np.where(there, part[rows, order], pad)
        for part, pad in zip((p, s, o, left), (PAD, 0, 0, 0), strict=True)
    )
    return np.stack([*columns], axis=2)


def _outdone(states: Open, inside: Traced) -> Traced:
    """States that are like the one before or after them, with products that are nowhere more.

    They are looked at in the order of their hashes, and of these in that of their products.
    """
    mixed = mix(states.lane.astype(np.uint64) + np.uint64(1))
    flat = states.goals.reshape(states.goals.shape[0], -1)
    for i in range(flat.shape[1]):
        mixed = mix(mixed + flat[:, i].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    hashes = np.where(inside, (mixed >> np.uint64(2)).astype(np.int64), END)
    order = np.argsort(-states.products.sum(axis=1), kind="stable")
    order = order[np.argsort(hashes[order], kind="stable")]
    goals, products, lane = flat[order], states.products[order], states.lane[order]
    same = (goals[1:] == goals[:-1]).all(axis=1) & (lane[1:] == lane[:-1]) & inside[order][1:]
    less = same & (products[1:] <= products[:-1]).all(axis=1)
    more = same & ~less & (products[1:] >= products[:-1]).all(axis=1)
    none = tn.zeros(1, bool)
    outdone = np.concatenate([none, less]) | np.concatenate([more, none])
    result = tn.zeros(outdone.shape[0], bool)
    result[order] = outdone
    return result
