"""Array: what a traced function sees instead of a NumPy array, and lazy arrays outside any.

It is a mutable handle on a value: `x += v` and `x[i] = v` move the handle to a new value, so
every alias sees the update, as in NumPy. A view remembers its base and the base's version:
reading a view whose base has changed since, or writing through a view, raises.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from operator import index
from typing import Any, NoReturn

import numpy as np

from tenfold.errors import ConcreteError, MutationError, TypeMismatch, Unsupported, ValueProblem
from tenfold.frozen import frozen
from tenfold.trace.lazy.dlpack import export
from tenfold.trace.lazy.lazy import LAZY, Host, leaf, own
from tenfold.trace.lazy.realise import realised
from tenfold.trace.scope import Scope, current, leak
from tenfold.trace.source import Raw, describe, here
from tenfold.types import DType, Shape, TensorType

# What NumPy's functions and ufuncs do on traced arrays; `tenfold.trace.surface` fills these.
FUNCTIONS: dict[Any, Callable[..., Any]] = {}
UFUNCS: dict[np.ufunc, Callable[..., Any]] = {}
METHODS: dict[str, Callable[..., Any]] = {}  # reduce, accumulate, outer, at of any ufunc


@frozen
class Reason:
    """Why a NumPy function is not traced, and what to write instead."""

    why: str
    instead: str


REASONS: dict[Any, Reason] = {}
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")  # of the array API standard


def _forward(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    return lambda self, other: self._operate(ufunc, self, other)


def _operators(ufunc: np.ufunc) -> tuple[Callable[[Any, Any], Any], ...]:
    """The operator of a ufunc: x + y, y + x, x += y."""
    return (
        _forward(ufunc),
        lambda self, other: self._operate(ufunc, other, self),
        lambda self, other: self._in_place(ufunc, other),
    )


class Array:
    """A traced array, or a lazy one: its scope is LAZY, and it has a value when one is needed."""

    __slots__ = (
        "__weakref__",
        "_argument",
        "_base",
        "_owed",
        "_pending",
        "_readonly",
        "_scope",
        "_seen",
        "_value",
        "_version",
        "_weak",
    )
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        scope: Scope,
        value: Any,
        *,
        weak: type | None = None,
        base: Array | None = None,
        argument: str | None = None,
    ) -> None:
        self._scope = scope
        self._value = value  # its number in the scope's builder; of a lazy array the Value
        self._weak = weak  # int, float or complex: a Python number, whose dtype gives way
        self._version = 0  # counts updates
        root = base if base is None or base._base is None else base._base
        self._base: Array | None = root  # the array this is a view of
        self._seen = 0 if root is None else root._version
        # a view in which an element stands at several places, or that NumPy lets nobody write to
        self._readonly: bool = base is not None and base._readonly
        self._argument = argument  # the name of a parameter that must not be updated
        self._pending: Array | None = None  # for `x[i] += v`: x, to which this must be written
        self._owed: tuple[Raw | None, ...] = ()  # lines of such updates not written to it yet

    # -- type

    @property
    def type(self) -> TensorType:
        found: TensorType = self._scope.builder.types[self._value]
        return found

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return self.type.rank

    @property
    def size(self) -> int:
        return self.type.size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.type.nbytes

    def __len__(self) -> int:
        if not self.shape:
            raise TypeMismatch("len() of a 0-d array", where=describe(here()), fix="use .size")
        return self.shape[0]

    def __repr__(self) -> str:
        if self._scope is not LAZY:
            return f"<traced {self.type} in {self._scope.label}>"
        text = np.array2string(self._host(), separator=", ", prefix="Array(")
        return f"Array({text}, dtype={self.dtype})"

    # -- reading and updating

    def _check_readable(self) -> None:
        base = self._base
        if base is not None and base._version != self._seen:
            raise MutationError(
                "a view is read after its base was updated in place",
                where=describe(here()),
                fix="take the view again after the update, or copy it before: x[1:].copy()",
            )
        owed = self._owed or (base is not None and base._owed)
        if owed or self._pending is not None:
            raise unwritten(owed[0] if owed else here())

    def _settle(self) -> None:
        """Let go of a base that nobody else can see: `y = (x + 1).reshape(2, 2); y += 1`."""
        if self._readonly:
            raise MutationError(
                "an array is written through a view that is read-only or holds an element in "
                "several places: a broadcast, a diagonal, windows, a real array's imaginary part",
                where=describe(here()),
                fix="copy it first: y = np.broadcast_to(x, shape).copy()",
            )
        if self._base is not None and _holders(self) == _SOLE:
            self._check_readable()
            self._base = None

    def _update(self, value: Any) -> None:
        """Move this handle to a new value."""
        scope = current() or LAZY
        if self._scope is LAZY and scope is not LAZY:
            raise MutationError(
                f"an array from outside is updated in place inside {scope.label}",
                where=describe(here()),
                fix="copy it first: x = x.copy(); or pass it in and return the new value",
            )
        if not scope.holds(self._scope):
            raise leak(self, None if scope is LAZY else scope)
        self._settle()
        if self._base is not None:
            raise _write_through_view().at(describe(here()))
        if self._argument is not None:
            whole = self._argument.split("[")[0].split(".")[0]  # donated with all that is in it
            raise MutationError(
                f"the argument {self._argument!r} is updated in place",
                where=describe(here()),
                fix=f"copy it first: {self._argument} = {self._argument}.copy(); or let the "
                f"function have it: tn.jit(f, donate={whole!r})",
            )
        if scope is not self._scope:
            raise MutationError(
                f"an array of {self._scope.label} is updated in place inside {scope.label}",
                where=describe(here()),
                fix="return the new value from the inner function, or carry it as loop state",
            )
        self._value = value
        self._version += 1

    def _in_place(self, ufunc: np.ufunc, other: Any) -> Any:
        if self._weak or (self._argument is None and self._base is None and not self.shape):
            # a Python number or a NumPy scalar is not updated but bound anew
            return self._operate(ufunc, self, other)
        self._settle()
        result = UFUNCS[ufunc](self, other)
        if result.shape != self.shape:
            raise TypeMismatch(
                f"an in-place {ufunc.__name__} would change {self.type} to {result.type}",
                where=describe(here()),
                fix="write x = x + y instead of x += y",
            )
        if not FUNCTIONS["same_kind"](result.dtype, self.dtype):
            raise TypeMismatch(
                f"an in-place {ufunc.__name__} can't turn {result.dtype} into {self.dtype}",
                where=describe(here()),
                fix="write x = x + y, or cast the other operand with .astype",
            )
        result = FUNCTIONS[np.astype](result, self.dtype)
        if self._base is None:
            self._update(result._value)
            return self
        self._check_readable()
        self._base._owed += (here(),)
        result._pending = self._base
        if self._scope is not LAZY:
            self._scope.trace.pending[id(result)] = result, here()
        return result

    def __getitem__(self, key: Any) -> Any:
        return FUNCTIONS["getitem"](self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, Array) and value._pending is self:
            value._pending = None
            self._owed = self._owed[:-1]
            self._scope.trace.pending.pop(id(value), None)
        FUNCTIONS["setitem"](self, key, value)

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeMismatch("iteration over a 0-d array", where=describe(here()))
        return (self[i] for i in range(self.shape[0]))

    # -- values, which a traced array has only in a running program

    def _host(self, what: str = "this", fix: str = "return the array first") -> Host:
        """The array of a lazy array, which can't be written to; a traced one has none."""
        if self._scope is not LAZY:
            self._concrete(what, fix)
        self._check_readable()
        return realised(self._value)

    def _concrete(self, what: str, fix: str) -> NoReturn:
        raise ConcreteError(
            f"{what} needs the value of a traced {self.type}, which only a running program has",
            where=describe(here()),
            fix=fix,
        )

    def __bool__(self) -> bool:
        host = self._host(
            "a Python branch (if, while, and, or, not)",
            "write tn.cond(p, f, g, *args) or np.where(p, a, b); for a loop tn.while_loop; "
            "for and, or, not the operators &, |, ~",
        )
        return bool(host)

    def __int__(self) -> int:
        return int(self._host("int()", "keep it an array: x.astype(int)"))

    def __float__(self) -> float:
        return float(self._host("float()", "keep it an array: x.astype(float)"))

    def __complex__(self) -> complex:
        return complex(self._host("complex()", "keep it an array: x.astype(complex)"))

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
        host = self._host(
            "a conversion to a NumPy array",
            "to index a NumPy array w by it write tn.asarray(w)[i]; to join traced arrays write "
            "np.stack([a, b]); or run NumPy's function on the host with tn.call_host",
        )
        return np.array(host, dtype, copy=copy)

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
        return export(host, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    @property
    def device(self) -> str:
        """Where the array is."""
        return "cpu"

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
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

    def __copy__(self) -> Array:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Array:
        return self.copy()

    def __reduce__(self) -> Any:
        if self._scope is LAZY:
            return lazy, (self._host(),)
        raise TypeMismatch(
            "a traced array can't be pickled", where=describe(here()), fix="return it first"
        )

    def copy(self, order: str = "C") -> Array:
        copied: Array = FUNCTIONS[np.copy](self)
        return copied

    # -- NumPy's protocols

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: Any
    ) -> Any:
        found = UFUNCS.get(ufunc)
        if found is None or (method != "__call__" and method not in METHODS):
            if self._scope is LAZY and current() is None:
                return on_host(getattr(ufunc, method), inputs, {**kwargs, "out": out})
            raise missing(f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"))
        if method != "__call__":
            return METHODS[method](ufunc, *inputs, out=out, **kwargs)
        where = kwargs.pop("where", True)
        dtype = kwargs.pop("dtype", None)
        casting = kwargs.pop("casting", "same_kind")
        if casting not in ("same_kind", "unsafe"):
            raise missing(f"np.{ufunc.__name__} with casting={casting!r}")
        for name in ("order", "subok"):  # traced arrays have no memory order and no subclasses
            kwargs.pop(name, None)
        if kwargs:
            raise missing(f"np.{ufunc.__name__} with {', '.join(kwargs)}")
        if dtype is not None and ufunc not in _COMPARISONS:
            inputs = tuple(FUNCTIONS["as_dtype"](x, dtype, casting) for x in inputs)
        result = found(*inputs)
        if out is None and where is True:
            return result
        return FUNCTIONS["into"](result, out, where, casting)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        found = FUNCTIONS.get(func)
        if found is None:
            if self._scope is LAZY and current() is None:
                return on_host(func, args, kwargs)
            module = func.__module__.replace("numpy", "np", 1)
            raise missing(f"{module}.{func.__name__}", REASONS.get(func))
        if kwargs:
            strange = kwargs.keys() - _keywords(found)
            if strange:
                raise missing(f"np.{func.__name__} with {', '.join(sorted(strange))}")
        return found(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"a traced array has no attribute {name!r}")
        if self._scope is LAZY and current() is None:
            found = getattr(self._host(), name)
            return partial(_called, name, self) if callable(found) else given_back(found)
        raise MissingMethod(
            f"x.{name} is not among the methods of NumPy arrays that Tenfold traces",
            where=describe(here()),
            fix=_nearest(name, "x.", dir(Array)),
        )

    # -- operators

    def _operate(self, ufunc: np.ufunc, left: Any, right: Any) -> Any:
        other = right if left is self else left
        if type(other) is Array:
            if not (self._weak or other._weak):
                return UFUNCS[ufunc](left, right)
        elif not isinstance(other, _OPERANDS):
            nothing = other is None or isinstance(other, (str, bytes))  # that an element equals
            if nothing and ufunc in (np.equal, np.not_equal):
                return FUNCTIONS[np.full_like](self, ufunc is np.not_equal, dtype=bool)
            return NotImplemented
        if self._weak:
            weak = _weak_result(ufunc, left, right)
            if weak is not None:
                result = UFUNCS[ufunc](left, right)
                for part in result if isinstance(result, tuple) else (result,):
                    part._weak = weak
                return result
        return UFUNCS[ufunc](left, right)

    __add__, __radd__, __iadd__ = _operators(np.add)
    __sub__, __rsub__, __isub__ = _operators(np.subtract)
    __mul__, __rmul__, __imul__ = _operators(np.multiply)
    __truediv__, __rtruediv__, __itruediv__ = _operators(np.true_divide)
    __floordiv__, __rfloordiv__, __ifloordiv__ = _operators(np.floor_divide)
    __mod__, __rmod__, __imod__ = _operators(np.remainder)
    __pow__, __rpow__, __ipow__ = _operators(np.power)
    __matmul__, __rmatmul__, __imatmul__ = _operators(np.matmul)
    __and__, __rand__, __iand__ = _operators(np.bitwise_and)
    __or__, __ror__, __ior__ = _operators(np.bitwise_or)
    __xor__, __rxor__, __ixor__ = _operators(np.bitwise_xor)
    __lshift__, __rlshift__, __ilshift__ = _operators(np.left_shift)
    __rshift__, __rrshift__, __irshift__ = _operators(np.right_shift)
    __divmod__, __rdivmod__ = _operators(np.divmod)[:2]
    __eq__ = _forward(np.equal)
    __ne__ = _forward(np.not_equal)
    __lt__ = _forward(np.less)
    __le__ = _forward(np.less_equal)
    __gt__ = _forward(np.greater)
    __ge__ = _forward(np.greater_equal)

    def __neg__(self) -> Any:
        return self._unary(np.negative)

    def __pos__(self) -> Any:
        return self._unary(np.positive)

    def __abs__(self) -> Any:
        return self._unary(np.absolute)

    def __invert__(self) -> Any:
        return self._unary(np.invert)

    def _unary(self, ufunc: np.ufunc) -> Any:
        result = UFUNCS[ufunc](self)
        if self._weak:
            real = self._weak is complex and ufunc is np.absolute
            result._weak = float if real else self._weak
        return result


# -- between lazy arrays and the host


def lazy(array: Any) -> Array:
    """A lazy array of what can be made an array; later changes of that are not seen."""
    return Array(LAZY, leaf(own(array)))


def fresh(array: Any) -> Array:
    """A lazy array of an array that was made for it: nobody else holds it."""
    return Array(LAZY, leaf(np.asarray(array)))


def given_back(result: Any) -> Any:
    """What a host function gave, its arrays and NumPy scalars as lazy arrays."""
    if isinstance(result, (np.ndarray, np.generic)):
        return lazy(result)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*map(given_back, result))
    if isinstance(result, (list, tuple)):
        return type(result)(map(given_back, result))
    return result


def taken(item: Any) -> Any:
    """An argument of a host function, its lazy arrays as NumPy's."""
    if isinstance(item, Array):
        return item._host()
    if isinstance(item, (list, tuple)) and not hasattr(item, "_fields"):
        return type(item)(map(taken, item))
    return item


def on_host(function: Any, args: Any, kwargs: Any) -> Any:
    """Call a function of NumPy's on the values of lazy arrays: for what has no op, or a shape
    that depends on values."""
    given = {k: taken(v) for k, v in kwargs.items()}
    result = function(*taken(args), **given)
    if isinstance(result, np.ndarray):  # some give a view of what they are given, or that itself
        for array in (*args, *kwargs.values()):
            if isinstance(array, Array) and np.may_share_memory(result, array._host()):
                whole = result.shape == array.shape and result.dtype == array.dtype
                return array if whole else Array(LAZY, leaf(own(result)), base=array)
    return given_back(result)


def _called(name: str, *args: Any, **kwargs: Any) -> Any:
    return on_host(getattr(np.ndarray, name), args, kwargs)


def _holders(view: Array) -> int:
    """How many references there are to the base of a view."""
    return sys.getrefcount(view._base)


def _sole() -> int:
    """What `_holders` gives when the view's is the only reference."""
    view = Array.__new__(Array)
    view._base = Array.__new__(Array)
    return _holders(view)


_SOLE = _sole()
_NUMBERS = (int, float, complex)
_OPERANDS = (float, int, complex, np.ndarray, np.generic, list, tuple)


def _weak_result(ufunc: np.ufunc, left: Any, right: Any) -> type | None:
    """The Python type of an operation on Python numbers alone, else None."""
    kinds = []
    for operand in (left, right):
        kind = operand._weak if isinstance(operand, Array) else type(operand)
        if kind not in _NUMBERS:
            return None
        kinds.append(kind)
    if ufunc in _COMPARISONS:
        return None
    widest = max(kinds, key=_NUMBERS.index)
    return float if ufunc is np.true_divide and widest is int else widest


_COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


def unwritten(raw: Raw | None) -> MutationError:
    """The error of a view that was updated, and the update not written to its array.

    `x[1:] += v` updates a view and then writes it to x; `y = x[1:]; y += v` does not write it.
    """
    return _write_through_view().at(describe(raw))


def _write_through_view() -> MutationError:
    return MutationError(
        "an array is written through a view of it",
        fix="assign to the array itself (x[1:][0] = v is x[1] = v; for y = x[1:]; y += v write "
        "x[1:] += v), or copy the view first: y = x[1:].copy()",
    )


class MissingMethod(Unsupported, AttributeError):
    """A method or attribute of NumPy arrays that traced arrays lack."""


@cache
def _keywords(implementation: Callable[..., Any]) -> frozenset[str]:
    """The names an implementation takes arguments by."""
    parameters = inspect.signature(implementation).parameters
    return frozenset(parameters)


def _nearest(name: str, prefix: str, names: Iterable[str]) -> str:
    from difflib import get_close_matches  # for this error alone

    near = get_close_matches(name, names, 1, 0.5)
    hint = f"the nearest it has is {prefix}{near[0]}; " if near else ""
    return f"{hint}tn.call_host runs it on the host"


def missing(name: str, reason: Reason | None = None) -> Unsupported:
    """The error of a NumPy function that Tenfold lacks: why, or the nearest one it has."""
    if reason is not None:
        return Unsupported(
            f"{name} is not among the NumPy functions that Tenfold traces: {reason.why}",
            where=describe(here()),
            fix=reason.instead,
        )
    function, _, keyword = name.partition(" with ")
    last = function.rpartition(".")[2]
    names = [getattr(f, "__name__", "") for f in (*FUNCTIONS, *UFUNCS) if callable(f)]
    if keyword:
        return Unsupported(
            f"{function} is traced, but not with {keyword}",
            where=describe(here()),
            fix="leave it out, or run the function on the host with tn.call_host",
        )
    return Unsupported(
        f"{name} is not among the NumPy functions that Tenfold traces",
        where=describe(here()),
        fix=_nearest(last, "np.", names),
    )
