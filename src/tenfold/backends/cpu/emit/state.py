"""What an emission knows at each point: values, axis positions, lanes and masks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from tenfold.backends.llvm.writer import COMPUTE, Writer
from tenfold.frozen import frozen, mutable
from tenfold.kernel.ir.index import Index
from tenfold.kernel.ir.kernel import Kernel
from tenfold.kernel.ir.number import Number

Position = int | str | Number  # known, in a register, or a number of the kernel's sizes
Parts = tuple[str, ...]  # what an element in memory is made of: two for a complex number


@frozen
class Val:
    """An emitted value, for each copy; `wide` if it is a vector along the lane axis. A value that
    is the same for all copies has one entry."""

    copies: tuple[str, ...]
    wide: bool
    truth: bool | None = None  # what a condition is known to be

    def at(self, copy: int) -> str:
        return self.copies[copy if len(self.copies) > 1 else 0]


@mutable
class EmitState:
    """The state of emitting one kernel."""

    kernel: Kernel
    w: Writer
    base: dict[int, Position] = field(default_factory=dict)  # axis -> position of lane 0
    bounds: dict[int, tuple[int, int]] = field(default_factory=dict)
    env: dict[Any, Any] = field(default_factory=dict)  # value -> Val, and what is cached beside
    lane: int | None = None
    copies: int = 1
    masks: list[str | None] = field(default_factory=lambda: [None])
    aligned: bool = True  # the lane axis stands at a multiple of the lanes
    streaming: int | None = None  # the non-temporal store, aligned
    over: str | None = None  # whether it goes over what is read, where it may
    narrow: bool | None = None  # whether all positions fit 32 bits, once that was asked
    multiple: int = 1  # and at a multiple of this, at copy 0
    # buffer and place of a transposed load -> the tile, its row axis and width, where it begins
    tiles: dict[tuple[int, Index], tuple[str, int, int, str, str]] = field(default_factory=dict)

    @contextmanager
    def inside(self, axis: int, position: Position, low: int, high: int) -> Iterator[None]:
        """Bind an axis; what is emitted inside is forgotten after."""
        env, base, bounds = self.env, self.base, self.bounds
        lane = (self.lane, self.copies, self.masks, self.aligned, self.multiple)
        streaming = self.streaming
        self.env = dict(env)
        self.base = base | {axis: position}
        self.bounds = bounds | {axis: (low, high - 1)}
        try:
            yield
        finally:
            self.env, self.base, self.bounds = env, base, bounds
            self.lane, self.copies, self.masks, self.aligned, self.multiple = lane
            self.streaming = streaming

    def get(self, value: int, copy: int, wide: bool) -> str:
        """A value for one copy, spread over the lanes if a vector is wanted."""
        val: Val = self.env[value]
        if not wide or val.wide:
            return val.at(copy)
        key = ("splat", value, copy if len(val.copies) > 1 else 0)
        if key not in self.env:
            element = COMPUTE[self.kernel.instructions[value].dtype]
            self.env[key] = self.w.splat(element, val.at(copy))
        found: str = self.env[key]
        return found

    def mask(self, copy: int, buffer: int | None = None) -> str | None:
        """Which lanes of a copy are alive, or may not touch a buffer; None if all do. What is kept
        of a row has room for all lanes, and nobody looks at the dead ones."""
        roomy = buffer is not None and self.aligned and self.kernel.buffers[buffer].rows
        return self.masks[copy] if self.lane is not None and not roomy else None
