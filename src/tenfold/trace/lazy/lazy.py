"""Lazy arrays: values outside any trace, each with the node that makes it until it is run.

There is no builder here. A value knows its node and a node its inputs, so what nobody holds is
freed, arrays go from thread to thread, and nothing is shared but the one scope they all belong
to, which keeps no values. `tenfold.trace.lazy.realise` runs them.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.config import config
from tenfold.errors import TenfoldError
from tenfold.graph import Attributes, Graph
from tenfold.graph.build import infer
from tenfold.ops import TABLE
from tenfold.trace.scope import Scope
from tenfold.trace.source import Raw, describe, here
from tenfold.types import TensorType, as_dtype, base_array

_FORMS = 65536  # so many types of nodes are remembered
_LITERALS = 4096  # and so many constants of Python numbers
_serial = itertools.count(1)

Host = np.ndarray[Any, Any]


class DeferredNode:
    """A node that has not been run: what it is, what it reads, and the user's line."""

    __slots__ = (
        "attributes",
        "first",
        "inputs",
        "op",
        "raw",
        "results",
        "scopes",
        "size",
        "types",
    )

    def __init__(
        self,
        op: str,
        inputs: tuple[LazyValue, ...],
        attributes: Attributes,
        scopes: tuple[Graph, ...],
        types: tuple[TensorType, ...],
        raw: Raw | None,
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.attributes = attributes
        self.scopes = scopes
        self.types = types
        self.raw = raw
        self.results: tuple[weakref.ref[LazyValue], ...] = ()  # of a node with several
        # How many nodes have to be run for this one, at most: all those counted input by input,
        # and all those made since the first of them; each bound is poor where the other is good.
        serial = next(_serial)
        size: int = 1
        first: int = serial
        for value in inputs:
            made = value.node
            if made is not None and made.inputs:
                size += made.size
                first = min(first, made.first)
        self.size: int = min(size, serial - first + 1)
        self.first: int = first


class LazyValue:
    """A value: an array, or until there is one the node that makes it.

    The array is set before the node is let go, so whoever finds no node finds an array.
    """

    __slots__ = ("__weakref__", "array", "index", "node", "number", "type")

    def __init__(
        self,
        type: TensorType,
        number: int,
        node: DeferredNode | None,
        index: int = 0,
        array: Host | None = None,
    ) -> None:
        self.type = type
        self.number = number  # of its type: quicker to look things up by
        self.node = node
        self.index = index
        self.array = array

    def settle(self, array: Host) -> None:
        """Take the array that the node made; the node and what it held may go."""
        self.array = array
        self.node = None


def leaf(array: Host) -> LazyValue:
    """The value of an array that nobody writes to any more."""
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    type = TensorType(array.dtype, array.shape)
    return LazyValue(type, numbered(type), None, 0, array)


_numbers: dict[TensorType, int] = {}  # grows with the types met, as they do in a program


def numbered(type: TensorType) -> int:
    """The number of a type in this process."""
    return _numbers.setdefault(type, len(_numbers))


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
        node = value.node
        return None if node is None else node.raw


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
        self.literals = _BoundedDict()
        self._forms: dict[Any, tuple[tuple[TensorType, ...], list[int]]] = {}
        # Called with the value of a node that has too many before it; `realise` sets it.
        self.overflow: Callable[[LazyValue], None] = lambda value: None

    def node(
        self,
        op: str,
        inputs: Sequence[Any] = (),
        attributes: Mapping[str, Any] | None = None,
        scopes: Sequence[Graph] = (),
    ) -> tuple[Any, ...]:
        """Make a node at the user's line; an error of its types names that line."""
        raw = here()
        row = TABLE[op]
        held = tuple(scopes)
        try:
            given = row.normalise(attributes or {}) if row.attributes or attributes else ()
            form = (op, tuple([value.number for value in inputs]), given, held)
            known = self._forms.get(form)
            if known is None:
                types = infer(op, TABLE, tuple([v.type for v in inputs]), given, held)
                known = types, [numbered(type) for type in types]
                if len(self._forms) >= _FORMS:
                    self._forms.clear()
                if op != "constant":  # its attributes are data
                    self._forms[form] = known
        except TenfoldError as error:
            error.at(describe(raw))
            raise
        types, numbers = known
        made = DeferredNode(op, tuple(inputs), given, held, types, raw)
        if len(types) == 1:
            values: tuple[LazyValue, ...] = (LazyValue(types[0], numbers[0], made),)
        else:
            values = tuple([LazyValue(t, numbers[i], made, i) for i, t in enumerate(types)])
            made.results = tuple([weakref.ref(value) for value in values])
        if made.size > config.pending:
            self.overflow(values[0])
        return values

    def foreign(self, array: Host, origin: Any = None) -> Any:
        """The value of a NumPy array as it is now: later changes of it are not seen."""
        return leaf(own(array))

    def capture(self, outer: int) -> int:
        raise AssertionError("lazy arrays have nothing around them")


LAZY = LazyScope()
