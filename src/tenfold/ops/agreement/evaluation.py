"""A node on the reference's values: what the rules of agreement are asked about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenfold.graph.node import Node
from tenfold.graph.op import Op
from tenfold.types import SHORT

Array = np.ndarray[Any, Any]
Ask = Callable[[Node, Sequence[Array]], list[Array]]  # the reference of a node


class Evaluation(NamedTuple):
    """A node with its row, the reference's values of its inputs, what these may be off by, one of
    its results, and a way to ask the reference again."""

    node: Node
    row: Op
    values: Sequence[Array]
    errors: Sequence[Array]
    result: Array
    ask: Ask

    @property
    def short(self) -> str:
        return SHORT[np.dtype(self.result.dtype)]

    @property
    def complex(self) -> bool:
        return self.short[0] == "c"


def joined(node: Node, kind: str) -> Node:
    """A scatter that joins values in another way."""
    given = tuple((k, kind if k == "kind" else v) for k, v in node.attributes)
    return Node(node.op, node.inputs, given, node.scopes, node.types)
