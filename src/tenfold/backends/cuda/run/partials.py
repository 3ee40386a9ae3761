"""Memory in which functions of a kernel leave each other something."""

from __future__ import annotations

from collections.abc import Iterable

from tenfold.backends.cuda.emit.function import ARRIVED
from tenfold.backends.cuda.run.kernels import BoundKernel
from tenfold.frozen import frozen

_APART = 256  # bytes: where partial results begin
_SMALL, _SEVERAL = 1 << 22, 8  # bytes of partial results up to which there is room for so many


@frozen
class Partials:
    """Room for the partial results of so many kernels that follow each other, so that they need not
    wait. Before each lie the counts of blocks that have come, zero before a kernel and after it."""

    each: int  # bytes of one
    count: int

    @classmethod
    def of(cls, kernels: Iterable[BoundKernel]) -> Partials:
        """What some kernels need; of small results several."""
        most = max((found.partial for found in kernels), default=0)
        if not most:
            return cls(0, 0)
        return cls(ARRIVED + -(-most // _APART) * _APART, 1 if most > _SMALL else _SEVERAL)

    @property
    def nbytes(self) -> int:
        return self.each * self.count

    def counts(self, base: int) -> list[int]:
        """Where the counts of each begin."""
        return [base + n * self.each for n in range(self.count)]

    def places(self, base: int) -> list[int]:
        """Where each begins; some place even where there is none."""
        return [at + ARRIVED for at in self.counts(base)] or [base]
