"""Memory: where an element lies and where all lanes do, how large it is, which lanes take part."""

from __future__ import annotations

from tenfold.backends.cpu.emit.positions import lane_step, narrowest, present, scalar, vectored
from tenfold.backends.cpu.emit.state import EmitState
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.writer import COMPUTE, LANES, MEMORY, Writer, kind, vector
from tenfold.kernel.ir.index import Index
from tenfold.kernel.ir.legal import in_memory


def pointer(
    s: EmitState, buffer: int, index: Index, copy: int, extra: int = 0, inside: bool = True
) -> str:
    """The address of an element at lane 0 of a copy. Where that lane is masked off, it need not
    lie inside the buffer."""
    gep = "getelementptr inbounds" if inside else "getelementptr"
    dtype = s.kernel.buffers[buffer].dtype
    ty, factor = MEMORY[dtype], 2 if kind(dtype) == "c" else 1
    moving, constant = scalar(s, index * factor, copy)
    at = f"%b{buffer}"
    if moving is not None:
        at = s.w.op(f"{gep} {ty}, ptr {at}, i64 {moving}")
    constant += extra * factor
    return s.w.op(f"{gep} {ty}, ptr {at}, i64 {constant}") if present(constant) else at


def places(
    s: EmitState, buffer: int, index: Index, copy: int, mask: str | None
) -> tuple[list[str], str, str]:
    """Where each part of lane 0 lies, and how far from there the lanes do: the integers' type and
    the vector. Where there is a mask, lanes that are off lie at the start."""
    w, dtype = s.w, s.kernel.buffers[buffer].dtype
    parts = 2 if kind(dtype) == "c" else 1
    index = index * parts
    element, step = narrowest(s, index), lane_step(s, index)
    if step is None or mask is not None:
        start, offsets = f"%b{buffer}", vectored(s, index, copy, element)
    else:
        start = pointer(s, buffer, index if parts == 1 else _halved(index), copy, inside=False)
        offsets = w.iota(element, step)
    if mask is not None:
        offsets = w.select(mask, vector(element), offsets, "zeroinitializer")
    starts = [start]
    if parts > 1:
        starts.append(w.op(f"getelementptr inbounds {MEMORY[dtype]}, ptr {start}, i64 1"))
    return starts, element, offsets


def _halved(index: Index) -> Index:
    return Index(tuple((a, k // 2) for a, k in index.terms), index.const // 2)


def both(w: Writer, a: str | None, b: str | None, lanes: int = LANES) -> str | None:
    """Two masks together; None is a mask of all lanes."""
    if a is None or b is None:
        return b if a is None else a
    return w.op(f"and {vector('i1', True, lanes)} {a}, {b}")


def doubled(w: Writer, mask: str | None) -> str | None:
    if mask is None:
        return None
    return masks.pick(w, "i1", mask, LANES, [n // 2 for n in range(2 * LANES)])


def computed(dtype: str) -> str:
    """The type of what is loaded from a buffer of this dtype, as it is computed with."""
    return COMPUTE[in_memory(dtype)[0]]


def element_size(dtype: str) -> int:
    """Bytes of what one address holds: for complex, of a part."""
    return {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8}[MEMORY[dtype]]


def stream_bytes(dtype: str) -> int:
    """What a non-temporal store has to be aligned to."""
    return min(64, LANES * element_size(dtype))
