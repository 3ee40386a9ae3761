"""The row of reach: chains of boolean matrices, row by row, less what is known.

It takes 20 inputs. A matrix is square, of one `extent` for all, and is held in one of two ways: as
bits (u64[matrices, extent, words], the first column the lowest bit), or as row `g` of a table,
where a line without columns takes a bit and no more. A table has a bit for each line, set if it has
columns (`lines`, u64[matrices, words]), how many such lines there are before those of each word
(`ranks`, i32[matrices, words]), where each of them begins and the last one ends (`starts`, i32),
and the columns of all, one after the other (`items`, i32). A step (g, low, high) is the matrix g of
the tables from `low` up to `high`, of four, taken together; with `low` below 0 it is the matrix g
of bits.

- `chains`, i32[chains, longest, 3]: steps to be multiplied; one with g below 0 ends a chain.
- `heads`, i32[heads, 5]: the chains of a head from the first up to the second number, of which the
  union is taken, and a step whose matrix is left out (none where its g is below 0).
- `ranges`, i32[ranges, 3]: a head and its rows from the second up to the third number.
- the bits; then lines, ranks, starts and items of each table.

The results are, for each range, how many columns each of its up to `rows` rows comes to, and these
columns, rising within a row. A row that finds no `room`, and those after it in its range, have -1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch
from tenfold.graph.build import Builder
from tenfold.graph.node import Graph
from tenfold.graph.op import Op, Routine, Sample, Types
from tenfold.ops import attributes as attribute
from tenfold.ops import samples
from tenfold.ops.batching import rules as batching
from tenfold.ops.elements import Read, Site
from tenfold.ops.expression import Expression, select
from tenfold.ops.reads import Reads
from tenfold.ops.reference import Array
from tenfold.types import DTYPES, TensorType

TABLES = 4
_I32, _U64 = DTYPES["i32"], DTYPES["u64"]
_PARTS = [f"{part} {k}" for k in range(TABLES) for part in ("lines", "ranks", "starts", "items")]
_NAMES = ("chains", "heads", "ranges", "bits", *_PARTS)


def _infer(types: Types, given: Mapping[str, Any], scopes: tuple[Graph, ...]) -> Types:
    extent = types[3].shape[1] if types[3].rank == 3 else -1
    words = -(-extent // 64)
    wanted: list[tuple[int | None, ...]] = [(None, None, 3), (None, 5), (None, 3)]
    wanted.append((None, extent, words))
    for lines in types[4::4]:
        matrices = lines.shape[0] if lines.rank else None
        wanted += [(None, words), (matrices, words), (None,), (None,)]
    for name, type, shape in zip(_NAMES, types, wanted, strict=True):
        dtype = _U64 if name.startswith(("bits", "lines")) else _I32
        if type.dtype != dtype:
            raise TypeMismatch(f"reach: {name} are {type}", fix=f"give {dtype.name}")
        good = type.rank == len(shape) and all(
            n in (None, m) for n, m in zip(shape, type.shape, strict=True)
        )
        if not good or extent < 0:
            said = ", ".join("any" if n is None else str(n) for n in shape)
            raise ShapeError(f"reach: {name} are {type}", fix=f"give the shape ({said})")
    parts = types[2].shape[0]
    return TensorType(_I32, (parts, given["rows"])), TensorType(_I32, (parts, given["room"]))


def _lines(step: Array, row: int, bits: Array, tables: Sequence[Array]) -> Iterator[Array]:
    """The columns of a row of a step."""
    g, low, high = step.tolist()
    extent = bits.shape[1]
    if low < 0:
        if 0 <= g < len(bits):
            line = np.unpackbits(bits[g, row].view(np.uint8), bitorder="little")
            yield np.flatnonzero(line[:extent])
        return
    for k in range(low, min(high, TABLES)):
        lines, ranks, starts, items = tables[4 * k : 4 * k + 4]
        word, place = divmod(row, 64)
        if not (0 <= g < len(lines) and len(starts) and int(lines[g, word]) >> place & 1):
            continue
        before = (int(lines[g, word]) & ((1 << place) - 1)).bit_count()
        last = len(starts) - 1
        at = min(max(int(ranks[g, word]), 0), last) + before
        first, past = np.clip(starts[[min(at, last), min(at + 1, last)]], 0, len(items))
        line = items[first:past]
        yield line[(line >= 0) & (line < extent)]


def _reach(
    chains: Array, heads: Array, ranges: Array, bits: Array, *tables: Array, rows: int, room: int
) -> tuple[Array, Array]:
    extent = bits.shape[1]
    counts = np.zeros((len(ranges), rows), np.int32)
    found = np.zeros((len(ranges), room), np.int32)
    for part, (h, low, high) in enumerate(ranges.tolist()):
        first = min(max(low, 0), extent)
        past = max(first, min(high, extent, first + rows)) if 0 <= h < len(heads) else first
        used = 0
        for row in range(first, past):
            columns = _head(heads[h], row, chains, bits, tables) if used >= 0 else None
            if columns is None or used + len(columns) > room:
                counts[part, row - first], used = -1, -1
                continue
            counts[part, row - first] = len(columns)
            found[part, used : used + len(columns)] = columns
            used += len(columns)
    return counts, found


def _head(head: Array, row: int, chains: Array, bits: Array, tables: Sequence[Array]) -> Array:
    """The columns that a row of a head comes to."""
    extent = bits.shape[1]
    reached = np.zeros(extent, bool)
    first, past = np.clip(head[:2], 0, len(chains))
    for chain in chains[first:past]:
        at = None
        for step in chain:
            if step[0] < 0:
                break
            onward = np.zeros(extent, bool)
            for start in (row,) if at is None else np.flatnonzero(at).tolist():
                for line in _lines(step, start, bits, tables):
                    onward[line] = True
            at = onward
        if at is not None:
            reached |= at
    if head[2] >= 0:
        for line in _lines(head[2:], row, bits, tables):
            reached[line] = False
    return np.flatnonzero(reached)


def _batch(
    builder: Builder, inputs: Sequence[int], batched: Sequence[bool], size: int, **given: Any
) -> tuple[int, ...]:
    """All lanes as one: their matrices, chains, heads and ranges one after the other, with numbers
    that say so."""
    chains, heads, ranges, bits, *tables = (
        Expression(builder, v if b else batching.spread(builder, v, size))
        for v, b in zip(inputs, batched, strict=True)
    )
    lanes = Expression(builder, batching.make(builder, "iota", dtype="i32", shape=(size,), axis=0))
    # each lane has as many matrices in all tables and of bits, so that one number serves them all
    most = max(bits.shape[1], *(lines.shape[1] for lines in tables[::4]))
    longest = max(most, *(x.shape[1] + 64 for part in (2, 3) for x in tables[part::4]))
    if size * longest > np.iinfo(np.int32).max:
        raise ShapeError(f"reach: {size} lanes pass 32 bits", fix="map over fewer at a time")

    def joined(axis: int, *parts: Expression) -> Expression:
        values = (p.value for p in parts)
        return Expression(builder, batching.make(builder, "concatenate", *values, axis=axis))

    def merged(x: Expression) -> Expression:
        return x.reshape(size * x.shape[1], *x.shape[2:])

    def behind(x: Expression, count: int) -> Expression:
        """What the lanes before have: so many each."""
        return lanes.reshape(size, *[1] * (len(x.shape) - 1)) * count

    def named(x: Expression, count: int) -> Expression:
        """A number among those of all lanes; one that names nothing names nothing."""
        outside = select(x < 0, x, size * count)
        return select((x >= 0) & (x < count), x + behind(x, count), outside)

    def placed(x: Expression, count: int) -> Expression:
        """A position among those of all lanes, held to its own."""
        return x.op("max", 0).op("min", count) + behind(x, count)

    def stepped(x: Expression) -> Expression:
        last = len(x.shape) - 1
        return joined(last, named(x.part(last, 0, 1), most), x.part(last, 1, 3))

    def filled(x: Expression) -> Expression:
        """As many matrices in each lane; those that are added are empty."""
        if x.shape[1] < most:
            empty = x.number(0).broadcast(size, most - x.shape[1], *x.shape[2:])
            x = joined(1, x, empty)
        return merged(x)

    count = ranges.shape[1]
    first_chains = placed(heads.part(2, 0, 2), chains.shape[1])
    flat = [
        merged(stepped(chains)),
        merged(joined(2, first_chains, stepped(heads.part(2, 2, 5)))),
        merged(joined(2, named(ranges.part(2, 0, 1), heads.shape[1]), ranges.part(2, 1, 3))),
        filled(bits),
    ]
    for lines, ranks, starts, items in zip(*(tables[n::4] for n in range(4)), strict=True):
        # behind the last start of a lane so many more that no line begins in the next lane's
        last = max(starts.shape[1] - 1, 0)
        end = starts.part(1, last, last + 1) if starts.shape[1] else starts.number(0)
        more = end.broadcast(size, 64 + (not starts.shape[1]))
        begins = placed(joined(1, starts, more), items.shape[1])
        ranked = ranks.op("max", 0).op("min", last) + behind(ranks, last + 65)
        flat += [filled(lines), filled(ranked), merged(begins), merged(items)]
    made = builder.node("reach", [x.value for x in flat], given)
    results = (Expression(builder, v) for v in made)
    return tuple(x.reshape(size, count, x.shape[1]).value for x in results)


def _reads(site: Site) -> Reads:
    """All of every input."""
    for i, type in enumerate(site.types):
        axes = [site.kernel.reduced(n, site.stage, turn)[1] for turn, n in enumerate(type.shape)]
        yield Read(i, tuple(axes))


def _samples(random: samples.Random) -> list[Sample]:
    def numbers(low: int, high: int, *shape: int) -> Array:
        return random.integers(low, high, shape).astype(np.int32)

    def table(matrices: int, extent: int, entries: int) -> list[Array]:
        count = matrices * extent * 3 // 5
        wide = np.zeros((matrices, -(-extent // 64) * 64), bool)
        chosen = random.permutation(matrices * extent) < count
        wide[:, :extent] = chosen.reshape(matrices, extent)
        lines = np.packbits(wide, axis=1, bitorder="little").view(np.uint64)
        each = wide.reshape(matrices, -1, 64).sum(axis=2)
        ranks = np.cumsum(each).reshape(each.shape) - each
        starts = np.sort(random.integers(0, entries + 1, count + 1))
        items = numbers(0, max(extent, 1), entries)
        return [lines, ranks.astype(np.int32), starts.astype(np.int32), items]

    made = []
    for extent, matrices, entries, longest, rows, room in (
        (5, 2, 12, 3, 5, 40),
        (70, 3, 200, 2, 9, 50),
        (9, 1, 30, 1, 4, 6),
        (130, 2, 900, 4, 130, 400),
        (3, 2, 0, 2, 3, 5),
        (4, 2, 9, 2, 0, 0),
    ):
        steps = np.stack([numbers(-1, matrices + 1, 6, longest), numbers(-1, 4, 6, longest),
                          numbers(0, 6, 6, longest)], axis=-1)  # fmt: skip
        heads = np.concatenate([numbers(0, 3, 3, 1), numbers(3, 8, 3, 1), numbers(-1, 3, 3, 3)], 1)
        ranges = np.concatenate([numbers(-1, 4, 4, 1), numbers(-1, extent, 4, 1),
                                 numbers(0, 2 * extent, 4, 1)], 1)  # fmt: skip
        words = -(-extent // 64)
        bits = random.integers(0, 1 << 64, (matrices, extent, words), np.uint64)
        bits &= random.integers(0, 1 << 64, (matrices, extent, words), np.uint64)
        tables = [x for _ in range(TABLES) for x in table(matrices, extent, entries)]
        made.append(Sample((steps, heads, ranges, bits, *tables), {"rows": rows, "room": room}))
    wild = tuple(samples.anything(random, t.dtype, t.shape) for t in made[0].inputs)
    return [*made, Sample(wild, {"rows": 5, "room": 20})]


ROWS = (
    Op(
        name="reach",
        arity=4 + 4 * TABLES,
        infer=_infer,
        reference=_reach,
        lowering=Routine("reach"),
        edges="what lies outside of its range is left out, or held to it; without room: -1",
        bound=0,
        batch=batching.unless_none(_batch, "reach"),
        samples=_samples,
        attributes=(attribute.count("rows"), attribute.count("room")),
        reads=_reads,
    ),
)
