"""Kernels judged on values drawn for them: what the caller's values happen not to show.

A first call may have no repeated index, a zero where a sign is wrong, no tie. So each distinct
kernel is judged once on random values with ties and zeros of both signs; with NaN, infinities, the
ends of integers and indices at the ends of what its checks let in; and with numbers of one sign
alone. What is found belongs to the kernel and what it was made of, whatever plan it stands in.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from tenfold.backends.program import Program
from tenfold.digest import sha256
from tenfold.errors import TenfoldError
from tenfold.graph import Graph, Node
from tenfold.ops import TABLE
from tenfold.parity.replay.replay import JUNK, Frame, Replay, written
from tenfold.parity.replay.state import PlanFacts, ScopeState
from tenfold.parity.replay.steps import check_step, wrong
from tenfold.parity.rule.bits import raw
from tenfold.parity.verdict import VALUES, Disagreement
from tenfold.plan import KernelStep
from tenfold.plan.steps.plan import CONSTANT
from tenfold.reference import evaluate
from tenfold.types import KIND, TensorType

Array = np.ndarray[Any, Any]

PACE = 7_000_000  # elements of a kernel that are drawn and judged in a second, about
MANY = 1 << 18  # elements from which numbers of one sign alone are not tried
_DRAWN = 262_139  # elements of an array that are drawn: a prime
MIXED, ODD, BELOW, ABOVE = range(4)  # ways to draw: mixed, troublesome, negative, positive
_SPECIAL = (np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -1.0)


def kernels(
    program: Program, abouts: Mapping[int, PlanFacts]
) -> Iterator[tuple[str, PlanFacts, int]]:
    """Each distinct kernel of a program: its name, and a step that calls it. Code that is shared
    by several sizes is judged for one."""
    seen: set[str] = set()
    for about in abouts.values():
        for at, step in enumerate(about.plan.steps):
            if not isinstance(step, KernelStep) or not about.positions[at]:
                continue
            name = _named(program.code_name(about.plan.call(step)), about.form(at))
            if name not in seen:
                seen.add(name)
                yield name, about, at


@lru_cache(1 << 14)
def _named(code: str, form: tuple[object, ...]) -> str:
    return sha256(f"{code} {form}".encode()).hexdigest()[:16]


class Bench:
    """Where kernels of a program are tried: memory for each of its plans."""

    def __init__(
        self, replay: Replay, make: Callable[[PlanFacts, list[Array]], ScopeState]
    ) -> None:
        self._replay = replay
        self._make = make
        self._frames: dict[int, Frame] = {}

    def judge(
        self, about: PlanFacts, at: int, watch: Callable[[], None]
    ) -> Disagreement | str | None:
        """What is wrong with the kernel of a step; or why it was not tried; or None."""
        random = np.random.default_rng(0)
        ways = (MIXED, ODD, BELOW, ABOVE)
        for way in ways if about.size(at) <= MANY else ways[:2]:
            for reach in (_reach(about.part(at).graph), 1):
                values = _values(about, at, random, way, reach)
                try:
                    made = _results(about, at, values)
                except TenfoldError:  # an index out of range, an exponent that is not there
                    missed = self._raises(about, at, values)
                    if missed is not None:
                        return missed
                    continue
                found = self._try(about, at, {**values, **made}, watch)
                if isinstance(found, (Disagreement, str)):
                    return found
                break
            else:
                if way == MIXED:
                    return f"{about.what(at)}: no drawn values were found that it takes"
        return None

    def _state(self, about: PlanFacts, at: int, values: dict[int, Array]) -> ScopeState | None:
        """A state in which everything that a step reads lies in its place."""
        frame = self._frames.get(id(about))
        if frame is None:
            rooms = [np.empty(p.type.shape, p.type.dtype) for p in about.graph.parameters]
            frame = self._frames[id(about)] = Frame(about.plan, rooms, filled=False)
        state = self._make(about, frame.inputs)
        state.values = values
        state.frame = frame
        own = written(about.plan.steps[at], about.layout, at)
        for room in (*map(frame.memory, own), *(zone for _, zone in frame.zones(own))):
            raw(room)[...] = JUNK
        for slot, value in about.layout.writes[at]:
            held = frame.memory(slot)
            if (slot, value) not in about.layout.begun:
                continue
            operand = _operand(about.graph, value)
            if operand not in values:
                return None
            held[...] = values[operand].reshape(held.shape)
        for slot, value in about.layout.reads[at]:
            held = frame.memory(slot)
            if about.plan.slots[slot].place != CONSTANT:
                held[...] = values[value].reshape(held.shape)
        return state

    def _try(
        self, about: PlanFacts, at: int, values: dict[int, Array], watch: Callable[[], None]
    ) -> Disagreement | str | None:
        state = self._state(about, at, values)
        if state is None:
            return f"{about.what(at)}: it begins with what another step leaves"
        found = check_step(self._replay, state, at, watch)
        return found if isinstance(found, Disagreement) else None

    def _raises(self, about: PlanFacts, at: int, values: dict[int, Array]) -> Disagreement | None:
        """Where the reference raises, the kernel has to find the fault, too."""
        state = self._state(about, at, values)
        if state is None:
            return None
        assert state.frame is not None
        try:
            self._replay.run(state.frame, at)
        except TenfoldError:
            return None
        return wrong(state, at, VALUES, "it goes on where the reference raises")


def _values(
    about: PlanFacts, at: int, random: np.random.Generator, way: int, reach: int
) -> dict[int, Array]:
    """What a step reads, drawn, and what its nodes take, which may be views of that."""
    graph, part = about.graph, about.part(at)
    made: dict[int, Array] = {}
    lies: dict[int, Array] = {}  # what lies in each slot
    for slot, value in about.layout.reads[at]:
        type = graph.types[value]
        if slot not in lies:
            lies[slot] = _drawn_or_constant(graph, value, random, way, reach)
        made[value] = lies[slot].reshape(type.shape)
    with np.errstate(all="ignore"):
        for value in part.inputs:
            views = _views(graph, value, made)
            if views is None:
                made[value] = _drawn_or_constant(graph, value, random, way, reach)
                continue
            if not views:
                continue
            result = made[views[-1].inputs[0]]
            for node in reversed(views):
                result = np.asarray(TABLE[node.op].reference(result, **dict(node.attributes)))
            made[value] = result
    return made


def _drawn_or_constant(
    graph: Graph, value: int, random: np.random.Generator, way: int, reach: int
) -> Array:
    node = _maker(graph, value)
    if node is not None and TABLE[node.op].literal:
        return np.asarray(TABLE[node.op].reference(**dict(node.attributes)))
    return _draw(graph.types[value], random, way, reach)


def _views(graph: Graph, value: int, made: Mapping[int, Array]) -> list[Node] | None:
    """The nodes from a value back to one that is there, each a view of the next; None if there is
    no such way."""
    way: list[Node] = []
    while value not in made:
        node = _maker(graph, value)
        if node is None or len(node.inputs) != 1 or len(node.types) != 1 or node.scopes:
            return None
        if graph.types[node.inputs[0]].size != node.types[0].size:
            return None
        way.append(node)
        value = node.inputs[0]
    return way


def _results(about: PlanFacts, at: int, values: dict[int, Array]) -> dict[int, Array]:
    part = about.part(at)
    outputs = evaluate(part.graph, part.arrays(values))
    return dict(zip(part.outputs, outputs, strict=True))


def _draw(type: TensorType, random: np.random.Generator, way: int, reach: int) -> Array:
    """Values of a type, with ties among them; plain ones have zeros of both signs, odd ones some of
    what makes trouble. Integers are indices below `reach`, repeated, or now and then any. Those of
    a large array come back after a number of elements that divides no extent."""
    kind, shape = KIND[type.dtype], type.shape
    if type.size > _DRAWN:
        few = _draw(TensorType(type.dtype, (_DRAWN,)), random, way, reach)
        return np.resize(few, shape)
    if kind == "b":
        return random.integers(0, 2, shape).astype(type.dtype)
    if kind in "iu":
        near = np.asarray(random.integers(0, max(reach, 1), shape)).astype(type.dtype)
        if way == BELOW and kind == "i":
            return -1 - near
        if way != ODD or reach == 1:
            return near
        limits = np.iinfo(type.dtype)
        ends = random.choice(np.array([limits.min, limits.max, 0, reach - 1, 1], type.dtype), shape)
        return np.asarray(np.where(random.random(shape) < 0.3, ends, near))
    if kind == "c":
        part = np.dtype("f4" if type.dtype.itemsize == 8 else "f8")
        both = np.empty(shape, type.dtype)
        half = TensorType(part, shape)
        both.real, both.imag = (_draw(half, random, way, reach) for _ in range(2))
        return both
    plain = random.standard_normal(shape) * 2
    plain = np.where(random.random(shape) < 0.4, np.round(plain * 2) / 2, plain)
    if way == ODD:
        special = random.choice(np.array(_SPECIAL), shape)
        plain = np.where(random.random(shape) < 0.04, special, plain)
    elif way != MIXED:
        plain = (0.25 + np.abs(plain)) * (-1 if way == BELOW else 1)
    return np.asarray(plain).astype(type.dtype)


def _reach(graph: Graph) -> int:
    """Below what an integer is an index into every axis that is indexed; 8 where none is."""
    least = 8
    for node in graph.nodes:
        if TABLE[node.op].indices is not None:
            least = min([least, *graph.types[node.inputs[0]].shape])
    return max(least, 1)


def _maker(graph: Graph, value: int) -> Node | None:
    """The node that makes a value, None for a parameter."""
    if value < len(graph.parameters):
        return None
    return graph.nodes[bisect_right(graph.starts, value) - 1]


def _operand(graph: Graph, value: int) -> int:
    """What a scatter's result begins as."""
    node = _maker(graph, value)
    return -1 if node is None else int(node.inputs[0])
