"""Modules of maths functions for tests and benchmarks: each in a loop over arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from tenfold.backends.cpu.link.loader import Image, load
from tenfold.backends.llvm.assemble import assemble
from tenfold.backends.llvm.functions import called, definitions
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.text import Fragment, join
from tenfold.backends.llvm.writer import COMPUTE, LANES, Writer, vector
from tenfold.kernel.maths import params


def module(wanted: Sequence[tuple[str, str]], wide: bool, target: LLVMTarget) -> str:
    """IR in which `loop.name.dtype(inputs..., output, n)` maps a function over n elements; of
    vectors n must be a multiple."""
    w = Writer(target)
    bodies = [_loop(w, name, dtype, wide) for name, dtype in wanted]
    return join([*definitions(sorted(w.maths), target), Fragment((), "\n".join(bodies))])


def compiled(name: str, dtype: str, image: Image) -> Any:
    pointers = [ctypes.c_void_p] * (len(params(name, dtype)) + 1)
    address = image.address(f"loop.{name}.{dtype}")
    return ctypes.CFUNCTYPE(None, *pointers, ctypes.c_int64)(address)


def loaded(wanted: Sequence[tuple[str, str]], wide: bool, target: LLVMTarget) -> Image:
    names = [f"loop.{name}.{dtype}" for name, dtype in wanted]
    return load([assemble(module(wanted, wide, target), target)], names)


def _loop(w: Writer, name: str, dtype: str, wide: bool) -> str:
    element, ty = COMPUTE[dtype], vector(COMPUTE[dtype], wide)
    inputs = range(len(params(name, dtype)))
    w.label("body")
    w.put("%i = phi i64 [ 0, %entry ], [ %next, %body ]")
    given = []
    for n in inputs:
        at = w.op(f"getelementptr {element}, ptr %in{n}, i64 %i")
        given.append(w.op(f"load {ty}, ptr {at}, align 1"))
    y = called(w, name, dtype, given, wide)
    at = w.op(f"getelementptr {element}, ptr %out, i64 %i")
    w.put(f"store {ty} {y}, ptr {at}, align 1")
    w.put(f"%next = add i64 %i, {LANES if wide else 1}")
    w.put("%more = icmp ult i64 %next, %n")
    w.put("br i1 %more, label %body, label %done")
    head = f"define void @loop.{name}.{dtype}({''.join(f'ptr %in{n}, ' for n in inputs)}ptr %out, "
    wider = f' "prefer-vector-width"="{8 * w.target.vector_bytes}"'
    return (
        f"{head}i64 %n) nounwind{wider} {{\nentry:\n  br label %body\n{w.taken()}"
        "done:\n  ret void\n}"
    )
