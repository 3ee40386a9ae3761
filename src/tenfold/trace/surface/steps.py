"""Steps: the ways from an array to a view of it that NumPy knows, each with its way back.

Whatever takes ranges and single places of axes, turns, drops, adds and reorders them is one basic
index, however often it is done. The others are another shape, a part of complex numbers, their bits
as another dtype, and elements that lie some strides apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from tenfold.errors import MutationError
from tenfold.frozen import frozen
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import emit, fail
from tenfold.trace.surface.indexing.key import IndexEntry, NewAxis, ScalarIndex, SliceRange
from tenfold.trace.surface.indexing.parts import gather, indices_of, place, put, sliced
from tenfold.trace.surface.ufuncs.composed import number, same
from tenfold.trace.view import Step, View, Views, extended, layout
from tenfold.types import I64, DType, Shape

_BOUNDS = frozenset({int, type(None)}).issuperset
_PLACES = frozenset({int}).issuperset


def view(x: Array, step: Step, *, readonly: bool = False) -> Array:
    """What a step leads to, as a view of the array."""
    made = step.read(x)
    if made is x:
        made = same(x)
    made._readonly = readonly
    return view_of(x, step, made)


def view_of(x: Array, step: Step, made: Array) -> Array:
    """What a step gave of an array, made a view of it."""
    made._view = view = x._view.then(step) if x._view is not None else View.of(x, step)
    made._seen = view.root._version
    made._readonly = made._readonly or x._readonly
    return made


def lies(x: Array, order: str | None) -> bool:
    """Whether an array would lie in memory in this order, as NumPy's order= asks."""
    if order not in ("C", "F"):
        return True
    own = layout(x.dtype, x.shape) if x._view is None else x._view.layout()
    return bool(own.flags.c_contiguous if order == "C" else own.flags.f_contiguous)


def alias(x: Array) -> Array:
    """A view of the whole array."""
    return view(x, BasicIndex.whole(x.shape))


def holds(target: View, value: Any) -> bool:
    """Whether a value is what stands at a place already, being a view of it."""
    own = value._view if isinstance(value, Array) else None
    return (
        own is not None
        and own.root is target.root
        and own.steps == target.steps
        and value._seen == target.root._version
    )


@frozen
class BasicIndex:
    """Ranges and single places of an array's axes, and which axes the view has of them."""

    entries: tuple[SliceRange | ScalarIndex, ...]  # one for each axis of the array
    axes: tuple[int | None, ...]  # for each axis of the view that of the array; None: a new one

    @staticmethod
    def of(entries: Sequence[IndexEntry]) -> BasicIndex:
        """What the entries of a key without index arrays take."""
        own: list[SliceRange | ScalarIndex] = []
        axes: list[int | None] = []
        for entry in entries:
            if isinstance(entry, NewAxis):
                axes.append(None)
                continue
            assert isinstance(entry, (SliceRange, ScalarIndex))
            if isinstance(entry, SliceRange):
                axes.append(len(own))
            own.append(entry)
        return BasicIndex(tuple(own), tuple(axes))

    @staticmethod
    def plain(shape: Shape, key: Any) -> BasicIndex | None:
        """What a key takes that is made of Python's numbers and slices and of None, as most are;
        None for any other, and for one that takes what is not there."""
        if type(key) is tuple and len(key) == len(shape) and _PLACES(map(type, key)):
            return BasicIndex._element(shape, key)
        entries: list[SliceRange | ScalarIndex] = []
        axes: list[int | None] = []
        axis = 0
        for item in key if type(key) is tuple else (key,):
            if item is None:
                axes.append(None)
                continue
            if axis == len(shape):
                return None
            extent = shape[axis]
            if type(item) is int and -extent <= item < extent:
                entries.append(ScalarIndex(item % extent))
            elif type(item) is slice and _BOUNDS(map(type, (item.start, item.stop, item.step))):
                if item.step == 0:
                    return None
                start, stop, step = item.indices(extent)
                entries.append(SliceRange(start, step, len(range(start, stop, step)), extent))
                axes.append(axis)
            else:
                return None
            axis += 1
        if axis < len(shape):
            axes += range(axis, len(shape))
            entries += [SliceRange(0, 1, extent, extent) for extent in shape[axis:]]
        return BasicIndex(tuple(entries), tuple(axes))

    @staticmethod
    @lru_cache(4096)
    def _element(shape: Shape, key: tuple[int, ...]) -> BasicIndex | None:
        """One element. Programs that go element by element read and write each several times."""
        entries = []
        for extent, item in zip(shape, key, strict=True):
            if not -extent <= item < extent:
                return None
            entries.append(ScalarIndex(item % extent))
        return BasicIndex(tuple(entries), ())

    @staticmethod
    @lru_cache(1024)
    def whole(shape: Shape, axes: tuple[int | None, ...] | None = None) -> BasicIndex:
        """All of an array, its axes in this order; those that are not named have extent 1."""
        order = tuple(range(len(shape))) if axes is None else axes
        entries = [
            SliceRange(0, 1, n, n) if axis in order else ScalarIndex(0)
            for axis, n in enumerate(shape)
        ]
        return BasicIndex(tuple(entries), order)

    @property
    def shape(self) -> Shape:
        counts = [e.count if isinstance(e, SliceRange) else 1 for e in self.entries]
        return tuple([1 if axis is None else counts[axis] for axis in self.axes])

    @property
    def trivial(self) -> bool:
        return self._uncut and self.axes == tuple(range(len(self.entries)))

    @property
    def _uncut(self) -> bool:
        """Whether all elements are taken, and no axis is dropped."""
        for entry in self.entries:
            if not isinstance(entry, SliceRange) or entry.count != entry.extent or entry.step != 1:
                return False
        return True

    @property
    def _fixed(self) -> bool:
        """Whether all places are known while tracing."""
        for entry in self.entries:
            if not isinstance(entry, SliceRange) and not isinstance(entry.place, int):
                return False
        return True

    def read(self, base: Array) -> Array:
        order, new = _order(self.axes)
        if order is None:
            entries = self._with_new() if new else self.entries
            return sliced(base, entries) if self._fixed else self._taken(base, entries)
        x = base if self._uncut else self._taken(base, self.entries)
        x = emit("transpose", x, axes=order)
        return emit("reshape", x, shape=self.shape) if new else x

    def _taken(self, base: Array, entries: Sequence[IndexEntry]) -> Array:
        x = sliced(base, entries)
        if self._fixed:
            return x
        axes, indices = indices_of(x, entries)
        return gather(x, axes, 0, indices)

    def _with_new(self) -> list[IndexEntry]:
        """The entries, and the new axes between them."""
        entries: list[IndexEntry] = []
        for axis in self.axes:
            if axis is None:
                entries.append(NewAxis())
            else:
                done = sum(not isinstance(e, NewAxis) for e in entries)
                entries.extend(self.entries[done : axis + 1])
        done = sum(not isinstance(e, NewAxis) for e in entries)
        return [*entries, *self.entries[done:]]

    def write(self, base: Array, part: Array) -> Array:
        order, new = _order(self.axes)
        if order is not None:
            if new:
                pairs = zip(part.shape, self.axes, strict=True)
                shape = tuple([n for n, axis in pairs if axis is not None])
                part = emit("reshape", part, shape=shape)
            part = emit("transpose", part, axes=tuple(map(order.index, range(len(order)))))
        if self._fixed:
            return place(base, self.entries, part)
        return put(base, self.entries, part)

    def lay(self, base: Any) -> Any:
        key = [_spelled(e) for e in self.entries]
        order, _ = _order(self.axes)
        laid = base[(*key, ...)]
        new = tuple([None if axis is None else slice(None) for axis in self.axes])
        return (laid if order is None else laid.transpose(order))[(*new, ...)]

    def join(self, step: Any) -> BasicIndex | None:
        if not isinstance(step, BasicIndex):
            return None
        entries = list(self.entries)
        for axis, entry in zip(self.axes, step.entries, strict=True):
            if isinstance(entry, SliceRange) and entry.whole:
                continue
            if axis is None:
                if not isinstance(entry, ScalarIndex) or not isinstance(entry.place, int):
                    return None  # an axis of another extent, or a place that may be none
                continue
            within = entries[axis]
            assert isinstance(within, SliceRange)
            if isinstance(entry, SliceRange):
                start = within.start + entry.start * within.step
                entries[axis] = SliceRange(
                    start, within.step * entry.step, entry.count, within.extent
                )
            elif isinstance(entry.place, int):
                entries[axis] = ScalarIndex(within.start + entry.place * within.step)
            elif within.whole:
                entries[axis] = entry
            else:
                return None
        return BasicIndex(
            tuple(entries), tuple([None if k is None else self.axes[k] for k in step.axes])
        )


class KeyView(Views):
    """A view of an array by a plain key (`BasicIndex.plain`). Its step is worked out when somebody
    asks: of most views nobody does."""

    __slots__ = ("_key", "_shape", "_steps", "root")

    def __init__(self, root: Array, shape: Shape, key: Any) -> None:
        self.root = root
        self._shape = shape
        self._key = key
        self._steps: tuple[Step, ...] | None = None

    @property
    def steps(self) -> tuple[Step, ...]:
        found = self._steps
        if found is None:
            step = BasicIndex.plain(self._shape, self._key)
            assert step is not None
            found = self._steps = View.of(self.root, step).steps
        return found


@lru_cache(1024)
def _order(axes: tuple[int | None, ...]) -> tuple[tuple[int, ...] | None, bool]:
    """In which order a view has the axes that it has of its array, None for theirs; and whether it
    has new ones."""
    left = [axis for axis in axes if axis is not None]
    ordered = sorted(left)
    order = None if left == ordered else tuple([ordered.index(axis) for axis in left])
    return order, len(left) < len(axes)


def _spelled(entry: SliceRange | ScalarIndex) -> Any:
    """An entry as NumPy reads it; any place will do for one that only a running program knows."""
    if isinstance(entry, ScalarIndex):
        return entry.place if isinstance(entry.place, int) else 0
    if not entry.count:
        return slice(0, 0)
    stop = entry.start + entry.count * entry.step
    return slice(entry.start, stop if stop >= 0 else None, entry.step)


@frozen
class Reshape:
    """The elements in the same order, in another shape."""

    before: Shape
    shape: Shape

    @property
    def trivial(self) -> bool:
        return self.before == self.shape

    @property
    def parts(self) -> bool:
        """Whether axes are but parted, each for itself, so that it does not matter how they lie."""
        new = [n for n in self.shape if n != 1]
        for extent in self.before:
            while new and extent != 1 and new[0] and extent % new[0] == 0:
                extent //= new.pop(0)
            if extent != 1:
                return False
        return not new

    def read(self, base: Array) -> Array:
        return emit("reshape", base, shape=self.shape)

    def write(self, base: Array, part: Array) -> Array:
        return emit("reshape", part, shape=self.before)

    def lay(self, base: Any) -> Any:
        return base.reshape(self.shape, copy=False)

    def join(self, step: Any) -> Reshape | None:
        return Reshape(self.before, step.shape) if isinstance(step, Reshape) else None


@frozen
class ComplexPart:
    """The real or the imaginary parts of complex numbers."""

    name: str
    trivial = False

    def read(self, base: Array) -> Array:
        return emit(self.name, base)

    def write(self, base: Array, part: Array) -> Array:
        if self.name == "real":
            return emit("complex", part, emit("imag", base))
        return emit("complex", emit("real", base), part)

    def lay(self, base: Any) -> Any:
        return getattr(base, self.name)

    def join(self, step: Any) -> None:
        return None


@frozen
class Bits:
    """The bits of the elements as another dtype of the same size."""

    before: DType
    dtype: DType

    @property
    def trivial(self) -> bool:
        return self.before == self.dtype

    def read(self, base: Array) -> Array:
        return emit("bitcast", base, dtype=self.dtype)

    def write(self, base: Array, part: Array) -> Array:
        return emit("bitcast", part, dtype=self.before)

    def lay(self, base: Any) -> Any:
        return base.view(self.dtype)

    def join(self, step: Any) -> Bits | None:
        return Bits(self.before, step.dtype) if isinstance(step, Bits) else None


@frozen
class Strided:
    """Elements that lie some strides apart, perhaps at several places, and what is taken of them:
    diagonals, windows, a column of windows."""

    take: Callable[[Array], Array]
    like: Callable[[Any], Any]  # the same of a NumPy array, as a view
    after: tuple[Step, ...] = ()
    trivial = False

    def read(self, base: Array) -> Array:
        x = self.take(base)
        for step in self.after:
            x = step.read(x)
        return x

    def lay(self, base: Any) -> Any:
        found = self.like(base)
        for step in self.after:
            found = step.lay(found)
        return found

    def write(self, base: Array, part: Array) -> Array:
        whole = layout(base.dtype, base.shape)
        found = self.lay(whole)
        _check_apart(found)
        index = places(found, whole)
        flat = emit("reshape", base, shape=(base.size,))
        done = emit("scatter", flat, part, index, axes=(0,), at=0, mode="clip", kind="set")
        return emit("reshape", done, shape=base.shape)

    def join(self, step: Any) -> Strided | None:
        if isinstance(step, Reshape) or (isinstance(step, BasicIndex) and step._fixed):
            return Strided(self.take, self.like, extended(self.after, step))
        return None


def places(found: Any, whole: Any) -> Array:
    """Where the elements of one layout lie in that of the flat whole."""
    size = whole.itemsize
    index = number((address(found) - address(whole)) // size, I64)
    for axis, stride in enumerate(found.strides):
        along = emit("iota", dtype="i64", shape=found.shape, axis=axis)
        index = emit("add", index, emit("mul", along, number(stride // size, I64)))
    return index


def address(array: Any) -> int:
    found: int = array.__array_interface__["data"][0]
    return found


def _check_apart(found: Any) -> None:
    """An error where an element may stand at several places of a view: which would count?"""
    span = 0
    pairs = [(abs(s), n) for s, n in zip(found.strides, found.shape, strict=True) if n != 1]
    for stride, extent in sorted(pairs):
        if stride <= span and found.size:
            fail(
                MutationError,
                f"an array is written through a view of shape {found.shape} that holds an element "
                "in several places",
                "write to a part of it in which each element stands once, or copy it first",
            )
        span += stride * (extent - 1)
