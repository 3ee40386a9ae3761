"""Try a native entry: each guard must turn a violating argument away, and updates that are written
over arguments must come out as those that are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.backends.guard import ITEMS, Guard
from tenfold.backends.program import OUTPUTS, Program, decline
from tenfold.errors import TenfoldError
from tenfold.reference import Callbacks
from tenfold.types import DTYPES, SHORT, DType, TensorType

if TYPE_CHECKING:
    from tenfold.parity.verdict import Disagreement

Array = np.ndarray[Any, Any]

# Another dtype of at least the same size: were it let in, no memory beyond it would be read.
_OTHERS = {"f16": "i16", "bf16": "i16", "f32": "i32", "f64": "i64", "i8": "u8", "i16": "u16",
           "i32": "f32", "i64": "f64", "u8": "i8", "u16": "i16", "u32": "i32", "u64": "i64",
           "c64": "f64", "c128": "c128", "bool": "u8"}  # fmt: skip


def try_arguments(
    program: Program,
    captures: Sequence[Array] = (),
    watched: Sequence[Guard] = (),
    updates: Sequence[int] = (),
) -> tuple[int, Disagreement | None]:
    """How many violating arguments were tried, and the first that was let in."""
    parameters = program.parameters  # not the plan's: a program from disk need not read its plan
    own = list(parameters[: len(parameters) - len(captures)])
    count = 0
    lets_in = _entry(program, captures, watched, updates)
    good = _good(own)
    for number, type in enumerate(own):
        for what, make in _violations(type, number in updates):
            try:
                array = make()
            except MemoryError:  # of an argument that is a view without memory of its own
                continue
            count += 1
            if lets_in([*good[:number], array, *good[number + 1 :]]):
                return count, _fault(program, f"argument {number} ({type!r})", what)
    return count, None


def try_watched(
    program: Program,
    captures: Sequence[Array] = (),
    watched: Sequence[Guard] = (),
    updates: Sequence[int] = (),
) -> Disagreement | None:
    """The first thing that a function closes over whose place may be taken unnoticed."""
    good = _good(program.parameters[: len(program.parameters) - len(captures)]) if watched else []
    for number, (where, key, expected) in enumerate(watched):
        changed = list(watched)
        other = (*expected, object()) if key is ITEMS else object()
        changed[number] = (where, key, other)
        if _entry(program, captures, changed, updates)(good):
            return _fault(program, f"what the function closes over ({key})", "rebound")
    return None


def _entry(
    program: Program,
    captures: Sequence[Array],
    watched: Sequence[Guard],
    updates: Sequence[int],
) -> Callable[[Sequence[Any]], bool]:
    """What says whether a new entry lets arguments in."""
    turned: list[bool] = []

    def slow(*_: Any) -> None:
        turned.append(True)

    call = _bound(program, slow, captures, watched, updates)

    def lets_in(arguments: Sequence[Any]) -> bool:
        turned.clear()
        try:
            with program.running.using(Callbacks()):
                call(*arguments)
        except TenfoldError:  # it came as far as running
            return True
        return not turned

    return lets_in


def _good(types: Sequence[TensorType]) -> list[Array]:
    """Arguments that are let in, whatever is in them: nobody reads them unless a guard fails."""
    return [np.empty(type.shape, DTYPES[SHORT[type.dtype]]) for type in types]


def try_updates(
    program: Program,
    arrays: Sequence[Array],
    captures: Sequence[Array],
    updates: Sequence[int],
    made: Sequence[Array] | None = None,
) -> Disagreement | None:
    """What is wrong with updates that the plan writes over arguments: beside the plan that does
    not, on copies of these. `made` are what that gives, where it is known."""
    first = len(program.outputs) - len(updates)
    if not any(program.overwrites(n, o) for o, n in enumerate(updates, first)):
        return None
    from tenfold.parity.rule.bits import same_bits
    from tenfold.parity.verdict import GUARD, Case, Disagreement

    given = [_zeros(program.parameters[n]) for n in range(len(arrays))]
    for one, array in zip(given, arrays, strict=True):
        one[...] = array
    if made is None:
        made = program([*map(np.copy, given), *captures], Callbacks())
    call = _bound(program, decline, captures, (), updates)
    with program.running.using(Callbacks()):
        results = call(*given)
    got = [*results, *(given[n] for n in updates)]
    for number, (one, other) in enumerate(zip(got, made, strict=True)):
        if not same_bits(np.asarray(one), np.asarray(other)):
            text = f"output {number} is another where updates are written over arguments"
            case = Case(program.plan.graph, (*arrays, *captures))
            return Disagreement(GUARD, "the native entry", "%", text, case, ())
    return None


def _bound(
    program: Program,
    slow: Callable[..., Any],
    captures: Sequence[Array],
    watched: Sequence[Guard],
    updates: Sequence[int],
) -> Callable[..., Any]:
    """An entry to be tried, open even where the program is not."""
    bound = program.bind(slow, captures, watched, updates=updates, answer=OUTPUTS)
    bound.binding.open()
    return bound.call


def _fault(program: Program, which: str, what: str) -> Disagreement:
    from tenfold.parity.verdict import GUARD, Case, Disagreement

    graph = program.plan.graph
    arrays = tuple(_zeros(p.type) for p in graph.parameters)
    return Disagreement(
        GUARD, "the native entry", "%", f"its guard lets {which} in when it is {what}",
        Case(graph, arrays), (),
    )  # fmt: skip


def _zeros(type: TensorType) -> Array:
    return np.zeros(type.shape, DTYPES[SHORT[type.dtype]])


def _violations(type: TensorType, updated: bool) -> Iterator[tuple[str, Callable[[], Array]]]:
    """What makes arrays that break one condition each, with memory enough to be read as if they
    did not; whatever is in it."""
    dtype = DTYPES[SHORT[type.dtype]]
    other = DTYPES[_OTHERS[SHORT[type.dtype]]]
    if other is not dtype:
        yield f"of dtype {other}", lambda: np.empty(type.shape, other)
    yield "of one axis more", lambda: np.empty((1, *type.shape), dtype)
    for axis in range(type.rank):
        longer = (*type.shape[:axis], type.shape[axis] + 1, *type.shape[axis + 1 :])
        yield f"longer along axis {axis}", lambda: np.empty(longer, dtype)  # noqa: B023  made now
    wide = [(a, n) for a, n in enumerate(type.shape) if n > 1]
    if wide and type.size:
        axis, n = wide[-1]
        shape = (*type.shape[:axis], 2 * n, *type.shape[axis + 1 :])
        every = tuple(slice(None, None, 2 if a == axis else 1) for a in range(type.rank))
        yield "not contiguous", lambda: np.empty(shape, dtype)[every]
    if updated:
        yield "read-only", lambda: _read_only(np.empty(type.shape, dtype))
    if dtype.alignment > 1 and type.size:
        yield "not aligned", lambda: _shifted(type, dtype)


def _read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _shifted(type: TensorType, dtype: DType) -> Array:
    room = np.empty(type.nbytes + dtype.itemsize, np.uint8)
    first = 1 if room.__array_interface__["data"][0] % dtype.alignment == 0 else 0
    return room[first : first + type.nbytes].view(dtype).reshape(type.shape)
