"""Run the reference with every result moved by its op's bound: what rounding makes of a program.

Where errors pile up, over the rounds of a loop say, bounds that are added up soon tell nothing: a
value may be off by more than it is worth. What errors of the size of the bounds really do is seen
by making them, with random signs, as stochastic arithmetic does. A compiled result that lies
farther from the reference's than such runs do is wrong, whatever its steps were like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tenfold.graph import Graph, Node
from tenfold.graph.op import HostRequest
from tenfold.ops import TABLE
from tenfold.ops.agreement.moved import distance, moved
from tenfold.ops.agreement.units import EPS, unit
from tenfold.parity.replay.answers import HostAnswer
from tenfold.parity.rule.agree import Uncertain, Watch
from tenfold.parity.rule.bits import raw
from tenfold.parity.rule.bounds import usual_bound
from tenfold.types import KIND, SHORT

Array = np.ndarray[Any, Any]

CLOSE = 16.0  # units in the last place that need no further look
SLACK = 8.0  # how much farther than some runs another may go
# How far results are moved in each run, in bounds: by turns one way and the other, since what is
# cut off at 0, say, tells of one way alone.
RUNS = (1.0, -1.0, 1.0, -1.0, 4.0, -4.0)
FEWEST = 2  # runs after which a result is judged for the first time
ROW = 8  # elements from which a row says what runs do to most of it
MOST = 200_000  # nodes of a run: a loop may never end when what it waits for is moved


def farther(
    graph: Graph,
    arguments: Sequence[Array],
    got: Sequence[Array],
    wanted: Sequence[Array],
    watch: Watch | None = None,
    asked: Sequence[HostAnswer] = (),
) -> tuple[int, str] | None:
    """The first output that lies farther from the reference's than rounding explains, and how.

    `asked` are the answers that callbacks gave the reference. Raises Uncertain where nothing can
    be said: moved by its bounds, the program does something else altogether."""
    open_ones = [n for n, (a, b) in enumerate(zip(got, wanted, strict=True)) if not _close(a, b)]
    if not open_ones:
        return None
    spread = [np.zeros(w.shape) for w in wanted]
    found: tuple[int, str] | None = None
    for number, scale in enumerate(RUNS):
        other = PerturbedRun(number // 2, scale, watch, asked).run(graph, arguments)
        with np.errstate(all="ignore"):
            for n in open_ones:
                far = distance(other[n], wanted[n])
                spread[n] = np.maximum(spread[n], np.where(np.isnan(far), np.inf, far))
        if number + 1 < FEWEST:
            continue
        texts = ((n, _beyond(got[n], wanted[n], spread[n])) for n in open_ones)
        found = next(((n, text) for n, text in texts if text), None)
        if found is None:
            return None
    return found


def _close(got: Array, wanted: Array) -> bool:
    """Whether a result needs no further look: equal, or floats within a few units."""
    if np.array_equal(raw(got), raw(wanted)):
        return True
    if SHORT[np.dtype(wanted.dtype)] not in EPS:
        return False
    with np.errstate(all="ignore"):
        return bool(np.all(distance(got, wanted) <= CLOSE * unit(wanted)))


def _beyond(got: Array, wanted: Array, spread: Array) -> str:
    """What lies farther off than runs that were moved, in words; nothing if nothing does."""
    with np.errstate(all="ignore"):
        off = distance(got, wanted)
        if SHORT[np.dtype(wanted.dtype)] in EPS:
            allowed = np.maximum(SLACK * spread, CLOSE * unit(wanted))
            # A few runs may by chance leave an element where it is that another moves: there, what
            # they do to most elements counts.
            size = np.abs(wanted).astype(np.float64)
            usual = np.isfinite(size) & (size > 0) & np.isfinite(spread)
            if usual.any():
                most = SLACK * _typical(spread, size, usual) * size
                allowed = np.maximum(allowed, np.where(np.isfinite(most), most, 0.0))
            moving = np.isfinite(spread) & (spread > 0)
            if moving.any():  # a small difference of large numbers is off by what these are
                still = np.where(spread == 0, SLACK * np.median(spread[moving]), 0.0)
                allowed = np.maximum(allowed, still)
            bad = ~(off <= allowed)
            if KIND[wanted.dtype] == "c":  # which part of what is not finite is NaN nobody promises
                bad &= np.isfinite(got) | np.isfinite(wanted)
            if not bad.any():
                return ""
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            return (
                f"{got[at]} instead of {wanted[at]} at {list(at)}: off by {off[at]:.3g}, where "
                f"rounding makes {float(spread[at]):.3g}"
            )
        # Of integers and bools a few may be decided the other way, as many as in runs that were
        # moved; where none is, none may differ.
        differ, open_ones = off > 0, spread > 0
        if np.count_nonzero(differ) <= SLACK * np.count_nonzero(open_ones):
            return ""
        bad = differ & ~open_ones if (differ & ~open_ones).any() else differ
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        return f"{got[at]} instead of {wanted[at]} at {list(at)}, which rounding does not explain"


def _typical(spread: Array, size: Array, usual: Array) -> Array | float:
    """What runs do to most elements, in parts of their size, and to most of those in a row along
    any axis: a round of a loop, say, may be worse conditioned than the others. Of a few elements
    one that is ill-conditioned would speak for all."""
    relative = np.where(usual, spread / size, 0.0)
    found: Array | float = float(np.median(relative[usual]))
    for axis, extent in enumerate(relative.shape):
        if relative.size < ROW * extent:
            continue
        others = tuple(a for a in range(relative.ndim) if a != axis)
        found = np.maximum(found, np.median(relative, axis=others, keepdims=True))
    return found


class PerturbedRun:
    """One run of the reference in which every float result is moved by its op's bound."""

    def __init__(
        self, seed: int, scale: float, watch: Watch | None, asked: Sequence[HostAnswer]
    ) -> None:
        self._random = np.random.default_rng(seed)
        self._scale = scale
        self._watch = watch
        self._asked: Iterator[HostAnswer] = iter(asked)
        self._count = 0

    def run(self, graph: Graph, arguments: Sequence[Array]) -> list[Array]:
        with np.errstate(all="ignore"):
            return self._graph(graph, [np.asarray(a) for a in arguments])

    def _graph(self, graph: Graph, arguments: Sequence[Array]) -> list[Array]:
        values: list[Any] = list(arguments)
        for node, dying in zip(graph.nodes, graph.last_uses, strict=True):
            self._count += 1
            if self._count > MOST:
                raise Uncertain
            if self._watch is not None:
                self._watch()
            values += self._node(node, [values[v] for v in node.inputs])
            for value in dying:
                values[value] = None
        return [values[v] for v in graph.outputs]

    def _node(self, node: Node, inputs: list[Array]) -> list[Array]:
        row = TABLE[node.op]
        attributes = dict(node.attributes)
        if row.scopes != 0 or row.effect:
            steps = row.reference(inputs, node.scopes, **attributes)
            reply: list[Array] | None = None
            while True:
                try:
                    request = next(steps) if reply is None else steps.send(reply)
                except StopIteration as stop:
                    return [np.asarray(r) for r in stop.value]
                if isinstance(request, HostRequest):
                    reply = self._answer()
                else:
                    reply = self._graph(request.graph, request.arguments)
        result = row.reference(*inputs, **attributes)
        results = [np.asarray(r) for r in (result if isinstance(result, tuple) else (result,))]
        return [self._moved(node, inputs, r) for r in results]

    def _answer(self) -> list[Array]:
        one = next(self._asked, None)
        if one is None:
            raise Uncertain
        return [np.array(answer) for answer in one.answers]

    def _moved(self, node: Node, inputs: list[Array], result: Array) -> Array:
        if KIND[result.dtype] not in "fc" or not result.size:
            return result
        begin, by = usual_bound(node, inputs, result, _ask)
        if not np.any(by):
            return result
        signs = self._random.choice((-1.0, 1.0), result.shape) * np.sign(self._scale)
        return moved(begin, by * abs(self._scale), signs)


def _ask(node: Node, values: Sequence[Array]) -> list[Array]:
    reference: Callable[..., Any] = TABLE[node.op].reference
    result = reference(*values, **dict(node.attributes))
    return [np.asarray(r) for r in (result if isinstance(result, tuple) else (result,))]


__all__ = ["farther"]
