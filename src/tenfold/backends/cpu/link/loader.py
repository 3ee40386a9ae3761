"""Bring object code into this process.

On Linux, for x86-64 and aarch64, by `elf` and `link`, with the standard library alone; elsewhere,
with the same interface, by LLVM's own loader. `route()` says which.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from tenfold.backends.cpu.link.elf import MACHINES, bad
from tenfold.errors import FileError
from tenfold.locks import once

if TYPE_CHECKING:
    from tenfold.backends.cpu.link.link import Relocations
    from tenfold.backends.cpu.link.pages import ImagePages

LINKED = b"TFIMAGE\n"  # what an image that was linked before begins with


class Image:
    """Code in memory, with the addresses of what it exports. Dropped, its memory is freed."""

    __slots__ = ("_owners", "linked", "route", "size", "symbols")

    def __init__(
        self,
        symbols: Mapping[str, int],
        size: int,
        route: str,
        owners: object,
        linked: tuple[ImagePages, Relocations] | None = None,
    ) -> None:
        self.symbols = symbols
        self.size = size  # bytes mapped; 0 where LLVM keeps the count
        self.route = route
        self.linked = linked  # where it was linked here: its memory, and what depends on the place
        self._owners = owners  # what frees the memory, and images whose code is called from here

    def address(self, name: str) -> int:
        """Where an export lies."""
        try:
            return self.symbols[name]
        except KeyError:
            raise FileError(f"object code: it does not define {name!r}; compile it anew") from None


def route() -> str:
    """How code is loaded here: 'elf' (by this package) or 'llvmlite' (by LLVM's loader)."""
    if sys.platform == "linux" and sys.maxsize > 2**32 and os.uname().machine in MACHINES.values():
        return "elf"
    return "llvmlite"


def load(
    objects: Sequence[bytes],
    exports: Sequence[str],
    symbols: Mapping[str, int] | None = None,
    libraries: Sequence[Image] = (),
) -> Image:
    """Link objects, or archives of them, with each other, with given addresses, and with images
    loaded before; or bring back one that `prelink` made.

    `exports` are the names that will be asked for. An import is sought in `symbols`, then in
    `libraries`, which the new image keeps alive, then in Python, libm and a little of libc.
    """
    given: dict[str, int] = {}
    for library in reversed(libraries):
        given.update(library.symbols)
    given.update(symbols or {})
    if objects and objects[0].startswith(LINKED):  # linked before: one image alone
        from tenfold.backends.cpu.link.prelink import load_linked

        image = load_linked(objects[0], given, tuple(libraries))
    elif route() == "elf":
        image = _load_elf(objects, given, libraries)
    else:
        image = _load_by_llvm(objects, exports, given, libraries)
    for name in exports:
        image.address(name)
    return image


def _load_elf(
    objects: Sequence[bytes], given: Mapping[str, int], libraries: Sequence[Image]
) -> Image:
    # What was linked before, as all that comes from the disk is, needs none of these.
    from tenfold.backends.cpu.link.archive import members
    from tenfold.backends.cpu.link.elf import read
    from tenfold.backends.cpu.link.link import link

    def resolve(name: str) -> int | None:
        address = given.get(name)
        return process_symbol(name) if address is None else address

    items = [read(one) for data in objects for one in members(data)]
    here = os.uname().machine
    if not all(MACHINES[item.machine] == here for item in items):
        bad(f"it is not for {here}")
    found, memory, relocations = link(items, resolve)
    owners = (memory, tuple(libraries))
    return Image(found, memory.size, "elf", owners, (memory, relocations))


_names = itertools.count()


@once
def _lljit() -> Any:
    import llvmlite.binding as llvm

    from tenfold.backends.cpu.target import host_target
    from tenfold.backends.llvm.target import target_machine

    return llvm.create_lljit_compiler(
        target_machine(host_target()), use_jit_link=True, suppress_errors=True
    )


def _load_by_llvm(
    objects: Sequence[bytes],
    exports: Sequence[str],
    given: Mapping[str, int],
    libraries: Sequence[Image],
) -> Image:
    import llvmlite.binding as llvm

    from tenfold.backends.cpu.link.archive import members

    builder = llvm.JITLibraryBuilder()
    for data in objects:
        for one in members(data):
            builder.add_object_img(one)
    for name, address in given.items():
        builder.import_symbol(name, address)
    for name in exports:
        builder.export_symbol(name)
    builder.add_current_process()
    try:
        tracker = builder.link(_lljit(), f"tenfold{next(_names)}")
        found = {name: int(tracker[name]) for name in exports}
    except (RuntimeError, KeyError, ValueError) as error:
        raise FileError(f"object code: {error}; compile it anew for this machine") from error
    return Image(found, 0, "llvmlite", (tracker, tuple(libraries)))


# Listed, not merely looked up: a name of ours that is missing must not be found in libc by chance.
# Of libc what LLVM itself calls (copying and filling), and what the entry point and the pool ask
# of the system.
_LIBC = {
    "memcpy", "memmove", "memset", "memcmp", "bcmp", "aligned_alloc", "free", "mmap", "munmap",
    "madvise", "clock_gettime",
    "pthread_create", "pthread_detach", "pthread_sigmask", "syscall",
    "sched_getcpu", "sched_getaffinity", "sched_setaffinity",
}  # fmt: skip
_LIBM = {
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos",
    "cosh", "erf", "erfc", "exp", "exp10", "exp2", "expm1", "fabs", "floor", "fma", "fmax", "fmin",
    "fmod", "frexp", "hypot", "ilogb", "ldexp", "lgamma", "llrint", "llround", "log",
    "log10", "log1p", "log2", "logb",
    "modf", "nearbyint", "nextafter", "pow", "remainder", "rint", "round", "roundeven", "scalbn",
    "sin", "sincos", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc",
}  # fmt: skip


@cache
def process_symbol(name: str) -> int | None:
    """The address of a function of Python, of libm, or of the few of libc that code may call."""
    if name.startswith(("Py", "_Py")):
        return _in(ctypes.pythonapi, name)
    if name in _LIBC:
        return _in(ctypes.CDLL(None), name)
    return _in(_libm(), name) if name in _LIBM or name.removesuffix("f") in _LIBM else None


@cache
def _libm() -> ctypes.CDLL:
    if sys.platform == "linux":
        for name in ("libm.so.6", "libm.so"):
            try:
                return ctypes.CDLL(name)
            except OSError:
                continue
    return ctypes.CDLL(None)


def _in(library: ctypes.CDLL, name: str) -> int | None:
    try:
        return ctypes.addressof(ctypes.c_char.in_dll(library, name))
    except ValueError:
        return None
