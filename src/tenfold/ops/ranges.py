"""Ranges: where the inputs of an op are written in its one result.

`ranges(types, attributes)` gives a `WrittenRange` for each input that is written, in order: a
later one writes over an earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenfold.frozen import frozen
from tenfold.types import TensorType


@frozen
class Start:
    """A start given when the program runs: a scalar input, clamped to [0, limit]."""

    input: int
    limit: int


@frozen
class WrittenRange:
    """An input, written whole into the result from these starts on, one for each axis."""

    input: int
    starts: tuple[int | Start, ...]


def concatenate(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> list[WrittenRange]:
    made, at = [], 0
    for i, type in enumerate(types):
        starts = [0] * type.rank
        starts[attributes["axis"]] = at
        made.append(WrittenRange(i, tuple(starts)))
        at += type.shape[attributes["axis"]]
    return made


def dynamic_update(
    types: Sequence[TensorType], attributes: Mapping[str, Any]
) -> list[WrittenRange]:
    x, update, *_ = types
    limits = [n - m for n, m in zip(x.shape, update.shape, strict=True)]
    starts = tuple(Start(i, limit) if limit else 0 for i, limit in enumerate(limits, 2))
    over = WrittenRange(1, starts)
    return [WrittenRange(0, (0,) * x.rank), over] if any(limits) else [over]  # it is all there is


def updates(parts: Sequence[WrittenRange]) -> bool:
    """Whether the result begins as a copy of the first input, and others are written over it."""
    return len(parts) == 2 and any(isinstance(s, Start) for s in parts[1].starts)
