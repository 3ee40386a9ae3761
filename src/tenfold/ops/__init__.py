"""The op table: one row for each op, and everything about the op in its row.

A row is added by writing it where its kind stands; nothing else is to be touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tenfold.graph.op import Op
from tenfold.ops import (
    casts,
    choosing,
    constants,
    control,
    effects,
    elementwise,
    indexing,
    linalg,
    reductions,
    shapes,
    sorting,
)

_ROWS = (
    *elementwise.ROWS,
    *choosing.ROWS,
    *casts.ROWS,
    *constants.ROWS,
    *reductions.ROWS,
    *shapes.ROWS,
    *indexing.ROWS,
    *linalg.ROWS,
    *sorting.ROWS,
    *control.ROWS,
    *effects.ROWS,
)

TABLE: Mapping[str, Op] = MappingProxyType({op.name: op for op in _ROWS})

__all__ = ["TABLE"]
