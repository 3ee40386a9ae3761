"""What a routine over matrices is given, worked out from the types of a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tenfold.frozen import frozen
from tenfold.types import KIND, TensorType

if TYPE_CHECKING:
    from tenfold.backends.cpu.library.lapack.driver import Driver

_ALIGNED = 64  # bytes
BLOCK = 64  # LAPACK's blocks have no more columns: with so much room, it takes its best


@frozen
class MatrixRoutine:
    """A routine over matrices: how many inputs and results it has, the names of its words, and what
    writes the work on one matrix."""

    name: str
    inputs: int
    outputs: int
    params: tuple[str, ...]
    write: Callable[[Driver], None]


class MatrixForm:
    """The words of a routine: sizes, letters, offsets of areas in its scratch memory."""

    def __init__(self, name: str, type: TensorType, work: int, *matrices: int) -> None:
        """`work` are its multiplications; `matrices` are the elements of a matrix of each input
        and result."""
        self.name, self.work = name, work
        self.complex = KIND[type.dtype] == "c"
        self.part = type.dtype.itemsize // (2 if self.complex else 1)  # bytes of a real number
        self.steps = [count * type.dtype.itemsize for count in matrices]
        self.words: dict[str, int] = {}
        self.scratch = 0

    def sizes(self, **sizes: int) -> None:
        self.words.update(sizes)

    def letters(self, **letters: str) -> None:
        """Letters that LAPACK takes by reference: the first byte of a word."""
        self.words.update({name: ord(letter) for name, letter in letters.items()})

    def area(self, name: str, count: int) -> None:
        """Scratch memory for so many elements, of double precision."""
        self.reals(name, count * (2 if self.complex else 1))

    def reals(self, name: str, count: int) -> None:
        """Scratch memory for so many real numbers, or integers."""
        self.words[f"{name}.area"] = self.scratch
        self.scratch += -(-max(count, 1) * 8 // _ALIGNED) * _ALIGNED

    def workspace(self, count: int) -> None:
        """LAPACK's own memory, and its word for how much there is."""
        self.area("work", count)
        self.words["lwork"] = max(count, 1)


def matrix_of(types: Sequence[TensorType]) -> tuple[int, int, int]:
    """Rows, columns, and the lesser of these, of the first input."""
    m, n = types[0].shape[-2:]
    return m, n, min(m, n)
