"""Sixteen-bit floats two at a time: a sum, difference or product that is rounded at once is one
instruction for a pair of a thread's elements.

It gives the bits of the same in f32, rounded: f32 has more than twice the digits of either, and
two more, so that to round twice is to round once; on all pairs of operands it was tried. The same
digits let a quotient or a root of bf16 be a little off before it is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.writer import Writer
from tenfold.frozen import frozen
from tenfold.kernel.ir.kernel import Kernel
from tenfold.types import DTYPES

_PAIRED = {"add": "fadd", "sub": "fsub", "mul": "fmul"}
_DTYPES = {"half": "f16", "bfloat": "bf16"}


# Of one element: within two units of the last place of f32, which no rounding to bf16 shows.
_CLOSE = {"div": "llvm.nvvm.div.full", "sqrt": "llvm.nvvm.sqrt.approx.f"}
_TRIED = 90  # the chip on which they were tried, on all numbers and all pairs of bf16


@frozen
class Paired:
    """One instruction on pairs: the type of an element, the opcode, and for each operand the value
    that has its bits, or a constant's bits."""

    element: str
    opcode: str
    operands: tuple[tuple[int | None, int], ...]


def paired(kernel: Kernel, target: CudaTarget) -> tuple[dict[int, Paired], frozenset[int]]:
    """What is computed in pairs, by the value that has its bits, and what is not computed else."""
    uses = [0] * len(kernel.instructions)
    for i in kernel.instructions:
        for v in i.uses():
            uses[v] += 1
    for s in kernel.stores:
        for v in s.uses():
            uses[v] += 1
    found, instead = dict[int, Paired](), set[int]()
    for n, i in enumerate(kernel.instructions):
        element = i.op.removeprefix("to_")
        if element not in _DTYPES or (element == "bfloat" and target.capability < 90):
            continue
        made = kernel.instructions[i.args[0]]
        if made.op not in _PAIRED or uses[i.args[0]] != 1:
            continue
        operands = [_bits(kernel, element, a) for a in made.args]
        if all(operand is not None for operand in operands):
            known = tuple(operand for operand in operands if operand is not None)
            found[n] = Paired(element, _PAIRED[made.op], known)
            instead.add(i.args[0])
    return found, frozenset(instead)


def close(kernel: Kernel, target: CudaTarget) -> dict[int, str]:
    """The quotients and roots of numbers of bf16 that are rounded to bf16 at once, each with the
    chip's own instruction that is near enough for that."""
    if target.capability != _TRIED:
        return {}
    rounded = [i.args[0] for i in kernel.instructions if i.op == "to_bfloat"]
    others = {v for i in kernel.instructions if i.op != "to_bfloat" for v in i.uses()}
    others.update(v for s in kernel.stores for v in s.uses())
    found = {}
    for n in rounded:
        i = kernel.instructions[n]
        short = all(_bits(kernel, "bfloat", a) is not None for a in i.args)
        if i.op in _CLOSE and n not in others and short:
            found[n] = _CLOSE[i.op]
    return found


def _bits(kernel: Kernel, element: str, value: int) -> tuple[int | None, int] | None:
    """The value that has an operand's sixteen bits, or the bits of a constant."""
    i = kernel.instructions[value]
    if i.op == f"from_{element}":
        return i.args[0], 0
    if i.op != "const" or i.dtype != "f32":
        return None
    number = np.frombuffer(i.attr[0], np.float32)[0]
    with np.errstate(all="ignore"):
        short = number.astype(DTYPES[_DTYPES[element]])
    return (None, int(short.view(np.uint16))) if short.astype(np.float32) == number else None


def operate(w: Writer, one: Paired, operands: Sequence[str]) -> tuple[str, list[str]]:
    """An instruction on pairs of floats: its result, and the bits of both."""
    ty = f"<2 x {one.element}>"
    made = w.op(f"{one.opcode} {ty} {', '.join(operands)}")
    bits = w.op(f"bitcast {ty} {made} to <2 x i16>")
    return made, [w.op(f"extractelement <2 x i16> {bits}, i64 {n}") for n in range(2)]


def pair(w: Writer, element: str, bits: Sequence[str]) -> str:
    """Two floats, of which the bits are given."""
    both = "poison"
    for n, x in enumerate(bits):
        both = w.op(f"insertelement <2 x i16> {both}, i16 {x}, i64 {n}")
    return w.op(f"bitcast <2 x i16> {both} to <2 x {element}>")
