"""A fault of LLVM, to release 22: a selection of bitwise logic, for AVX-512.

AVX-512 has one instruction for any logic of three operands, vpternlog, which is told by a table of
eight bits what to compute, and a mask that chooses between its result and its first operand. LLVM
makes one of a selection and the logic before it. Where an operand comes from memory, as constants
do, it may change the order of the operands and write the table for another order: then

    np.where(u < v, u ^ ((u ^ v) & 1), v)

gives wrong numbers (llvm/llvm-project issue 157929). So results of logic upon logic go through a
fence on their way into a selection: it costs a move, and nothing where there is no such selection.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.llvm.writer import BITS, COMPUTE, Writer, vector

# What may be logic in the end: sums of what has no bits in common are.
_LOGIC = {"b": (), "i": ("and", "or", "xor", "add", "sub"), "f": ("neg", "abs")}
_LOGIC["u"] = _LOGIC["i"]
SIGN, ONCE, TWICE = 1, 2, 3  # a sign set, logic of two operands, logic upon logic or perhaps


def note_logic(w: Writer, letter: str, op: str, args: Sequence[str], result: str) -> None:
    """Remember how much logic upon logic a value is."""
    depth = max((w.logic.get(a, 0) for a in args), default=0)
    if letter == "f" and op in _LOGIC["f"] and depth <= SIGN:
        w.logic[result] = SIGN  # by a constant, however often
    elif op in _LOGIC[letter]:
        w.logic[result] = TWICE if depth else ONCE
    elif op == "bitcast" and depth:
        w.logic[result] = depth


def selected(w: Writer, dtype: str, x: str) -> str:
    """A value as a selection may take it."""
    element = COMPUTE[dtype]
    if w.logic.get(x, 0) < TWICE or w.target.vector_bytes < 64 or BITS[element] < 32:
        return x
    ty, floats = w.vector(element), vector("float", True, w.lanes * BITS[element] // 32)
    same = element == "float"
    plain = x if same else w.op(f"bitcast {ty} {x} to {floats}")
    fenced = w.intrinsic("arithmetic.fence", floats, plain)
    return fenced if same else w.op(f"bitcast {floats} {fenced} to {ty}")
