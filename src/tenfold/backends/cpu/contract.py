"""Products by BLAS: a contraction as one gemm, or one for each element of its batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Protocol

from tenfold.backends.cpu.blas import PLAIN, ROW_MAJOR, TRANSPOSED
from tenfold.types import SHORT, TensorType

_LETTER = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}
_ONE = {"f32": "float 1.0", "f64": "double 1.0"}
_ZERO = {"f32": "float 0.0", "f64": "double 0.0"}


class Prints(Protocol):
    """What this needs of whoever prints the plan."""

    lines: list[str]
    data: list[str]
    name: str

    def op(self, text: str) -> str: ...
    def label(self, name: str) -> None: ...
    def fresh(self, stem: str = ...) -> str: ...
    def offset(self, pointer: str, offset: str) -> str: ...


def call_gemm(
    w: Prints, pointers: Sequence[str], types: Sequence[TensorType], given: Mapping[str, Any]
) -> None:
    """Print the product of two operands whose axes lie as BLAS wants them (`laid_out`)."""
    lhs, rhs, out = types
    batch = prod(lhs.shape[a] for a in given["lhs_batch"])
    inner = prod(lhs.shape[a] for a in given["lhs_contract"])
    rows = lhs.size // (batch * inner)
    columns = rhs.size // (batch * inner)
    left = turned(lhs.rank, given["lhs_batch"], given["lhs_contract"], last=True)
    right = turned(rhs.rank, given["rhs_batch"], given["rhs_contract"], last=False)
    short = SHORT[out.dtype]
    one, zero = _ONE.get(short), _ZERO.get(short)
    if one is None or zero is None:
        element = "float" if short == "c64" else "double"
        w.data += [
            f'@"{w.name}.one{len(w.data)}" = private constant [2 x {element}] '
            f"[{element} 1.0, {element} 0.0], align 16"
        ]
        one = f'ptr @"{w.name}.one{len(w.data) - 1}"'
        w.data += [
            f'@"{w.name}.zero{len(w.data)}" = private constant [2 x {element}] zeroinitializer, '
            "align 16"
        ]
        zero = f'ptr @"{w.name}.zero{len(w.data) - 1}"'
    a, b, c = pointers
    size = out.dtype.itemsize
    head = end = i = more = ""
    if batch > 1:
        before, head, end = w.fresh("batch"), w.fresh("batch"), w.fresh("batch")
        w.lines.append(f"  br label %{before}")
        w.label(before)
        w.lines.append(f"  br label %{head}")
        w.label(head)
        i, more = f"%{w.fresh('i')}", f"%{w.fresh('i')}"
        w.lines.append(f"  {i} = phi i64 [ 0, %{before} ], [ {more}, %{head} ]")
        a, b, c = (
            w.offset(p, w.op(f"mul i64 {i}, {n * size}"))
            for p, n in ((a, rows * inner), (b, inner * columns), (c, rows * columns))
        )
    w.lines.append(
        f"  call void @tn_{_LETTER[short]}gemm(i32 {ROW_MAJOR}, "
        f"i32 {TRANSPOSED if left else PLAIN}, i32 {TRANSPOSED if right else PLAIN}, "
        f"i64 {rows}, i64 {columns}, i64 {inner}, {one}, ptr {a}, i64 {rows if left else inner}, "
        f"ptr {b}, i64 {inner if right else columns}, {zero}, ptr {c}, i64 {columns})"
    )
    if batch > 1:
        w.lines.append(f"  {more} = add i64 {i}, 1")
        again = w.op(f"icmp ult i64 {more}, {batch}")
        w.lines.append(f"  br i1 {again}, label %{head}, label %{end}")
        w.label(end)


def turned(rank: int, batch: Sequence[int], over: Sequence[int], *, last: bool) -> bool:
    """Whether an operand lies transposed: its contracted axes are not where BLAS has them, last
    on the left and first on the right."""
    free = [a for a in range(rank) if a not in batch and a not in over]
    if not free or not over:
        return False
    return (min(over) < min(free)) == last
