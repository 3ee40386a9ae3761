"""Fourier transforms by NumPy's own code, called without Python.

The transforms of `np.fft` are ufuncs over lines. A ufunc's loops are functions of C: they take any
strides, need no GIL, and keep what they know of a length. So a transform along any axis is a call
for each part before the axis, with the parts behind it as lines, and its bits are NumPy's. (But of
float32 without a factor, as a plain `fft`: NumPy's own functions choose the loop of float64 there,
which takes longer and has less error.) Many columns with a power of 2 of points are transformed by
a routine of our own (`columns`).

NumPy transforms as many lines at once as fill a vector, those that are left one by one, and on
aarch64 the bits of the two differ. So lines are cut at whole vectors: how much of them is one
call, and on which thread, does not show.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from math import prod
from typing import Any

import numpy as np

from tenfold.backends.cpu.entry.abi import STOPPED
from tenfold.backends.cpu.library import fourier_columns
from tenfold.backends.cpu.library.routine import NodeRoutine
from tenfold.backends.llvm.writer import LANES
from tenfold.types import SHORT, TensorType

Given = Mapping[str, Any]

# Of a ufunc: where these fields lie in NumPy's binary interface.
_COUNTS, _FUNCTIONS, _DATA, _LOOPS = 16, 32, 40, 48
_POLLED = 1 << 16  # points that are transformed without a poll, but for one part
_VECTOR = 16  # bytes of NumPy's vectors
_WORDS = ("block", "lines", "all", "n", "m", "x.part", "y.part", "x.line", "y.line", "x.point",
          "y.point", "factor")  # fmt: skip


def fourier_routine(name: str, type: TensorType, given: Given) -> NodeRoutine | None:
    """The call of a transform."""
    axis = given["axis"]
    n, real = type.shape[axis], np.empty(0, type.dtype).real.dtype
    points = given["n"] if name == "irfft" else n
    m = n // 2 + 1 if name == "rfft" else points
    inverse = name == "irfft" or bool(given.get("inverse"))
    kind = "irfft" if name == "irfft" else "ifft" if inverse else "fft"
    if name == "rfft":
        kind = "rfft_n_odd" if n % 2 else "rfft_n_even"
    if fourier_loops(kind, SHORT[real]) is None:
        return None
    before, behind = prod(type.shape[:axis]), prod(type.shape[axis + 1 :])
    factor = _bits(_factor(points, given["norm"], inverse, real))
    weight = 100 + 2 * type.size * points.bit_length()
    if name == "fft" and fourier_columns.fits(n, behind):
        words = fourier_columns.params(n, behind, factor, inverse)
        return NodeRoutine(
            f"tn_columns_{kind}_{SHORT[real]}", words, before * -(-behind // LANES),
            fourier_columns.scratch(n, SHORT[real]), weight // 2,
        )  # fmt: skip
    size, made = type.dtype.itemsize, real.itemsize * (1 if name == "irfft" else 2)
    # Behind the last axis there is one line: then a part is a vector of them, some at a time.
    last = behind == 1
    lines = _VECTOR // real.itemsize if last else behind
    block = max(1, _POLLED // (points * lines)) if last else 1
    steps = (n * size, m * made) if last else (size, made)
    params = (
        block, lines, before * behind, n, m, n * lines * size, m * lines * made, *steps,
        behind * size, behind * made, factor,
    )  # fmt: skip
    parts = -(-before // lines) if last else before
    return NodeRoutine(f"tn_{kind}_{SHORT[real]}", params, parts, 0, weight)


def _factor(points: int, norm: str, inverse: bool, real: np.dtype[Any]) -> Any:
    """What results are multiplied by, rounded as NumPy rounds it."""
    if norm == "ortho":
        return np.reciprocal(np.sqrt(points, dtype=real))
    return real.type(1) if inverse == (norm == "forward") else np.reciprocal(real.type(points))


def _bits(number: Any) -> int:
    raw: bytes = number.tobytes().ljust(8, b"\0")
    return int.from_bytes(raw, "little", signed=True)


@cache
def fourier_loops(kind: str, dtype: str) -> Mapping[str, int] | None:
    """The function of a transform and what it is given, or None where NumPy has it another way."""
    module = getattr(np.fft, "_pocketfft_umath", None)
    ufunc = getattr(module, kind, None)
    if not isinstance(ufunc, np.ufunc) or np.__version__.split(".")[0] != "2":
        return None
    types = [loop.lower() for loop in ufunc.types]
    wanted = {"f64": "dd->d", "f32": "ff->f"}[dtype]
    if wanted not in types or not _laid_out(ufunc):
        return None
    which = types.index(wanted)
    functions, data = (_word(id(ufunc) + field) for field in (_FUNCTIONS, _DATA))
    # Those of real numbers are given nothing: any address will do.
    given = _word(data + 8 * which) if data else id(ufunc)
    return {"tn_transform": _word(functions + 8 * which), "tn_given": given}


def _laid_out(ufunc: np.ufunc) -> bool:
    """Whether the fields of a ufunc are where they are taken to be."""
    counts = (ctypes.c_int32 * 3).from_address(id(ufunc) + _COUNTS)
    loops = ctypes.c_int32.from_address(id(ufunc) + _LOOPS).value
    return [*counts, loops] == [ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes]


def _word(address: int) -> int:
    found: int = ctypes.c_uint64.from_address(address).value
    return found


def fourier_text(kind: str, dtype: str) -> str:
    """The module of a transform."""
    words = "".join(
        f"  %{name}.at = getelementptr i64, ptr %params, i64 {n}\n"
        f"  %{name} = load i64, ptr %{name}.at, align 8\n"
        for n, name in enumerate(_WORDS)
    )
    # What a loop of a ufunc takes: addresses, extents (lines, points given and made), and steps
    # (of lines, then of points).
    rows = "".join(
        f"  %{row}.{n} = getelementptr i64, ptr %{row}, i64 {n}\n"
        f"  store {type} {value}, ptr %{row}.{n}, align 8\n"
        for row, type, values in (
            ("args", "ptr", ("%x", "%factor.at", "%y")),
            ("extents", "i64", ("%outer", "%n", "%m")),
            ("steps", "i64", ("%x.line", "0", "%y.line", "%x.point", "%y.point")),
        )
        for n, value in enumerate(values)
    )
    return f"""
declare void @tn_transform(ptr, ptr, ptr, ptr)
declare i64 @llvm.smin.i64(i64, i64)
@tn_given = external global i8

define dso_local i32 @tn_{kind}_{dtype}(
  ptr %buffers, ptr %params, i64 %low, i64 %high) nounwind {{
entry:
  %args = alloca [3 x ptr], align 16
  %extents = alloca [3 x i64], align 16
  %steps = alloca [5 x i64], align 16
  %x.all = load ptr, ptr %buffers, align 8
  %y.row = getelementptr ptr, ptr %buffers, i64 1
  %y.all = load ptr, ptr %y.row, align 8
  %poll.row = getelementptr ptr, ptr %buffers, i64 2
  %poll = load ptr, ptr %poll.row, align 8
  %given.row = getelementptr ptr, ptr %buffers, i64 3
  %nobody = icmp eq ptr %poll, null
{words}  br label %head
head:
  %row = phi i64 [ %low, %entry ], [ %end, %more ], [ %end, %ask ]
  %on = icmp slt i64 %row, %high
  br i1 %on, label %part, label %done
part:
  %far = add i64 %row, %block
  %end = call i64 @llvm.smin.i64(i64 %far, i64 %high)
  %begun = mul i64 %row, %lines
  %left = sub i64 %all, %begun
  %count = sub i64 %end, %row
  %wanted = mul i64 %count, %lines
  %outer = call i64 @llvm.smin.i64(i64 %wanted, i64 %left)
  %x.offset = mul i64 %row, %x.part
  %y.offset = mul i64 %row, %y.part
  %x = getelementptr i8, ptr %x.all, i64 %x.offset
  %y = getelementptr i8, ptr %y.all, i64 %y.offset
{rows}  call void @tn_transform(ptr %args, ptr %extents, ptr %steps, ptr @tn_given)
  %last = icmp sge i64 %end, %high
  %quiet = or i1 %last, %nobody
  br i1 %quiet, label %more, label %ask
more:
  br label %head
ask:
  %given = load ptr, ptr %given.row, align 8
  %answer = call i32 %poll(ptr %given)
  %stop = icmp ne i32 %answer, 0
  br i1 %stop, label %stopped, label %head
done:
  ret i32 0
stopped:
  ret i32 {STOPPED}
}}
"""
