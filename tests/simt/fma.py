"""a * b + c rounded once, for arrays: a loop that LLVM makes for this machine, at the first use.

LLVM's fma is exact on every machine: by an instruction, or by the C library's function.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .types import Value

_LANES = 16
_ENGINES: list[Any] = []  # code lives as long as they do
# Operands step by 1 or 0 elements: of one that is the same for all there are as many as lanes.
_TEXT = """
declare {wide} @llvm.fma.v{lanes}{short}({wide}, {wide}, {wide})
declare {ty} @llvm.fma.{short}({ty}, {ty}, {ty})

define void @fma(ptr %a, i64 %sa, ptr %b, i64 %sb, ptr %c, i64 %sc, ptr %out, i64 %n) {{
entry:
  %wide = and i64 %n, -{lanes}
  %some = icmp ne i64 %wide, 0
  br i1 %some, label %vector, label %rest
vector:
  %i = phi i64 [ 0, %entry ], [ %i2, %vector ]
  {vector}
  %i2 = add i64 %i, {lanes}
  %more = icmp ult i64 %i2, %wide
  br i1 %more, label %vector, label %rest
rest:
  %left = icmp ult i64 %wide, %n
  br i1 %left, label %scalar, label %end
scalar:
  %j = phi i64 [ %wide, %rest ], [ %j2, %scalar ]
  {scalar}
  %j2 = add i64 %j, 1
  %again = icmp ult i64 %j2, %n
  br i1 %again, label %scalar, label %end
end:
  ret void
}}
"""


def _body(ty: str, whole: str, short: str, size: int, index: str, tag: str) -> str:
    lines = []
    for name in "abc":
        at, place, value = (f"%{name}{part}{tag}" for part in ("at", "p", "v"))
        lines += [
            f"{at} = mul i64 {index}, %s{name}",
            f"{place} = getelementptr {ty}, ptr %{name}, i64 {at}",
            f"{value} = load {whole}, ptr {place}, align {size}",
        ]
    values = ", ".join(f"{whole} %{name}v{tag}" for name in "abc")
    lines += [
        f"%r{tag} = call {whole} @llvm.fma.{short}({values})",
        f"%o{tag} = getelementptr {ty}, ptr %out, i64 {index}",
        f"store {whole} %r{tag}, ptr %o{tag}, align {size}",
    ]
    return "\n  ".join(lines)


@cache
def _compiled(size: int) -> Callable[..., None]:
    ty, short = {4: ("float", "f32"), 8: ("double", "f64")}[size]
    wide = f"<{_LANES} x {ty}>"
    vector = _body(ty, wide, f"v{_LANES}{short}", size, "%i", "w")
    scalar = _body(ty, ty, short, size, "%j", "s")
    text = _TEXT.format(lanes=_LANES, ty=ty, wide=wide, short=short, vector=vector, scalar=scalar)
    engine = host_engine(text)
    address = engine.get_function_address("fma")
    word, pointer = ctypes.c_int64, ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(None, pointer, word, pointer, word, pointer, word, pointer, word)
    _ENGINES.append(engine)
    return kind(address)


def host_engine(text: str) -> Any:
    """The text of a module as code for this machine."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=2, jit=True
    )
    module = llvm.parse_assembly(text)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


def fma(a: Value, b: Value, c: Value) -> Value:
    """Of float32 or of float64, all of one shape or one that spreads to it."""
    kind = a.dtype
    shape = max((x.shape for x in (a, b, c)), key=len)
    out: NDArray[Any] = np.empty(shape, kind)
    count = out.size
    held, given = [], []
    for x in (a, b, c):
        if x.ndim == 0:
            x, step = np.full(_LANES, x), 0
        else:
            x, step = np.ascontiguousarray(x if x.shape == shape else np.broadcast_to(x, shape)), 1
        held.append(x)
        given += [x.ctypes.data, step]
    _compiled(kind.itemsize)(*given, out.ctypes.data, count)
    return out if out.ndim else out[()]
