"""Grow a loop from its seed: find what else belongs to each round.

A loop is a table. A column has one node of each round, all of one form; a row is a round. What a
column reads is classified by how it goes from round to round: the same value in all of them, the
node of a column in this round or one a few rounds ago (a carry), literals, views of what is the
same in all rounds, or nodes of a new column. Then columns are added that read those there are: what
is summed up or written beside the way that was found. Where the first or last rounds differ they
are left out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import repeat

from tenfold.plan.passes.reroll.reads import Internal, Literals, Read, SameValue, Views
from tenfold.plan.passes.reroll.seeds import LEAST_ROUNDS, Seed
from tenfold.plan.passes.reroll.structure import NONE, Structure
from tenfold.types import Shape

FARTHEST = 4  # rounds back that a value is carried
LARGEST = 1 << 20  # bytes of literals that differ from round to round
ATTEMPTS = 8  # to put columns where they belong
EDGE = 2  # rounds that may be left out for the sake of a column that reads others


# Literals, or nodes that cut parts out.
Varying = Literals | Sequence[int]
# Columns that belong some rounds before the first that was seen to read them, by number.
Ahead = dict[int, tuple[list[int], int]]


def grow(structure: Structure, seed: Seed, claimed: Sequence[int]) -> Rounds | None:
    """The loop of a seed; None if there is none."""
    ahead: Ahead = {}
    for _ in range(ATTEMPTS if len(seed) >= LEAST_ROUNDS else 0):
        rounds = Rounds(structure, seed, claimed, ahead)
        if rounds.valid:
            return rounds
        if not rounds.misplaced:
            break
    return None


class Rounds:
    """Columns of rounds `low` up to `high`. `columns` are positions, by round; `reads` is for
    each of them what its inputs are."""

    def __init__(
        self, structure: Structure, seed: Seed, claimed: Sequence[int], ahead: Ahead
    ) -> None:
        self.structure, self.claimed = structure, claimed
        self.ahead, self.misplaced = ahead, False
        self.low, self.high = 0, len(seed)
        self.lanes = False  # whether rounds are better done side by side
        self._count = len(seed)
        self.columns: list[list[int]] = []
        self.reads: list[list[Read]] = []
        self.at: dict[int, tuple[int, int]] = {}  # by position: column and round
        self._apart: set[int] = set()  # positions that what is the same in all rounds hangs on
        self._first = len(structure.nodes)  # the first position of any column
        self._tried: set[int] = set()
        self.core = 0  # columns that the seed hangs on
        self.valid = self._add(list(seed)) and self._close()
        if self.valid:
            self.core = len(self.columns)
            self._absorb()
            self.valid = self._verified()

    def __len__(self) -> int:
        return self.high - self.low

    @property
    def rounds(self) -> range:
        return range(self.low, self.high)

    @property
    def distance(self) -> int:
        """How many rounds back a round reads at most."""
        found = [r.distance for reads in self.reads for r in reads if isinstance(r, Internal)]
        return max(found, default=0)

    def inside(self, position: int) -> bool:
        """Whether a node is one of the loop's rounds."""
        found = self.at.get(position)
        return found is not None and self.low <= found[1] < self.high

    def order(self) -> list[int]:
        """Columns, each after those that it reads in the same round."""
        order: list[int] = []
        state = bytearray(len(self.columns))
        for root in range(len(state)):
            stack = [root]
            while stack:
                column = stack[-1]
                if state[column]:
                    stack.pop()
                    if state[column] == 1:
                        state[column] = 2
                        order.append(column)
                    continue
                state[column] = 1
                stack.extend(
                    read.column
                    for read in self.reads[column]
                    if isinstance(read, Internal) and not read.distance and not state[read.column]
                )
        return order

    def rereads(self, size: int) -> bool:
        """Whether rounds read a value of so many bytes whole, one after another, though it hangs on
        nothing that is carried. Unrolled, they read it together."""
        structure = self.structure
        carried: set[int] = set()
        for column in self.order():
            for read in self.reads[column]:
                if isinstance(read, Internal) and (read.distance or read.column in carried):
                    carried.add(column)
        return any(
            isinstance(read, SameValue) and structure.graph.types[read.value].nbytes >= size
            for column, reads in enumerate(self.reads)
            if column not in carried
            and structure.is_fused(structure.nodes[self.columns[column][self.low]])
            for read in reads
        )

    @property
    def kind(self) -> tuple[int, ...]:
        """The forms of its columns: loops of one kind may be rounds of another."""
        return (len(self), *(self.structure.forms[c[self.low]] for c in self.columns))

    def varying(self) -> Iterator[tuple[Varying, Sequence[Hashable]]]:
        """What may differ from round to round, in order, and what it is in each: the data of
        literals, and where parts begin."""
        for column, reads in zip(self.columns, self.reads, strict=True):
            rows: list[Sequence[int]] = [column]
            for read in reads:
                source = read.source if isinstance(read, Views) else read
                if isinstance(source, Literals):
                    yield source, self.data(source)
                if isinstance(read, Views):
                    rows += read.nodes
            for row in rows:
                if self.structure.table[self.structure.nodes[row[self.low]].op].cuts:
                    yield row, self.starts(row)

    def given(self) -> Iterator[int]:
        """The values from outside that rounds read. Of views it is what these are made of: they
        are made again, though another loop may have them."""
        for read in (read for reads in self.reads for read in reads):
            source = read.source if isinstance(read, Views) else read
            if isinstance(source, SameValue):
                yield source.value
            elif isinstance(source, Internal):
                yield from source.values[self.low : self.low + source.distance]
            else:
                yield from source.values[self.low : self.high]

    def starts(self, row: Sequence[int]) -> list[Shape]:
        """Where parts begin that nodes cut out, by round."""
        return [self.structure.nodes[row[i]]["starts"] for i in self.rounds]

    def data(self, read: Literals) -> list[bytes]:
        """The data of literals, by round."""
        makers, nodes = self.structure.makers, self.structure.nodes
        return [nodes[makers[read.values[i]]]["data"] for i in self.rounds]

    # What columns read.

    def _add(self, nodes: list[int]) -> bool:
        """A new column; not where another loop has one of its nodes, or this one cannot."""
        within, claimed = nodes[self.low : self.high], self.claimed
        self.structure.looks -= len(within)
        if len(set(within)) < len(within) or max([claimed[p] for p in within]) >= 0:
            return False
        if not self.at.keys().isdisjoint(within) or not self._apart.isdisjoint(within):
            return False
        self.at.update(zip(within, zip(repeat(len(self.columns)), self.rounds), strict=False))
        self.columns.append(nodes)
        self._first = min(self._first, *within)
        return True

    def _close(self) -> bool:
        """Classify what columns read until no column is new."""
        nodes = self.structure.nodes
        while len(self.reads) < len(self.columns):
            column = self.columns[len(self.reads)]
            reads: list[Read] = []
            for slot in range(len(nodes[column[self.low]].inputs)):
                row = [nodes[p].inputs[slot] for p in column[self.low : self.high]]
                read = self._classify(self._blank(row))
                if read is None:
                    return False
                reads.append(read)
            self.reads.append(reads)
        return True

    def _blank(self, row: list[int]) -> list[int]:
        """What there is of each round, and nothing of those that were left out."""
        return [-1] * self.low + row + [-1] * (self._count - self.high)

    def _classify(self, values: list[int]) -> Read | None:
        structure, middle = self.structure, (self.low + self.high) // 2
        row, value, made_by = values[self.low : self.high], values[middle], structure.made_by
        maker, output = structure.made(value)
        if structure.is_literal(maker):
            form = structure.forms[maker]
            if not self._keep([made_by[v] == form for v in row]):
                return None
            few = structure.graph.types[value].nbytes * len(values) <= LARGEST
            return Literals(tuple(values)) if few else None
        found = self.at.get(maker)
        if found is not None:
            return self._internal(values, found[0], output, middle - found[1])
        views = self._views(values)
        if views is not None:
            return views
        if value in (values[middle - 1], values[middle + 1]):
            if not self._keep([v == value for v in row]) or self._hangs(value):
                return None
            return SameValue(value)
        if maker < 0:
            return None
        form, starts, makers = structure.forms[maker], structure.graph.starts, structure.makers
        alike = [made_by[v] == form for v in row]
        if len(structure.nodes[maker].types) > 1:
            alike = [a and starts[makers[v]] + output == v for a, v in zip(alike, row, strict=True)]
        if form == NONE or not self._keep(alike):
            return None
        number = len(self.columns)
        if number in self.ahead:
            nodes, distance = self.ahead[number]
            return self._internal(values, number, output, distance) if self._add(nodes) else None
        if not self._add(self._blank([makers[v] for v in values[self.low : self.high]])):
            return None
        return Internal(number, output, 0, tuple(values))

    def _internal(
        self, values: list[int], column: int, output: int, distance: int
    ) -> Internal | None:
        """Values of a column some rounds ago; the first rounds may read anything else."""
        if -FARTHEST <= distance < 0 and not self.core and 0 < column not in self.ahead:
            # A later round's: the column belongs so many rounds before.
            makers = self.structure.makers
            nodes = self._blank([makers[v] for v in values[self.low : self.high]])
            self.ahead[column], self.misplaced = (nodes, -distance), True
            return None
        if not 0 <= distance <= FARTHEST:
            return None
        starts, first = self.structure.graph.starts, min(self.low + distance, self.high)
        made = self.columns[column][self.low : self.high - distance]
        follows = [
            starts[p] + output == v for p, v in zip(made, values[first : self.high], strict=True)
        ]
        if not self._keep([True] * (first - self.low) + follows):
            return None
        return Internal(column, output, distance, tuple(values))

    def _views(self, values: list[int]) -> Views | None:
        """Views of one value or of literals, if these are nothing else in any round."""
        structure, nodes, makers = self.structure, self.structure.nodes, self.structure.makers
        made_by = structure.made_by
        found: list[tuple[int, ...]] = []
        row = values[self.low : self.high]
        while True:
            form, maker = made_by[row[0]], makers[row[0]]
            literal = structure.is_literal(maker)
            if form == NONE or not (literal or structure.is_view(nodes[maker])):
                return None
            if [made_by[v] for v in row].count(form) < len(row):
                return None
            if literal:
                few = structure.graph.types[row[0]].nbytes * len(values) <= LARGEST
                return Views(tuple(found), self._literals(row)) if found and few else None
            at = [makers[v] for v in row]
            if (not found and at.count(maker) == len(at)) or not self.at.keys().isdisjoint(at):
                return None
            found.append(tuple(self._blank(at)))
            row = [nodes[p].inputs[0] for p in at]
            source = row[0]
            if row.count(source) == len(row):
                if structure.is_literal(makers[source]):
                    return Views(tuple(found), self._literals(row))
                return None if self._hangs(source) else Views(tuple(found), SameValue(source))

    def _literals(self, row: list[int]) -> Literals:
        return Literals(tuple(self._blank(row)))

    def _keep(self, holds: Sequence[bool]) -> bool:
        """Leave out the rounds at both ends from where something does not hold on."""
        if not all(holds):
            low = high = len(holds) // 2
            while low and holds[low - 1]:
                low -= 1
            while high < len(holds) and holds[high]:
                high += 1
            self.low, self.high = self.low + low, self.low + high
        return self.high - self.low >= LEAST_ROUNDS

    def _hangs(self, value: int) -> bool:
        """Whether a value hangs on a node of the loop. Inputs stand before what reads them, so
        nodes before the loop's first need no look."""
        makers, nodes = self.structure.makers, self.structure.nodes
        waiting = [makers[value]]
        while waiting:
            position = waiting.pop()
            if self.inside(position):
                return True
            if position < self._first or position in self._apart:
                continue
            self.structure.looks -= 1
            self._apart.add(position)
            waiting.extend(makers[v] for v in nodes[position].inputs)
        return False

    # Columns that read others.

    def _absorb(self) -> None:
        """Add columns that read what others make, one by one, where all they read fits."""
        starts = self.structure.graph.starts
        number = 0
        while number < len(self.columns):
            column, middle = self.columns[number], (self.low + self.high) // 2
            for output in range(len(self.structure.nodes[column[middle]].types)):
                for position in self.structure.users(starts[column[middle]] + output):
                    if position not in self.at and position not in self._tried:
                        self._tried.add(position)
                        self._try(column, output, middle, position)
            number += 1

    def _try(self, column: list[int], output: int, middle: int, position: int) -> None:
        """Add the column of a node that reads a column's in a middle round, or leave all as it
        was."""
        structure = self.structure
        form, row = structure.forms[position], structure.table[structure.nodes[position].op]
        if form == NONE or row.joins or self.claimed[position] >= 0 or structure.looks < 0:
            return
        inputs = structure.nodes[position].inputs
        slot = inputs.index(structure.graph.starts[column[middle]] + output)
        rank = -1
        found = [-1] * len(column)
        for i in (middle, *self.rounds):
            value = structure.graph.starts[column[i]] + output
            users = structure.users(value)
            structure.looks -= len(users)
            alike = [
                p
                for p in users
                if structure.forms[p] == form
                and structure.nodes[p].inputs[slot] == value
                and p not in self.at
            ]
            if rank < 0:
                rank = alike.index(position)
            if rank < len(alike):
                found[i] = alike[rank]
        before = len(self.columns), self.low, self.high, self._first
        kept = self._keep([found[i] >= 0 for i in self.rounds]) and self._few(before)
        if kept and self._add(found) and self._close() and self._few(before):
            return
        count, self.low, self.high, self._first = before
        for nodes in self.columns[count:]:
            for p in nodes:
                if p in self.at and self.at[p][0] >= count:
                    del self.at[p]
        del self.columns[count:], self.reads[count:]

    def _few(self, before: tuple[int, int, int, int]) -> bool:
        """Whether few rounds were left out since."""
        return self.low - before[1] + before[2] - self.high <= EDGE

    def _verified(self) -> bool:
        """Whether nothing that comes from outside is made inside; where carries begin with what
        is, the rounds that read it are left out."""
        while True:
            late = 0
            for reads in self.reads:
                for read in reads:
                    if isinstance(read, Internal):
                        if read.distance < 0 or self._early(read):
                            late = max(late, read.distance)
                    else:
                        source = read.source if isinstance(read, Views) else read
                        if isinstance(source, SameValue) and self.inside(
                            self.structure.makers[source.value]
                        ):
                            return False
            if not late:
                return self.high - self.low >= LEAST_ROUNDS
            self.low += late
            if self.high - self.low < LEAST_ROUNDS:
                return False

    def _early(self, read: Internal) -> bool:
        """Whether a carry begins with something of the loop."""
        first = read.values[self.low : self.low + read.distance]
        return any(self.inside(self.structure.makers[v]) for v in first)
