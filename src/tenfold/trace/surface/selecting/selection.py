"""Selection: the elements that a traced mask chooses, of which only a running program knows the
number; and the values that are assigned to them."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from math import prod
from typing import Any, NoReturn, TypeVar

import numpy as np

from tenfold.errors import ConcreteError
from tenfold.trace.array import Array
from tenfold.trace.operand import scope_of, value_of
from tenfold.trace.operators import OPERANDS
from tenfold.trace.source import Raw, describe, here
from tenfold.trace.surface.emit import cast, emit, fail, traced
from tenfold.trace.surface.shaping.shapes import fit
from tenfold.trace.surface.ufuncs.composed import number, same
from tenfold.trace.tables import FUNCTIONS, REASONS, UFUNCS, keywords, missing, spelled
from tenfold.types import I64, KIND, DType, Shape, TensorType

F = TypeVar("F", bound=Callable[..., Any])

# What NumPy's functions, ufuncs with a signature and methods of ufuncs do on selections.
SELECTED: dict[Any, Callable[..., Any]] = {}


@cache
def complete() -> None:
    """Import what selections do, which is wanted when there is one."""
    for module in ("functions", "packing", "places", "reducing"):
        import_module(f"tenfold.trace.surface.selecting.{module}")


def on_selections(*functions: Any) -> Callable[[F], F]:
    """File an implementation as what these functions do where a selection is among the operands."""

    def file(implementation: F) -> F:
        for function in functions:
            SELECTED[function] = implementation
        return implementation

    return file


@cache
def _signature(function: Any) -> inspect.Signature:
    return inspect.signature(FUNCTIONS[function])


def arguments(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name."""
    return dict(_signature(function).bind(*args, **kwargs).arguments)


def call(function: Any, given: dict[str, Any]) -> Any:
    """What a function gives on traced arrays for arguments by name."""
    bound = _signature(function).bind_partial()
    bound.arguments.update(given)
    return FUNCTIONS[function](*bound.args, **bound.kwargs)


class Selection(Array):
    """The elements of an array that a mask chooses, in their order.

    The dense array has an element at every place of the mask; those that the mask does not choose
    may be anything. The mask's axes lie side by side in it, from the axis `_at` on, and are one
    axis of the selection.
    """

    __slots__ = ("_at", "_dense", "_made", "_mask", "_place", "_remedy")

    def __init__(self, dense: Array, mask: Array, at: int, made: Raw | None = None) -> None:
        super().__init__(dense._scope, None)
        del self._value  # whoever asks for it is told that there is none
        self._dense = dense
        self._mask = mask
        self._at = at
        self._made = made or here()
        self._remedy = "tn.compress(mask, x, size=n)"  # what has a number that is known
        self._place: int | None = None  # the axis of the mask whose places these are, of nonzero

    # -- type

    @property
    def dtype(self) -> DType:
        return self._dense.dtype

    @property
    def ndim(self) -> int:
        return self._dense.ndim - self._mask.ndim + 1

    @property
    def size(self) -> Any:
        """How many elements there are, which is traced."""
        return self.length * prod(self.extents)

    @property
    def length(self) -> Any:
        """The extent of the axis of unknown length: a traced number, as Python's are."""
        count = emit("reduce_sum", cast(self._mask, I64), axes=tuple(range(self._mask.ndim)))
        return Array(count._scope, count._value, weak=int)

    @property
    def extents(self) -> Shape:
        """The extents of the other axes."""
        return self._dense.shape[: self._at] + self._dense.shape[self._at + self._mask.ndim :]

    @property
    def behind(self) -> int:
        """How many axes stand behind the one of unknown length."""
        return self.ndim - self._at - 1

    @property
    def chosen(self) -> Array:
        """The mask, so that it broadcasts over the dense array."""
        return emit("reshape", self._mask, shape=(*self._mask.shape, *(1,) * self.behind))

    def filled(self, value: Any) -> Array:
        """The dense array with one value wherever nothing is chosen."""
        return emit("select", self.chosen, self._dense, number(value, self.dtype))

    def like(self, dense: Array, at: int | None = None) -> Selection:
        """Another selection by the same mask; it stands as far from the last axis, or at `at`."""
        if at is None:
            at = dense.ndim - self.behind - self._mask.ndim
        made = Selection(dense, self._mask, at, self._made)
        made._remedy = self._remedy
        return made

    # -- what needs the number

    def needs_size(self, what: str = "x[mask] as an array") -> NoReturn:
        """Raise the error of what can't be done without the number of elements."""
        made = describe(self._made)
        raise ConcreteError(
            f"{what} needs to know how many elements a traced mask chooses, which only a running "
            "program does" + (f"\n  chosen at {made}" if made else ""),
            where=describe(here()),
            fix=f"say how many at most: {self._remedy}; or keep the shape: "
            "np.where(mask, x, other); sums, means and the like of x[mask] do without, and "
            "x[mask].size is the number",
        )

    def _concrete(self, what: str, fix: str) -> NoReturn:
        self.needs_size(what)

    @property
    def type(self) -> TensorType:
        self.needs_size()

    @property  # type: ignore[misc]  # it has none to set
    def shape(self) -> Shape:
        self.needs_size(".shape")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        self.needs_size()

    def __len__(self) -> int:
        self.needs_size("len(), a Python integer,")

    def __iter__(self) -> NoReturn:
        self.needs_size("iteration")

    def __repr__(self) -> str:
        dims = list(map(str, self.extents))
        dims.insert(self._at, "?")
        return f"<selection {TensorType(self.dtype, ())}[{','.join(dims)}] in {self._scope.label}>"

    def __getattr__(self, name: str) -> Any:
        if name == "_value":
            self.needs_size()
        raise AttributeError(f"a selection has no attribute {name!r}")

    # -- NumPy's protocols

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: Any
    ) -> Any:
        found = SELECTED.get(ufunc if method == "__call__" else method)
        if found is not None:
            call = found if method == "__call__" else lambda *a, **k: found(ufunc, *a, **k)
            return call(*inputs, **kwargs) if out is None else call(*inputs, out=out, **kwargs)
        if method != "__call__" or ufunc.signature is not None:
            self.needs_size(spelled(ufunc) + ("" if method == "__call__" else f".{method}"))
        outs = out if isinstance(out, tuple) else () if out is None else (out,)
        if not all(isinstance(target, Selection) for target in outs):
            self.needs_size(f"{spelled(ufunc)} with out=")

        def apply(where: Any, *dense: Any) -> Any:
            given, into = dense[: len(inputs)], dense[len(inputs) :] or None
            array = next(d for d in dense if isinstance(d, Array))
            return array.__array_ufunc__(ufunc, "__call__", *given, out=into, where=where, **kwargs)

        if ufunc is np.power:
            inputs = (inputs[0], _exponent(inputs[1]))
        made = elementwise(apply, kwargs.pop("where", True), *inputs, *outs)
        return outs[0] if len(outs) == 1 else outs or made

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        found = SELECTED.get(func)
        if found is None:
            if func not in FUNCTIONS or func in REASONS:
                return super().__array_function__(func, types, args, kwargs)
            self.needs_size(f"np.{func.__name__}")
        strange = kwargs.keys() - keywords(FUNCTIONS[func])
        if strange:
            raise missing(f"np.{func.__name__} of x[mask] with {', '.join(sorted(strange))}")
        return found(*args, **kwargs)

    # -- operators

    def _operate(self, ufunc: np.ufunc, left: Any, right: Any) -> Any:
        other = right if left is self else left
        if not isinstance(other, (Array, *OPERANDS)):
            if ufunc in (np.equal, np.not_equal):
                return elementwise(lambda x: x._operate(ufunc, x, other), self)
            return NotImplemented
        return self.__array_ufunc__(ufunc, "__call__", left, right)

    def _unary(self, ufunc: np.ufunc) -> Any:
        return elementwise(UFUNCS[ufunc], self)

    def __pow__(self, other: Any) -> Any:
        return elementwise(operator.pow, self, _exponent(other))

    def _in_place(self, ufunc: np.ufunc, other: Any) -> Any:
        _, (mine, theirs) = aligned((self, _exponent(other) if ufunc is np.power else other))
        self._dense = mine._in_place(ufunc, theirs)
        self._place = None
        return self

    def __getitem__(self, key: Any) -> Any:
        return SELECTED["getitem"](self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._place = None
        SELECTED["setitem"](self, key, value)


# Selections beside each other and beside arrays.


def same_mask(first: Array, second: Array) -> bool:
    """Whether two masks are one value; equal computations of one scope are."""
    scope = scope_of()
    return first.shape == second.shape and value_of(first, scope) == value_of(second, scope)


def aligned(operands: Sequence[Any]) -> tuple[Selection, list[Any]]:
    """One of the selections among these operands, and all of them as they broadcast when dense."""
    first = next(x for x in operands if isinstance(x, Selection))
    return first, [_beside(first, x) for x in operands]


def _beside(first: Selection, x: Any) -> Any:
    """An operand so that it broadcasts with the dense array of a selection."""
    if isinstance(x, Selection):
        if not same_mask(first._mask, x._mask):
            fail(
                ConcreteError,
                "selections by different masks meet: whether they have as many elements, only a "
                f"running program knows\n  chosen at {describe(first._made)}\n"
                f"  chosen at {describe(x._made)}",
                "choose both by one mask: x[m] + y[m]",
            )
        if first.behind != x.behind:
            first.needs_size("broadcasting one axis of unknown length against another axis")
        return x._dense
    if not isinstance(x, (Array, np.ndarray, list, tuple)):
        return x
    array = x if isinstance(x, (Array, np.ndarray)) else traced(x)
    if array.ndim <= first.behind:
        return array
    spot = array.ndim - first.behind - 1
    if array.shape[spot] != 1:
        first.needs_size(f"x[mask] beside an array of shape {array.shape}")
    width = first._mask.ndim
    shape = (*array.shape[:spot], *(1,) * width, *array.shape[spot + 1 :])
    return array if width == 1 else emit("reshape", traced(array), shape=shape)


def elementwise(function: Callable[..., Any], *operands: Any) -> Any:
    """What a function that works element by element gives on selections and what is beside them."""
    first, dense = aligned(operands)
    made = function(*dense)
    if isinstance(made, tuple):
        return tuple(first.like(part) for part in made)
    return first.like(made)


def _exponent(x: Any) -> Any:
    """An exponent: where it is not chosen it must be no negative integer, which raises."""
    whole = isinstance(x, Selection) and KIND[x.dtype] == "i"
    return x.like(x.filled(0)) if whole else x


# Assigning.


def refused(holds: Array, reason: str) -> Array:
    """A bool that does not hold, or an error of the running program."""
    made = describe(here())
    return emit("refuse", holds, reason=f"{reason}\n  at {made}" if made else reason)


def laid(value: Any, mask: Array, at: int, shape: Shape, dtype: DType) -> tuple[Array, Any]:
    """A value as it is assigned to a selection with a dense array of this shape; and a bool that is
    in the running program an error, where there is a number of elements to be checked."""
    behind = len(shape) - mask.ndim - at
    if isinstance(value, Selection):
        target = Selection(value._dense, mask, len(value._dense.shape) - mask.ndim - behind)
        dense = _beside(target, value)
        return fit(cast(dense, dtype), shape), None
    made = traced(value, dtype)
    rank = len(shape) - mask.ndim + 1
    extra = made.ndim - rank
    if extra > 0 and all(n == 1 for n in made.shape[:extra]):
        made = emit("reshape", made, shape=made.shape[extra:])
    spot = made.ndim - behind - 1
    if spot < 0:
        return fit(made, shape), None
    extent, wrong = made.shape[spot], None
    if extent == 1:
        lead, tail = made.shape[:spot], made.shape[spot + 1 :]
        made = emit("reshape", made, shape=(*lead, *(1,) * mask.ndim, *tail))
    else:  # one after the other: so many have to be chosen
        flat = emit("reshape", cast(mask, I64), shape=(mask.size,))
        count = emit("reduce_sum", flat, axes=(0,))
        wrong = refused(
            emit("ne", count, number(extent, I64)),
            f"{extent} values are assigned to the elements that a mask chooses, and it chooses "
            "another number",
        )
        if not extent:
            return emit("broadcast", number(0, dtype), shape=shape), wrong
        turn = emit("sub", emit("cumsum", flat, axis=0, reverse=False), number(1, I64))
        turn = emit("reshape", turn, shape=mask.shape)
        made = emit("gather", made, turn, axes=(spot,), at=spot, mode="clip")
    return fit(made, shape), wrong


def assigned(part: Array, mask: Array, at: int, value: Any) -> Array:
    """An array with a value where a mask over its axes from `at` on holds."""
    made, wrong = laid(value, mask, at, part.shape, part.dtype)
    behind = part.ndim - mask.ndim - at
    chosen = emit("reshape", mask, shape=(*mask.shape, *(1,) * behind))
    done = emit("select", chosen, made, part)
    return done if wrong is None else emit("select", wrong, part, done)


def with_axis(x: Array, mask: Array, at: int) -> tuple[Array, Array]:
    """An array and a mask; a single bool makes an axis, of one element or none."""
    if mask.ndim:
        return x, mask
    shape = (*x.shape[:at], 1, *x.shape[at:])
    return emit("reshape", x, shape=shape), emit("reshape", mask, shape=(1,))


def choose(x: Array, mask: Array, at: int) -> Selection:
    """The elements that a mask over the axes from `at` on chooses, copied."""
    complete()
    x, mask = with_axis(x, mask, at)
    return Selection(same(x), same(mask), at)
