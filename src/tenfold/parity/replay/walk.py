"""Walk along the reference's run and check the plan's steps as it passes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from tenfold.backends.program import Program
from tenfold.errors import TenfoldError
from tenfold.frozen import mutable
from tenfold.graph import Graph
from tenfold.parity.find.part import loop_of, whole_graphs
from tenfold.parity.replay.replay import Frame, Replay
from tenfold.parity.replay.state import PlanFacts, Round, ScopeState
from tenfold.parity.replay.steps import check_step, give, glance
from tenfold.parity.replay.trials import TRIED, Trials, TrialTooLong
from tenfold.parity.rule.bits import same_bits
from tenfold.parity.rule.judge import Judgement
from tenfold.parity.verdict import MEMORY, Case, Disagreement
from tenfold.plan import BranchStep, LoopStep
from tenfold.reference import Callbacks, evaluate
from tenfold.reference.evaluate import ActiveScope, Path

Array = np.ndarray[Any, Any]


class OutOfTime(Exception):
    """The time for a check is up."""


class Refutation(Exception):
    """A step disagrees."""

    def __init__(self, disagreement: Disagreement) -> None:
        super().__init__(str(disagreement))
        self.disagreement = disagreement


@mutable
class StepTally:
    """A step over all the times it was checked."""

    what: str
    times: int = 0
    ulp: float = 0.0
    ties: int = 0


class Walk:
    """The check of one program along one run of the reference."""

    def __init__(
        self,
        program: Program,
        arrays: Sequence[Array],
        on_time: Callable[..., None] = lambda *_: None,
        every: bool = False,
        done: Collection[tuple[int, int]] = (),
    ) -> None:
        """`on_time` raises `OutOfTime` when the time is up, or would be after a step over so many
        elements. `every`: all rounds of loops are
        checked, not only some. `done` are steps that were checked before."""
        self.every = every
        self.done = set(done)
        self.nodes = 0  # that the reference has computed
        self.fault: Disagreement | None = None
        self.program = program
        self.arrays = arrays
        self.on_time = on_time
        self.replay = Replay(program)
        graphs = whole_graphs(program.plan)
        self.abouts = {
            id(plan): PlanFacts(plan, graphs[id(plan)], n)
            for n, plan in enumerate(program.plan.every)
        }
        self.trials = Trials(self.abouts)
        self.states: list[ScopeState] = []
        self.records: dict[tuple[int, int], StepTally] = {}
        self.loops: dict[str, tuple[int, int]] = {}
        self.ties: list[str] = []
        self.left_out: list[str] = []
        self.checked = 0
        self.looked = False  # whether anything that answers was looked at, here or before
        self.at: tuple[ScopeState, int] | None = None  # the step at hand
        self.watched: Any = None  # called with a state and a step, instead of checking it

    def where(self) -> str:
        """The step at hand, in words."""
        if self.at is None:
            return "the first step"
        state, at = self.at
        return f"{state.name}{state.about.what(at)}"

    def run(self, graph: Graph, callbacks: Callbacks) -> list[Array]:
        """Run the reference and check what it passes; its outputs."""
        about = self.abouts[id(self.program.plan)]
        top = ScopeState(about, [np.asarray(a) for a in self.arrays], "", None, True)
        self.states = [top]
        outputs = evaluate(graph, self.arrays, callbacks, self.watch)
        self.end(top)
        return outputs

    def end(self, top: ScopeState) -> None:
        """The reference has come to its end."""
        if self.fault is None:
            try:
                self.advance(top)
                self.finish(top)
            except Refutation as refuted:
                self.fault = refuted.disagreement
        self.states.clear()

    def left(self, about: PlanFacts) -> list[int]:
        """The steps of a plan that were not checked, here or before."""
        number = about.number
        return [
            at
            for at in range(len(about.plan.steps))
            if (number, at) not in self.records and (number, at) not in self.done
        ]

    def knows(self, about: PlanFacts) -> bool:
        return not self.left(about)

    def unknown(self, about: PlanFacts) -> bool:
        """Whether no step of a plan was checked: it is looked at in whatever round it is met."""
        steps = [(about.number, at) for at in range(len(about.plan.steps))]
        return bool(steps) and not any(key in self.records or key in self.done for key in steps)

    def try_branches(self) -> None:
        """Check what the run did not come to, on the inputs that it would have had."""
        while self.trials.waiting and self.fault is None:
            trial = self.trials.waiting.pop()
            if self.knows(trial.about):
                continue
            top = ScopeState(trial.about, trial.inputs, trial.name, None, True)
            self.states = [top]
            begun = self.nodes

            def watch(*given: Any, end: int = begun + TRIED) -> None:
                if self.nodes > end:
                    raise TrialTooLong
                self.watch(*given)

            try:
                evaluate(trial.about.graph, trial.inputs, Callbacks(), watch)
                self.end(top)
            except (TrialTooLong, TenfoldError, ArithmeticError, ValueError, IndexError):
                self.states.clear()  # it was not meant for these inputs

    def watch(self, path: Path, graph: Graph, position: int, results: Sequence[Array]) -> None:
        """The reference has computed a node. After a fault it goes on alone: its answer counts."""
        self.nodes += 1
        if self.fault is not None:
            return
        if self.looked:
            self.on_time()
        try:
            self.passed(path, graph, position, results)
        except Refutation as refuted:
            self.fault = refuted.disagreement
            self.states.clear()

    def passed(self, path: Path, graph: Graph, position: int, results: Sequence[Array]) -> None:
        state = self.enter(path)
        if state is None:
            return
        about, state.reached = state.about, position
        start = graph.starts[position]
        for value, result in enumerate(results, start):
            if value in about.last or value in about.kept:
                state.values[value] = result
        if position in about.scoped:
            self.end_loop(state, position)
            if state.sampled:
                self.bare(state, position)
                self.trials.keep(state, position, self.knows)
        if state.sampled:
            self.advance(state)

    # Scopes.

    def enter(self, path: Path) -> ScopeState | None:
        """The state of the scope that is running, opened if it is new."""
        depth = 0
        while depth < len(path) and depth + 1 < len(self.states):
            if self.states[depth + 1].entry is not path[depth]:
                break
            depth += 1
        self.close(depth + 1)
        for entry in path[depth:]:
            state = self.open(self.states[-1], entry)
            if state is None:
                return None
            self.states.append(state)
        return self.states[-1]

    def close(self, depth: int) -> None:
        """Leave the scopes below this depth."""
        while len(self.states) > depth:
            state = self.states.pop()
            above, entry = self.states[-1], state.entry
            assert entry is not None
            state.outputs = [state.values[v] for v in state.about.graph.outputs]
            if state.sampled:
                self.advance(state)
                self.finish(state)
            loop = above.loops.get(entry.position)
            if loop is None:
                continue
            loop.latest[entry.scope] = state
            if entry.scope == len(entry.node.scopes) - 1:  # the body
                loop.carries = state.outputs[: len(loop.carries)]
                loop.number = entry.count + 1

    def open(self, above: ScopeState, entry: ActiveScope) -> ScopeState | None:
        at = above.about.scoped.get(entry.position)
        if at is None:
            return None  # carried out on the host, as a whole
        step = above.about.plan.steps[at]
        assert isinstance(step, (LoopStep, BranchStep))
        inner = self.abouts[id(above.about.plan.plans[step.plans[entry.scope]])]
        given = [above.values[v] for v in entry.node.inputs]
        name = f"{above.name}%{entry.value}"
        if isinstance(step, BranchStep):
            name = f"{name}.branch{entry.scope}."
            return ScopeState(inner, given[1:], name, entry, above.sampled or self.unknown(inner))
        loop = above.loops.get(entry.position)
        node = entry.node  # what is true of the loop is told by its node, not by the step
        kind = loop_of(node)
        carried = kind.carries(node)
        first, end = carried.start, carried.stop
        if loop is None or (entry.count == 0 and entry.scope == 0):
            loop = above.loops[entry.position] = Round(given[first:end])
        if not inner.graph.nodes or loop.number < entry.count:
            self.skip(entry, loop, given[:first])
        slices: list[Array] = []
        if kind.counted:
            turn = node["length"] - 1 - entry.count if kind.reversed(node) else entry.count
            slices = [np.asarray(array[turn]) for array in given[end:]]
        mark = ".cond" if not kind.counted and entry.scope == 0 else ""
        few = self.every or entry.count < 2 or entry.count & (entry.count - 1) == 0
        body = entry.scope == len(entry.node.scopes) - 1
        sampled = few and (above.sampled or self.unknown(inner))
        if sampled and body:
            loop.checked += 1
        return ScopeState(
            inner, [*given[:first], *loop.carries, *slices], f"{name}{mark}[{entry.count}].", entry,
            sampled,
        )  # fmt: skip

    def skip(self, entry: ActiveScope, loop: Round, fixed: list[Array]) -> None:
        """Rounds of a body without nodes, which the reference shows to nobody."""
        body = entry.node.scopes[-1]
        while loop.number < entry.count and not body.nodes:
            values = [*fixed, *loop.carries]
            loop.carries = [values[v] for v in body.outputs[: len(loop.carries)]]
            loop.number += 1

    def end_loop(self, state: ScopeState, position: int) -> None:
        """A loop has come to its end: its last rounds are checked, whatever their number."""
        loop = state.loops.get(position)
        if loop is None:
            return
        for last in loop.latest.values():
            if state.sampled and not last.sampled:
                last.sampled = True
                self.advance(last)
                self.finish(last)
                if last.entry is not None and last.entry.scope == len(last.entry.node.scopes) - 1:
                    loop.checked += 1
        loop.latest.clear()
        name = f"{state.name}%{state.about.graph.starts[position]}"
        node = state.about.graph.nodes[position]
        rounds = node["length"] if loop_of(node).counted else loop.number
        loop.number = rounds
        if len(self.loops) < 1000:
            self.loops[name] = (rounds, loop.checked)

    def bare(self, state: ScopeState, position: int) -> None:
        """Check the scopes of a loop that have no nodes, as one whose condition is a carry: the
        reference shows them to nobody. Their inputs are those of the first round."""
        about, node = state.about, state.about.graph.nodes[position]
        step = about.plan.steps[about.scoped[position]]
        if not isinstance(step, LoopStep):
            return  # a branch is tried
        kind = loop_of(node)
        if kind.counted and not node["length"]:
            return
        for scope, number in enumerate(step.plans):
            inner = self.abouts[id(about.plan.plans[number])]
            if inner.graph.nodes or self.knows(inner):
                continue
            end = kind.carries(node).stop
            given = [state.values[v] for v in node.inputs]
            first = -1 if kind.reversed(node) else 0
            given[end:] = [np.asarray(array[first]) for array in given[end:]]
            name = f"{state.name}%{about.graph.starts[position]}.scope{scope}."
            one = ScopeState(inner, given, name, None, True)
            one.outputs = [one.values[v] for v in inner.graph.outputs]
            self.advance(one)
            self.finish(one)

    # Steps.

    def advance(self, state: ScopeState) -> None:
        """Check every step that the reference has gone past."""
        about = state.about
        while state.next < len(about.plan.steps):
            at, step = state.next, about.plan.steps[state.next]
            if any(v not in state.values for v in about.needed[at]):
                return
            if isinstance(step, (LoopStep, BranchStep)) and step.node > state.reached:
                return  # one for its effects alone, which gives nothing
            if state.frame is None:
                state.frame = Frame(about.plan, state.inputs)
            self.at = (state, at)
            if self.watched is not None:
                self.watched(state, at)
            else:
                self.check(state, at)
            state.next += 1
            for value in about.needed[at]:
                if about.last[value] == at and value not in about.kept:
                    state.values.pop(value, None)

    def check(self, state: ScopeState, at: int) -> None:
        if (state.about.number, at) in self.done:
            give(state, at)
            return
        try:
            self.on_time(state.about.size(at))
        except OutOfTime:
            if self.looked or glance(self.replay, state, at):
                self.looked = True
                raise
        # What does not agree at a glance is judged to its end, however long that takes.
        found = check_step(self.replay, state, at, self.on_time if self.looked else None)
        if isinstance(found, Disagreement):
            raise Refutation(found)
        self.note(state, at, found)
        self.checked += 1
        self.looked = True
        self.on_time()

    def note(self, state: ScopeState, at: int, found: Judgement | str) -> None:
        about = state.about
        key = (about.number, at)
        record = self.records.get(key)
        if record is None:
            record = self.records[key] = StepTally(about.what(at))
        record.times += 1
        if isinstance(found, str):
            if found not in self.left_out:
                self.left_out.append(found)
            return
        record.ulp = max(record.ulp, found.ulp)
        record.ties += found.ties
        if (found.ties or found.uncertain) and len(self.ties) < 100:
            which = "takes another way" if found.uncertain else f"{found.ties} elements"
            self.ties.append(f"{state.name}{about.what(at)}: {which}")
        if found.sampled:
            note = f"{about.what(at)}: {found.sampled} of {found.of} elements judged"
            if note not in self.left_out and len(self.left_out) < 100:
                self.left_out.append(note)

    def finish(self, state: ScopeState) -> None:
        """Every output must lie where it is handed out."""
        frame, about = state.frame, state.about
        if frame is None or self.watched is not None:
            return
        for number, value in enumerate(about.graph.outputs):
            wanted = np.asarray(state.values[value])
            made = frame.outputs[number]
            if wanted.size and not same_bits(made, wanted.reshape(made.shape)):
                nodes = [about.graph.nodes[p] for p in about.scoped]
                maker = next(
                    (n for n, s in zip(about.graph.nodes, about.graph.starts, strict=True)
                     if s <= value < s + len(n.types)), None,
                )  # fmt: skip
                raise Refutation(
                    Disagreement(
                        MEMORY, f"output {number}", f"{state.name}%{value}",
                        f"output {number} does not hold the value that the plan is to hand out",
                        Case(about.graph, tuple(state.inputs)),
                        (maker,) if maker is not None else tuple(nodes[:1]),
                    )
                )  # fmt: skip
