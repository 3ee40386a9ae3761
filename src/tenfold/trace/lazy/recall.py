"""Recall: what a function of the surface made of lazy arrays of some types is made again for others
of these types, without asking it.

Which nodes a function makes depends on the types of its arrays and on its other arguments alone,
unless it looks at values, changes arrays or takes what has no fixed value. So its first call with
some types is taken down: the forms of the nodes, what each reads, and how the results lie in the
arguments. A call of the same key makes these nodes at once. It costs what making nodes costs, while
the surface reads keys, promotes dtypes and checks shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import wraps
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np

from tenfold.frames import hide
from tenfold.trace.lazy.lazy import LAZY, DeferredNode, LazyValue, NodeForm, next_serial
from tenfold.trace.lazy.realise import last_look
from tenfold.trace.scope import current
from tenfold.trace.source import Raw, caller, here
from tenfold.trace.tables import COMPARISONS, FUNCTIONS
from tenfold.trace.view import View
from tenfold.types import KIND, SHORT, DType

F = TypeVar("F", bound=Callable[..., Any])

_KEPT = 8192  # recordings; beyond that all are forgotten
_recordings: dict[Hashable, Recording] = {}
_array: list[Any] = []  # the class of arrays
ABSENT: Any = np._NoValue


def use(kind: Any) -> None:
    """The class of arrays, which is made of what is recalled."""
    _array[:] = [kind]


def recalled(function: F, ufunc: np.ufunc | None = None) -> F:
    """This function, which users call with arrays, asked once for each key; see `recall`."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        scope = current()
        if scope is None:
            try:
                return recall(function, args, kwargs, ufunc)
            except BaseException as error:
                hide(error)
                raise
        before = scope.at
        scope.at = caller(before)
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            hide(error)
            raise
        finally:
            scope.at = before

    return call  # type: ignore[return-value]


def recall(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    ufunc: np.ufunc | None = None,
) -> Any:
    """What the function gives for these arguments: outside any trace it is asked once for each
    key. To what a ufunc is, it does not matter how a view lies in its array, and seldom which
    number an operand is."""
    if current() is not None:
        return function(*args, **kwargs)
    arrays: list[Any] = []
    numbers: list[Any] | None = [] if ufunc is not None and ufunc not in _BY_NUMBER else None
    key = _tokens(args, arrays, numbers)
    if kwargs and key is not None:
        named = _tokens(kwargs.values(), arrays, None)
        key = None if named is None else [*key, tuple(kwargs), *named]
    if key is None and ufunc is not None and any(type(item) is np.ndarray for item in args):
        return recall(function, [_as_array(item) for item in args], kwargs, ufunc)
    if key is None or not arrays:
        return function(*args, **kwargs)
    if ufunc is None and not all(array._view is None for array in arrays):
        return function(*args, **kwargs)
    key.append(function)
    values = [array._value for array in arrays]
    if len(values) > 1 and len(set(values)) < len(values):  # which of them are one
        key.append(tuple([values.index(value) for value in values]))
    whole = tuple(key)
    found = _recordings.get(whole)
    if found is not None:
        if numbers:
            values.append(FUNCTIONS["literal"](numbers[0], LAZY, found.literal))
        return found.play(arrays, values, here(3))  # this, who called it, and then the user
    looked, serial = last_look(), next_serial()
    result = function(*args, **kwargs)
    if last_look() is looked and all(a._value is v for a, v in zip(arrays, values, strict=True)):
        made = _taken_down(result, arrays, serial)
        if made is not None and (not numbers or made.generalise(numbers)):
            if len(_recordings) >= _KEPT:
                _recordings.clear()
            _recordings[whole] = made
    return result


def _as_array(operand: Any) -> Any:
    """An array of NumPy's as a lazy one; anything else as it is."""
    return _array[0](LAZY, LAZY.foreign(operand)) if type(operand) is np.ndarray else operand


# Keys.


def _tokens(items: Any, arrays: list[Any], numbers: list[Any] | None) -> list[Any] | None:
    """What arguments are to a function that makes nodes, or None where that is not known; the lazy
    arrays among them are listed. So are Python's numbers, where it does not matter which they
    are."""
    tokens: list[Any] = []
    array = _array[0]
    for item in items:
        kind = type(item)
        if kind is array:
            if item._scope is not LAZY or item._weak or item._readonly:
                return None
            arrays.append(item)
            if item._view is not None:
                item._follow()
            tokens.append(item._value.number)
        elif numbers is not None and (kind is float or kind is int):
            numbers.append(item)
            tokens.append(kind)
        elif kind in _EXACT or (kind in _FLOATS and item):  # zeros of both signs are equal
            tokens.append((kind, item))
        elif kind is slice or kind is tuple or kind is list:
            parts = (item.start, item.stop, item.step) if kind is slice else item
            inner = _tokens(parts, arrays, None)
            if inner is None:
                return None
            tokens.append((kind, *inner))
        else:
            return None
    return tokens


# Types whose values are alike where they are equal.
_EXACT: frozenset[Any] = frozenset(
    {bool, int, str, type(None), type(...), type, type(ABSENT)}
    | {type(dtype) for dtype in SHORT}
    | {dtype.type for dtype in SHORT if KIND[dtype] in "biu"}
)
_FLOATS: frozenset[Any] = frozenset({float, np.float64, np.float32})
# Ufuncs that go other ways for some numbers: squares, and what no integer of a dtype equals.
_BY_NUMBER = frozenset({np.power, *COMPARISONS})


# Recordings.


class Recording:
    """What a function made of its arrays, and perhaps of a number.

    There is a row of values: the arrays' own, then constants, then those of each node in turn. A
    node reads some of them by their places there, and a result is one of them.
    """

    __slots__ = ("_given", "_reads", "constants", "literal", "many", "nodes", "only", "results")

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
        self.constants = constants
        self.nodes = [(form, _picking(places)) for form, places in nodes]
        self.results = results
        self.many = many
        self.literal: DType | None = None  # that the number among the arguments is made
        # Whether there is one node, and its value the only result, as an array of its own.
        self.only = len(nodes) == len(nodes[0][0].types if nodes else ()) == 1 and (
            not many and results[0].argument is None and not results[0].readonly
        )

    def generalise(self, numbers: list[Any]) -> bool:
        """Have any number in the place of this one, if it is the one constant, and read once: by
        the last node, after others that change one input each."""
        if len(numbers) != 1 or len(self.constants) != 1:
            return False
        (constant,) = self.constants
        dtype = constant.type.dtype
        casts = self._reads[:-1]
        if (
            LAZY.literals.get((numbers[0], type(numbers[0]), dtype)) is not constant
            or any(len(places) != 1 for places in casts)
            or [places.count(self._given) for places in self._reads] != [*[0] * len(casts), 1]
        ):
            return False
        self.literal = dtype
        self.constants = []
        return True

    def play(self, arrays: Sequence[Any], row: list[LazyValue], raw: Raw | None) -> Any:
        """Make the nodes for these arrays, and the results of them. The row has the arrays'
        values."""
        row += self.constants
        if self.only:
            form, picked = self.nodes[0]
            return _array[0](LAZY, LAZY.deferred(form, picked(row), raw)[0])
        for form, picked in self.nodes:
            row += LAZY.deferred(form, picked(row), raw)
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
            made = _array[0](LAZY, row[self.place])
        elif self.steps is None:
            return arrays[self.argument]
        else:
            view = View(arrays[self.argument], self.steps)
            made = _array[0](LAZY, row[self.place], view=view)
        made._readonly = self.readonly
        return made


def _taken_down(result: Any, arrays: Sequence[Any], serial: int) -> Recording | None:
    """What a function made of these arrays, all of it after this serial; None where it did
    something else than to make nodes and arrays."""
    found = result if type(result) is tuple else (result,)
    if not all(type(one) is _array[0] and one._scope is LAZY and not one._weak for one in found):
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
            stack += node.inputs
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
        steps.append((node.form, tuple(map(place, node.inputs))))
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
