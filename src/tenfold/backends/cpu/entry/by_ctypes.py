"""The entry point from Python, through ctypes: slower by microseconds, the same in behaviour.

For Pythons and platforms where the native one is not to be trusted.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from itertools import repeat
from operator import setitem
from typing import Any, Protocol

import numpy as np

from tenfold.backends.cpu.entry.abi import DONE, FAILED, Argument, CallSpec
from tenfold.backends.cpu.entry.record import POOL_SLOTS
from tenfold.backends.cpu.link.loader import Image
from tenfold.backends.cpu.run.poll import STATE_WORDS
from tenfold.backends.guard import holds
from tenfold.backends.program import ARGUMENT, NOTHING, OUTPUT, OUTPUTS


class ObjectHolder(Protocol):
    """Captures, then guards, as last bound: one tuple, replaced as a whole."""

    held: tuple[Any, ...]


def make_by_ctypes(
    entry: CallSpec,
    plan: int,
    given: int,
    gate: Image,
    slow: Callable[..., Any],
    binding: ObjectHolder,
) -> Callable[..., Any]:
    """A callable that does what the native entry point does."""
    # PYFUNCTYPE calls with the GIL held and raises the exception the plan may have left; the
    # native function gives the GIL up itself where that pays.
    pointer = ctypes.c_void_p
    kind = ctypes.PYFUNCTYPE(ctypes.c_int32, pointer, ctypes.c_int64, *(pointer,) * 4)
    run = kind(gate.address("tn_run"))
    table_type = ctypes.c_void_p * max(entry.table_size, 1)
    poll_type = ctypes.c_int64 * STATE_WORDS
    arenas: deque[np.ndarray[Any, Any]] = deque(maxlen=POOL_SLOTS)

    def call(*args: Any, **names: Any) -> Any:
        if names or len(args) != len(entry.arguments):
            return slow(*args, **names)
        held = binding.held
        arrays = [_checked(a, given) for a, given in zip(entry.arguments, args, strict=True)]
        if any(a is None for a in arrays) or not all(map(holds, held[entry.captures :])):
            return slow(*args)
        if entry.writes and not _distinct(entry, [*arrays, *held[: entry.captures]]):
            return slow(*args)
        outputs = [np.empty(type.shape, type.dtype) for type in entry.own]
        outputs += [
            arrays[n] if n in entry.over else np.empty_like(arrays[n]) for n in entry.updates
        ]
        every = [*arrays, *held[: entry.captures], *outputs]
        table = table_type(*(a.__array_interface__["data"][0] for a in every))
        arena, at = None, None
        if entry.arena_bytes:
            try:
                arena = arenas.pop()
            except IndexError:
                arena = np.empty(entry.arena_bytes + 63, np.uint8)
            at = (arena.ctypes.data + 63) & -64
        poll = poll_type()
        code = run(plan, entry.release, ctypes.addressof(table), at, ctypes.addressof(poll), given)
        if arena is not None:
            arenas.append(arena)
        if code == FAILED:
            raise SystemError(f"{entry.name}: the plan failed and left no exception")
        if code != DONE:
            return slow(*args)
        answer = _answer(entry, args, outputs)
        targets = [arrays[number] for number in entry.updates]
        # No line of Python between two of them: Ctrl-C comes before them all or after.
        deque(map(setitem, targets, repeat(...), outputs[len(entry.own) :]), maxlen=0)
        return answer

    call.__name__ = call.__qualname__ = entry.name
    return call


def _answer(entry: CallSpec, args: tuple[Any, ...], outputs: list[np.ndarray[Any, Any]]) -> Any:
    items = [output if output.ndim else output[()] for output in outputs[: len(entry.own)]]
    given = {OUTPUTS: tuple(items), OUTPUT: items[0] if items else None, NOTHING: None}
    return given[entry.gives] if entry.gives < ARGUMENT else args[entry.gives - ARGUMENT]


def _checked(argument: Argument, given: Any) -> Any:
    """The array given, when it is as the plan wants it; else None."""
    wanted = argument.type
    if type(given) is not np.ndarray:
        if wanted.rank or argument.writeable or type(given) is not wanted.dtype.type:
            return None
        given = np.asarray(given)
    flags = given.flags
    fits = (
        given.dtype is wanted.dtype
        and given.shape == wanted.shape
        and flags.c_contiguous
        and flags.aligned
        and (flags.writeable or not argument.writeable)
    )
    return given if fits else None


def _distinct(entry: CallSpec, arrays: list[np.ndarray[Any, Any]]) -> bool:
    """Whether what the plan writes into is apart from all else. All are contiguous."""
    for index, argument in enumerate(entry.arguments):
        others = arrays[:index] + arrays[index + 1 :] if argument.writeable else []
        if any(np.may_share_memory(arrays[index], other) for other in others):
            return False
    return True
