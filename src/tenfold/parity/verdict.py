"""What a check may find against a plan, and the case that shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tenfold.frozen import frozen
from tenfold.graph import Graph, Node

Array = np.ndarray[Any, Any]

# What may be wrong: a step's values; a value overwritten before it is read; a loop's rounds; the
# callbacks asked for; an op rewritten into others; a guard of the native entry; the outputs of the
# whole plan.
VALUES, MEMORY, LOOP, CALLBACKS, EXPANSION, GUARD, WHOLE = (
    "values", "memory", "loop", "callbacks", "expansion", "guard", "whole",
)  # fmt: skip


@frozen(eq=False)
class Case:
    """A graph and arguments on which the fault shows."""

    graph: Graph
    arrays: tuple[Array, ...]


@frozen(eq=False)
class Disagreement:
    """A plan refuted: which step, what is wrong with it, and where in the user's program."""

    kind: str
    step: str  # the step in words
    name: str  # its value's name in the run: `%5[2].%3`
    text: str
    case: Case | None
    nodes: tuple[Node, ...] = ()  # what the step computes
    first: Node | None = None  # the first node that diverges, when it is known
    hidden: bool = False  # looking into the kernel made the fault vanish

    @property
    def node(self) -> Node | None:
        """The node to blame, as near as it is known."""
        return self.first or (self.nodes[-1] if self.nodes else None)

    @property
    def source(self) -> str | None:
        """The user's line."""
        for node in (self.first, *reversed(self.nodes)):
            if node is not None and node.source is not None:
                return str(node.source)
        return None

    def found(self, first: Node | None, hidden: bool) -> Disagreement:
        """This disagreement with the first node that diverges."""
        return replace(self, first=first, hidden=hidden)

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.step}: {self.text}"]
        if self.first is not None:
            type = f" : {self.first.types[0]!r}" if self.first.types else ""
            lines.append(f"  first diverging node: {self.first.op}{type}")
        if self.hidden:
            lines.append(
                "  looking into the kernel hides the fault: the kernel as a whole is to blame"
            )
        if self.source:
            lines.append(f"  at {self.source}")
        return "\n".join(lines)
