"""Check one step: run it natively on the reference's values and judge what it gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import TenfoldError
from tenfold.graph.op import Loop
from tenfold.ops import TABLE
from tenfold.parity.find.part import goes_long, loop_of
from tenfold.parity.replay.loops import LATER, ROUNDS, few_rounds
from tenfold.parity.replay.perturb import farther
from tenfold.parity.replay.replay import Replay, overlaps, region, written
from tenfold.parity.replay.state import ScopeState
from tenfold.parity.rule.agree import Agreement, Uncertain, Watch, closely, compare
from tenfold.parity.rule.bits import raw, same_bits
from tenfold.parity.rule.judge import Judgement, judge
from tenfold.parity.verdict import LOOP, MEMORY, VALUES, Case, Disagreement
from tenfold.plan import KernelStep, LoopStep
from tenfold.plan.steps.plan import CONSTANT, INPUT
from tenfold.types import KIND

Array = np.ndarray[Any, Any]
_NO_BOOL = 0xAA  # neither False nor True: what was not written is told from what is wrong


def check_step(
    replay: Replay, state: ScopeState, at: int, watch: Watch | None = None
) -> Judgement | Disagreement | str:
    """How a step agrees; or what is wrong with it; or why it was not judged alone. `watch` is
    called now and then, and may raise."""
    about, frame = state.about, state.frame
    assert frame is not None
    step = about.plan.steps[at]
    fault = _overwritten(state, at) or _overlapping(state, at)
    if fault is not None:
        return fault
    if about.effects[at]:
        give(state, at)
        return f"{about.what(at)} calls Python: it was run with the whole plan, not alone"
    before = _prepare(state, at)
    zones = [
        (start, zone, zone.copy()) for start, zone in frame.zones(written(step, about.layout, at))
    ]
    try:
        replay.run(frame, at)
    except MemoryError as error:  # a device's, too: the caller's arrays may leave no more
        give(state, at)
        return f"{about.what(at)} was not run alone, for want of memory: {error}"
    except TenfoldError as error:
        return wrong(state, at, VALUES, f"it raised {type(error).__name__}: {error.message}")
    damage = frame.damage() or _beside(zones)
    if damage is not None:
        return wrong(state, at, MEMORY, damage)
    if isinstance(step, LoopStep):
        node = about.graph.nodes[step.node]
        went = state.loops.get(step.node)
        rounds = node["length"] if loop_of(node).counted else went.number if went else 0
        if rounds > ROUNDS:
            return _long_loop(replay, state, at, rounds, watch)
    return _judged(state, at, before, watch)


def glance(replay: Replay, state: ScopeState, at: int) -> bool:
    """Whether a step is run and gives what lies closely by the reference's values: a small part of
    the time that it takes to judge it. What does not, or can't be run alone, is to be judged."""
    about, frame = state.about, state.frame
    assert frame is not None
    if about.effects[at]:
        return False
    try:
        replay.run(frame, at)
    except TenfoldError:
        return False
    places = [(frame.memory(slot), state.values[value]) for slot, value in about.layout.writes[at]]
    return all(closely(held, np.asarray(v).reshape(held.shape)) is not None for held, v in places)


def _beside(zones: list[tuple[int, Array, Array]]) -> str | None:
    """What a step wrote beside its own memory in the arena."""
    for start, now, then in zones:
        hit = np.flatnonzero(now != then)
        if hit.size:
            where = start + int(hit[0])
            return f"{hit.size} bytes from {where} in the arena on, beside its own, were written to"
    return None


def _long_loop(
    replay: Replay, state: ScopeState, at: int, rounds: int, watch: Watch | None
) -> Judgement | Disagreement:
    """Errors may grow over many rounds: the first few are judged by bounds; some more, past the
    rounds that were looked at one by one, and the whole, by what rounding makes of the
    reference."""
    about, frame = state.about, state.frame
    assert frame is not None
    part = about.part(at)
    made = {v: np.array(frame.memory(s)) for s, v in about.layout.writes[at]}
    counts = [ROUNDS, *([LATER] if rounds > LATER and not goes_long(part.graph.nodes[0]) else [])]
    for count in counts:
        fault = few_rounds(replay, state, at, count, watch)
        if fault is not None:
            return wrong(state, at, LOOP, fault)
    wanted = [np.asarray(state.values[v]) for v in part.outputs]
    got = [made[v].reshape(w.shape) for v, w in zip(part.outputs, wanted, strict=True)]
    uncertain = False
    try:
        far = farther(part.graph, part.arrays(state.values), got, wanted, watch)
    except Uncertain:
        far, uncertain = None, True
    if far is not None:
        text = f"after {rounds} rounds: {far[1]}"
        return wrong(state, at, LOOP, text, part.outputs[far[0]])
    give(state, at)
    return Judgement([compare(a, b, None) for a, b in zip(got, wanted, strict=True)], uncertain)


def carry_out(replay: Replay, state: ScopeState, at: int) -> bool:
    """Run a step on the reference's values, whatever was run before it; not where it calls
    Python."""
    about, frame = state.about, state.frame
    assert frame is not None
    for slot, value in about.layout.reads[at]:
        held, lies = frame.memory(slot), about.plan.slots[slot]
        given = lies.place == INPUT and lies.number not in about.plan.donated
        if lies.place != CONSTANT and not given:
            held[...] = np.asarray(state.values[value]).reshape(held.shape)
    if about.effects[at]:
        return False
    replay.run(frame, at)
    return True


def judged_step(replay: Replay, state: ScopeState, at: int) -> list[Agreement]:
    """How the results of a step compare, whether they agree or not; none where it calls Python."""
    about, frame = state.about, state.frame
    assert frame is not None
    if not carry_out(replay, state, at):
        return []
    part = about.part(at)
    got = []
    for slot, value in about.layout.writes[at]:
        wanted = np.asarray(state.values[value])
        got.append(np.array(frame.memory(slot).reshape(wanted.shape)))
    wanted_of = [np.asarray(state.values[v]) for v in part.outputs]
    node = part.graph.nodes[0]
    if isinstance(
        TABLE[node.op].lowering, Loop
    ):  # errors may grow over the rounds: recorded, not judged
        return [compare(a, b, None) for a, b in zip(got, wanted_of, strict=True)]
    return judge(part.graph, part.arrays(state.values), got, wanted_of).found


def _overwritten(state: ScopeState, at: int) -> Disagreement | None:
    """Whether something that the step reads is not what its maker left there."""
    about, frame = state.about, state.frame
    assert frame is not None
    for slot, value in about.layout.reads[at]:
        held = frame.memory(slot)
        wanted = np.asarray(state.values[value])
        if not wanted.size or same_bits(held, wanted.reshape(held.shape)):
            continue
        guilty = [
            n
            for n in range(at - 1, -1, -1)
            if any(overlaps(about.plan, slot, s)
                   for s in written(about.plan.steps[n], about.layout, n))
        ]  # fmt: skip
        text = f"its slot for %{value} holds something else"
        if guilty:
            text += f", last written by {about.what(guilty[0])}"
        return _misplaced(state, at, value, text)
    return None


def _overlapping(state: ScopeState, at: int) -> Disagreement | None:
    """Whether the step writes over what it is still reading: a kernel may do so only where it is
    made for it, element for element."""
    about = state.about
    plan, step = about.plan, about.plan.steps[at]
    if step.kind not in ("kernel", "routine", "host"):
        return None
    alike: set[Any] = set()
    if isinstance(step, KernelStep):
        regions = [region(plan, slot) for slot in step.slots]
        pairs = list(zip(regions, plan.own[step.kernel].buffers, strict=True))
        alike = {(s, t) for s, a in pairs for t, b in pairs if a.alias and a.alias == b.alias}
    for slot, value in about.layout.reads[at]:
        for target in written(step, about.layout, at):
            both = region(plan, slot), region(plan, target)
            if overlaps(plan, slot, target) and both not in alike:
                return _misplaced(state, at, value, f"it writes over %{value}, which it reads")
    return None


def _misplaced(state: ScopeState, at: int, value: int, text: str) -> Disagreement:
    about = state.about
    case = Case(about.graph, tuple(state.inputs))
    nodes = tuple(about.part(at).graph.nodes)
    return Disagreement(MEMORY, about.what(at), f"{state.name}%{value}", text, case, nodes)


def _prepare(state: ScopeState, at: int) -> dict[int, Array]:
    """Fill what the step writes with what is surely wrong, unless it reads from there.

    What lies in slots that later steps write too, in bytes, by slot."""
    about, frame = state.about, state.frame
    assert frame is not None
    for slot, value in about.layout.writes[at]:
        place = (slot, value)
        earlier = about.layout.first_write[place] < at and not state.alone
        begun = earlier or place in about.layout.begun
        if begun or any(overlaps(about.plan, slot, s) for s, _ in about.layout.reads[at]):
            continue
        held = frame.memory(slot)
        wanted = np.asarray(state.values[value]).reshape(held.shape)
        if KIND[held.dtype] == "b" and held.size:
            raw(held)[...] = _NO_BOOL
        elif held.size:
            raw(held)[...] = ~raw(wanted)
    return {
        slot: raw(frame.memory(slot)).copy()
        for slot, value in about.layout.writes[at]
        if about.layout.last_write[slot, value] > at
        or (state.alone and about.layout.first_write[slot, value] < at)
    }


def _judged(
    state: ScopeState, at: int, before: dict[int, Array], watch: Watch | None
) -> Judgement | Disagreement | str:
    about, frame = state.about, state.frame
    assert frame is not None
    part = about.part(at)
    got: dict[int, Array] = {}
    for slot, value in about.layout.writes[at]:
        held = frame.memory(slot)
        wanted = np.asarray(state.values[value])
        made = np.array(held.reshape(wanted.shape))
        if KIND[held.dtype] == "b":
            bits = raw(held).reshape(wanted.shape)
            made = np.where(bits > 1, ~wanted, bits == 1)
        if slot in before and wanted.size:  # others write the rest
            same = raw(held).reshape(wanted.size, -1) == before[slot].reshape(wanted.size, -1)
            untouched = same.all(axis=1).reshape(wanted.shape)
            made = np.where(untouched, wanted, made).astype(wanted.dtype)
            np.copyto(held, wanted.reshape(held.shape), where=~untouched.reshape(held.shape))
        else:
            held[...] = wanted.reshape(held.shape)
        got[value] = made
    wanted_of = [np.asarray(state.values[v]) for v in part.outputs]
    made_of = [got[v] for v in part.outputs]
    if any(goes_long(node) for node in part.graph.nodes) and not all(
        same_bits(a, b) for a, b in zip(made_of, wanted_of, strict=True)
    ):
        return f"{about.what(at)} has a long loop inside: its parts were judged, not the whole"
    found = judge(part.graph, part.arrays(state.values), made_of, wanted_of, watch)
    if found.wrong is None:
        return found
    value = part.outputs[found.wrong]
    return wrong(state, at, VALUES, found.found[found.wrong].text, value)


def give(state: ScopeState, at: int) -> None:
    """Put the reference's values where the step writes."""
    about, frame = state.about, state.frame
    assert frame is not None
    for slot, value in about.layout.writes[at]:
        held = frame.memory(slot)
        held[...] = np.asarray(state.values[value]).reshape(held.shape)


def wrong(
    state: ScopeState, at: int, kind: str, text: str, value: int | None = None
) -> Disagreement:
    """What is wrong with a step, with the case that shows it."""
    about = state.about
    part = about.part(at)
    which = part.outputs[0] if value is None and part.outputs else value
    case = Case(part.graph, tuple(part.arrays(state.values)))
    name = f"{state.name}%{which}"
    return Disagreement(kind, about.what(at), name, text, case, part.graph.nodes)
