"""Lazy arrays: values outside any trace, each with the node that makes it until it is run.

There is no builder here. A value knows its node and a node its inputs, so what nobody holds is
freed, arrays go from thread to thread, and nothing is shared but the one scope they all belong
to, which keeps no values. `tenfold.trace.lazy.realise` runs them.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from sys import getrefcount
from typing import Any

import numpy as np

from tenfold.config import config
from tenfold.errors import TenfoldError
from tenfold.graph import Attributes, Graph
from tenfold.graph.build import infer
from tenfold.locks import Lock
from tenfold.ops import TABLE
from tenfold.ops.reference import plain
from tenfold.trace.scope import Scope, constant_attributes
from tenfold.trace.source import Raw, describe, here
from tenfold.types import TensorType, as_dtype, base_array

_FORMS = 65536  # so many forms of nodes are remembered
_LITERALS = 4096  # and so many constants
_serial = itertools.count(1)


def next_serial() -> int:
    """A serial that no node has; later nodes have greater ones."""
    return next(_serial)


Host = np.ndarray[Any, Any]


class NodeForm:
    """What nodes are that differ in their inputs alone: op, attributes, scopes and types; with
    what computes them."""

    __slots__ = ("attributes", "elements", "function", "most", "numbers", "op", "scopes", "types")

    def __init__(
        self, op: str, inputs: tuple[TensorType, ...], attributes: Attributes, scopes: Any
    ) -> None:
        self.op = op
        self.attributes = attributes
        self.scopes: tuple[Graph, ...] = scopes
        self.types = infer(op, TABLE, inputs, attributes, scopes)
        self.numbers = [numbered(type) for type in self.types]
        self.elements = sum([type.size for type in self.types])
        self.most = max([type.size for type in (*inputs, *self.types)])  # of one array
        self.function: Callable[..., Any] | None = None  # that is: the evaluator has to be asked
        row = TABLE[op]
        if not row.effect and row.scopes == 0:
            function = plain(row.reference, [type.dtype for type in inputs])
            self.function = partial(function, **dict(attributes)) if attributes else function

    @property
    def kinds(self) -> Iterator[tuple[TensorType, int]]:
        """The type of each result, and its number."""
        return zip(self.types, self.numbers, strict=True)

    @property
    def is_direct(self) -> bool:
        """Whether such a node is run as soon as what it reads is there."""
        return self.most <= config.direct and self.function is not None


class DeferredNode:
    """A node that has not been run: its form and what it reads. Inputs have lesser serials."""

    __slots__ = ("first", "form", "inputs", "results", "serial", "size")

    def __init__(self, form: NodeForm, inputs: tuple[LazyValue, ...]) -> None:
        self.form = form
        self.inputs = inputs
        self.results: tuple[weakref.ref[LazyValue], ...] = ()  # of a node with several
        # How many nodes have to be run for this one, at most: all those counted input by input,
        # and all those made since the first of them; each bound is poor where the other is good.
        self.serial = serial = first = next(_serial)
        size = 1
        for value in inputs:
            made = value.node
            if made is not None:
                size += made.size
                if made.first < first:
                    first = made.first
        self.first: int = first
        self.size: int = size if size <= serial - first else serial - first + 1


class LazyValue:
    """A value: an array, or until there is one the node that makes it.

    The array is set before the node is let go, so whoever finds no node finds an array. Nobody
    writes to it; it is marked so when it is handed out.
    """

    __slots__ = ("__weakref__", "array", "node", "number", "raw", "type")
    constant: NodeForm | None = None  # that stands for it in a graph, if it is one
    index = 0  # among the results of its node

    def __init__(
        self,
        type: TensorType,
        number: int,
        node: DeferredNode | None,
        raw: Raw | None = None,
        array: Host | None = None,
    ) -> None:
        self.type = type
        self.number = number  # of its type: quicker to look things up by
        self.node = node
        self.raw = raw  # the user's line
        self.array = array

    def settle(self, array: Host) -> None:
        """Take the array that the node made; the node and what it held may go."""
        self.array = array
        self.node = None


class ConstantValue(LazyValue):
    """A constant, with the form that stands for it in a graph."""

    __slots__ = ("constant",)

    def __init__(self, array: Host) -> None:
        given = leaf(own(array))
        super().__init__(given.type, given.number, None, None, given.array)
        self.constant = NodeForm("constant", (), constant_attributes(array), ())


class PartValue(LazyValue):
    """One of several results of a node."""

    __slots__ = ("index",)

    def __init__(
        self, type: TensorType, number: int, node: DeferredNode, raw: Raw | None, index: int
    ) -> None:
        super().__init__(type, number, node, raw)
        self.index = index


def is_unshared(value: LazyValue) -> bool:
    """Whether a value's array can be overwritten: whoever asks holds the value in one place (an
    attribute or an item, not a name), nobody else does, and the array is nobody else's."""
    array = value.array
    if array is None or array.base is not None or not array.flags.writeable:
        return False
    return (getrefcount(value), getrefcount(array)) == _UNSHARED


def _counted(value: LazyValue) -> tuple[int, int]:
    """What `is_unshared` counts, of a value like that."""
    array = value.array
    return getrefcount(value), getrefcount(array)


_place = [LazyValue(TensorType(np.dtype(bool), ()), 0, None, None, np.zeros((), bool))]
_UNSHARED = _counted(_place[0])
del _place


def leaf(array: Host) -> LazyValue:
    """The value of an array that nobody writes to any more."""
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    type, number = kind_of(array)
    return LazyValue(type, number, None, None, array)


# These grow with the types met, as they do in a program.
_numbers: dict[TensorType, int] = {}
_kinds: dict[tuple[Any, Any], tuple[TensorType, int]] = {}


def numbered(type: TensorType) -> int:
    """The number of a type in this process."""
    return _numbers.setdefault(type, len(_numbers))


def kind_of(array: Host) -> tuple[TensorType, int]:
    """The type of an array, and its number."""
    key = array.dtype, array.shape
    found = _kinds.get(key)
    if found is None:
        type = TensorType(*key)
        found = _kinds[key] = type, numbered(type)
    return found


def own(array: Any) -> Host:
    """An array in C order and in a dtype that Tenfold has, which nobody else can write to."""
    try:
        given = np.asarray(base_array(array))
        dtype = as_dtype(given.dtype)
    except TenfoldError as error:
        raise error.at(describe(here())) from None
    kept = not given.flags.writeable and given.base is None and given.flags.c_contiguous
    return given if kept and given.dtype == dtype else np.array(given, dtype, order="C")


class ValueTypes:
    """The types of lazy values, looked up as those of a builder are."""

    def __getitem__(self, value: LazyValue) -> TensorType:
        return value.type


class _Values:
    """What stands in the place of a builder."""

    types = ValueTypes()

    def source(self, value: LazyValue) -> Raw | None:
        return value.raw


class _BoundedDict(dict[Any, Any]):
    """A dict that is emptied when it has grown too large."""

    def __setitem__(self, key: Any, item: Any) -> None:
        if len(self) >= _LITERALS:
            self.clear()
        super().__setitem__(key, item)


class LazyScope(Scope):
    """The scope of every lazy array."""

    traced = False

    def __init__(self) -> None:
        super().__init__("lazy arrays")
        self.builder: Any = _Values()
        self.literals: Any = _BoundedDict()
        self._forms: dict[Any, NodeForm] = {}
        self.recorded = 0  # calls that are being recorded, in any thread: nodes wait meanwhile
        self._lock = Lock()
        # Called with the value of a node that has too many before it; `realise` sets it.
        self.overflow: Callable[[LazyValue], None] = lambda value: None
        # The values of a node whose inputs are at hand, run at once; `direct` sets it.
        self.direct: Callable[..., tuple[LazyValue, ...]] = lambda form, inputs, raw: ()

    def node(
        self,
        op: str,
        inputs: Sequence[Any] = (),
        attributes: Mapping[str, Any] | Attributes | None = None,
        scopes: Sequence[Graph] = (),
    ) -> tuple[Any, ...]:
        """Make a node at the user's line; an error of its types names that line."""
        raw = here()
        row = TABLE[op]
        held = tuple(scopes)
        try:
            if isinstance(attributes, tuple):
                given = attributes
            else:
                given = row.normalise(attributes or {}) if row.attributes or attributes else ()
            key = (op, tuple([value.number for value in inputs]), given, held)
            form = self._forms.get(key)
            if form is None:
                form = NodeForm(op, tuple([value.type for value in inputs]), given, held)
                if len(self._forms) >= _FORMS:
                    self._forms.clear()
                self._forms[key] = form
        except TenfoldError as error:
            error.at(describe(raw))
            raise
        return self.deferred(form, tuple(inputs), raw)

    def deferred(
        self, form: NodeForm, inputs: tuple[LazyValue, ...], raw: Raw | None
    ) -> tuple[LazyValue, ...]:
        """The values of a node of this form; small ones are run if what they read is there."""
        if form.is_direct and not self.recorded:
            for value in inputs:
                if value.node is not None:
                    break
            else:
                if config.compile != "always":
                    return self.direct(form, inputs, raw)
        made = DeferredNode(form, inputs)
        types = form.types
        values: tuple[LazyValue, ...]
        if len(types) == 1:
            values = (LazyValue(types[0], form.numbers[0], made, raw),)
        else:
            values = tuple([PartValue(t, n, made, raw, i) for i, (t, n) in enumerate(form.kinds)])
            made.results = tuple([weakref.ref(value) for value in values])
        if made.size > config.pending:
            self.overflow(values[0])
        return values

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Have all nodes wait, so that it can be seen which ones a call makes."""
        with self._lock:
            self.recorded += 1
        try:
            yield
        finally:
            with self._lock:
                self.recorded -= 1

    def constant(self, array: Host) -> Any:
        """The value of a constant with this array's bits. The same value for the same bits."""
        key = array.tobytes(), array.dtype, array.shape
        found = self.literals.get(key)
        if found is None:
            found = self.literals[key] = ConstantValue(array)
        return found

    def foreign(self, array: Host, origin: Any = None) -> Any:
        """The value of a NumPy array as it is now: later changes of it are not seen."""
        return leaf(own(array))

    def capture(self, outer: int) -> int:
        raise AssertionError("lazy arrays have nothing around them")


LAZY = LazyScope()
