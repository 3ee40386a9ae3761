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
from tenfold.apps.prover.closure.layers import Layer, put_together
from tenfold.apps.prover.closure.paths import Link, Path, path_of
from tenfold.apps.prover.closure.products import (
    Found,
    chains_of,
    rows_of,
    rules_of,
    settle,
    table_of,
)
from tenfold.apps.prover.closure.relations import Relations, Table, numbers_of
from tenfold.apps.prover.input.program import Clause, Program

SPARSE = 64  # lines of matrices for each fact, at most
FEW = 1 << 22  # and as many as this at any rate
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
        self.layers: list[Layer] = []  # by height

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
            self._first()
        del self.relations
        keys, heights = put_together(self.layers, self.packing)
        return Closure(self.packing, keys, heights, complete, 0, stopped)

    def _run(self, limit: int | None) -> bool:
        """Whether nothing follows at the end."""
        self._check(len(self.program.facts), self.relations.nbytes)
        table = self._first()
        changed = None
        while True:
            over = limit is not None and len(self.layers) > limit
            if over and self._goes_on(table, changed):
                return False
            settle(self.relations, self.backend)
            self.relations.add(table)
            table, layer = self._round(changed, any_=over)
            if not len(layer):
                return True
            if over:
                return False
            changed = table.sizes()
            self.layers.append(layer)
            self.watch(len(self.layers) - 1, sum(map(len, self.layers)))

    def _first(self) -> Table:
        """The facts as the first layer, and as a table."""
        keys = np.sort(self.packing.keys(self.program.facts))
        self.layers.append(Layer.of_keys(keys, self.packing))
        return self._table(keys)

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
        rows = np.repeat(one.rows, one.counts)
        triples = [np.full(len(rows), self.named[heads[one.head]]), rows, one.columns]
        keys = self.packing.keys(np.stack(triples, axis=1))
        for layer in self.layers:
            keys = keys[~layer.holds(keys)]
        return bool(len(keys))

    def _round(self, changed: Any, any_: bool) -> tuple[Table, Layer]:
        """What follows from the facts there are and is new; with `any_`, some of it will do."""
        relations = self.relations
        chains = chains_of(self.paths, relations, changed)
        rules = rules_of(chains, relations, known=True)
        found: list[Found] = []
        total, nbytes = 0, relations.nbytes
        for one in rows_of(rules, len(chains), relations, self.backend, brief=any_):
            found.append(one)
            total += len(one.columns)
            if any_:
                break
            self._check(total, nbytes)
        table = table_of(found, list(chains), relations.predicates, relations.extent)
        layer = self._layer(table)
        if self.others and not (any_ and total):
            more = self._joined()
            self._check(total + len(more), nbytes)
            if len(more):
                keys = np.union1d(layer.keys(), more)
                table, layer = self._table(keys), Layer.of_keys(keys, self.packing)
        return table, layer

    def _table(self, keys: Ints) -> Table:
        """Those of some sorted keys that paths name, as a table."""
        p, s, o = self.packing.triples(keys).T
        number = np.searchsorted(self.named, p)
        own = self.named[np.minimum(number, len(self.named) - 1)] == p
        extent = self.relations.extent
        lines = numbers_of(number[own], s[own], extent)
        return Table.of(self.relations.predicates, extent, lines, o[own])

    def _layer(self, table: Table) -> Layer:
        """A table as a layer; they share their columns."""
        bits = int(self.packing.bits)
        matrix, row = np.divmod(table.numbers(), max(1, table.lines.shape[1] << 6))
        prefixes = (self.named[matrix] << bits) | row
        return Layer(bits, prefixes, table.starts[1:].astype(np.int64), table.items)

    def _joined(self) -> Ints:
        """What the rules that are no paths give, sorted, without what there was before."""
        clauses = tuple(c for c in self.others if c.body)
        named = sorted({atom[0] for c in clauses for atom in c.body})
        parts = [layer.keys(named) for layer in self.layers]
        keys = np.zeros(0, np.int64)
        if clauses and len(parts[-1]):
            program = replace(self.program, facts=(), clauses=clauses)
            keys = join_once(program, np.concatenate([keys, *parts[:-1]]), parts[-1], self.backend)
        if len(self.layers) == 1:
            bare = [c.head for c in self.others if not c.body]
            keys = np.union1d(keys, self.packing.keys(bare))
        for layer in self.layers:
            keys = keys[~layer.holds(keys)]
        return keys

    def _check(self, found: int, nbytes: int) -> None:
        """Stop where so many more facts, beside tables of so many bytes, would pass the allowance:
        as keys with heights, and as columns of tables, which are made anew when others join
        them."""
        total = found + sum(map(len, self.layers))
        self.allowance.check(total, nbytes + 9 * total + 20 * found)
