"""What a planner asks of a backend: which instructions and routines it has, and how it likes its
kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tenfold.frozen import frozen
from tenfold.graph.op import Types
from tenfold.kernel import Kernel
from tenfold.plan.steps.plan import HOST

STREAMS = 56  # values that a kernel reads from memory, or writes, on any device


def _anything(instruction: str, operands: tuple[str, ...], result: str) -> None:
    return None


def _no_routine(routine: str, types: Types, attributes: Mapping[str, Any]) -> None:
    return None


def _no_reason(routine: str, types: Types) -> str:
    return ""


def _no_words(routine: str, types: Types, attributes: Mapping[str, Any]) -> str:
    return ""


def _as_it_is(kernel: Kernel) -> Kernel:
    return kernel


@frozen
class Capabilities:
    """What a backend can do for one target. Without any: all instructions, and no routine.

    `device` is the memory that its slots lie in. `supports` says why it lacks an instruction on
    these dtypes, or None. `routines` are those that its libraries have here, as rows name them;
    `scratch` says how many bytes of scratch memory one takes for inputs of these types, None where
    there is none for them, and `lacks` in words why not, or nothing. `words` says of one what a
    plan's reader should know, or nothing: which library carries it out. `multiplied` are dtypes
    that its library multiplies matrices of as they are, of those that are else cast first. With
    `row_blocks` work between two products is quicker some rows at a time, in a cache, than on all
    rows at once. With `one_row` all reductions of a kernel that many rows take part in are better
    of one length. A kernel touches so many `arrays` at most, where it can be had. `tune` gives a
    kernel the form that it likes, perhaps with scratch buffers at the end.
    """

    device: str = HOST
    supports: Callable[[str, tuple[str, ...], str], str | None] = _anything
    routines: frozenset[str] = frozenset()
    scratch: Callable[[str, Types, Mapping[str, Any]], int | None] = _no_routine
    lacks: Callable[[str, Types], str] = _no_reason
    multiplied: frozenset[str] = frozenset()
    row_blocks: bool = True
    one_row: bool = False
    arrays: int = 1 << 30
    words: Callable[[str, Types, Mapping[str, Any]], str] = _no_words
    tune: Callable[[Kernel], Kernel] = _as_it_is

    @property
    def streams(self) -> int:
        """How many values a kernel reads from memory at most: what it writes is left a part."""
        return min(STREAMS, self.arrays * 3 // 4)
