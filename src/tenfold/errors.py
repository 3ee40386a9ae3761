"""The errors of Tenfold: one class for each cause, each also a built-in exception.

A message says what, where and what to do, in that order. `where` is the user's line.
"""

from __future__ import annotations


class TenfoldError(Exception):
    """The root of every error that Tenfold raises on purpose."""


class TypeMismatch(TenfoldError, TypeError):
    """Operands, branches or arguments whose types do not fit together."""


class ShapeError(TenfoldError, ValueError):
    """Shapes that do not fit together, or an axis that is not there."""


class ValueProblem(TenfoldError, ValueError):
    """An argument of the right type whose value can't be used."""


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


class TraceError(TenfoldError, RuntimeError):
    """A function whose tracing would freeze something that should vary."""


class GraphError(TenfoldError, ValueError):
    """A graph that breaks a rule of graphs; the text around the fault is attached."""


class FileError(TenfoldError, ValueError):
    """A file that is not what it says: damaged, truncated, of another kind or version."""


class HookError(TenfoldError, KeyError):
    """A hook or host call whose callable is not bound."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""
