"""Interrupt polling in a long kernel: in the loop that is long while each of its trips is short.

Ctrl-C has to stop a plan within 0.2 s, so a kernel that may run longer looks up now and then, as
loops of plans do (`poll`). Behind the addresses of a kernel's buffers stand two more: of a function
that answers nonzero when the kernel is to stop, and of what it is called with. The kernel then
returns `STOPPED` at once, and what it has written is of no use.

Work is counted in lines of text, which is about vector instructions; most kernels are too short to
have it counted at all. Between two polls lie about 0.3 ms by this count, so a loop whose memory is
a hundred times slower than that is still in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tenfold.backends.cpu.entry.abi import STOPPED
from tenfold.backends.llvm.writer import Writer
from tenfold.frozen import mutable
from tenfold.kernel.analyse.cost import space
from tenfold.kernel.ir.kernel import Kernel
from tenfold.kernel.ir.number import prefers_less

_SPACE = 1 << 20  # elements: a kernel of fewer never takes long
_LONG = 10_000_000  # lines that a loop may run through without a poll
_OFTEN = 1_000_000  # lines between two polls
OTHER_WAY = " ; the other way"  # what ends lines that are run in place of others, if at all
_CALL, _GATHER, _DIVIDE = 30, 300, 60  # lines, for one that calls, gathers or divides integers


@mutable
class PollInterval:
    """How often a loop polls, known once its body is written."""

    turns: int = 0  # of the loop, between two polls; 0 for none


class PollCounter:
    """Counts the work of nested loops while they are written, and writes polls."""

    def __init__(self, kernel: Kernel, small: bool) -> None:
        self.rows = len(kernel.buffers)
        self.counts = not (small or prefers_less(space(kernel), _SPACE))
        self.inner = 0  # lines that loops inside run through, beyond those they have

    @contextmanager
    def measured(self, w: Writer, trips: int) -> Iterator[PollInterval]:
        """Count what is written inside, which will run so many times at most."""
        measure = PollInterval()
        outer, start = self.inner, len(w.lines)
        self.inner = 0
        yield measure
        if not self.counts:
            return
        lines = weigh(w.lines[start:])
        once = lines + self.inner
        if not prefers_less(once * trips, _LONG) and prefers_less(once, _LONG):
            measure.turns = max(1, _OFTEN // once)
        self.inner = outer + once * trips - lines

    def poll(self, w: Writer, position: str, step: int, turns: int) -> None:
        """Look up whenever a loop has made so many turns, or a few more."""
        span = 1 << (turns * step - 1).bit_length()
        look, ask, stop, on = (w.fresh(name) for name in ("look", "ask", "stop", "on"))
        past = w.op(f"and i64 {position}, {span - 1}")
        due = w.op(f"icmp ult i64 {past}, {step}")
        w.put(f"br i1 {due}, label %{look}, label %{on}, {_SELDOM}")
        w.label(look)
        at = w.op(f"getelementptr ptr, ptr %buffers, i64 {self.rows}")
        run = w.op(f"load ptr, ptr {at}, align 8")
        nobody = w.op(f"icmp eq ptr {run}, null")
        w.put(f"br i1 {nobody}, label %{on}, label %{ask}")
        w.label(ask)
        at = w.op(f"getelementptr ptr, ptr %buffers, i64 {self.rows + 1}")
        given = w.op(f"load ptr, ptr {at}, align 8")
        answer = w.op(f"call i32 {run}(ptr {given})")
        wanted = w.op(f"icmp ne i32 {answer}, 0")
        w.put(f"br i1 {wanted}, label %{stop}, label %{on}, {_SELDOM}")
        w.label(stop)
        w.put(f"ret i32 {STOPPED}")
        w.label(on)


_SELDOM = '!prof !{!"branch_weights", i32 1, i32 2000}'


def weigh(lines: Sequence[str]) -> int:
    """About how many vector instructions these lines are."""
    total = 0
    for line in lines:
        if line.endswith(OTHER_WAY):
            continue
        if "gather" in line or "scatter" in line:
            total += _GATHER
        elif "div <" in line or "rem <" in line:
            total += _DIVIDE if "fdiv" not in line else 4
        elif " call " in line and "@llvm." not in line:
            total += _CALL
        else:
            total += 1 + line.count("\n")
    return total
