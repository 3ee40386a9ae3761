"""Judge a step: its results on the reference's values, by the rule of agreement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.frozen import mutable
from tenfold.graph import Builder, Graph, Node, Parameter
from tenfold.graph.rewrite import rewrite
from tenfold.ops import TABLE
from tenfold.parity.find.narrow import Rows, narrowed, row_axes
from tenfold.parity.rule.agree import Agreement, Uncertain, Watch, compare, judged
from tenfold.parity.rule.bits import same_bits
from tenfold.types import KIND, TensorType

Array = np.ndarray[Any, Any]

LARGE = 1 << 14  # elements from which elementwise steps are judged on a sample
READ = 1 << 20  # elements of an argument from which rows that read it are


@mutable
class Judgement:
    """How the outputs of a step agree; `sampled` elements of `of` were judged where it is large."""

    found: list[Agreement]
    uncertain: bool = False
    sampled: int = 0
    of: int = 0

    @property
    def ulp(self) -> float:
        return max((a.ulp for a in self.found), default=0.0)

    @property
    def ties(self) -> int:
        return sum(a.ties for a in self.found)

    @property
    def wrong(self) -> int | None:
        """The first output that is out of bounds."""
        return next((n for n, a in enumerate(self.found) if not a.agrees), None)


def judge(
    graph: Graph,
    arguments: Sequence[Array],
    got: Sequence[Array],
    wanted: Sequence[Array],
    watch: Watch | None = None,
) -> Judgement:
    """Compiled outputs beside the reference's. The bounds are worked out only where bits differ."""
    if all(same_bits(a, b) for a, b in zip(got, wanted, strict=True)):
        return Judgement([Agreement(0.0) for _ in got])
    try:
        return _by_bounds(graph, arguments, got, wanted, watch)
    except Uncertain:  # a branch or loop within hangs on the last bits: its own steps are judged
        return Judgement([compare(a, b, None) for a, b in zip(got, wanted, strict=True)], True)


def _by_bounds(
    graph: Graph,
    arguments: Sequence[Array],
    got: Sequence[Array],
    wanted: Sequence[Array],
    watch: Watch | None,
) -> Judgement:
    size = max(a.size for a in wanted)
    if size > LARGE and _elementwise(graph, size):
        return _sampled(graph, arguments, got, wanted)
    read = max((np.size(a) for a in arguments), default=0)
    if size > LARGE or read > READ:
        part = min(LARGE / size, READ / read)
        for extent, which, rows, ends in row_axes(graph):
            count = max(int(part * extent), 2)  # a product of one row is another's work
            few = narrowed(graph, extent, count, which)
            if few is not None and count < extent:
                return _by_rows(few, (rows, ends), (arguments, got, wanted), count, watch)
    bounds = judged(graph, arguments, watch)
    return Judgement(
        [compare(a, b, one.allowed) for a, b, one in zip(got, wanted, bounds, strict=True)]
    )


def _elementwise(graph: Graph, size: int) -> bool:
    """Whether every element of the outputs depends on the same element of the large inputs."""
    fits = all(t.size in (1, size) for t in graph.types)
    shapes = {t.shape for t in graph.types if t.size == size}
    simple = all(
        TABLE[n.op].elementwise or (TABLE[n.op].literal and n.types[0].size == 1)
        for n in graph.nodes
    )
    return fits and simple and len(shapes) == 1


def _sampled(
    graph: Graph, arguments: Sequence[Array], got: Sequence[Array], wanted: Sequence[Array]
) -> Judgement:
    """The elements with the largest errors, and some more, stand for all."""
    size = max(a.size for a in wanted)
    whole = [compare(a, b, None) for a, b in zip(got, wanted, strict=True)]
    chosen: list[Array] = [np.arange(0, size, max(size // (LARGE // 4), 1))]
    for a, b in zip(got, wanted, strict=True):
        if a.size == size:
            off = _relative(a.reshape(-1), b.reshape(-1))
            count = min(LARGE // 2, size - 1)
            chosen.append(np.argpartition(off, size - count)[size - count :])
    at = np.unique(np.concatenate(chosen))
    few = _narrowed(graph, size, at.size)

    def cut(array: Array) -> Array:
        return array.reshape(-1)[at] if array.size == size else array.reshape(-1)[:1].reshape(())

    bounds = judged(few, [cut(np.asarray(a)) for a in arguments])
    made = []
    for a, b, one, all_of in zip(got, wanted, bounds, whole, strict=True):
        found = compare(cut(a), cut(b), one.allowed)
        where = found.at
        if where is not None and a.size == size:
            where = tuple(int(i) for i in np.unravel_index(int(at[where[0]]), b.shape))
        made.append(
            Agreement(all_of.ulp, where, found.text, found.ties, all_of.nans, all_of.infinities)
        )
    return Judgement(made, False, int(at.size), size)


def _by_rows(
    few: Graph,
    axes: tuple[Rows, Rows],
    arrays: tuple[Sequence[Array], Sequence[Array], Sequence[Array]],
    count: int,
    watch: Watch | None,
) -> Judgement:
    """Rows with the largest errors stand for all."""
    (rows, ends), (arguments, got, wanted) = axes, arrays
    whole = [compare(a, b, None) for a, b in zip(got, wanted, strict=True)]
    worst: Array | None = None
    for a, b, axis in zip(got, wanted, ends, strict=True):
        assert axis is not None
        off = _relative(a, b)
        most = off.max(axis=tuple(i for i in range(off.ndim) if i != axis), initial=0.0)
        worst = most if worst is None else np.maximum(worst, most)
    assert worst is not None
    at = np.sort(np.argsort(worst, kind="stable")[-count:])

    def cut(array: Array, axis: int | None) -> Array:
        return np.asarray(array) if axis is None else np.take(array, at, axis)

    bounds = judged(few, [cut(a, axis) for a, axis in zip(arguments, rows, strict=True)], watch)
    made = []
    for a, b, one, all_of, axis in zip(got, wanted, bounds, whole, ends, strict=True):
        found = compare(cut(a, axis), cut(b, axis), one.allowed)
        where = found.at
        if where is not None and axis is not None:
            where = (*where[:axis], int(at[where[axis]]), *where[axis + 1 :])
        made.append(
            Agreement(all_of.ulp, where, found.text, found.ties, all_of.nans, all_of.infinities)
        )
    size = max(a.size for a in wanted)
    return Judgement(made, False, size // worst.size * count, size)


def _relative(got: Array, value: Array) -> Array:
    """Errors relative to the reference's values, infinite where only one is NaN, smallest but not
    zero where only the sign of a zero differs."""
    with np.errstate(all="ignore"):
        x, y = got, value
        if got.dtype.kind not in "fc":
            x, y = got.astype(np.float64), value.astype(np.float64)
        off = np.abs(x - y) / (np.abs(y) + np.finfo(np.float32).tiny)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        off = np.where(same, 0.0, np.where(np.isnan(off), np.inf, off))
        if KIND[got.dtype] != "f":
            return off
        zeros = (x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))
        return np.where(zeros, np.finfo(np.float32).tiny, off)


def _narrowed(graph: Graph, size: int, count: int) -> Graph:
    """An elementwise graph over fewer elements, laid out flat."""

    def narrow(type: TensorType) -> TensorType:
        return TensorType(type.dtype, (count,) if type.size == size else ())

    def visit(builder: Builder, node: Node, inputs: Sequence[int]) -> Sequence[int] | None:
        if not TABLE[node.op].literal:
            return None
        return builder.node(
            node.op, (), {"data": node["data"], "type": repr(narrow(node.types[0]))}
        )

    return rewrite(graph, TABLE, visit, lambda given: Parameter(narrow(given.type)))
