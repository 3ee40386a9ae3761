"""Conversions: how the value of an array reaches Python, NumPy and other libraries.

A lazy array is run for it. A traced array has a value only in a running program: its error says
what to write instead.
"""

from __future__ import annotations

import sys
from operator import index
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from tenfold.errors import ConcreteError, TypeMismatch, ValueProblem
from tenfold.frames import hide
from tenfold.trace.lazy.lazy import LAZY, Host
from tenfold.trace.lazy.realise import at_hand, realised
from tenfold.trace.source import describe, here
from tenfold.trace.tables import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.trace.scope import Scope
    from tenfold.types import Shape, TensorType

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")  # of the array API standard
_COPY = "to write it into an array w that is not the program's, copy that first: w = np.array(w)"
_INTEGER = "keep it an array: x.astype(int); " + _COPY
_FLOAT = "keep it an array: x.astype(float); " + _COPY
_COMPLEX = "keep it an array: x.astype(complex); " + _COPY
_ARRAY = (
    f"{_COPY}; to index w by it write tn.asarray(w)[i]; or run NumPy's function on the host with "
    "tn.call_host"
)


class Conversions:
    """Python's, NumPy's and DLPack's protocols for values."""

    __slots__ = ()

    if TYPE_CHECKING:  # what an Array has
        _scope: Scope
        _value: Any
        _view: Any
        _follow: Callable[[], None]

        @property
        def type(self) -> TensorType: ...

        @property
        def shape(self) -> Shape: ...

    def _host(self, what: str = "this", fix: str = "return the array first") -> Host:
        """The array of a lazy array, which can't be written to; a traced one has none."""
        if self._scope.traced:
            self._concrete(what, fix)
        if self._view is not None:
            self._follow()
        return realised(self._value)

    def _concrete(self, what: str, fix: str) -> NoReturn:
        from tenfold.trace.draws import drawn_here  # for errors alone

        draw = drawn_here()
        if draw is not None:
            what, fix = draw.text, draw.fix
        raise ConcreteError(
            f"{what} needs the value of a traced {self.type}, which only a running program has",
            where=describe(here()),
            fix=fix,
        )

    def __bool__(self) -> bool:
        host = self._host(
            "a Python branch (if, while, and, or, not)",
            "write tn.cond(p, f, g, *args) or np.where(p, a, b); for a loop tn.while_loop; "
            'for and, or, not the operators &, |, ~; or tn.jit(f, control="convert")',
        )
        return bool(host)

    def __int__(self) -> int:
        return int(self._host("int()", _INTEGER))

    def __float__(self) -> float:
        try:  # an entry, written out
            host = at_hand(self._value) if self._scope is LAZY and self._view is None else None
            return float(self._host("float()", _FLOAT) if host is None else host)
        except BaseException as error:
            hide(error)
            raise

    def __complex__(self) -> complex:
        return complex(self._host("complex()", _COMPLEX))

    def __index__(self) -> int:
        host = self._host(
            "an index, size or range()",
            "index traced arrays with it (x[i], tn.dynamic_slice), loop with tn.fori_loop, or make "
            "the argument static",
        )
        return index(host)

    def __round__(self, digits: int | None = None) -> Any:
        rounded = FUNCTIONS[np.round](self, digits or 0)
        return rounded if digits is not None else FUNCTIONS[np.astype](rounded, int)

    def item(self, *args: Any) -> Any:
        return self._host(".item()", "return the array and call .item() outside").item(*args)

    def tolist(self) -> Any:
        return self._host(".tolist()", "return the array and call .tolist() outside").tolist()

    def tobytes(self, *args: Any) -> Any:
        host = self._host(".tobytes()", "return the array and call .tobytes() outside")
        return host.tobytes(*args)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Host:
        try:  # an entry, written out
            host = at_hand(self._value) if self._view is None and self._scope is LAZY else None
            if host is None:
                host = self._host("a conversion to a NumPy array", _ARRAY)
            return host if dtype is None and not copy else np.array(host, dtype, copy=copy)
        except BaseException as error:
            hide(error)
            raise

    def __buffer__(self, flags: int) -> memoryview:
        host: Any = self._host("a buffer", "return the array and take its buffer outside")
        return memoryview(host)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        host = self._host("DLPack", "return the array and hand it on outside")
        from tenfold.trace.lazy.dlpack import export

        return export(host, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    @property
    def device(self) -> str:
        """Where the array is."""
        return "cpu"

    def to_device(self, device: Any, /, *, stream: Any = None) -> Self:
        """The array on a device; there is one, the CPU."""
        if device != "cpu" or stream is not None:
            raise ValueProblem(
                f"there is no device {device!r}" if device != "cpu" else "the CPU has no streams",
                where=describe(here()),
                fix="use 'cpu', without a stream",
            )
        return self

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        namespace = sys.modules["tenfold"]
        if api_version not in (None, *VERSIONS):
            raise ValueProblem(
                f"the array API standard {api_version!r}",
                where=describe(here()),
                fix=f"this namespace follows {', '.join(VERSIONS)}",
            )
        return namespace

    def __format__(self, spec: str) -> str:
        if self._scope is LAZY:
            return format(self._host(), spec) if spec or not self.shape else repr(self)
        if spec:
            self._concrete("formatting", "print values with tn.print(x, label=…)")
        return repr(self)

    def __str__(self) -> str:
        return str(self._host()) if self._scope is LAZY else repr(self)

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Self:
        return self.copy()

    def __reduce__(self) -> Any:
        if self._scope is LAZY:
            from tenfold.trace.lazy.host import lazy

            return lazy, (self._host(),)
        raise TypeMismatch(
            "a traced array can't be pickled", where=describe(here()), fix="return it first"
        )

    def copy(self, order: str = "C") -> Self:
        copied: Self = FUNCTIONS[np.copy](self)
        return copied
