"""When a plan reads its inputs for the last time, and begins its outputs: what decides whether an
output may be written over an argument (`overwrite` finds it)."""

from __future__ import annotations

from tenfold.frozen import frozen

Row = tuple[int, ...]


@frozen
class StepOrder:
    """When a plan reads its inputs for the last time, and begins its outputs; steps by number."""

    reads: tuple[Row, ...]  # of each input: the last two steps that read it
    begun: tuple[Row, ...]  # of each output: the first two steps that write it
    copied: Row  # of each output: the input that the first is a copy of, or -1
    safe: tuple[Row, ...]  # inputs and outputs: read last and begun by one step, by elements
    sure: int  # the step from which on nothing can fail or be interrupted

    def lets(self, argument: int, output: int, donated: bool) -> bool:
        """Whether the output may be written over the argument."""
        reads, begun = list(self.reads[argument]), list(self.begun[output])
        safe = (argument, output) in self.safe
        if self.copied[output] == argument:
            reads = [at for at in reads if at != begun[0]]
            del begun[0]
            safe = False  # it is of the copy that this is said
        last = max(reads, default=-1)
        first = min(begun, default=len(self.reads) + self.sure)
        return (donated or first >= self.sure) and (last < first or (last == first and safe))
