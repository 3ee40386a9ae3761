"""The entry point: what a compiled plan looks like from Python, and how it is bound.

A plan is one native function,

    i32 plan(ptr table, ptr arena, ptr poll)

- `table`: pointers to elements: the arguments', then the captures', then the outputs', in the order
  of `Entry`. Arguments are C-contiguous, aligned and of exactly the stated type; outputs are fresh.
- `arena`: `arena_bytes` of memory aligned to 64 bytes, not cleared, this call's alone; null when
  `arena_bytes` is 0.
- `poll`: what `tn_poll` wants on the back edges of loops (see `poll`).
- The answer: DONE; FAILED, a Python exception is set in this thread and is to propagate; DECLINED,
  or any other number, Python is to answer this call: the slow path gets the same arguments.

`wrap` makes of it a function that CPython calls as its own built-ins, and whose guards read the
ndarrays' own fields. `make_entry` turns that into a callable. Where `supported()` gives a reason,
or LLVM's loader is used, `plain` does the same from Python.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tenfold.backends.cpu.loader import Image, process_symbol
from tenfold.backends.cpu.ndarray import supported
from tenfold.backends.cpu.plain import make_plain
from tenfold.backends.cpu.wrap import BINDING, POOL, POOL_SLOTS, Argument, Entry, wrap
from tenfold.errors import ValueProblem

__all__ = ["Argument", "Binding", "Bound", "Entry", "Guard", "make_entry", "supported", "wrap"]

# What a call looks at besides its arguments: a dict and a key, or a closure cell and None, with
# the object that has to be found there.
Guard = tuple[Any, Any, Any]

_FASTCALL_KEYWORDS = 0x80 | 0x02


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class Binding(str):
    """What an entry point is bound to: captured arrays, guards, arenas, and its code in memory.

    The callable holds it in place of its module, hence a string: `call.__module__` reads as usual.
    """

    _table: memoryview
    _held: tuple[Any, ...]

    def __new__(cls, entry: Entry, image: Image) -> Binding:
        self = super().__new__(cls, "tenfold")
        self.entry = entry
        self.image = image
        words = 1 + 3 * len(entry.guards) + entry.captures
        place = (ctypes.c_char * (8 * words)).from_address(image.address(entry.name + BINDING))
        self._table = memoryview(place).cast("B")
        self._held = ()
        return self

    entry: Entry
    image: Image
    method: _Method

    def rebind(self, captures: Sequence[np.ndarray[Any, Any]], guards: Sequence[Guard]) -> None:
        """Swap in other captured arrays and guards. Calls under way keep what they began with."""
        entry = self.entry
        if len(captures) != entry.captures or len(guards) != len(entry.guards):
            raise ValueProblem(
                f"{entry.name}: {len(captures)} captures and {len(guards)} guards given, "
                f"{entry.captures} and {len(entry.guards)} wanted"
            )
        for array in captures:
            if not (array.flags.c_contiguous and array.flags.aligned):
                raise ValueProblem(f"{entry.name}: a captured array is not contiguous; copy it")
        held = (*captures, *guards)
        words = [id(held)]
        for where, key, expected in guards:
            words += (id(where), id(key), id(expected))
        words += (array.__array_interface__["data"][0] for array in captures)
        # One assignment, under the GIL: a call sees all of the old or all of the new.
        self._table[:] = struct.pack(f"<{len(words)}Q", *words)
        self._held = held

    @property
    def held(self) -> tuple[Any, ...]:
        return self._held

    def __del__(self) -> None:
        """Free the arenas that wait in the pool."""
        if self.entry.pooled:
            address = self.image.address(self.entry.name + POOL)
            slots = (ctypes.c_void_p * POOL_SLOTS).from_address(address)
            for index, arena in enumerate(slots):
                if arena:
                    slots[index] = None
                    _free()(arena)


@cache
def _free() -> Callable[[int], None]:
    address = process_symbol("free")
    assert address is not None
    return ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(address)


@cache
def _new_function() -> Callable[[int, Any, Any], Any]:
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return kind(("PyCFunction_NewEx", ctypes.pythonapi))


@dataclass(frozen=True, slots=True)
class Bound:
    """A callable over a plan in memory. `reason` says why it is not native, None when it is."""

    call: Callable[..., Any]
    binding: Binding
    reason: str | None


def make_entry(
    entry: Entry,
    image: Image,
    slow: Callable[..., Any],
    captures: Sequence[np.ndarray[Any, Any]] = (),
    guards: Sequence[Guard] = (),
    native: bool = True,
) -> Bound:
    """Bind a loaded entry point. `slow` answers whatever the guards turn away."""
    binding = Binding(entry, image)
    binding.rebind(captures, guards)
    reason = supported() if native else "it was not asked for"
    if reason is not None:
        return Bound(make_plain(entry, image, slow, binding), binding, reason)
    binding.method = _Method(
        entry.name.encode(), image.address(entry.name), _FASTCALL_KEYWORDS, None
    )
    call = _new_function()(ctypes.addressof(binding.method), slow, binding)
    return Bound(call, binding, None)
