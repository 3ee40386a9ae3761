"""The code of native entries: made once for a processor, kept where object code is, loaded once a
process."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from functools import cache
from typing import Any

from tenfold.backends.cpu.entry import ndarray as nd
from tenfold.backends.cpu.entry.bind import gate
from tenfold.backends.cpu.link.loader import Image, load
from tenfold.backends.cpu.run.fixed import GATE, find_object, fixed, keep_object
from tenfold.backends.cpu.target import host_target
from tenfold.backends.cuda.array import DeviceArray
from tenfold.backends.cuda.entry.gate import ADDRESS, KIND
from tenfold.digest import sha256
from tenfold.errors import TenfoldError
from tenfold.locks import once, start
from tenfold.switching import giving_way

EXPORTS = (
    "tn_gate", "tn_dispatch", "tn_kept_plan", "tn_waited_plan", "tn_staged_plan",
    "tn_cell_take", "tn_room_take", "tn_room_give", "tn_copy_part", "tn_at_home",
)  # fmt: skip


@cache
def unsupported() -> str | None:
    """Why there are no native entries in this process, or None."""
    found = nd.supported() or _wrong_field()
    if found is not None:
        return found
    try:
        entries()
    except (TenfoldError, ImportError) as error:  # there is no compiler, and no code on disk
        return str(error)
    return None


@once
def begin() -> None:
    """Have it made in a thread, while the first program is made and checked."""

    def work() -> None:
        with giving_way(), suppress(Exception):  # what fails here fails again where it is needed
            unsupported()

    start(work, "tenfold-entries")


def cpu_gate() -> Image:
    """The gate for NumPy's arrays."""
    return gate(lambda: fixed(GATE, host_target()))


@once
def entries() -> Image:
    """The code of this process."""
    shared = {name: cpu_gate().address(name) for name in ("tn_kept_shrink", "tn_kept_age")}
    symbols = nd.symbols() | shared | {"tn_ndarray": id(DeviceArray)}
    image = load([_object()], EXPORTS, symbols)
    home = ctypes.c_int64.from_address(image.address("tn_at_home"))
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: setattr(home, "value", 0))
    return image


def _object() -> bytes:
    from tenfold.backends.cuda.entry.text import ENTRY_TEXT

    target = host_target()
    name = f"cuda-{sha256(ENTRY_TEXT.encode()).hexdigest()[:32]}-{target.digest}"
    found = find_object(name)
    if found is None:
        from tenfold.backends.cpu.link.prelink import prelink
        from tenfold.backends.llvm.assemble import assemble

        found = prelink(assemble(ENTRY_TEXT, target), EXPORTS)
        keep_object(name, found)
    return found


def _wrong_field() -> str | None:
    """Look where an array has its fields as native code will."""
    made: Any = DeviceArray.__new__(DeviceArray)
    address, kind = 1 << 60, object()
    object.__setattr__(made, "address", address)
    object.__setattr__(made, "kind", kind)
    found = [ctypes.c_uint64.from_address(id(made) + at).value for at in (ADDRESS, KIND)]
    wanted = [id(made.address), id(kind)]
    del made.address, made.kind  # it has no memory to give back
    return None if found == wanted else "an object of Python's keeps its fields elsewhere"
