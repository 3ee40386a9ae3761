"""Compute: what a node gives, by the function of NumPy's that its op's reference is.

A small node whose inputs are at hand is computed when it would be made (`LAZY.direct`): to note it
down, find it again and order it would take longer than NumPy does. `realise` computes the others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from operator import attrgetter
from typing import Any

import numpy as np

from tenfold.errors import GraphError, IndexProblem, TenfoldError
from tenfold.trace.lazy.lazy import LAZY, Host, LazyValue, NodeForm
from tenfold.trace.source import Raw, locate
from tenfold.types import TensorType

SMALL = 4096  # bytes of a view that is copied


def quiet_context() -> Context:
    made = copy_context()
    made.run(np.seterr, all="ignore")
    return made


class _Local(threading.local):
    """The contexts of a thread in which NumPy warns of nothing, those that are not in use: setting
    and resetting `np.errstate` would take longer than a small array does. `run` runs a function of
    NumPy's in one more; a RuntimeError says that the thread is inside that already."""

    def __init__(self) -> None:
        self.contexts: list[Context] = []
        self.run = quiet_context().run


quiet = _Local()


def quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives where NumPy warns of nothing."""
    contexts = quiet.contexts
    context = contexts.pop() if contexts else quiet_context()
    try:
        return context.run(function, *arguments)
    finally:
        contexts.append(context)


_array = attrgetter("array")


def computed(
    form: NodeForm, function: Callable[..., Any], inputs: Sequence[LazyValue], raw: Raw | None
) -> list[Host]:
    """The arrays that a node gives; an error names the node's line."""
    try:
        made: Any = function(*map(_array, inputs))
    except Exception as error:
        locate_error(error, form, inputs, raw)
        raise
    return as_arrays(made, form)


def _direct(
    form: NodeForm, inputs: tuple[LazyValue, ...], raw: Raw | None
) -> tuple[LazyValue, ...]:
    """The values of a node, at once."""
    arrays = quietly(computed, form, form.function, inputs, raw)
    made = zip(form.kinds, arrays, strict=True)
    return tuple([LazyValue(kind, None, raw, array) for kind, array in made])


LAZY.direct = _direct


def as_arrays(made: Any, form: NodeForm) -> list[Host]:
    """What a reference gave for all results of a node."""
    types = form.types
    if len(types) == 1:
        return [as_array(made, types[0], form)]
    return [as_array(one, type, form) for one, type in zip(made, types, strict=True)]


def as_array(made: Any, type: TensorType, form: NodeForm) -> Host:
    """What a reference gave as an array of the node's type. It may be a view of another; a small
    one is copied, lest it keep a large one alive."""
    array: Host = made if made.__class__ is np.ndarray else _only(made)
    if array.shape != type.shape or array.dtype != type.dtype:
        got = f"{array.dtype}{list(array.shape)}"
        raise GraphError(f"{form.op}: the reference gave {got}, its type rule {type}")
    return small_copy(array)


def small_copy(array: Host) -> Host:
    """This array, or a copy if it is a small view of another."""
    return array.copy() if array.base is not None and array.nbytes <= SMALL else array


def _only(made: Any) -> Host:
    """A scalar as an array; or the only result of a reference that gives several as a rule."""
    if isinstance(made, (tuple, list)):
        (made,) = made
    return np.asarray(made)


def locate_error(
    error: Exception, form: NodeForm, inputs: Sequence[LazyValue], raw: Raw | None
) -> None:
    """Say in an error which line of the user's program it comes from; which array was indexed."""
    if isinstance(error, IndexProblem) and inputs:
        indexed = inputs[0]
        made = locate(indexed.raw)
        error.of(f"{indexed.type}, made at {made}" if made else f"{indexed.type}")
    source = locate(raw)
    if source is not None and isinstance(error, TenfoldError):
        error.at(str(source))
    elif source is not None:
        error.add_note(f"in {form.op}, at {source}")
