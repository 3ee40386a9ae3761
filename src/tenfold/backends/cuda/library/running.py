"""Running folds: each element joined with all before it along an axis.

They have the shape of the CPU's (`cpu/library/running`), so that both give the same bits. A line is
blocks of 16 elements, in which each is joined with those 1, 2, 4 and 8 before it; blocks are joined
one after the other in stretches of 4096, and stretches one after the other again. What is behind
the last whole block goes on from there, an element after the other. Where there are columns behind
the axis, each of them is folded one after the other.

A thread has a block, a team of threads a line or a stretch of one, and the first of a team goes
along what its blocks come to. Parts of complex elements are apart, as lanes on the CPU are: a
stretch is of 2048 of them. Complex products go one after the other. Columns have parts
only where the order does not matter: of integers, and of greatest and least elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from tenfold.backends.cuda.library.columns import ColumnFold, column_launch, column_launches
from tenfold.backends.cuda.library.lines import STRETCH, LineFold, line_launch
from tenfold.backends.cuda.library.routine import GpuRoutine
from tenfold.backends.cuda.library.stretches import StretchFold, stretch_launches
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.text import Fragment, merged
from tenfold.backends.llvm.writer import BITS, kind
from tenfold.types import SHORT, TensorType

STEPS = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min"}


def running_routine(name: str, type: TensorType, given: Mapping[str, Any]) -> GpuRoutine | None:
    """The routine of a running fold along `axis`."""
    if not type.size:
        return None
    dtype, step = SHORT[type.dtype], STEPS[name]
    axis, reverse = given["axis"], given["reverse"]
    n, before, behind = type.shape[axis], prod(type.shape[:axis]), prod(type.shape[axis + 1 :])
    span = 2 if kind(dtype) == "c" else 1
    symbol = f"tn_{name}{'_reverse' if reverse else ''}_{dtype}"
    along = LineFold if n * span <= STRETCH else StretchFold
    fold = (along if behind == 1 else ColumnFold)(symbol, dtype, step, reverse)
    size, scratch = BITS[fold.type] // 8, 0
    if span == 2 and step == "mul":
        fold = ColumnFold(symbol, dtype, step, reverse)
        launches = [column_launch(f"{symbol}_one", before * behind, (0, 1, 1), n, behind, n, 1)]
    elif behind > 1:
        launches, scratch = column_launches(symbol, n, before, behind * span, size, fold.anyhow)
    elif along is LineFold:
        launches = [line_launch(symbol, n * span, before)]
    else:
        launches, scratch = stretch_launches(symbol, n * span, before, span, size)
    prefix = f"{symbol}_"
    names = [one.function.removeprefix(prefix) for one in launches]

    def text(target: CudaTarget) -> Fragment:
        return merged(fold.function(name, target) for name in names)

    return GpuRoutine(text, f"{prefix}{' '.join(names)}", tuple(launches), scratch)
