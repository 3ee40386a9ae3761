"""A loop as one function whose threads go through all rounds, each by itself.

Where what an element is in a round hangs on what it was in the round before and on no other
element, nothing has to wait: a thread has the elements that it would have had in each round. Its
kernel becomes a function of its own, as for a single block (`emit/block_loop`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.cuda.emit.block_loop import POINTER, Call, Sliced, Static
from tenfold.backends.cuda.emit.control import loop
from tenfold.backends.cuda.emit.function import KernelText
from tenfold.backends.cuda.emit.thread import Position
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.functions import definitions
from tenfold.backends.llvm.text import Fragment, join
from tenfold.backends.llvm.writer import Writer
from tenfold.digest import sha256
from tenfold.frozen import frozen


@frozen
class ThreadLoop:
    """A loop to be written: the kinds of its arguments, where carries lie at first and where each
    round puts them, what moves (carries as they are read, then slices and stacks), the call of a
    round, and the argument up to which rounds are counted."""

    types: tuple[str, ...]
    carries: tuple[tuple[Static, Static], ...]
    sliced: tuple[Sliced, ...]
    round: Call
    length: Static
    reverse: bool


def thread_loop_text(made: ThreadLoop, kernel: KernelText, target: CudaTarget) -> tuple[str, str]:
    """The name of the function, and the text of its module."""
    w, part = Writer(target.llvm), made.round.part
    w.label("entry")
    block = w.call("i32", "llvm.nvvm.read.ptx.sreg.ctaid.x")
    thread = w.call("i32", "llvm.nvvm.read.ptx.sreg.tid.x")
    length = f"%a{made.length}"

    def one(number: Position, now: list[str]) -> list[str]:
        turn = str(number)
        if made.reverse:
            turn = w.op(f"sub i64 {w.op(f'sub i64 {length}, {turn}')}, 1")
        moving = [*now, *(_slice(w, turn, s) for s in made.sliced)]
        given = [
            f"{ty} {_pointer(w, moving, word)}"
            for ty, word in zip(part.types, made.round.words, strict=True)
        ]
        listed = ", ".join((*given, f"i32 {block}", f"i32 {thread}"))
        w.put(f"call void @{part.name}.part({listed})")
        return [f"%a{final}" for _, final in made.carries]

    first = [(POINTER, f"%a{begin}") for begin, _ in made.carries]
    loop(w, "i64", "0", length, 1, first, one)
    w.put("ret void")
    given = ", ".join(
        f"{ty} align 1 %a{n}" if ty == POINTER else f"{ty} %a{n}" for n, ty in enumerate(made.types)
    )
    head = f'define ptx_kernel void @loop.({given}) nounwind "nvvm.maxntid"="{part.threads}" {{'
    body = "\n".join((head, *w.lines, "}"))
    name = f"tn_threads_{sha256((part.text + body).encode()).hexdigest()[:32]}"
    declared = [line for line in kernel.fragment.declarations if "sreg" not in line]
    own = Fragment(
        (*declared, *sorted(w.declared)), f"{part.text}\n{body.replace('@loop.(', f'@{name}(')}"
    )
    return name, join([own, *definitions(sorted(kernel.maths), target.llvm)])


def _slice(w: Writer, turn: str, one: Sliced) -> str:
    by = w.op(f"mul i64 {turn}, %a{one.step}")
    return w.op(f"getelementptr i8, {POINTER} %a{one.start}, i64 {by}")


def _pointer(w: Writer, moving: Sequence[str], word: Static | tuple[int, int]) -> str:
    if isinstance(word, int):
        return f"%a{word}"
    number, offset = word
    at = moving[number]
    return w.op(f"getelementptr i8, {POINTER} {at}, i64 {offset}") if offset else at
