"""Seeds of loops: one node of each round.

A loop that carries something is a long way through the graph whose forms repeat. Ways are found by
going from each node on to the deepest of its inputs, no node being on two. A loop that carries
nothing is found where its rounds are joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tenfold.plan.passes.reroll.structure import NONE, Structure

LEAST_ROUNDS = 16  # fewer are left as they are: kernels are shared anyhow, and no round is counted
# A node of a round is told by its form and so many before it at most. Inner loops are found first,
# by few.
LONGEST = 256
MANY = 1024  # names that are sorted as an array sooner than one by one

Seed = Sequence[int]  # positions of nodes, one of each round


def seeds(structure: Structure, claimed: Sequence[int]) -> Iterator[Seed]:
    """Candidates, those of loops with carries first. Ways whose nodes are claimed by loops that
    were found meanwhile are looked at no more, nor are those whose nodes are told apart."""
    ways = [(way, [structure.forms[p] for p in way]) for way in _ways(structure)]
    context = 1
    while context <= LONGEST:
        ways = [
            (way, names)
            for way, names in ways
            if claimed[way[len(way) // 2]] < 0 and len(set(names)) < len(names)
        ]
        for way, names in ways:
            for start, end, period in _repeats(names, context):
                yield way[start + (end - start - 1) % period : end : period]
        ways = [(way, _doubled(_doubled(names, context), 2 * context)) for way, names in ways]
        context *= 4
    yield from _joined(structure)


def _doubled(names: Sequence[int], context: int) -> list[int]:
    """Names of nodes by twice as many before them."""
    if len(names) > MANY:
        own = np.array(names)
        pair = own * (int(own.max()) + 2)
        pair[context:] += own[:-context] + 1
        return np.unique(pair, return_inverse=True)[1].tolist()  # type: ignore[no-any-return]
    before = [-1] * context + list(names[: len(names) - context])
    pairs = list(zip(names, before, strict=False))
    made = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
    return [made[pair] for pair in pairs]


def _ways(structure: Structure) -> Iterator[list[int]]:
    """Ways down to what is read first, turned around; none of fewer nodes than a loop has."""
    forms, deepest = structure.forms, structure.deepest
    taken = bytearray(len(forms))
    order = sorted(range(len(forms)), key=structure.levels.__getitem__, reverse=True)
    for position in order:
        way: list[int] = []
        while position >= 0 and not taken[position] and forms[position] != NONE:
            taken[position] = 1
            way.append(position)
            position = deepest[position]
        if len(way) >= LEAST_ROUNDS:
            way.reverse()
            yield way


def _repeats(names: Sequence[int], context: int) -> Iterator[tuple[int, int, int]]:
    """Where names repeat often enough: from, to, and after how many. A name tells of a node and
    those before it in the context. Where the distance to the last one of the same name stays the
    same, they repeat."""
    seen: dict[int, int] = {}
    period = since = 0  # the distance, and the first node it holds for
    for at, name in enumerate((*names, -1)):
        distance = at - seen.get(name, at)
        seen[name] = at
        if distance != period:
            first = max(since - period - context + 1, 0)
            if period and at - first >= LEAST_ROUNDS * period:
                yield first, at, period
            period, since = distance, at


def _joined(structure: Structure) -> Iterator[Seed]:
    """The nodes of one form whose results are joined."""
    for node in structure.nodes:
        if not structure.table[node.op].joins or len(node.inputs) < LEAST_ROUNDS:
            continue
        run: list[int] = []
        for value in (*node.inputs, -1):
            position = structure.makers[value] if value >= 0 else -1
            form = structure.forms[position] if position >= 0 else NONE
            if run and form != structure.forms[run[0]]:
                if len(run) >= LEAST_ROUNDS and len(set(run)) == len(run):
                    yield run
                run = []
            if form != NONE:
                run.append(position)
