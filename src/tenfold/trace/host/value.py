"""Host values: NumPy arrays that a trace knows, and what stands for one in a graph.

A large array of one number is not laid out before it is written to: its strides are zero. In a
graph such an array is a broadcast; one that counts along an axis is counted there; of an identity
places are compared. Other small ones are constants, and large ones captured inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from tenfold.trace.lazy.lazy import Host, ValueTypes
from tenfold.trace.scope import CONSTANT_SIZE, Scope
from tenfold.types import KIND, SHORT, TensorType

if TYPE_CHECKING:
    from tenfold.trace.host.array import HostArray
    from tenfold.trace.host.compute import Derivation

SMALL = 65536  # bytes: arrays of one number are laid out up to here, and looked for


class HostValue:
    """An array that is known while tracing. `node` is what tells a lazy value: it has none."""

    __slots__ = (
        "array",
        "base",
        "derivation",
        "graph_values",
        "home",
        "node",
        "shared",
        "snapshot",
        "type",
        "version",
        "views",
    )

    def __init__(
        self,
        array: Host,
        home: Scope,
        base: HostArray | None = None,
        derivation: Derivation | None = None,
    ) -> None:
        self.array = array
        self.type = TensorType(array.dtype, array.shape)
        self.home = home  # the scope it was made in: nowhere else may it be written to
        self.base = base  # the array that this is a view of, and how
        self.derivation = derivation
        self.node: None = None
        self.version = 0  # of a base: counts writes
        self.shared = False  # its memory is in other hands, which may write to it
        self.views: WeakValueDictionary[int, HostArray] | None = None  # of a base, oldest first
        self.graph_values: dict[Scope, tuple[int, int]] = {}  # with the version they stand for
        self.snapshot: tuple[int, Host] | None = None  # likewise

    @property
    def owner(self) -> HostValue:
        """The value whose memory this is."""
        return self if self.base is None else self.base._value

    def in_graph(self, scope: Scope) -> int:
        """The value that stands for this array in a scope, as it is now."""
        owner = self.owner
        found = self.graph_values.get(scope)
        if found is None or found[0] != owner.version or owner.shared:
            found = self.graph_values[scope] = owner.version, self._emit(scope)
        return found[1]

    def _emit(self, scope: Scope) -> int:
        array = self.array
        if is_uniform(array):
            made = scope.constant(np.array(array[(0,) * array.ndim]))
            shape = array.shape
            return scope.node("broadcast", (made,), {"shape": shape})[0] if shape else made
        if array.size > CONSTANT_SIZE:
            along = _counting(array)
            if along is not None:
                return _count(scope, array, along)
            if _is_identity(array):
                return _identity(scope, array)
        return scope.foreign(self._snapshot())

    def _snapshot(self) -> Host:
        """The array as it is now; later writes do not reach it."""
        owner = self.owner
        if self.snapshot is None or self.snapshot[0] != owner.version or owner.shared:
            self.snapshot = owner.version, np.array(self.array, order="C")
        return self.snapshot[1]


def compact(array: Host) -> Host:
    """A large array of one number without the memory of its elements."""
    if array.nbytes <= SMALL:
        return array
    return np.broadcast_to(np.array(array[(0,) * array.ndim]), array.shape)


def is_uniform(array: Host) -> bool:
    """Whether an array has the same bits everywhere; large ones that are laid out are not asked."""
    if array.size < 2 or not any(array.strides):
        return array.size > 0
    if array.nbytes > SMALL:
        return False
    data = array.tobytes()
    return data == data[: array.itemsize] * array.size


def _counting(array: Host) -> int | None:
    """The axis along which an array counts in even steps, exactly, and nowhere else changes."""
    if KIND[array.dtype] not in "iu" and SHORT[array.dtype] not in ("f32", "f64"):
        return None
    for axis, extent in enumerate(array.shape):
        if extent > 1:
            line = _line(array, axis)
            with np.errstate(all="ignore"):
                counted = _progression(line)
            if counted is not None and line.tobytes() == counted.tobytes():
                whole = np.broadcast_to(line.reshape(_spread(array, axis)), array.shape)
                if whole.tobytes() == array.tobytes():
                    return axis
    return None


def _line(array: Host, axis: int) -> Host:
    found: Host = np.moveaxis(array, axis, -1)[(0,) * (array.ndim - 1)]
    return found


def _spread(array: Host, axis: int) -> tuple[int, ...]:
    return tuple([n if a == axis else 1 for a, n in enumerate(array.shape)])


def _progression(line: Host) -> Host | None:
    """What counts on from the first two elements; None where a sum would be rounded."""
    first, step = line[0], line[1] - line[0]
    if line.dtype.kind == "f":
        most = float(abs(first)) + float(abs(step)) * len(line)
        exact = 2.0 ** np.finfo(line.dtype).nmant
        if not (first == np.rint(first) and step == np.rint(step) and most < exact):
            return None
    made: Host = np.arange(len(line)).astype(line.dtype) * step + first
    return made


def _count(scope: Scope, array: Host, axis: int) -> int:
    line = _line(array, axis)
    with np.errstate(all="ignore"):
        step, first = line[1] - line[0], line[0]
    attributes = {"dtype": array.dtype, "shape": array.shape, "axis": axis}
    (made,) = scope.node("iota", (), attributes)
    for op, number, idle in (("mul", step, 1), ("add", first, 0)):
        if number != idle:
            (made,) = scope.node(op, (made, scope.constant(np.array(number))))
    return made


def _is_identity(array: Host) -> bool:
    if array.ndim != 2 or array[0, 0] != 1 or (array[0, 1:2] != 0).any():
        return False
    return array.tobytes() == np.eye(*array.shape, dtype=array.dtype).tobytes()


def _identity(scope: Scope, array: Host) -> int:
    shape = array.shape
    places = [
        scope.node("iota", (), {"dtype": "i64", "shape": shape, "axis": axis})[0] for axis in (0, 1)
    ]
    (made,) = scope.node("eq", places)
    return scope.node("cast", (made,), {"dtype": array.dtype})[0]


class _Values:
    types = ValueTypes()


class HostScope(Scope):
    """The scope of every array that is known while tracing."""

    traced = False

    def __init__(self) -> None:
        super().__init__("arrays known while tracing")
        self.builder: Any = _Values()


HOST = HostScope()
