"""Closing: rounds of rules until nothing follows, each rule by what suits it.

Rules that are paths go by products of matrices; all others by sorted joins of the facts that they
name. Where there are no paths, or lines of matrices would outnumber facts by far, all go by joins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tenfold.apps.prover.closure.allowance import MEMORY, Allowance, Stopped
from tenfold.apps.prover.closure.fixpoint import Closure, Watch, close_by_joins, join_once
from tenfold.apps.prover.closure.joins import Ints, Packing
from tenfold.apps.prover.closure.paths import Link, Path, path_of
from tenfold.apps.prover.closure.products import (
    Found,
    chains_of,
    rows_of,
    rules_of,
    settle,
    table_of,
)
from tenfold.apps.prover.closure.relations import Relations, Table
from tenfold.apps.prover.input.program import Clause, Program

SPARSE = 64  # lines of matrices for each fact, at most
FEW = 1 << 22  # and as many as this at any rate
BLOCK = 1 << 18  # keys that are taken apart at a time
SAMPLE = 1 << 14  # facts of the last round that are tried first for what follows


def close_by_cost(
    program: Program,
    limit: int | None = None,
    backend: str = "compiled",
    allowance: Allowance | None = None,
    watch: Watch | None = None,
) -> Closure:
    """The closure of a program up to a height; one that met its allowance says so. `watch` is told
    the height and the facts so far.

    >>> from tenfold.apps.prover.input.program import Clause
    >>> twice = Clause((0, -1, -2), ((0, -1, -3), (0, -3, -2)))
    >>> chain = Program(("p",), tuple("abcd"), ((0, 0, 1), (0, 1, 2), (0, 2, 3)), (twice,))
    >>> close_by_cost(chain).by_triple()
    {(0, 0, 1): 0, (0, 0, 2): 1, (0, 0, 3): 2, (0, 1, 2): 0, (0, 1, 3): 1, (0, 2, 3): 0}
    """
    allowance = allowance or Allowance()
    paths = {clause: path for clause in program.clauses if (path := path_of(clause))}
    rounds = _Rounds(program, paths, backend, allowance, watch)
    lines = rounds.relations.extent * rounds.relations.matrices
    if not paths or lines > max(FEW, SPARSE * len(program.facts)):
        return close_by_joins(program, limit, backend=backend, allowance=allowance, watch=watch)
    return rounds.close(limit)


class _Rounds:
    """The rounds of one closure. Matrices are numbered by the predicates that paths name."""

    def __init__(
        self,
        program: Program,
        paths: dict[Clause, Path],
        backend: str,
        allowance: Allowance,
        watch: Watch | None,
    ) -> None:
        self.program, self.backend, self.allowance = program, backend, allowance
        self.watch = watch or (lambda height, facts: None)
        self.packing = Packing.of(program)
        self.others = tuple(c for c in program.clauses if c not in paths)
        named = {path.head for path in paths.values()}
        named |= {link.predicate for path in paths.values() for link in path.links}
        self.named = np.array(sorted(named), np.int64)
        number = {p: n for n, p in enumerate(self.named.tolist())}
        self.paths = [
            Path(number[head], tuple(Link(number[p], inverse) for p, inverse in links))
            for head, links in paths.values()
        ]
        turned = {link.predicate for path in self.paths for link in path.links if link.inverse}
        self.relations = Relations.of(len(program.constants), len(named), tuple(sorted(turned)))
        self.layers: list[Ints] = []  # keys by height

    def close(self, limit: int | None) -> Closure:
        """The closure up to a height."""
        complete, stopped = False, None
        try:
            complete = self._run(limit)
        except Stopped as stop:
            stopped = str(stop)
        except MemoryError:
            stopped = MEMORY
        if not self.layers:
            self.layers.append(self.packing.keys(self.program.facts))
        del self.relations
        keys, heights = _sorted(self.layers, self.packing)
        return Closure(self.packing, keys, heights, complete, 0, stopped)

    def _run(self, limit: int | None) -> bool:
        """Whether nothing follows at the end."""
        keys = self.packing.keys(self.program.facts)
        self._check(len(keys))
        table = self._table(keys)
        self.layers.append(keys)
        changed = None
        while True:
            over = limit is not None and len(self.layers) > limit
            if over and self._goes_on(table, changed):
                return False
            settle(self.relations, self.backend)
            self.relations.add(table)
            table, keys = self._round(changed, any_=over)
            if not len(keys):
                return True
            if over:
                return False
            changed = table.sizes()
            self.layers.append(keys)
            self.watch(len(self.layers) - 1, sum(map(len, self.layers)))

    def _goes_on(self, table: Table, changed: Any) -> bool:
        """Whether something is found at once to follow from a few facts of the last round and from
        earlier ones: to look among all of them takes about as long as a round. False says
        nothing."""
        if changed is None or self.relations.dense or len(table.items) <= SAMPLE:
            return False
        if len(self.layers) == 2:  # which costs nothing here
            settle(self.relations, self.backend)
        tables = list(self.relations.tables)
        self.relations.add(table.thinned(SAMPLE))
        chains = chains_of(self.paths, self.relations, changed)
        rules = rules_of(chains, self.relations, known=True)
        found = rows_of(rules, len(chains), self.relations, self.backend, brief=True)
        goes_on = any(self._is_new(one, list(chains)) for one in found)
        self.relations.tables[:] = tables
        return goes_on

    def _is_new(self, one: Found, heads: list[int]) -> bool:
        """Whether some of what was found is in no layer."""
        rows = one.first + np.repeat(np.arange(len(one.counts)), one.counts)
        triples = [np.full(len(rows), self.named[heads[one.head]]), rows, one.columns]
        keys = self.packing.keys(np.stack(triples, axis=1))
        for layer in self.layers:
            keys = keys[~_among(keys, layer)]
        return bool(len(keys))

    def _round(self, changed: Any, any_: bool) -> tuple[Table, Ints]:
        """What follows from the facts there are and is new; with `any_`, some of it will do."""
        relations = self.relations
        chains = chains_of(self.paths, relations, changed)
        rules = rules_of(chains, relations, known=True)
        found: list[Found] = []
        total = 0
        for one in rows_of(rules, len(chains), relations, self.backend, brief=any_):
            found.append(one)
            total += len(one.columns)
            if any_:
                break
            self._check(total)
        table = table_of(found, list(chains), relations.predicates, relations.extent)
        found.clear()
        keys = self._keys(table)
        if self.others and not (any_ and total):
            more = self._joined()
            self._check(total + len(more))
            if len(more):
                keys = np.union1d(keys, more)
                table = self._table(keys)
        return table, keys

    def _table(self, keys: Ints) -> Table:
        """Those of some sorted keys that paths name, as a table."""
        p, s, o = self.packing.triples(keys).T
        number = np.searchsorted(self.named, p)
        own = self.named[np.minimum(number, len(self.named) - 1)] == p
        extent = self.relations.extent
        lines = number[own] * extent + s[own]
        return Table.of(self.relations.predicates, extent, lines, o[own])

    def _keys(self, table: Table) -> Ints:
        """The keys of a table, sorted."""
        bits = self.packing.bits
        lines = (self.named[:, None] << 2 * bits) | (np.arange(self.relations.extent) << bits)
        keys = table.spread(lines)
        keys |= table.items
        return keys

    def _joined(self) -> Ints:
        """What the rules that are no paths give, sorted, without what there was before."""
        clauses = tuple(c for c in self.others if c.body)
        named = sorted({atom[0] for c in clauses for atom in c.body})
        parts = [keys[np.isin(keys >> 2 * self.packing.bits, named)] for keys in self.layers]
        keys = np.zeros(0, np.int64)
        if clauses and len(parts[-1]):
            program = replace(self.program, facts=(), clauses=clauses)
            keys = join_once(program, np.concatenate([keys, *parts[:-1]]), parts[-1], self.backend)
        if len(self.layers) == 1:
            bare = [c.head for c in self.others if not c.body]
            keys = np.union1d(keys, self.packing.keys(bare))
        for layer in self.layers:
            keys = keys[~_among(keys, layer)]
        return keys

    def _check(self, found: int) -> None:
        """Stop where so many more facts would pass the allowance: as keys with heights, and as
        columns of tables, which are made anew when others join them."""
        total = found + sum(map(len, self.layers))
        nbytes = self.relations.nbytes + 9 * total + 20 * found
        self.allowance.check(total, nbytes)


def _among(keys: Ints, layer: Ints) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which keys are in a sorted layer."""
    if not len(layer):
        return np.zeros(len(keys), bool)
    at = np.minimum(np.searchsorted(layer, keys), len(layer) - 1)
    return np.asarray(layer[at] == keys)


def _sorted(layers: list[Ints], packing: Packing) -> tuple[Ints, Any]:
    """All keys, sorted, with heights. Layers are let go of one by one."""
    count = sum(map(len, layers))
    small = np.uint8 if len(layers) <= 256 else np.int32
    places = max(1, (len(layers) - 1).bit_length())
    keys = np.empty(count, np.int64)
    if int(packing.reverse).bit_length() + places > 63:
        np.concatenate(layers, out=keys)
        sizes = [len(layer) for layer in layers]
        order = np.argsort(keys, kind="stable")
        return keys[order], np.repeat(np.arange(len(layers)), sizes)[order].astype(small)
    at, height = 0, 0
    while layers:
        layer = layers.pop(0)
        own = keys[at : at + len(layer)]
        np.left_shift(layer, places, out=own)
        own |= height
        at, height = at + len(layer), height + 1
        del layer, own
    keys.sort(kind="stable")  # it goes by runs, and each layer is one
    heights = np.empty(count, small)
    for first in range(0, count, BLOCK):  # nothing as large as all keys is made beside them
        block = keys[first : first + BLOCK]
        heights[first : first + BLOCK] = block & ((1 << places) - 1)
        block >>= places
    return keys, heights
