"""Tenfold's own maths functions: the interpreter against the same text compiled for the host."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from simt.fma import host_engine
from simt_kernels import THREAD, Device, edges

from tenfold.backends.llvm.functions import definitions, symbol
from tenfold.backends.llvm.target import LLVMTarget

TARGET = LLVMTarget("nvptx64-nvidia-cuda", "sm_90", "+ptx80", 16, False, True, True, "0.50.0")
COUNT = 10_000
TYPES = {"f32": "float", "f64": "double"}


def text(name: str, dtype: str) -> str:
    """A function, and what it calls."""
    fragments = definitions([(name, dtype, 1)], TARGET)
    declared = {line for fragment in fragments for line in fragment.declarations}
    return "\n".join([*sorted(declared), *(fragment.body for fragment in fragments)])


def kernel(name: str, dtype: str) -> str:
    ty, size = TYPES[dtype], int(dtype[1:]) // 8
    second = f", {ty} %w" if name == "pow" else ""
    return f"""{text(name, dtype)}
define ptx_kernel void @k(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(1) %z, i32 %n) {{
entry:
{THREAD}
  %in = icmp ult i32 %i, %n
  br i1 %in, label %body, label %end
body:
  %px = getelementptr {ty}, ptr addrspace(1) %x, i32 %i
  %py = getelementptr {ty}, ptr addrspace(1) %y, i32 %i
  %pz = getelementptr {ty}, ptr addrspace(1) %z, i32 %i
  %v = load {ty}, ptr addrspace(1) %px, align {size}, !invariant.load !0
  %w = load {ty}, ptr addrspace(1) %py, align {size}, !invariant.load !0
  %r = call {ty} {symbol(name, dtype, 1)}({ty} %v{second})
  store {ty} %r, ptr addrspace(1) %pz, align {size}
  br label %end
end:
  ret void
}}
!0 = !{{}}
"""


def on_host(name: str, dtype: str, x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    ty = TYPES[dtype]
    second = f", {ty} %w" if name == "pow" else ""
    loop = f"""{text(name, dtype)}
define void @loop(ptr %x, ptr %y, ptr %z, i64 %n) {{
entry:
  br label %body
body:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %px = getelementptr {ty}, ptr %x, i64 %i
  %py = getelementptr {ty}, ptr %y, i64 %i
  %pz = getelementptr {ty}, ptr %z, i64 %i
  %v = load {ty}, ptr %px
  %w = load {ty}, ptr %py
  %r = call {ty} {symbol(name, dtype, 1)}({ty} %v{second})
  store {ty} %r, ptr %pz
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %body, label %end
end:
  ret void
}}
"""
    engine = host_engine(loop)
    word = ctypes.c_int64
    call = ctypes.CFUNCTYPE(None, word, word, word, word)(engine.get_function_address("loop"))
    out = np.empty_like(x)
    call(x.ctypes.data, y.ctypes.data, out.ctypes.data, x.size)
    return out


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "pow"])
def test_maths_give_the_hosts_bits(name: str, dtype: str) -> None:
    """Edges, random bits and usual numbers; large ones take the rare branch of sin."""
    x, y = (edges(TYPES[dtype], COUNT, seed) for seed in (1, 2))
    device = Device()
    out = device.room(x.nbytes)
    device.run(kernel(name, dtype), -(-COUNT // 128), 128, device.put(x), device.put(y), out, COUNT)
    found, expected = device.memory.read(out, x.dtype, COUNT), on_host(name, dtype, x, y)
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), nan)
    raw = f"u{x.itemsize}"
    np.testing.assert_array_equal(found.view(raw)[~nan], expected.view(raw)[~nan])
