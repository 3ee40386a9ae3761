"""Signs that are changed bit by bit: of a NaN, too, whose sign and bits the chip's own instructions
lose.

LLVM makes such an instruction of plain integer arithmetic where floats are chosen or moved, so it
is written in the assembler's words. Where a value goes into arithmetic alone nobody sees the bits
of a NaN, and a sign is changed by the way.
"""

from __future__ import annotations

from tenfold.backends.llvm.writer import BITS, COMPUTE, Writer
from tenfold.kernel.ir.kernel import Kernel

SIGNS = ("neg", "abs")
_PLAIN = "add sub mul div fma sqrt floor ceil trunc round eq ne lt le gt ge to_half to_bfloat"
_ARITHMETIC = frozenset(_PLAIN.split())


def seen(kernel: Kernel) -> frozenset[int]:
    """The values that are seen bit by bit, or may be: they are stored, chosen or reduced."""
    found = {v for s in kernel.stores for v in s.uses()}
    for i in kernel.instructions:
        if i.op not in _ARITHMETIC:
            found.update(i.uses())
    return frozenset(found)


def signed(w: Writer, op: str, dtype: str, x: str) -> str:
    """The negative of a float, or its magnitude."""
    ty = COMPUTE[dtype]
    bits = BITS[ty]
    top = 1 << (bits - 1)
    what, mask = ("xor", top) if op == "neg" else ("and", top - 1)
    letter = "r" if bits == 32 else "l"
    whole = w.op(f"bitcast {ty} {x} to i{bits}")
    text = f"{what}.b{bits} $0, $1, 0x{mask:X};"
    made = w.op(f'call i{bits} asm "{text}", "={letter},{letter}"(i{bits} {whole})')
    return w.op(f"bitcast i{bits} {made} to {ty}")
