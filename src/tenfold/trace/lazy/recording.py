"""Recordings: what a call made of lazy arrays, and how it is made again of others.

A recording has a row of values: the arrays' own, then constants, then those of each node in turn. A
node reads some of them by their places there, and a result is one of them. Where all of it is small
and the arrays are at hand, the functions of NumPy's that its nodes stand for are called one after
another, and there are no nodes. Else they are made, and wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Any

import numpy as np

from tenfold.ops import TABLE
from tenfold.trace.lazy.compute import (
    as_array,
    as_arrays,
    locate_error,
    quiet,
    quiet_context,
)
from tenfold.trace.lazy.lazy import LAZY, DeferredNode, LazyValue, NodeForm
from tenfold.trace.lazy.quick import Known, array_class
from tenfold.trace.source import Raw
from tenfold.trace.view import View
from tenfold.types import DType


class Recording:
    """What a function made of its arrays, and perhaps of a number."""

    __slots__ = (
        *("_given", "_kinds", "_reads", "constants", "kind", "literal", "many", "most", "nodes"),
        *("only", "order", "results"),
    )

    def __init__(
        self,
        constants: list[LazyValue],
        nodes: list[tuple[NodeForm, tuple[int, ...]]],
        results: list[Result],
        many: bool,
        given: int,
    ) -> None:
        self._given = given  # how many arrays
        self._reads = [places for _, places in nodes]
        self._kinds = [kind for form, _ in nodes for kind in form.kinds]
        self.constants = constants
        self.nodes = [(form, _picking(places)) for form, places in nodes]
        self.results = results
        self.many = many
        self.literal: DType | None = None  # that the number among the arguments is made
        # How many elements an array of it has; too many where a node has no function.
        sizes = [float("inf") if form.function is None else form.most for form, _ in nodes]
        self.most = max(sizes, default=float("inf"))
        # The form of the only node, where its value is the only result, an array of its own.
        alone = len(self.nodes) == len(self._kinds) == 1 and not many
        fresh = alone and results[0].argument is None and not results[0].readonly
        self.only = self.nodes[0][0] if fresh else None
        if fresh:
            (self.kind,) = self._kinds
            self.order = self._reads[0]

    def generalise(self, numbers: list[Any]) -> bool:
        """Have any number in the place of this one, if it is the one constant, and read once: by
        the last node, after others that change one input each."""
        if len(numbers) != 1 or len(self.constants) != 1:
            return False
        (constant,) = self.constants
        dtype = constant.type.dtype
        casts = self._reads[:-1]
        (number,) = numbers
        if (
            LAZY.literals.get((number or repr(number), type(number), dtype)) is not constant
            or any(len(places) != 1 for places in casts)
            or [places.count(self._given) for places in self._reads] != [*[0] * len(casts), 1]
        ):
            return False
        self.literal = dtype
        self.constants = []
        return True

    def known(self, dtype: DType) -> Known | None:
        """What this is for any extents, if it is one elementwise operation, or a sum over all of
        an array: for these NumPy's function is the same. `dtype` is the first array's."""
        form = self.only
        if form is None or self.constants or sorted(self.order) != [*range(len(self.order))]:
            return None
        if isinstance(form.function, np.ufunc):
            any_extents = form.most == form.elements and TABLE[form.op].elementwise
        else:
            any_extents = form.op == "reduce_sum" and not form.types[0].shape and self._given == 1
        return Known(form, self.order, self.literal, dtype) if any_extents else None

    def compute(self, arrays: Any, values: list[LazyValue], raw: Raw | None) -> Any:
        """The results for these arrays, which are at hand."""
        values += self.constants
        contexts = quiet.contexts
        context = contexts.pop() if contexts else quiet_context()
        form = self.only
        function: Any = form and form.function
        row: list[Any] = []
        try:
            if form is None:
                row += [value.array for value in values]
                context.run(self._fill, row)
            elif len(self.order) == 2:
                first, second = self.order
                made = context.run(function, values[first].array, values[second].array)
            elif len(self.order) == 1:
                made = context.run(function, values[self.order[0]].array)
            else:
                made = context.run(function, *[value.array for value in self.nodes[0][1](values)])
        except Exception as error:
            self._locate(error, max(0, len(row) - len(values)), values, raw)
            raise
        finally:
            contexts.append(context)
        array = array_class[0]
        if form is not None:
            if made.__class__ is self.kind.type.dtype.type:  # NumPy gives scalars for 0-d arrays
                made = np.asarray(made)
            elif made.__class__ is not np.ndarray or made.base is not None:
                made = as_array(made, self.kind.type, form)
            return array(LAZY, LazyValue(self.kind, None, raw, made))
        made = zip(self._kinds, row[len(values) :], strict=True)
        values += [LazyValue(kind, None, raw, array) for kind, array in made]
        return self._results(values, arrays)

    def _fill(self, row: list[Any]) -> None:
        """Append what each node gives to the row."""
        for form, picked in self.nodes:
            assert form.function is not None
            row += as_arrays(form.function(*picked(row)), form)

    def _locate(
        self, error: Exception, made: int, values: Sequence[LazyValue], raw: Raw | None
    ) -> None:
        """Say in an error which node it comes from: the one that comes when so many values are
        made."""
        ends = accumulate(len(form.types) for form, _ in self.nodes)
        failed = next(n for n, end in enumerate(ends) if made < end)
        inputs = [values[place] for place in self._reads[failed][:1] if place < len(values)]
        locate_error(error, self.nodes[failed][0], inputs, raw)

    def play(self, arrays: Any, row: list[LazyValue], raw: Raw | None) -> Any:
        """Make the nodes for these arrays, and the results of them. The row has the arrays'
        values."""
        row += self.constants
        for form, picked in self.nodes:
            row += LAZY.deferred(form, picked(row), raw)
        return self._results(row, arrays)

    def _results(self, row: Sequence[LazyValue], arrays: Sequence[Any]) -> Any:
        made = [result.of(row, arrays) for result in self.results]
        return tuple(made) if self.many else made[0]


def _picking(places: tuple[int, ...]) -> Callable[[list[LazyValue]], tuple[LazyValue, ...]]:
    """What takes these of a row, as a tuple."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda row: tuple([row[place] for place in places])


class Result:
    """A result: an argument, or a new array of a value, perhaps as a view of an argument."""

    __slots__ = ("argument", "place", "readonly", "steps")

    def __init__(
        self, place: int, argument: int | None, steps: tuple[Any, ...] | None, readonly: bool
    ) -> None:
        self.place = place
        self.argument = argument
        self.steps = steps
        self.readonly = readonly

    def of(self, row: Sequence[LazyValue], arrays: Sequence[Any]) -> Any:
        if self.argument is None:
            made = array_class[0](LAZY, row[self.place])
        elif self.steps is None:
            return arrays[self.argument]
        else:
            view = View(arrays[self.argument], self.steps)
            made = array_class[0](LAZY, row[self.place], view=view)
        made._readonly = self.readonly
        return made


def lazy_ones(result: Any) -> list[Any]:
    """The lazy arrays that a function gave: it is one, or there are some in a tuple."""
    found = result if type(result) is tuple else (result,)
    return [one for one in found if type(one) is array_class[0] and one._scope is LAZY]


def taken_down(result: Any, arrays: Sequence[Any], serial: int) -> Recording | None:
    """What a function made of these arrays, all of it after this serial; None where it did
    something else than to make nodes and arrays."""
    found = result if type(result) is tuple else (result,)
    if len(lazy_ones(result)) < len(found) or any(one._weak for one in found):
        return None
    places = {id(array._value): place for place, array in enumerate(arrays)}
    constants: list[LazyValue] = []
    nodes: dict[int, DeferredNode] = {}
    stack = [one._value for one in found]
    while stack:  # what the results need that is no argument
        value = stack.pop()
        node = value.node
        if id(value) in places:
            continue
        if value.constant is not None:
            places[id(value)] = len(arrays) + len(constants)
            constants.append(value)
        elif node is None or node.serial <= serial:
            return None
        elif node.serial not in nodes:
            nodes[node.serial] = node
            stack += node.inputs or ()
    starts: dict[int, int] = {}
    count = len(arrays) + len(constants)

    def place(value: LazyValue) -> int:
        known = places.get(id(value))
        if known is not None:
            return known
        assert value.node is not None
        return starts[value.node.serial] + value.index

    steps = []
    for number in sorted(nodes):
        node = nodes[number]
        steps.append((node.form, tuple(map(place, node.inputs or ()))))
        starts[number] = count
        count += len(node.form.types)
    results = []
    for one in found:
        argument = next((i for i, array in enumerate(arrays) if array is one), None)
        layers = None
        if argument is None and one._view is not None:
            argument = next((i for i, a in enumerate(arrays) if a is one._view.root), None)
            if argument is None:
                return None
            layers = one._view.steps
        results.append(Result(place(one._value), argument, layers, one._readonly))
    return Recording(constants, steps, results, found is result, len(arrays))
