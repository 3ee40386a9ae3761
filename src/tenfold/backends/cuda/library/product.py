"""Products of matrices by tiles of our own: where there is no library, and for what it lacks.

A block has a tile of the result, 64 by 64. It goes through the terms sixteen at a time: these parts
of both operands lie in shared memory, and each of 256 threads has four by four sums in registers.
Terms are added in their order, one after the other, each product unrounded into the sum where the
chip has that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.backends.cuda.emit.team import wait
from tenfold.backends.cuda.library.cublas_product import CublasProduct, has_library
from tenfold.backends.cuda.library.matrices import MatrixProduct, matrices_of
from tenfold.backends.cuda.library.routine import Found, Given, GpuRoutine, RoutineLaunch
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.instructions import instruction
from tenfold.backends.llvm.text import Fragment
from tenfold.backends.llvm.writer import COMPUTE, SIZES, Writer, float_text, kind
from tenfold.types import TensorType

_TILE, _DEEP, _EACH, _THREADS = 64, 16, 4, 256
DTYPES = ("f32", "f64", "i32", "i64", "u32", "u64")


def product_routine(
    types: Sequence[TensorType],
    result: TensorType,
    given: Given,
    *,
    target: CudaTarget,
    aligned: bool = False,
) -> Found | None:
    """The routine of a contraction that is laid out as libraries have it; `aligned` if its arrays
    begin at multiples of 16 bytes."""
    product = matrices_of(types, given)
    return None if product is None else _routine(product, target, aligned)


def product_scratch(types: Sequence[TensorType], given: Given, target: CudaTarget) -> int | None:
    """The bytes of its scratch memory, None where there is no routine."""
    product = matrices_of(types, given)
    found = None if product is None else _routine(product, target, False)
    return None if found is None else found.scratch


def product_words(types: Sequence[TensorType], given: Given, target: CudaTarget) -> str:
    """What a plan says of a product: which library makes it, if one does."""
    product = matrices_of(types, given)
    found = None if product is None else _routine(product, target, False)
    if found is None or isinstance(found, GpuRoutine):
        return ""
    return f"{product}: by {found.made_by}, whose bits are its own"


def _routine(product: MatrixProduct, target: CudaTarget, aligned: bool) -> Found | None:
    if target.cublas and has_library(product):
        return CublasProduct(product, target.cublas)
    return tiles_routine(product)


def tiles_routine(p: MatrixProduct) -> GpuRoutine | None:
    """A product by tiles."""
    dtype = p.dtype
    if dtype not in DTYPES or set(p.dtypes) != {dtype}:
        return None
    down, across = -(-p.m // _TILE), -(-p.n // _TILE)
    steps = ((1, p.m) if p.left else (p.k, 1)) + ((1, p.k) if p.right else (p.n, 1))
    words = (p.m, p.n, p.k, across, down * across, *steps, p.m * p.k, p.k * p.n, p.m * p.n)
    launch = RoutineLaunch(
        f"tn_product_{dtype}", p.batch * down * across, _THREADS, (0, 1, 2),
        tuple((word, 8) for word in words),
    )  # fmt: skip
    return GpuRoutine(lambda target: product_text(dtype, target), f"product {dtype}", (launch,))


def product_text(dtype: str, target: CudaTarget) -> Fragment:
    """The function for a dtype."""
    return _ProductWriter(dtype, target).text()


class _ProductWriter:
    def __init__(self, dtype: str, target: CudaTarget) -> None:
        self.dtype, self.ty, self.size = dtype, COMPUTE[dtype], SIZES[dtype]
        self.w = Writer(target.llvm)
        self.zero = float_text(self.ty, 0.0) if kind(dtype) == "f" else "0"

    def text(self) -> Fragment:
        w, ty = self.w, self.ty
        w.label("entry")
        thread = w.call("i32", "llvm.nvvm.read.ptx.sreg.tid.x")
        block = w.op(f"zext i32 {w.call('i32', 'llvm.nvvm.read.ptx.sreg.ctaid.x')} to i64")
        which = w.op(f"udiv i64 {block}, %tiles")
        tile = w.op(f"urem i64 {block}, %tiles")
        top = w.op(f"mul i64 {w.op(f'udiv i64 {tile}, %across')}, {_TILE}")
        left = w.op(f"mul i64 {w.op(f'urem i64 {tile}, %across')}, {_TILE}")
        a, b, c = (
            self._offset(f"%{x}", w.op(f"mul i64 {which}, %{x}.each")) for x in ("a", "b", "c")
        )
        row, column = self._own(thread)
        before, head, end = w.block, w.fresh("loop"), w.fresh("end")
        w.put(f"br label %{head}")
        w.label(head)
        start = f"%{w.fresh('k')}"
        sums = [f"%{w.fresh('s')}" for _ in range(_EACH * _EACH)]
        phis = len(w.lines)
        w.lines.append("")
        self._bring(thread, "@tn_product.left", a, top, "%m", start, "%a.row", "%a.column")
        self._bring(thread, "@tn_product.right", b, left, "%n", start, "%b.column", "%b.row")
        wait(w)
        found = list(sums)
        for deep in range(_DEEP):
            one = [self._read("@tn_product.left", row, n, deep) for n in range(_EACH)]
            other = [self._read("@tn_product.right", column, n, deep) for n in range(_EACH)]
            for n in range(_EACH * _EACH):
                found[n] = self._added(found[n], one[n // _EACH], other[n % _EACH])
        wait(w)
        following = w.op(f"add i64 {start}, {_DEEP}")
        latch = w.block
        w.put(f"br i1 {w.op(f'icmp slt i64 {following}, %k')}, label %{head}, label %{end}")
        lines = [f"  {start} = phi i64 [ 0, %{before} ], [ {following}, %{latch} ]"]
        lines += [
            f"  {name} = phi {ty} [ {self.zero}, %{before} ], [ {x}, %{latch} ]"
            for name, x in zip(sums, found, strict=True)
        ]
        w.lines[phis] = "\n".join(lines)
        w.label(end)
        self._store(c, top, left, row, column, found)
        w.put("ret void")
        named = ("m", "n", "k", "across", "tiles", "a.row", "a.column", "b.row", "b.column",
                 "a.each", "b.each", "c.each")  # fmt: skip
        given = ", ".join(f"ptr addrspace(1) align 16 %{x}" for x in "abc")
        given += "".join(f", i64 %{name}" for name in named)
        name = f"tn_product_{self.dtype}"
        head_line = (
            f'define ptx_kernel void @{name}({given}) nounwind "nvvm.maxntid"="{_THREADS}" {{'
        )
        size = _TILE * _DEEP
        memory = [
            f"@tn_product.{side}.{self.dtype} = internal addrspace(3) global "
            f"[{size} x {ty}] undef, align 16"
            for side in ("left", "right")
        ]
        body = "\n".join((head_line, *w.lines, "}"))
        for side in ("left", "right"):
            body = body.replace(f"@tn_product.{side},", f"@tn_product.{side}.{self.dtype},")
        return Fragment((*memory, *sorted(w.declared)), body)

    def _own(self, thread: str) -> tuple[str, str]:
        """Where a thread's sums begin in the tile."""
        w = self.w
        row = w.op(f"mul i32 {w.op(f'lshr i32 {thread}, 4')}, {_EACH}")
        return row, w.op(f"mul i32 {w.op(f'and i32 {thread}, 15')}, {_EACH}")

    def _offset(self, base: str, by: str) -> str:
        return self.w.op(f"getelementptr {self.ty}, ptr addrspace(1) {base}, i64 {by}")

    def _bring(
        self, thread: str, memory: str, base: str, first: str, extent: str, start: str,
        apart: str, deep: str,
    ) -> None:  # fmt: skip
        """Bring part of an operand into shared memory: four elements a thread, zeros beyond the
        end. Threads lie along the axis that is packed or the other alike: the cache sees to it."""
        w, ty = self.w, self.ty
        for n in range(_TILE * _DEEP // _THREADS):
            at = w.op(f"add i32 {thread}, {n * _THREADS}")
            line, depth = w.op(f"lshr i32 {at}, 4"), w.op(f"and i32 {at}, {_DEEP - 1}")
            here = w.op(f"add i64 {first}, {w.op(f'zext i32 {line} to i64')}")
            term = w.op(f"add i64 {start}, {w.op(f'zext i32 {depth} to i64')}")
            inside = w.op(f"icmp slt i64 {here}, {extent}")
            inside = w.op(f"and i1 {inside}, {w.op(f'icmp slt i64 {term}, %k')}")
            place = w.op(f"mul i64 {here}, {apart}")
            place = w.op(f"add i64 {place}, {w.op(f'mul i64 {term}, {deep}')}")
            pointer = self._offset(base, place)
            near, far = w.fresh("in"), w.fresh("out")
            before = w.block
            w.put(f"br i1 {inside}, label %{near}, label %{far}")
            w.label(near)
            x = w.op(f"load {ty}, ptr addrspace(1) {pointer}, align {self.size}")
            w.put(f"br label %{far}")
            w.label(far)
            x = w.op(f"phi {ty} [ {x}, %{near} ], [ {self.zero}, %{before} ]")
            spot = w.op(f"add i32 {w.op(f'mul i32 {depth}, {_TILE}')}, {line}")
            to = w.op(f"getelementptr {ty}, ptr addrspace(3) {memory}, i32 {spot}")
            w.put(f"store {ty} {x}, ptr addrspace(3) {to}, align {self.size}")

    def _read(self, memory: str, first: str, n: int, deep: int) -> str:
        w, ty = self.w, self.ty
        at = w.op(f"getelementptr {ty}, ptr addrspace(3) {memory}, i32 {first}")
        at = w.op(f"getelementptr {ty}, ptr addrspace(3) {at}, i32 {deep * _TILE + n}")
        return w.op(f"load {ty}, ptr addrspace(3) {at}, align {self.size}")

    def _added(self, held: str, a: str, b: str) -> str:
        w = self.w
        if kind(self.dtype) == "f":
            return w.intrinsic("fma", self.ty, a, b, held)
        two = [self.dtype] * 2
        product = instruction(w, "mul", self.dtype, two, [a, b], False)
        return instruction(w, "add", self.dtype, two, [held, product], False)

    def _store(
        self, base: str, top: str, left: str, row: str, column: str, sums: Sequence[Any]
    ) -> None:
        w, ty = self.w, self.ty
        rows = w.op(f"add i64 {top}, {w.op(f'zext i32 {row} to i64')}")
        columns = w.op(f"add i64 {left}, {w.op(f'zext i32 {column} to i64')}")
        for n, x in enumerate(sums):
            down = w.op(f"add i64 {rows}, {n // _EACH}")
            across = w.op(f"add i64 {columns}, {n % _EACH}")
            inside = w.op(f"icmp slt i64 {down}, %m")
            inside = w.op(f"and i1 {inside}, {w.op(f'icmp slt i64 {across}, %n')}")
            near, far = w.fresh("in"), w.fresh("out")
            w.put(f"br i1 {inside}, label %{near}, label %{far}")
            w.label(near)
            place = w.op(f"add i64 {w.op(f'mul i64 {down}, %n')}, {across}")
            pointer = self._offset(base, place)
            w.put(f"store {ty} {x}, ptr addrspace(1) {pointer}, align {self.size}")
            w.put(f"br label %{far}")
            w.label(far)
