"""What a graph on a device is made of. Plain data: a driver builds it, a simulator runs it.

Addresses are numbers. Arrays that a call brings, its places, are not known when a graph is built:
each has addresses of its own beyond all that devices have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

from tenfold.frozen import frozen

Address = int
_FIRST, _EACH = 1 << 60, 1 << 44  # of places


def place_address(number: int) -> Address:
    """Where a place begins, for a graph to be built."""
    return _FIRST + number * _EACH


def place_of(address: Address) -> tuple[int, int] | None:
    """The place that an address lies in and how far into it; None for a device's own.

    >>> place_of(place_address(3) + 64), place_of(0x7F0000000000)
    ((3, 64), None)
    """
    return divmod(address - _FIRST, _EACH) if address >= _FIRST else None


@frozen
class Handle:
    """A condition of a graph, by its number, where a kernel is given it."""

    number: int


Word = bytes | Address | Handle  # of a kernel's arguments


@frozen(eq=False)
class KernelNode:
    function: Any
    blocks: int
    threads: int
    words: tuple[Word, ...]
    after: tuple[int, ...]  # nodes before it, by their numbers


@frozen(eq=False)
class CopyNode:
    target: Address
    source: Address
    nbytes: int
    after: tuple[int, ...]


REPEATED, CHOSEN = "repeated", "chosen"


@frozen(eq=False)
class ConditionalNode:
    """Graphs inside of a graph: one that is repeated while its condition holds, or several of which
    the condition's value chooses one, or none."""

    kind: str
    handle: int
    bodies: tuple[Recording, ...]
    after: tuple[int, ...]


@frozen(eq=False)
class LibraryNode:
    """What a library does in a stream: it is captured."""

    call: Any  # of the device, a stream and addresses
    places: tuple[Address, ...]
    after: tuple[int, ...]


Node = KernelNode | CopyNode | ConditionalNode | LibraryNode


@frozen(eq=False)
class Recording:
    """A graph: its nodes, each after those that it follows."""

    nodes: tuple[Node, ...]
    handles: int = field(default=0)  # of it and of the graphs inside
    overlap: bool = field(default=False)  # whether its kernels wait by themselves for others

    def every(self) -> Iterator[Node]:
        """All nodes, those of graphs inside too."""
        stack: list[Recording] = [self]
        while stack:
            for node in stack.pop().nodes:
                yield node
                if isinstance(node, ConditionalNode):
                    stack += node.bodies

    @property
    def kernels(self) -> int:
        """How many kernels are launched by one run of everything once."""
        return sum(isinstance(node, KernelNode) for node in self.every())
