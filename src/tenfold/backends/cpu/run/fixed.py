"""Object code of the texts that are the same for every plan: the gate, the steps, the pool of
threads, and the routines, each by the name of its function.

Found in memory, then in a store, then compiled: in a thread of
its own while a program is traced and planned, since LLVM runs without the GIL.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, lru_cache

from tenfold.backends.cpu.entry.abi import PARAM_BYTES
from tenfold.backends.cpu.entry.bind import GATE_EXPORTS
from tenfold.backends.cpu.link.loader import route
from tenfold.backends.cpu.loop import LAYOUT
from tenfold.backends.cpu.threads.words import POOL_EXPORTS
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.store import CodeStore, stores
from tenfold.digest import sha256
from tenfold.locks import Lock, start
from tenfold.switching import giving_way

GATE, STEPS, POOL = "gate", "steps", "pool"


# Where code is at hand nobody looks at its text.


def _steps_text(target: LLVMTarget) -> str:
    from tenfold.backends.cpu.run.steps import STEPS_TEXT

    return STEPS_TEXT


def _pool_text(target: LLVMTarget) -> str:
    from tenfold.backends.cpu.threads.text import pool_text

    return pool_text(target)


def _gate_text(target: LLVMTarget) -> str:
    from tenfold.backends.cpu.entry.text import GATE_TEXT

    return GATE_TEXT


# In the order in which they are asked for.
TEXTS: dict[str, Callable[[LLVMTarget], str]] = {
    STEPS: _steps_text,
    POOL: _pool_text,
    GATE: _gate_text,
}

EXPORTS: dict[str, tuple[str, ...]] = {
    GATE: GATE_EXPORTS,
    STEPS: ("tn_steps", "tn_run"),
    POOL: POOL_EXPORTS,
}


_objects: dict[tuple[str, str], bytes] = {}
_making: dict[tuple[str, str], Lock] = {}  # each text by one thread, different ones side by side
_threads: list[threading.Thread] = []  # that make some of them
_begun: set[tuple[str, str]] = set()  # texts that one of them was asked for by name


@cache
def interface(target: LLVMTarget) -> str:
    """The name of how kernels, loops, steps, the pool and the gate call each other: code of another
    does not fit. A store, which keeps what this Tenfold made, knows it without the texts."""
    known = find_object(f"interface-{target.digest}")
    if known is not None:
        return bytes(known).decode()
    texts = sorted((part, text(target)) for part, text in TEXTS.items())
    made = sha256(repr((2, PARAM_BYTES, LAYOUT, texts)).encode()).hexdigest()[:32]
    keep_object(f"interface-{target.digest}", made.encode())
    return made


def fixed(part: str, target: LLVMTarget) -> bytes:
    """The object code of one of the texts."""
    found = _objects.get((part, target.digest))
    if found is None:
        with _making.setdefault((part, target.digest), Lock()):  # perhaps a thread is at it
            found = _find(part, target) or _make(part, target)
    return found


def compile_ahead(target: LLVMTarget) -> bool:
    """Have what a plan's first run needs compiled in a thread, if it is not at hand: whoever asks
    for it meanwhile waits. The gate can wait until the plan's kernels are there. Whether all is at
    hand."""
    if all(_find(part, target) for part in TEXTS):
        return True

    _make_meanwhile((STEPS, POOL), target)
    return False


def make_ahead(part: str, target: LLVMTarget) -> None:
    """Have the code of a text made in a thread: that of a routine while the plan that calls it is
    made, that of the gate while the plan is checked."""
    key = (part, target.digest)
    if key not in _objects and key not in _begun:
        _begun.add(key)
        _make_meanwhile((part,), target)


def _make_meanwhile(parts: Sequence[str], target: LLVMTarget) -> None:
    def work() -> None:
        # Each call into LLVM gives the GIL up. Whoever else wants it keeps it for the interval.
        # What fails here fails again, and is reported, where it is needed.
        with giving_way(), suppress(Exception):
            for part in parts:
                fixed(part, target)

    _threads[:] = [*(one for one in _threads if one.is_alive()), start(work, "tenfold-fixed")]


def bring(part: str, target: LLVMTarget, data: bytes) -> None:
    """Use this object code, from a file that is trusted, unless there is some already."""
    _objects.setdefault((part, target.digest), data)


@lru_cache(2)  # it is named by itself, looked for, and compiled
def _text(part: str, target: LLVMTarget) -> str:
    if part in TEXTS:
        return TEXTS[part](target)
    from tenfold.backends.cpu.library.routine import routine_text  # few plans call one

    return routine_text(part, target)


def _name(part: str, target: LLVMTarget) -> str:
    mark = interface(target)
    if part not in TEXTS:
        mark = sha256(_text(part, target).encode()).hexdigest()[:32]
    return f"{part}-{mark}-{target.digest}"


def _stores() -> Sequence[CodeStore]:
    return stores if route() == "elf" else ()  # elsewhere code is not loaded from files


def find_object(name: str) -> bytes | None:
    """Object code that was kept under this name."""
    found = (store.find(name) for store in _stores())
    return next((data for data in found if data is not None), None)


def keep_object(name: str, data: bytes) -> None:
    """Keep object code for other processes."""
    for store in _stores():
        store.keep(name, data)


def _find(part: str, target: LLVMTarget) -> bytes | None:
    key = (part, target.digest)
    found = _objects.get(key)
    if found is None:
        found = find_object(_name(part, target))
        if found is not None:
            _objects[key] = found
    return found


def _make(part: str, target: LLVMTarget) -> bytes:
    # A hit on disk needs neither of these.
    from tenfold.backends.cpu.link.prelink import prelink
    from tenfold.backends.llvm.assemble import assemble

    made = prelink(assemble(_text(part, target), target), EXPORTS.get(part, (part,)))
    keep_object(_name(part, target), made)
    _objects[part, target.digest] = made
    return made


def _wait() -> None:
    """A child gets no thread, and must not get locks that one holds."""
    for thread in _threads:
        thread.join()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait)
