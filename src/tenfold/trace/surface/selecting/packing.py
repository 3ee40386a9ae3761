"""Packing: a selection as a function returns it. The chosen elements stand side by side at the
front of an array that has room for all; the caller gets as many of them as there are."""

from __future__ import annotations

from typing import Any

from tenfold.trace.array import Array
from tenfold.trace.surface.emit import cast, emit
from tenfold.trace.surface.indexing.sized import compress
from tenfold.trace.surface.selecting.reducing import merged
from tenfold.trace.surface.selecting.selection import Selection
from tenfold.types import I64


def _outputs(s: Selection) -> tuple[Any, list[Array]]:
    mask = emit("reshape", s._mask, shape=(s._mask.size,))
    packed = compress(mask, merged(s, s._dense), s._at, size=mask.size)
    return ("cut", s._at), [packed, emit("reduce_sum", cast(mask, I64), axes=(0,))]


setattr(Selection, "_outputs", _outputs)  # noqa: B010
