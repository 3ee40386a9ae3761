"""The errors of Tenfold: one class for each cause, each also a built-in exception.

A message says what, where and what to do, in that order. `where` is the user's line.
"""

from __future__ import annotations

from pickle import PicklingError
from typing import Self

from numpy.linalg import LinAlgError


class TenfoldError(Exception):
    """The root of every error that Tenfold raises on purpose.

    >>> error = TenfoldError("add: f32[3] and f32[4] do not broadcast", fix="reshape one of them")
    >>> print(error.at("model.py:12, in f"))
    add: f32[3] and f32[4] do not broadcast
      at model.py:12, in f
      reshape one of them
    """

    def __init__(self, message: str, *, fix: str | None = None, where: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.where = where
        self.array: str | None = None

    def of(self, array: str | None) -> Self:
        """This error with the array that it is about, unless it already names one."""
        if self.array is None:
            self.array = array
        return self

    def at(self, where: str | None) -> Self:
        """This error with the user's line, unless it already names one."""
        if self.where is None:
            self.where = where
        return self

    def __str__(self) -> str:
        lines = [self.message]
        if self.array:
            lines.append(f"  the array is {self.array}")
        if self.where:
            lines.append(f"  at {self.where}")
        if self.fix:
            lines.append(f"  {self.fix}")
        return "\n".join(lines)


class TypeMismatch(TenfoldError, TypeError):
    """Operands, branches or arguments whose types do not fit together."""


class ShapeError(TenfoldError, ValueError):
    """Shapes that do not fit together, or an axis that is not there."""


class AxisError(ShapeError, IndexError):
    """An axis that is not there; as NumPy's of this name it is an IndexError too."""


class ValueProblem(TenfoldError, ValueError):
    """An argument of the right type whose value can't be used."""


class MatrixProblem(TenfoldError, LinAlgError):
    """A matrix that can't be solved or factored: singular, not positive definite, not finite."""


class IndexProblem(TenfoldError, IndexError):
    """An index outside the axis it indexes."""


class OverflowProblem(TenfoldError, OverflowError):
    """A Python number that does not fit the dtype it has to take."""


class ScopeError(TenfoldError, RuntimeError):
    """A traced array used where its scope is not open: a leak."""


class ConcreteError(TenfoldError, TypeError):
    """A traced array asked for a value that only a running program has."""


class MutationError(TenfoldError, RuntimeError):
    """An in-place update that can't be carried out, or a view read after its base changed."""


class Unsupported(TenfoldError, NotImplementedError):
    """A NumPy function, keyword or dtype that Tenfold does not have."""


class UnknownDType(Unsupported, TypeError):
    """A dtype that Tenfold lacks, or that nobody has."""


class ControlError(TenfoldError, TypeError):
    """Python's control flow on traced values that has no form for a program that runs."""


class TraceError(TenfoldError, RuntimeError):
    """A function whose tracing would freeze something that should vary."""


class GraphError(TenfoldError, ValueError):
    """A graph that breaks a rule of graphs; the text around the fault is attached."""


class FileError(TenfoldError, ValueError):
    """A file that is not what it says: damaged, truncated, of another kind or version."""


class PlanError(FileError):
    """A plan file that can't be used: damaged, of another version, or one that does not hold."""


class PickleProblem(TenfoldError, PicklingError):
    """A function that no name leads to, and so can't be pickled."""


class HookError(TenfoldError, KeyError):
    """A hook or host call whose callable is not bound."""


class DeviceProblem(TenfoldError, RuntimeError):
    """A device that can't do what it is asked for: no driver, a fault in a kernel, a device that is
    lost."""


class DeviceMemoryProblem(DeviceProblem, MemoryError):
    """A device whose memory does not suffice."""


class TraceWarning(UserWarning):
    """Tracing freezes something that may vary, such as what a clock says."""


class CompileWarning(UserWarning):
    """Compiling in the background failed; the evaluator goes on answering."""


class RecompileWarning(UserWarning):
    """A function is compiled again and again."""


class ParityError(TenfoldError, ArithmeticError):
    """A compiled program that does not give what the reference gives."""


class ParityWarning(UserWarning):
    """A compiled program was refuted; the reference answers in its place."""
