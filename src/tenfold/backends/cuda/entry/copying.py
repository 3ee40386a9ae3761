"""Copies within the host's memory by several threads, as LLVM IR: the CPU's pool calls
`tn_copy_part` once for each part. `context` has four words: target, source, their bytes, and those
of a part."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.backends.cpu.entry.record import load_field
from tenfold.backends.cpu.target import host_target
from tenfold.backends.cpu.threads.pool import thread_pool
from tenfold.backends.llvm.text import Fragment
from tenfold.locks import once

PART = 1 << 17  # bytes
_BYTES_A_NANOSECOND = 10  # that one thread copies

COPY_PART = Fragment(
    (
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        "declare i64 @llvm.umin.i64(i64, i64)",
    ),
    f"""
define dso_local i32 @tn_copy_part(ptr %context, i64 %index, i64 %worker) nounwind {{
{load_field("%target", "ptr", "%context", 0)}
{load_field("%source", "ptr", "%context", 8)}
{load_field("%bytes", "i64", "%context", 16)}
{load_field("%part", "i64", "%context", 24)}
  %start = mul i64 %index, %part
  %left = sub i64 %bytes, %start
  %size = call i64 @llvm.umin.i64(i64 %left, i64 %part)
  %to = getelementptr i8, ptr %target, i64 %start
  %from = getelementptr i8, ptr %source, i64 %start
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  ret i32 0
}}
""",
)


def threads() -> int:
    """How many copy at once."""
    return thread_pool(host_target()).limit


def copy(target: np.ndarray[Any, Any], source: np.ndarray[Any, Any]) -> None:
    """Copy bytes into others, of which there are as many."""
    size = source.nbytes
    places = (a.__array_interface__["data"][0] for a in (target, source))
    context = (ctypes.c_uint64 * 4)(*places, size, PART)
    call, function = _parallel()
    count = -(-size // PART)
    call(function, ctypes.addressof(context), count, size // _BYTES_A_NANOSECOND, None)


@once
def _parallel() -> tuple[Callable[..., int], int]:
    from tenfold.backends.cuda.entry.code import entries

    pointer, number = ctypes.c_void_p, ctypes.c_int64
    kind = ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer, number, number, pointer)
    address = thread_pool(host_target()).image.address("tn_parallel_for")
    return kind(address), entries().address("tn_copy_part")
