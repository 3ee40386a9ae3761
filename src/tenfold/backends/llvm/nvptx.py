"""Instructions that LLVM's code for NVIDIA's GPUs gets wrong, in other words.

- A shift whose amount is tested before it: the test vanishes, and the amount is cut to 32 bits.
- A comparison with zero that selects one of its operands, where the other is never NaN: it becomes
  a maximum, to which zeros of both signs are not equal.
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


def _fenced(w: Writer, element: str, x: str, other: str) -> str:
    """An operand that LLVM does not take for the same as another use of it."""
    if other not in (float_text(element, 0.0), float_text(element, -0.0)) or is_constant(x):
        return x
    return w.call(element, f"llvm.arithmetic.fence.{mangle(element)}", (element, x))
