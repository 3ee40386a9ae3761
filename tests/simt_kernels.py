"""Kernels for the interpreter's tests: lines of IR, run for each element of some arrays."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from simt import Memory, launch, parse

DTYPES = {
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.uint8),
    "i16": np.dtype(np.uint16),
    "i32": np.dtype(np.uint32),
    "i64": np.dtype(np.uint64),
    "half": np.dtype(np.float16),
    "bfloat": np.dtype(ml_dtypes.bfloat16),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}
SIGNED = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}

THREAD = """
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %bid = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %ntid = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %before = mul i32 %bid, %ntid
  %i = add i32 %before, %tid
"""


def parts(ty: str) -> tuple[str, int]:
    """The element and the lanes of a type."""
    if not ty.startswith("<"):
        return ty, 1
    lanes, _, element = ty[1:-1].partition(" x ")
    return element, int(lanes)


def elementwise(
    body: str, result: str, *inputs: tuple[str, NDArray[Any]], more: str = "", **how: Any
) -> NDArray[Any]:
    """What lines make of each element of some arrays, %a, %b and so on; it is %r, of this type."""
    names = "abcd"[: len(inputs)]
    params = "".join(f", ptr addrspace(1) %p{name}" for name in names)
    loads = []
    for name, (ty, _) in zip(names, inputs, strict=True):
        size = DTYPES[parts(ty)[0]].itemsize
        loads += [
            f"  %g{name} = getelementptr {ty}, ptr addrspace(1) %p{name}, i32 %i",
            f"  %{name} = load {ty}, ptr addrspace(1) %g{name}, align {size}",
        ]
    element, lanes = parts(result)
    size = DTYPES[element].itemsize
    text = "\n".join(
        [
            more,
            f"define ptx_kernel void @k(ptr addrspace(1) %out{params}) {{",
            "entry:",
            THREAD,
            *loads,
            body,
            f"  %gr = getelementptr {result}, ptr addrspace(1) %out, i32 %i",
            f"  store {result} %r, ptr addrspace(1) %gr, align {size}",
            "  ret void",
            "}",
        ]
    )
    count = len(inputs[0][1]) if inputs else 64
    memory = Memory(strict=True)
    shape = (count, lanes) if result.startswith("<") else (count,)
    out = memory.alloc(count * lanes * size)
    args = [out]
    for ty, array in inputs:
        array = np.ascontiguousarray(array)
        assert array.dtype == DTYPES[parts(ty)[0]], (array.dtype, ty)
        args.append(memory.alloc(array.nbytes))
        memory.write(args[-1], array)
    block = next(n for n in (64, 50, 32, 10, 7, 5, 3, 2, 1) if count % n == 0)
    launch(parse(text), "k", (count // block, 1, 1), (block, 1, 1), args, memory, **how)
    return memory.read(out, DTYPES[element], shape)


class Device:
    """Memory, and launches with arrays as arguments."""

    def __init__(self, strict: bool = True) -> None:
        self.memory = Memory(strict=strict)

    def put(self, array: Any) -> int:
        array = np.ascontiguousarray(array)
        address = self.memory.alloc(array.nbytes)
        self.memory.write(address, array)
        return address

    def room(self, nbytes: int) -> int:
        return self.memory.alloc(nbytes)

    def run(
        self, text: str, blocks: int, threads: int, *args: int, name: str = "k", **how: Any
    ) -> None:
        launch(parse(text), name, (blocks, 1, 1), (threads, 1, 1), args, self.memory, **how)


def edges(ty: str, count: int = 512, seed: int = 0) -> NDArray[Any]:
    """Values of a type with all the edges, and random bits."""
    rng = np.random.default_rng(seed)
    kind = DTYPES[ty]
    if ty == "i1":
        return rng.integers(0, 2, count).astype(np.bool_)
    size = kind.itemsize
    bits = rng.integers(0, 2**64, count, np.uint64, endpoint=False)
    raw = (bits >> np.uint64(64 - 8 * size)).astype(f"u{size}")
    top = 2 ** (8 * size - 1)
    if kind.kind == "u":
        special: list[Any] = [0, 1, 2, 7, top - 1, top, top + 1, 2 * top - 1, 2 * top - 2]
        raw[: len(special)] = special
        rng.shuffle(raw)
        return raw
    values: NDArray[Any] = raw.view(kind)
    info: Any = ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]
    tiny = float(info.smallest_subnormal)
    one = [0.0, 0.5, 1.0, 1.5, 2.5, 3.0, float(info.max), float(info.tiny), tiny, np.inf]
    special = [*one, *(-x for x in one), np.nan]
    values[: len(special)] = np.array(special).astype(kind)
    half = count // 2  # and numbers of the size that one meets
    values[half:] = (rng.standard_normal(count - half) * 100).astype(kind)
    rng.shuffle(values)
    return values


def same_bits(found: NDArray[Any], expected: Any) -> None:
    """Equal bit for bit, but for those of NaN."""
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if found.dtype.kind in "bu":
        np.testing.assert_array_equal(found, expected)
        return
    x, y = found.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(np.signbit(x) & (x == x), np.signbit(y) & (y == y))
