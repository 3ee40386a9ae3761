"""The data of plans: slots, steps, and the plan that holds them."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from tenfold.frozen import frozen
from tenfold.graph import Graph, Source
from tenfold.kernel import Kernel
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.locks import cached_property
from tenfold.types import TensorType

INPUT, OUTPUT, CONSTANT, ARENA = "input", "output", "constant", "arena"
HOST = "host"  # the memory that NumPy's arrays lie in


Sizes = tuple[int, ...]  # of a general kernel: they may be negative


@frozen
class Slot:
    """A place for one value.

    `number` counts inputs, outputs or constants; `offset` is in bytes from the start of these, or
    of the arena.
    """

    type: TensorType
    place: str
    number: int = 0
    offset: int = 0
    device: str = HOST

    def __str__(self) -> str:
        at = f"arena+{self.offset}" if self.place == ARENA else f"{self.place} {self.number}"
        return f"{self.type} {at}"


@frozen
class KernelStep:
    """One call of a kernel: a slot for each of its buffers, a raw value for each parameter, and
    its sizes."""

    kernel: int
    slots: tuple[int, ...]
    params: tuple[bytes, ...]
    sizes: Sizes
    nodes: tuple[int, ...]  # positions in the graph
    reads: tuple[int, ...] = ()  # the values in the first slots
    writes: tuple[int, ...] = ()  # the values, or wholes of ranges, in the slots after these
    kind: str = field(default="kernel", init=False)


@frozen
class RoutineStep:
    """One call of a library routine."""

    name: str
    node: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    scratch: tuple[int, ...] = ()  # memory of its own
    kind: str = field(default="routine", init=False)


@frozen
class HostStep:
    """One op carried out by its NumPy reference, with the reason why."""

    op: str
    reason: str
    node: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    source: Source | None = field(default=None, compare=False)
    kind: str = field(default="host", init=False)


@frozen
class CopyStep:
    """The bytes of one slot into another. `update`: a node that begins as this copy; its range is
    written by a later step, and need not be copied (`spared`)."""

    source: int
    target: int
    update: int = -1
    kind: str = field(default="copy", init=False)


@frozen
class LoopStep:
    """A while or a scan over sub-plans.

    `second` has for each carry the slot it alternates with; a carry goes first from the input to
    one of the two. `flag` is the slot of a while's condition. `arena` is where the sub-plans' own
    arenas lie.
    """

    op: str
    node: int
    plans: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    captures: int
    carries: int
    second: tuple[int, ...]
    arena: int
    flag: int = -1
    length: int = 0
    reverse: bool = False
    kind: str = field(default="loop", init=False)

    @property
    def counted(self) -> bool:
        """Whether its rounds are counted; another has a condition, and a slot for it."""
        return self.flag < 0


@frozen
class BranchStep:
    """One of several sub-plans, chosen by an index that is clamped."""

    node: int
    plans: tuple[int, ...]
    index: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    arena: int
    kind: str = field(default="branch", init=False)


Step = KernelStep | RoutineStep | HostStep | CopyStep | LoopStep | BranchStep


@dataclass(frozen=True, eq=False)
class Plan:
    """How a graph is run: steps over slots. Plain data.

    `own` are the general kernels that this plan's own steps name; `plans` the distinct sub-plans.
    `donated` are inputs that the plan may write into.
    """

    graph: Graph
    slots: tuple[Slot, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]  # slots
    own: tuple[Kernel, ...]
    plans: tuple[Plan, ...]
    constants: tuple[bytes, ...]
    arena_bytes: int
    greatest_live: int  # bytes of arena slots alive at once, at most
    donated: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()  # what was not fused, and why
    safe: tuple[tuple[int, int], ...] = ()  # inputs and outputs that may share memory

    @cached_property
    def every(self) -> tuple[Plan, ...]:
        """This plan and all below it, each distinct one once, inner ones first."""
        found: dict[int, Plan] = {}
        opened: set[int] = set()
        stack: list[tuple[Plan, bool]] = [(self, False)]
        while stack:
            plan, done = stack.pop()
            if done:
                found.setdefault(id(plan), plan)
            elif id(plan) not in opened:
                opened.add(id(plan))
                stack.append((plan, True))
                stack.extend((p, False) for p in reversed(plan.plans))
        return tuple(found.values())

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """The distinct kernels of this plan and those below it."""
        return tuple(dict.fromkeys(k for plan in self.every for k in plan.own))

    @cached_property
    def calls(self) -> tuple[SizedKernel, ...]:
        """The distinct kernels with the sizes that they are called with, here and below."""
        return tuple(
            dict.fromkeys(
                plan.call(step)
                for plan in self.every
                for step in plan.steps
                if isinstance(step, KernelStep)
            )
        )

    def call(self, step: KernelStep) -> SizedKernel:
        """The kernel of one of this plan's own steps, with its sizes."""
        return SizedKernel(self.own[step.kernel], step.sizes)

    @property
    def host_steps(self) -> tuple[HostStep, ...]:
        """Every host step, at any depth."""
        return tuple(
            step for plan in self.every for step in plan.steps if isinstance(step, HostStep)
        )

    @property
    def peak_bytes(self) -> int:
        """The bytes a call needs besides its inputs and outputs."""
        return self.arena_bytes

    def lines(self, step: KernelStep) -> tuple[Source, ...]:
        """The user's lines behind a kernel step, each once."""
        nodes = (self.graph.nodes[n].source for n in step.nodes)
        return tuple(dict.fromkeys(s for s in nodes if s is not None))

    def explain(self, functions: Container[tuple[int, int]] | None = None) -> str:
        """What runs, and why so: kernels with the user's lines, what was not fused, host steps.
        `functions` are the loops that a program has functions for, a plan's number and a step's."""
        from tenfold.plan.steps.explain import explain

        return explain(self, functions)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __str__(self) -> str:
        from tenfold.plan.steps.explain import show

        return show(self)

    def __repr__(self) -> str:
        return (
            f"<Plan of {len(self.steps)} steps, {len(self.kernels)} kernels, "
            f"{len(self.host_steps)} host steps, {self.peak_bytes} bytes>"
        )
