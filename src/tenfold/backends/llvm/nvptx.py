"""Instructions that LLVM's code for NVIDIA's GPUs gets wrong, or that lose the bits of a NaN there.

- A shift whose amount is tested before it: the test vanishes, and the amount is cut to 32 bits.
- A comparison with zero that selects one of its operands, where the other is never NaN: it becomes
  a maximum, to which zeros of both signs are not equal.
- Negation and absolute value: floating-point units make any NaN positive, with all bits set.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.llvm.writer import BITS, Writer, float_text, is_constant, mangle

TRIPLE = "nvptx64-nvidia-cuda"
_COMPARED = ("lt", "le", "gt", "ge")
_MASKED = {"neg": "xor", "abs": "and"}
_REGISTERS = {16: "h", 32: "r", 64: "l"}


def mended(w: Writer, op: str, letter: str, element: str, args: Sequence[str]) -> list[str] | str:
    """An instruction that needs other words here as a value; the operands of any other."""
    if op in ("shl", "shr") and letter in "iu" and not is_constant(args[1]):
        return [args[0], w.op(f"and {element} {args[1]}, {BITS[element] - 1}")]
    if letter == "f" and op in _COMPARED:
        return [_fenced(w, element, a, other) for a, other in zip(args, args[::-1], strict=True)]
    if letter == "f" and op in _MASKED and w.signs:
        return _by_bits(w, op, element, args[0])
    return list(args)


def _fenced(w: Writer, element: str, x: str, other: str) -> str:
    """An operand that LLVM does not take for the same as another use of it."""
    if other not in (float_text(element, 0.0), float_text(element, -0.0)) or is_constant(x):
        return x
    return w.call(element, f"llvm.arithmetic.fence.{mangle(element)}", (element, x))


def _by_bits(w: Writer, op: str, element: str, x: str) -> str:
    """The sign changed in an integer register. It takes assembly: LLVM would make a negation of
    the integer instruction again."""
    bits = BITS[element]
    mask = 1 << (bits - 1) if op == "neg" else (1 << (bits - 1)) - 1
    raw = w.op(f"bitcast {element} {x} to i{bits}")
    kind = _REGISTERS[bits]
    made = w.op(
        f'call i{bits} asm "{_MASKED[op]}.b{bits} $0, $1, {mask};", "={kind},{kind}"(i{bits} {raw})'
    )
    return w.op(f"bitcast i{bits} {made} to {element}")
