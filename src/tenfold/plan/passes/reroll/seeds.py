"""Seeds of loops: one node of each round.

A loop that carries something is a long way through the graph whose forms repeat. Ways are found by
going from each node on to the deepest of its inputs, no node being on two. A loop that carries
nothing is found where its rounds are joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tenfold.plan.passes.reroll.structure import NONE, Structure

LEAST_ROUNDS = 8  # fewer are left as they are
# How many forms before a node tell which node of a round it is. Short ones find inner loops first.
CONTEXTS = (1, 4, 16, 64)

Seed = Sequence[int]  # positions of nodes, one of each round


def seeds(structure: Structure, claimed: Sequence[int]) -> Iterator[Seed]:
    """Candidates, those of loops with carries first. Ways whose nodes are claimed by loops that
    were found meanwhile are looked at no more."""
    ways = list(_ways(structure))
    for context in CONTEXTS:
        ways = [way for way in ways if claimed[way[len(way) // 2]] < 0]
        for way in ways:
            for start, end, period in _repeats([structure.forms[p] for p in way], context):
                yield way[start + (end - start - 1) % period : end : period]
    yield from _joined(structure)


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


def _repeats(forms: Sequence[int], context: int) -> Iterator[tuple[int, int, int]]:
    """Where forms repeat often enough: from, to, and after how many.

    A node is looked for by its form and those before it; where the distance to the last one alike
    stays the same, the forms repeat.
    """
    seen: dict[tuple[int, ...], int] = {}
    period = since = 0  # the distance, and the first node it holds for
    for at in range(len(forms) + 1):
        distance = 0
        if at < len(forms):
            key = tuple(forms[max(at - context + 1, 0) : at + 1])
            distance = at - seen.get(key, at)
            seen[key] = at
        if distance != period:
            first = since - period - context + 1
            if period and at - max(first, 0) >= LEAST_ROUNDS * period:
                yield max(first, 0), at, period
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
