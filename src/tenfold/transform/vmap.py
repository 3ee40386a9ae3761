"""vmap: a function of one becomes a function of many."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.errors import TypeMismatch, ValueProblem
from tenfold.frames import entry
from tenfold.frozen import frozen
from tenfold.ops.batching.lanes import zeros
from tenfold.ops.batching.rules import move, spread
from tenfold.trace.array import Array
from tenfold.trace.containers import Structure, flatten
from tenfold.trace.control import plain
from tenfold.trace.control.agree import LeafForm, form
from tenfold.trace.control.eager import at_once
from tenfold.trace.control.inner import Inner, called, kind_of, label, trace_inner
from tenfold.trace.operand import as_value, is_operand, weak_of
from tenfold.trace.scope import Scope, current, is_plain
from tenfold.trace.source import describe, here
from tenfold.transform.axes import Axis, counted, lanes_of, spread_axes
from tenfold.transform.batch import batch
from tenfold.types import TensorType, as_dtype


def vmap(
    function: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, size: int | None = None
) -> Callable[..., Any]:
    """A function that does for every lane along an axis of its arguments what this one does.

    `in_axes` says which axis the lanes lie along: a number for all arguments, or a tuple with
    one entry for each, where an entry is a number, None for an argument that all lanes share,
    or a container of these that fits the argument as far as it goes. Arguments given by keyword
    have the axis of all, or 0 where there is a tuple. `out_axes` says the same of the results:
    with None a result must be the same for all lanes. `size` is the number of lanes, needed
    only where no argument says it.

    Results are those of a loop over the lanes, stacked, errors included: where lanes take
    different branches or leave a loop at different times, a lane that is not active raises
    nothing and calls nothing. A hook, print or host call is called once for each active lane,
    in the order of the lanes, with that lane's values; each lane's own calls keep their order.
    What a lane updates in place is its own: nothing of it reaches the caller, so return it.

    >>> import numpy as np, tenfold as tn
    >>> def root(x):                                   # by Newton's method
    ...     return tn.while_loop(lambda y: np.abs(y * y - x) > 1e-9, lambda y: (y + x / y) / 2, x)
    >>> tn.vmap(root)(np.array([4.0, 9.0, 16.0]))
    array([2., 3., 4.])
    >>> dots = tn.jit(tn.vmap(np.dot, in_axes=(0, None)))
    >>> dots(np.array([[1, 2], [3, 4]]), np.array([1, 10]))
    array([21, 43])
    """
    called("vmap", "f", function)
    what = label("vmap", function)

    @entry
    @functools.wraps(function, updated=())
    def mapped(*args: Any, **kwargs: Any) -> Any:
        structure, leaves = flatten((args, kwargs))
        paths = _paths(function, structure)
        axes = _in_axes(what, in_axes, args, kwargs)
        # Only arrays are traced; what else all lanes share reaches the function as it is.
        traced = [
            i
            for i, (leaf, axis) in enumerate(zip(leaves, axes, strict=True))
            if axis is not None or isinstance(leaf, (Array, np.ndarray, np.generic))
        ]
        for i in traced:
            if not is_operand(leaves[i]):
                raise TypeMismatch(
                    f"{what}: {paths[i]} is {kind_of(leaves[i])}, which has no axis for lanes",
                    where=describe(here()),
                    fix="pass an array, or in_axes=None for what all lanes share",
                )

        def call(parts: Sequence[Any]) -> Any:
            whole = list(leaves)
            for i, part in zip(traced, parts, strict=True):
                whole[i] = part
            positional, named = structure.unflatten(whole)
            return function(*positional, **named)

        @functools.wraps(function, updated=())
        def run(*arrays: Any) -> Any:
            chosen = [(paths[i], a, axes[i]) for i, a in zip(traced, arrays, strict=True)]
            return _mapped(what, call, chosen, out_axes, size)

        arrays = [leaves[i] for i in traced]
        if is_plain():
            chosen = [(paths[i], leaves[i], axes[i]) for i in traced]
            lanes = _lanes(what, chosen, size)
            if lanes:
                return _looped(what, call, chosen, out_axes, lanes)
        return run(*arrays) if current() is not None else at_once(run, *arrays)

    return mapped


def _lanes(what: str, given: Sequence[tuple[str, Any, Axis]], size: int | None) -> int:
    """How many lanes these arrays have."""
    extents = []
    for path, leaf, axis in given:
        if axis is not None:
            array = np.asarray(leaf)
            type = TensorType(as_dtype(array.dtype), array.shape)
            at = counted(what, path, type, axis, "in_axes")
            extents.append((path, at, type.shape[at]))
    return lanes_of(what, extents, size)


def _looped(
    what: str,
    call: Callable[[Sequence[Any]], Any],
    given: Sequence[tuple[str, Any, Axis]],
    out_axes: Any,
    lanes: int,
) -> Any:
    """Call the function for each lane, and stack what it gives."""

    def lane(i: int) -> list[Any]:
        return [
            plain.own(a) if axis is None else np.take(np.asarray(a), i, axis)
            for _, a, axis in given
        ]

    results = [call(lane(i)) for i in range(lanes)]
    found = [flatten(result) for result in results]
    structure = found[0][0]
    axes = spread_axes(what, "out_axes", out_axes, structure, "result")
    columns = zip(*(leaves for _, leaves in found), strict=True)
    differ = [
        axis is None and not all(np.array_equal(c[0], one, equal_nan=True) for one in c)
        for c, axis in zip(columns, axes, strict=True)
    ]
    _shared(what, structure, differ, axes, lanes)
    return plain.stacked(what, results, axes)


def _in_axes(what: str, in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Axis]:
    """An axis for each leaf of the arguments, then of those given by keyword."""
    if isinstance(in_axes, (tuple, list)) and not hasattr(in_axes, "_fields"):
        if len(in_axes) != len(args):
            raise ValueProblem(
                f"{what}: in_axes has {len(in_axes)} entries for {_many(len(args))}",
                where=describe(here()),
                fix="give one entry for each argument that is not given by keyword, or one number",
            )
        first, rest = tuple(in_axes), 0
    else:
        first = rest = in_axes
    found = spread_axes(what, "in_axes", first, flatten(args)[0], "args")
    return found + spread_axes(what, "in_axes", rest, flatten(kwargs)[0], "kwargs")


def _many(count: int) -> str:
    return "one argument" if count == 1 else f"{count or 'no'} arguments"


def _paths(function: Callable[..., Any], structure: Structure) -> list[str]:
    """What each leaf of (args, kwargs) is called: x, params['w'][0], args[2]."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some builtins have none that can be read
        parameters = {}.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in parameters if p.kind in kinds]
    found = []
    for path in structure.paths():
        if path.startswith("[1]"):  # [1]['name']…
            head, _, rest = path[5:].partition("']")
            found.append(head + rest)
            continue
        number, _, rest = path[4:].partition("]")  # [0][number]…
        at = int(number)
        found.append((names[at] if at < len(names) else f"args[{at}]") + rest)
    return found


@frozen
class _Argument:
    """A traced argument: the whole of it, lanes first, and what one lane has of it."""

    path: str
    whole: Array
    mapped: bool
    type: TensorType  # of one lane

    def lane(self, inner: Scope) -> Array:
        """What the function is given for it."""
        if self.whole._weak:
            return self.whole  # a Python number of the caller's, checked against what it meets
        own = inner.builder.parameter(self.type) if self.mapped else as_value(self.whole, inner)
        # A lane of a vector is a NumPy scalar, which `x += 1` binds anew.
        return Array(inner, own, argument=self.path if self.type.shape else None)


def _mapped(
    what: str,
    call: Callable[[Sequence[Any]], Any],
    given: Sequence[tuple[str, Any, Axis]],
    out_axes: Any,
    size: int | None,
) -> Any:
    """Trace the function for one lane, batch its graph and put that into the current scope."""
    scope = current()
    assert scope is not None
    builder = scope.builder
    before, builder.at = builder.at, here()
    try:
        arguments, lanes = _arguments(what, scope, given, size)
        traced = trace_inner(what, lambda inner: call([a.lane(inner) for a in arguments]))
        forms = [form(leaf) for leaf in traced.leaves]
        for leaf, wanted in zip(traced.leaves, forms, strict=True):
            traced.give(leaf, wanted.type)
        targets = _out_axes(what, out_axes, traced, forms)
        captures = traced.captures()
        mapped = [a.whole._value for a in arguments if a.mapped]
        batched = [False] * len(captures) + [True] * len(mapped)
        graph, flags = batch(traced.close(captures), batched, lanes)
        _shared(what, traced.structure, flags, targets, lanes)
        if lanes:
            values = builder.inline(graph, [*captures, *mapped])
        else:  # there is no lane to do anything for
            values = tuple(zeros(builder, type) for type in graph.output_types)
        results = []
        for value, own, axis, wanted in zip(values, flags, targets, forms, strict=True):
            if axis is None:
                results.append(Array(scope, value, weak=wanted.weak))
                continue
            whole = value if own else spread(builder, value, lanes)
            results.append(Array(scope, move(builder, whole, 0, axis)))
    finally:
        builder.at = before
    return traced.structure.unflatten(results)


def _arguments(
    what: str, scope: Scope, given: Sequence[tuple[str, Any, Axis]], size: int | None
) -> tuple[list[_Argument], int]:
    """The arguments with the lanes along their first axis, and how many lanes there are."""
    builder = scope.builder
    arguments, extents = [], []
    for path, leaf, axis in given:
        value = as_value(leaf, scope)
        type = builder.types[value]
        if axis is None:
            arguments.append(_Argument(path, Array(scope, value, weak=weak_of(leaf)), False, type))
            continue
        axis = counted(what, path, type, axis, "in_axes")
        extents.append((path, axis, type.shape[axis]))
        value = move(builder, value, axis, 0)
        type = TensorType(type.dtype, builder.types[value].shape[1:])
        arguments.append(_Argument(path, Array(scope, value), True, type))
    return arguments, lanes_of(what, extents, size)


def _out_axes(what: str, out_axes: Any, traced: Inner, forms: Sequence[LeafForm]) -> list[Axis]:
    """An axis, counted from the front, for each result."""
    axes = spread_axes(what, "out_axes", out_axes, traced.structure, "result")
    paths = traced.structure.paths("result")
    return [
        None if a is None else counted(what, path, f.type, a, "out_axes", added=1)
        for a, path, f in zip(axes, paths, forms, strict=True)
    ]


def _shared(
    what: str, structure: Structure, flags: Sequence[bool], axes: Sequence[Axis], lanes: int
) -> None:
    """An error if a result that all lanes are to share differs between them, or has no lane."""
    for path, own, axis in zip(structure.paths("result"), flags, axes, strict=True):
        if axis is None and (own or not lanes):
            reason = "differs between lanes" if own else "comes from no lane: there are none"
            raise ValueProblem(
                f"{what}: out_axes is None for {path}, which {reason}",
                where=describe(here()),
                fix="give it an axis, such as out_axes=0",
            )
