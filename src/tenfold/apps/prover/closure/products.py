"""Closure by products of matrices: rules that are paths, all of them in one program.

A round multiplies, for each rule, the matrices of its body, with the facts of the last round in one
place after the other; `tn.reach` does this row by row, takes the union over the rules of a head and
leaves out what is known. So nothing grows with the number of ways in which a fact follows. Rows are
handed out in ranges, each with some room for what it finds; rows that found none are done again.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.backend import padded, traced
from tenfold.apps.prover.closure.layers import kept
from tenfold.apps.prover.closure.paths import Link, Path
from tenfold.apps.prover.closure.relations import NEW, OLD, Ints, Relations, Table, numbers_of
from tenfold.apps.prover.columns import Traced

Step = tuple[int, int, int]
Chains = dict[int, list[tuple[Step, ...]]]  # by head

RANGES = 256  # at most
LEAST = 1 << 12  # columns that there is room for in a range, at least
ROOM = 1 << 20  # and in all ranges together, as long as there are 16 of them
ROWS = 1 << 12  # of a range, at most


class Rules(NamedTuple):
    """Chains by head as tables."""

    chains: Ints
    heads: Ints


class Found(NamedTuple):
    """What some rows of a head come to: those with columns, how many each has, and these."""

    head: int
    rows: Ints
    counts: Ints
    columns: Ints


# Its first use in a process is checked on a small case: on a large one that would take the
# evaluator far longer than all the rest.
@traced("rows", "room", verify="off")
def multiply(
    rules: Rules, ranges: Traced, bits: Traced, tables: Sequence[Traced], rows: int, room: int
) -> Any:
    """What the rows of some ranges come to."""
    return tn.reach(*rules, ranges, bits, *tables, rows=rows, room=room)


def chains_of(paths: Sequence[Path], relations: Relations, changed: Ints | None) -> Chains:
    """The products of a round: all of them, or those that hold something `changed`."""
    made: Chains = defaultdict(list)
    for head, links in paths:
        if changed is None or relations.dense:
            if changed is None or any(changed[link.predicate] for link in links):
                made[head].append(tuple(relations.step(*link) for link in links))
            continue
        for place, link in enumerate(links):
            if changed[link.predicate]:
                made[head].append(tuple(_steps(relations, links, place)))
    return {head: sorted(set(chains)) for head, chains in sorted(made.items())}


def _steps(relations: Relations, links: Sequence[Link], new: int) -> Iterator[Step]:
    """Steps of which one goes through the facts of the last round: those before it through earlier
    ones, so that no two products of a rule go the same way."""
    for place, link in enumerate(links):
        first, past = (OLD, NEW) if place < new else (NEW if place == new else OLD, NEW + 1)
        yield relations.step(*link, first, past)


def rules_of(chains: Chains, relations: Relations, known: bool) -> Rules:
    """Chains as tables; a head that nothing leads to has none."""
    longest = max((len(c) for group in chains.values() for c in group), default=1)
    total = sum(map(len, chains.values()))
    steps = np.full((padded(total, 16), longest, 3), -1, np.int32)
    heads = np.full((padded(len(chains), 4), 5), -1, np.int32)
    at = 0
    for number, (head, group) in enumerate(chains.items()):
        heads[number, :2] = at, at + len(group)
        if known:
            heads[number, 2:] = relations.step(head, False)
        for chain in group:
            steps[at, : len(chain)] = chain
            at += 1
    return Rules(steps, heads)


def rows_of(
    rules: Rules, heads: int, relations: Relations, backend: str, brief: bool = False
) -> Iterator[Found]:
    """What all rows of the first `heads` heads come to, in no order; `brief`: few rows first."""
    extent = relations.extent
    room = max(LEAST, padded(extent, 1))
    count = min(RANGES, max(16, ROOM // room))
    rows = min(ROWS, padded(-(-heads * extent // count), 1))
    tables = [_filled(part) for table in relations.tables for part in table]
    run = multiply.on(backend)
    if multiply.is_new(backend):
        confirm(backend)
    waiting = [
        (head, first, min(first + rows, extent))
        for head in reversed(range(heads))
        for first in reversed(range(0, extent, rows))
    ]
    few = 1 if brief else rows
    while waiting:
        taken = [waiting.pop() for _ in range(min(len(waiting), count))]
        if few < rows:
            waiting += [(h, low + few, high) for h, low, high in taken[::-1] if low + few < high]
            taken = [(h, low, min(low + few, high)) for h, low, high in taken]
            few *= 4
        elif len(taken) < count:
            taken = _halved(taken, count)
        ranges = np.full((count, 3), -1, np.int32)
        ranges[: len(taken)] = taken
        with warnings.catch_warnings():  # tables of a round have their own sizes, code has none
            warnings.filterwarnings("ignore", message="multiply was compiled")
            counts, columns = run(rules, ranges, relations.bits, tables, rows=rows, room=room)
        full = (counts < 0).any(axis=1)
        parts, places = np.nonzero(counts > 0)  # rows behind those of a range have none
        begins = np.searchsorted(parts, np.arange(len(taken) + 1)).tolist()
        for part, (head, low, high) in enumerate(taken):
            if full[part]:
                waiting.append((head, low + int(np.argmax(counts[part] < 0)), high))
            own = places[begins[part] : begins[part + 1]]
            if len(own):
                used = counts[part, own]
                found = kept(columns[part, : used.sum()])
                yield Found(head, (low + own).astype(np.int32), used, found)
        del counts, columns  # the next are made in their place


def confirm(backend: str) -> None:
    """Hold the compiled product to the evaluator's, on a small case with tables and bits."""
    random = np.random.default_rng(0)
    extent = 70
    relations = Relations.of(extent, 4, (0, 2))
    tables = []
    for matrices in (4, 4, 2, 2):
        lines = np.sort(random.integers(0, matrices * extent, 300))
        lines = numbers_of(*np.divmod(lines, extent), extent)
        tables.append(Table.of(matrices, extent, lines, random.integers(0, extent, 300)))
    # one of sixteen bits: the evaluator goes through each that is set
    words = random.integers(0, 1 << 64, (4, *relations.bits.shape), np.uint64)
    bits = np.bitwise_and.reduce(words)
    steps = [[0, 0, 2], [1, 2, 4], [1, -1, -1], [2, 1, 2], [-1, -1, -1], [0, 3, 4]]
    chains = np.array(steps, np.int32)[random.integers(0, len(steps), (16, 3))]
    heads = np.array([[0, 5, 1, 0, 2], [5, 9, 3, -1, -1], [9, 16, -1, -1, -1]], np.int32)
    ranges = np.array([[0, 0, 3], [1, 9, 11], [2, 68, 70], [-1, 0, 9]], np.int32)
    given = (Rules(chains, heads), ranges, bits, [part for table in tables for part in table])
    made, wanted = (multiply.on(b)(*given, rows=70, room=999) for b in (backend, "evaluator"))
    if any(a.tobytes() != b.tobytes() for a, b in zip(made, wanted, strict=True)):
        raise tn.ParityError(
            "compiled products of matrices disagree with the evaluator",
            fix="say --backend evaluator",
        )


def _halved(taken: list[tuple[int, int, int]], count: int) -> list[tuple[int, int, int]]:
    """As many ranges as there may be, of the same rows."""
    pieces = max(1, count // len(taken))
    made = []
    for head, low, high in taken:
        size = max(1, -(-(high - low) // pieces))
        made += [(head, at, min(at + size, high)) for at in range(low, high, size)]
    return made


def _filled(part: Any) -> Any:
    """A column that is not empty: no program has a routine for nothing."""
    return part if part.size else np.zeros((1, *part.shape[1:]), part.dtype)


def table_of(found: list[Found], heads: Sequence[int], matrices: int, extent: int) -> Table:
    """What was found as a table, where head i is the matrix heads[i]; it is used up."""
    found.sort(key=lambda one: (heads[one.head], one.rows[0]), reverse=True)
    total = sum(len(one.rows) for one in found)
    lines, counts = np.empty(total, np.int64), np.empty(total, np.int32)
    columns = np.empty(sum(len(one.columns) for one in found), np.int32)
    at = line = 0
    while found:
        one = found.pop()
        own = slice(line, line + len(one.rows))
        lines[own] = numbers_of(heads[one.head], one.rows, extent)
        counts[own] = one.counts
        columns[at : at + len(one.columns)] = one.columns
        at, line = at + len(one.columns), own.stop
    return Table.of_counts(matrices, extent, lines, counts, columns)


def settle(relations: Relations, backend: str) -> None:
    """Put the facts of the last round with those of earlier ones."""
    for first in (0, 2):
        old, new = relations.tables[first : first + 2]
        if not len(new.items):
            continue
        relations.tables[first] = new if not len(old.items) else _merged(relations, first, backend)
        relations.tables[first + 1] = Table.empty(len(new.lines), relations.extent)


def _merged(relations: Relations, first: int, backend: str) -> Table:
    matrices = len(relations.tables[first].lines)
    chains: Chains = {g: [((g, first, first + 2),)] for g in range(matrices)}
    rules = rules_of(chains, relations, known=False)
    found = list(rows_of(rules, matrices, relations, backend))
    return table_of(found, range(matrices), matrices, relations.extent)
