"""Instructions that LLVM's code for NVIDIA's GPUs gets wrong, in other words.

- A shift whose amount is tested before it: the test vanishes, and the amount is cut to 32 bits.
- A comparison with zero that selects one of its operands, where the other is never NaN: it becomes
  a maximum, to which zeros of both signs are not equal.
- The absolute value of 16 bits, which LLVM makes of a shift, an xor and a subtraction: that of
  -32768 is compared as 32768.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.llvm.writer import BITS, Writer, float_text, is_constant, mangle

TRIPLE = "nvptx64-nvidia-cuda"
_COMPARED = ("lt", "le", "gt", "ge")


def mended(w: Writer, op: str, letter: str, element: str, args: Sequence[str]) -> Sequence[str]:
    """The operands of an instruction as they are given here."""
    if op in ("shl", "shr") and letter in "iu" and not is_constant(args[1]):
        return args[0], w.op(f"and {element} {args[1]}, {BITS[element] - 1}")
    if letter == "f" and op in _COMPARED:
        return [_fenced(w, element, a, other) for a, other in zip(args, args[::-1], strict=True)]
    return args


def assembled(w: Writer, op: str, element: str, args: Sequence[str]) -> str | None:
    """An instruction as assembly, of which LLVM makes no other; None for most."""
    if op == "shr" and element == "i16" and args[1] == "15":
        return w.op(f'call i16 asm "shr.s16 $0, $1, 15;", "=h,h"(i16 {args[0]})')
    return None


def _fenced(w: Writer, element: str, x: str, other: str) -> str:
    """An operand that LLVM does not take for the same as another use of it."""
    if other not in (float_text(element, 0.0), float_text(element, -0.0)) or is_constant(x):
        return x
    return w.call(element, f"llvm.arithmetic.fence.{mangle(element)}", (element, x))
