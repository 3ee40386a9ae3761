"""Check a program against the reference: on drawn values, on real arguments, and as a whole.

First each distinct kernel is judged on values drawn for it (`drawn`). Then the reference runs the
plan's graph with a watch. As soon as it has gone past a step, that step is run natively in memory
laid out as the plan says, judged, and its results are replaced by the reference's: so every step is
judged on the reference's own values, a value that is overwritten too early is found by whoever
reads it, and what no step needs any more is dropped. Last the plan that answers calls is run as a
whole, and its outputs are judged by what rounding makes of the reference (`perturb`). A plan of
kernels that were all judged before, for other extents say, is checked in brief (`brief`).

A check ends when its time is up. What is left then is in the certificate, and a later check goes on
from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import numpy as np

from tenfold.backends.program import Program
from tenfold.digest import sha256
from tenfold.errors import TenfoldError
from tenfold.frozen import frozen
from tenfold.graph import Graph
from tenfold.locks import cached_property
from tenfold.ops import TABLE
from tenfold.parity.certificate import Certificate, LoopRecord, StepRecord
from tenfold.parity.find.part import is_rewritten, misplaced, whole_graphs, written_out
from tenfold.parity.replay.answers import CallbackMismatch, RecordingCallbacks, ReplayingCallbacks
from tenfold.parity.replay.brief import check_in_brief, may_be_brief
from tenfold.parity.replay.drawn import PACE, Bench, kernels
from tenfold.parity.replay.perturb import farther
from tenfold.parity.replay.replay import run_whole
from tenfold.parity.replay.sample import check_sample
from tenfold.parity.replay.smaller import LARGE, smaller
from tenfold.parity.replay.state import PlanFacts, ScopeState
from tenfold.parity.replay.walk import OutOfTime, StepTally, Walk
from tenfold.parity.rule.agree import Uncertain, compare, disagreement, judged
from tenfold.parity.rule.bits import raw, same_bits
from tenfold.parity.rule.flushed import as_on
from tenfold.parity.verdict import CALLBACKS, EXPANSION, GUARD, LOOP, WHOLE, Case, Disagreement
from tenfold.reference import Callbacks, evaluate
from tenfold.types import TensorType
from tenfold.version import versions

Array = np.ndarray[Any, Any]
Stop = Callable[[], bool]
_BOUNDED = 16  # rounds of a loop over which bounds that are added up still tell something
_STEPPED = 40_000_000  # elements of steps that are judged in a second, about
_EVALUATED = 100_000_000  # elements that the reference computes in a second, at the most
_EACH = 100  # such elements take as long as the reference takes for a node, at least
_BRIEF = (
    "in brief: its kernels were judged before, its steps agree closely with the reference; "
    "errors are in units of the largest element"
)
_DIGESTED = 1 << 12  # elements of an array whose bits tell it from others


@frozen(eq=False)
class CheckResult:
    """What a check gives: the reference's outputs (None where it did not come to its end), the
    verdict, and the callbacks that go on from where the reference was cut off. `made` are the
    outputs of the whole plan, where it was run."""

    outputs: list[Array] | None
    verdict: Certificate | Disagreement
    callbacks: Callbacks
    made: list[Array] | None = None

    @property
    def agrees(self) -> bool:
        return isinstance(self.verdict, Certificate)


def check(
    program: Program,
    graph: Graph,
    arrays: Sequence[Array] | None,
    callbacks: Callbacks | None = None,
    limit: float | None = None,
    *,
    every: bool = False,
    before: Certificate | None = None,
    stop: Stop | None = None,
    brief: float | None = None,
    patience: float = 0.0,
    sampled: bool = False,
) -> CheckResult:
    """Check the program made of a graph on these arguments, in at most about `limit` seconds.

    Without arguments, only what needs none is done: kernels on drawn values. `every`: all rounds
    of loops, not only the first, the last and some between. `before` is what
    was found earlier: what that has is not checked again. `stop` is asked now and then whether to
    leave the rest for later. `brief`: where kernels are known, the check may be brief, and take so
    many seconds. Those that are not may take `patience` seconds, if that is longer. `sampled`: the
    arguments are large, and of their rows a sample may be judged (`parity/replay/sample`)."""
    made = _Check(
        program, graph, arrays, callbacks or Callbacks(), limit, every, before, stop, patience
    )
    made.sampled = sampled
    with as_on(program.target):
        return (None if brief is None else made.in_brief(brief)) or made.run()


class _Check:
    def __init__(
        self,
        program: Program,
        graph: Graph,
        arrays: Sequence[Array] | None,
        callbacks: Callbacks,
        limit: float | None,
        every: bool,
        before: Certificate | None,
        stop: Stop | None,
        patience: float,
    ) -> None:
        self.start = perf_counter()
        self.patience, self.sampled = patience, False
        self.program, self.graph = program, graph
        self.given, self.arrays = arrays is not None, arrays or ()
        self.limit, self.stop, self.before = limit, stop, before
        self.recorded = RecordingCallbacks.of(callbacks)
        self.digest = digest_of(self.arrays)  # before the plan may write into donated ones
        if before is not None and not self.given:
            self.digest = before.inputs_digest
        self.end = None if limit is None else self.start + limit
        done = before.done if before else ()
        self.walk = Walk(program, self.arrays, self.on_time, every, done)
        self.drawn: dict[str, str | None] = dict.fromkeys(before.kernels if before else ())
        self.undrawn = 0
        self.left: list[str] = []
        self.notes: list[str] = []
        self.whole = before.whole if before else False
        self.end_to_end: tuple[float, ...] = before.end_to_end if before else ()

    def on_time(self, size: int = 0) -> None:
        """Raise where the time is up, or would be after work on so many elements."""
        late = self.end is not None and perf_counter() + size / _STEPPED > self.end
        if late or (self.stop and self.stop()):
            raise OutOfTime

    def in_time(self) -> None:
        """Raise where the reference alone would take longer than there is: it is not begun then. Of
        a graph that was rewritten nothing is known before its end."""
        elements = _computed(self.graph) * _STEPPED // _EVALUATED
        self.on_time(elements + _EACH * len(self.graph.nodes) * is_rewritten(self.graph))

    def run(self) -> CheckResult:
        fault = self.structure() or self.kernels()
        if not self.given:
            nothing = ReplayingCallbacks.of(self.recorded, ended=False)
            return CheckResult(None, fault or self.certificate(), nothing)
        if fault is not None:
            answer = evaluate(self.graph, self.arrays, self.recorded)
            return CheckResult(answer, fault, ReplayingCallbacks.of(self.recorded, ended=True))
        sample = self.by_sample()
        if sample is not None:
            return sample
        outputs: list[Array] | None = None
        made: list[Array] | None = None
        # Whoever gives a check no time at all does not want to wait for a look, either.
        self.walk.looked = bool(self.drawn or self.walk.done) or self.limit == 0
        if not self.whole or not all(map(self.walk.knows, self.walk.abouts.values())):
            outputs, fault = self.steps()
        replayed = ReplayingCallbacks.of(self.recorded, ended=outputs is not None)
        if fault is None and outputs is not None:
            made, fault = self.outputs(outputs, replayed)
        if fault is not None:
            return CheckResult(outputs, fault, replayed)
        return CheckResult(outputs, self.certificate(), replayed, made)

    def in_brief(self, limit: float) -> CheckResult | None:
        """What a check in brief finds; None where that is not enough."""
        program, walk = self.program, self.walk
        if not self.given or not may_be_brief(program, self.graph):
            return None
        if self.before is not None and self.before.steps:
            return None
        names = [name for name, _, _ in self.distinct]
        if self.before is None or self.limit is not None:  # a call waits for it
            program.known = bool(names) and program.judged.issuperset(names)
        if not program.known or self.structure() is not None:
            return None
        self.drawn.update(dict.fromkeys(names))
        sample = self.by_sample()
        if sample is not None:
            return sample
        about = walk.abouts[id(program.plan)]
        rewritten = is_rewritten(self.graph)
        end = self.end
        if end is not None:
            self.end = self.start + limit
        try:
            self.in_time()
            found = check_in_brief(program, about, self.arrays, walk.replay, self.on_time)
            if found is not None and rewritten:
                outputs = evaluate(self.graph, self.arrays, None, lambda *_: self.on_time())
                if self.expansion(outputs, found.outputs) is not None:
                    return None
        except (OutOfTime, MemoryError):
            return None
        finally:
            self.end = end
        if found is None:
            return None
        self.whole, self.end_to_end = True, found.end_to_end
        self.notes.append(_BRIEF)
        for inner in walk.abouts.values():  # what a loop runs is judged with it
            for at in range(len(inner.plan.steps)):
                walk.records[inner.number, at] = StepTally(inner.what(at))
        for at, ulp in enumerate(found.steps):
            walk.records[about.number, at] = StepTally(about.what(at), 1, ulp)
        walk.checked = len(found.steps)
        replayed = ReplayingCallbacks.of(self.recorded, ended=True)
        return CheckResult(found.outputs, self.certificate(), replayed, found.made)

    def by_sample(self) -> CheckResult | None:
        """What a sample of large arrays shows, once all kernels are judged; None where that is not
        enough."""
        program, walk = self.program, self.walk
        begun = self.before is not None and self.before.steps
        if not self.sampled or self.undrawn or begun or not may_be_brief(program, self.graph):
            return None
        steps = sum(len(about.plan.steps) for about in walk.abouts.values())
        try:
            found = check_sample(program, self.graph, self.arrays, steps)
        except (TenfoldError, MemoryError):  # the full check raises it again
            return None
        if found is None:
            return None
        self.whole, self.end_to_end = True, found.end_to_end
        self.notes.append(found.note)
        for about in walk.abouts.values():
            for at in range(len(about.plan.steps)):
                walk.records[about.number, at] = StepTally(about.what(at))
        replayed = ReplayingCallbacks.of(self.recorded, ended=True)
        return CheckResult(None, self.certificate(), replayed, found.made)

    # Before anything runs.

    def structure(self) -> Disagreement | None:
        """Whether the plan is a plan of this graph, in its scopes too."""
        if self.before is not None and self.before.steps:
            return None
        plan, case = self.program.plan, Case(self.graph, tuple(self.arrays))
        backend = self.program.backend
        capabilities = backend.capabilities(self.program.target)
        whole = written_out(self.graph, capabilities)
        if plan.graph is not whole and plan.graph.digest != whole.digest:
            return Disagreement(EXPANSION, "the whole plan", "%", "it is of another graph", case)
        found = misplaced(plan, capabilities)
        if found is None:
            return None
        node, number = found
        text = f"in place of scope {number} of {node.op} it has the plan of something else"
        return Disagreement(LOOP, f"the step of {node.op}", "%", text, case, (node,))

    # Kernels on drawn values.

    @cached_property
    def distinct(self) -> list[tuple[str, PlanFacts, int]]:
        """Each distinct kernel, with a step that calls it."""
        return list(kernels(self.program, self.walk.abouts))

    def kernels(self) -> Disagreement | None:
        """Judge those kernels that were not yet, small ones first, for at most half of the time.
        The first is judged to its end, so that checks which follow do not all begin with it."""
        limit = None if self.limit is None else max(self.limit, self.patience)
        half = None if limit is None else self.start + max(limit / 2, self.patience)
        bench = Bench(self.walk.replay, self.state)
        every = self.distinct
        begun = False  # whether one was judged

        def stopped() -> None:
            if self.stop and self.stop():
                raise OutOfTime

        def on_time() -> None:
            stopped()
            if half is not None and perf_counter() > half:
                raise OutOfTime

        known = self.program.judged
        try:
            for name, about, at in sorted(every, key=lambda one: one[1].size(one[2])):
                if name in self.drawn or name in known:
                    self.drawn.setdefault(name)
                    continue
                small = None
                if about.size(at) > LARGE:
                    small = smaller(self.program, about, at, name, on_time)
                size = about.size(at) if small is None else small.about.size(0)
                if limit is not None and size > PACE * limit:
                    continue  # it would take longer than there is
                watch = on_time if begun else stopped
                watch()
                if small is None:
                    found = bench.judge(about, at, watch)
                else:
                    found = Bench(small.replay, self.state).judge(small.about, 0, watch)
                if isinstance(found, Disagreement):
                    return replace(found, step=about.what(at))
                if found is not None:
                    self.notes.append(found)
                self.drawn[name] = found
                known.add(name)
                begun = True
        except OutOfTime:
            pass
        except MemoryError:
            self.notes.append("there was no memory to try kernels on drawn values")
        self.undrawn = sum(name not in self.drawn for name, _, _ in every)
        if self.undrawn:
            self.left.append(f"{self.undrawn} of {len(every)} kernels on drawn values")
        return None

    def state(self, about: Any, inputs: list[Array]) -> ScopeState:
        made = ScopeState(about, inputs, "on drawn values: ", None, True)
        made.alone = True
        return made

    # Steps on the caller's values.

    def steps(self) -> tuple[list[Array] | None, Disagreement | None]:
        """The reference's outputs, if it comes to its end, and what it finds on its way."""
        walk, outputs = self.walk, None
        whole = whole_graphs(self.program.plan)[id(self.program.plan)]
        try:
            if walk.looked:  # something was judged
                self.in_time()
            if is_rewritten(self.graph):
                outputs = evaluate(
                    self.graph, self.arrays, self.recorded, lambda *_: self.on_time()
                )
                others = walk.run(whole, ReplayingCallbacks.of(self.recorded, ended=True))
                fault = walk.fault or self.expansion(outputs, others)
            else:
                outputs = walk.run(whole, self.recorded)
                fault = walk.fault
            if fault is None:
                walk.try_branches()
                fault = walk.fault
            return outputs, fault
        except OutOfTime:
            self.notes.append(f"the time was up at {walk.where()}")
        except MemoryError:
            self.notes.append(f"there was no memory for {walk.where()}")
        return outputs, walk.fault

    def expansion(self, outputs: list[Array], others: list[Array]) -> Disagreement | None:
        """The graph with its compositions written out, and the loops that were found, has to give
        what the graph itself gives, within the bounds of its ops; most compositions are exact, and
        loops are."""
        same = all(same_bits(a, b) for a, b in zip(others, outputs, strict=True))
        if same or self.graph.effects:
            return None
        try:
            expected = judged(self.graph, self.arrays, self.on_time)
        except Uncertain:
            return None  # a choice between branches hangs on the last bits
        for number, (got, one) in enumerate(zip(others, expected, strict=True)):
            found = disagreement(got, one)
            if found is not None:
                text = (
                    f"output {number} of the graph with compositions and loops written out: {found}"
                )
                case = Case(self.graph, tuple(self.arrays))
                return Disagreement(
                    EXPANSION, "writing compositions and loops out", "%", text, case
                )
        return None

    # The whole.

    def outputs(
        self, wanted: list[Array], replayed: ReplayingCallbacks
    ) -> tuple[list[Array] | None, Disagreement | None]:
        """The outputs of the plan as it answers calls, and what is wrong with them."""
        case = Case(self.graph, tuple(self.arrays))
        made: list[Array] | None = None
        try:
            made, damage = run_whole(self.program, self.arrays, replayed)
        except CallbackMismatch:
            return None, Disagreement(CALLBACKS, "the whole plan", "%", replayed.left(), None)
        except MemoryError:  # a device's, too
            self.notes.append("there was no memory to run the whole plan")
            return None, None
        except TenfoldError as error:
            text = f"it raised {type(error).__name__}: {error.message}"
            return None, Disagreement(GUARD, "the whole plan", "%", text, case)
        if replayed.left():
            return made, Disagreement(CALLBACKS, "the whole plan", "%", replayed.left(), None)
        if damage is not None:
            return made, Disagreement(WHOLE, "the whole plan", "%", damage, case)
        nodes = tuple(_makers(self.graph))
        try:
            found = farther(
                self.graph, self.arrays, made, wanted, self.on_time, self.recorded.asked
            )
            rounds = max((rounds for rounds, _ in self.walk.loops.values()), default=0)
            if found is not None and not self.graph.effects and rounds <= _BOUNDED:
                found = self.beyond_bounds(made)
            if found is not None:
                number, text = found
                text = f"output {number}: {text}"
                node = nodes[number]
                blamed = (node,) if node is not None else ()
                return made, Disagreement(
                    WHOLE, "the whole plan", f"%{self.graph.outputs[number]}", text, case, blamed
                )
        except Uncertain:
            self.notes.append("what rounding makes of the whole can't be told: it was not judged")
        except (OutOfTime, MemoryError):
            return made, None
        self.whole = True
        self.end_to_end = tuple(compare(a, b, None).ulp for a, b in zip(made, wanted, strict=True))
        return made, None

    def beyond_bounds(self, made: list[Array]) -> tuple[int, str] | None:
        """What lies beyond the bounds of all ops: those know of signs of zeros and NaN, and of
        infinities, which moving results does not tell. Over long loops they tell nothing."""
        expected = judged(self.graph, self.arrays, self.on_time)
        for number, (got, one) in enumerate(zip(made, expected, strict=True)):
            found = disagreement(got, one)
            if found is not None:
                return number, found
        return None

    # What was found.

    def certificate(self) -> Certificate:
        walk, before = self.walk, self.before
        left = [*self.left, *self.steps_left()]
        if not self.whole:
            left.append("the outputs of the whole plan")
        steps = {(s.plan, s.step): s for s in (before.steps if before else ())}
        for key, r in walk.records.items():
            steps[key] = StepRecord(*key, r.what, r.times, r.ulp, r.ties)
        loops = {loop.name: loop for loop in (before.loops if before else ())}
        loops.update((name, LoopRecord(name, *counts)) for name, counts in walk.loops.items())
        notes = dict.fromkeys([*(before.notes if before else ()), *walk.left_out, *self.notes])
        made = Certificate(
            graph=self.graph.digest,
            target=target_of(self.program),
            inputs=tuple(repr(p.type) for p in self.graph.parameters),
            inputs_digest=self.digest,
            kernels=tuple(sorted(self.drawn)),
            undrawn=self.undrawn,
            steps=tuple(steps[key] for key in sorted(steps)),
            loops=tuple(loops.values()),
            near_ties=tuple(walk.ties),
            checked=walk.checked,
            left=tuple(left),
            unreached=self.unreached() if self.whole else (),
            notes=tuple(notes),
            whole=self.whole,
            end_to_end=self.end_to_end,
            versions=versions_of(self.program),
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            seconds=perf_counter() - self.start,
        )
        if before is None:
            return made
        return replace(
            made,
            near_ties=(*before.near_ties, *made.near_ties)[:100],
            checked=before.checked + made.checked,
            seconds=before.seconds + made.seconds,
            guards=before.guards,
        )

    def unreached(self) -> tuple[int, ...]:
        """The plans below that have steps left, after the reference has come to its end."""
        abouts = self.walk.abouts.values()
        return tuple(a.number for a in abouts if self.walk.left(a))

    def steps_left(self) -> Iterator[str]:
        """What was not reached, plan by plan."""
        walk = self.walk
        for about in walk.abouts.values():
            left = walk.left(about)
            if left:
                which = "" if about.plan is self.program.plan else f" of sub-plan {about.number}"
                count = f"{len(left)} of {len(about.plan.steps)} steps"
                yield f"{count}{which}, {about.what(left[0])} first"


def _computed(graph: Graph) -> int:
    """How many elements the reference computes for a graph: views are there for nothing."""
    nodes = (n for n in graph.nodes if not (TABLE[n.op].permutes or TABLE[n.op].cuts))
    return sum(type.size for node in nodes for type in node.types)


def _makers(graph: Graph) -> Iterator[Any]:
    """The node of each output; None for a parameter."""
    makers = {
        value: node
        for node, start in zip(graph.nodes, graph.starts, strict=True)
        for value in range(start, start + len(node.types))
    }
    return (makers.get(value) for value in graph.outputs)


def digest_of(arrays: Sequence[Array]) -> str:
    """The SHA-256 of arrays, types and bits; of a large one, of elements at equal distances."""
    made = sha256()
    for array in arrays:
        kept = np.asarray(array)
        made.update(repr(TensorType(kept.dtype, kept.shape)).encode())
        if kept.size > _DIGESTED:
            kept = kept.reshape(-1)[:: kept.size // _DIGESTED]
        made.update(raw(kept).data)
    return made.hexdigest()


def target_of(program: Program) -> str:
    """What a program was compiled for, in words."""
    return f"{program.target} {program.target.digest[:8]}"


def versions_of(program: Program) -> tuple[tuple[str, str], ...]:
    """What took part in a check."""
    every = {**versions(), **program.target.versions}
    return tuple((name, number) for name, number in every.items() if name != "source")
