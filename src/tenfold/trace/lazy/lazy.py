"""Lazy arrays: values outside any trace, each with the node that makes it until it is run.

There is no builder here. A value knows its node and a node its inputs, so what nobody holds is
freed, arrays go from thread to thread, and nothing is shared but the one scope they all belong
to, which keeps no values. `tenfold.trace.lazy.realise` runs them.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
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
_KINDS = 65536  # and types
_serial = itertools.count(1)
_types = itertools.count()


def next_serial() -> int:
    """A serial that no node has; later nodes have greater ones."""
    return next(_serial)


Host = np.ndarray[Any, Any]


class ArrayKind:
    """A type, with what is looked up by it. There is one of each, but for types that were forgotten
    and came back: where two are one object, the types are equal, and else mostly not."""

    __slots__ = ("forms", "known", "number", "size", "type")

    def __init__(self, type: TensorType, number: int) -> None:
        self.type = type
        self.number = number  # no other type has it
        self.size = type.size
        self.known: dict[Any, Any] = {}  # operations on arrays of this type; see `quick`
        self.forms: dict[Any, NodeForm] = {}  # of their nodes


class NodeForm:
    """What nodes are that differ in their inputs alone: op, attributes, scopes and types; with
    what computes them."""

    __slots__ = (
        *("attributes", "elements", "function", "kinds", "most", "op", "reuses", "scopes"),
        "types",
    )

    def __init__(
        self, op: str, inputs: tuple[TensorType, ...], attributes: Attributes, scopes: Any
    ) -> None:
        self.op = op
        self.attributes = attributes
        self.scopes: tuple[Graph, ...] = scopes
        self.types = infer(op, TABLE, inputs, attributes, scopes)
        self.kinds = [kind_of(type) for type in self.types]
        self.elements = sum([type.size for type in self.types])
        self.most = max([type.size for type in (*inputs, *self.types)])  # of one array
        self.function: Callable[..., Any] | None = None  # that is: the evaluator has to be asked
        row = TABLE[op]
        if not row.effect and row.scopes == 0:
            function = plain(row.reference, [type.dtype for type in inputs])
            self.function = partial(function, **dict(attributes)) if attributes else function
        # The inputs whose memory the result can have, if nobody else holds them.
        self.reuses: tuple[int, ...] = ()
        if self.is_exact:
            self.reuses = tuple([i for i, type in enumerate(inputs) if type == self.types[0]])

    @property
    def is_exact(self) -> bool:
        """Whether this is a ufunc that gives the same bits wherever its result lies: some of
        NumPy's loops for functions and for complex numbers go another way in place."""
        if not isinstance(self.function, np.ufunc) or len(self.types) != 1:
            return False
        row = TABLE[self.op]
        return row.elementwise and row.bound == 0 and self.types[0].kind in "biuf"

    def sized(self, kind: ArrayKind, inputs: Sequence[LazyValue]) -> NodeForm:
        """This form for arrays of another shape, all of this kind, and numbers: of an elementwise
        op, or of a sum over all axes."""
        made = object.__new__(NodeForm)
        made.op, made.attributes, made.scopes = self.op, self.attributes, self.scopes
        made.function = self.function
        made.reuses = tuple([i for i in self.reuses if inputs[i].kind is kind])
        dtype, shape = self.types[0].dtype, kind.type.shape
        if not TABLE[self.op].elementwise:
            shape = ()
        if dtype != kind.type.dtype or shape is not kind.type.shape:
            made.most, kind = kind.size, kind_of(TensorType(dtype, shape))
        else:
            made.most = kind.size
        made.types, made.kinds, made.elements = (kind.type,), [kind], kind.size
        return made

    @property
    def is_direct(self) -> bool:
        """Whether such a node is run as soon as what it reads is there."""
        return self.most <= config.direct and self.function is not None


class DeferredNode:
    """A node that has not been run: its form and what it reads. Inputs have lesser serials; they
    are None while a thread runs the node in the memory of one of them."""

    __slots__ = ("first", "form", "inputs", "results", "serial", "size")

    def __init__(self, form: NodeForm, inputs: tuple[LazyValue, ...]) -> None:
        self.form = form
        self.inputs: tuple[LazyValue, ...] | None = inputs
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

    __slots__ = ("__weakref__", "array", "kind", "node", "raw")
    constant: NodeForm | None = None  # that stands for it in a graph, if it is one
    index = 0  # among the results of its node

    def __init__(
        self,
        kind: ArrayKind | None,
        node: DeferredNode | None,
        raw: Raw | None = None,
        array: Host | None = None,
    ) -> None:
        self.kind = kind  # None: as the array is, and nobody has asked
        self.node = node
        self.raw = raw  # the user's line
        self.array = array

    @property
    def type(self) -> TensorType:
        return (self.kind or self.asked()).type

    @property
    def number(self) -> int:
        return (self.kind or self.asked()).number

    def asked(self) -> ArrayKind:
        """Its kind, which it has from now on."""
        array = self.array
        assert array is not None
        found = self.kind = kind_of_array(array)
        return found

    def settle(self, array: Host) -> None:
        """Take the array that the node made; the node and what it held may go."""
        self.array = array
        self.node = None


class ConstantValue(LazyValue):
    """A constant, with the form that stands for it in a graph."""

    __slots__ = ("constant",)

    def __init__(self, array: Host) -> None:
        super().__init__(None, None, None, leaf(own(array)).array)
        self.constant = NodeForm("constant", (), constant_attributes(array), ())


class PartValue(LazyValue):
    """One of several results of a node."""

    __slots__ = ("index",)

    def __init__(self, kind: ArrayKind, node: DeferredNode, raw: Raw | None, index: int) -> None:
        super().__init__(kind, node, raw)
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


_place = [LazyValue(None, None, None, np.zeros((), bool))]
_UNSHARED = _counted(_place[0])
del _place


def leaf(array: Host) -> LazyValue:
    """The value of an array that nobody writes to any more."""
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return LazyValue(kind_of_array(array), None, None, array)


_kinds: dict[TensorType, ArrayKind] = {}
_kinds_of_arrays: dict[tuple[Any, Any], ArrayKind] = {}


def kind_of(type: TensorType) -> ArrayKind:
    """What stands for a type in this process."""
    found = _kinds.get(type)
    if found is not None:
        return found
    if len(_kinds) >= _KINDS:
        _kinds.clear()
        _kinds_of_arrays.clear()
    return _kinds.setdefault(type, ArrayKind(type, next(_types)))


def kind_of_array(array: Host) -> ArrayKind:
    """What stands for the type of an array."""
    key = array.dtype, array.shape
    found = _kinds_of_arrays.get(key)
    if found is None:
        found = _kinds_of_arrays[key] = kind_of(TensorType(*key))
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
            form = self.form(op, inputs, given, held)
        except TenfoldError as error:
            error.at(describe(raw))
            raise
        return self.deferred(form, tuple(inputs), raw)

    def form(
        self, op: str, inputs: Sequence[Any], attributes: Attributes, scopes: tuple[Graph, ...]
    ) -> NodeForm:
        """The form of a node on these values: the same one for the same types."""
        key = op, tuple([value.number for value in inputs]), attributes, scopes
        form = self._forms.get(key)
        if form is None:
            form = NodeForm(op, tuple([value.type for value in inputs]), attributes, scopes)
            if len(self._forms) >= _FORMS:
                self._forms.clear()
            self._forms[key] = form
        return form

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
        values: tuple[LazyValue, ...]
        if len(form.kinds) == 1:
            values = (LazyValue(form.kinds[0], made, raw),)
        else:
            values = tuple([PartValue(kind, made, raw, i) for i, kind in enumerate(form.kinds)])
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
