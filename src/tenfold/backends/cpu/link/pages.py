"""Pages for code, constants and data: many images in one mapping.

The system counts mappings, and a plan should cost none. So a chunk is mapped at once and has three
areas: the image at some page of the first, which is code, has its constants at the same page of the
second and its data at that of the third. The distance is always the same, which `prelink` relies
on, and pages of equal rights lie side by side, which the system counts as one mapping.

No page belongs to two images, none is ever writable and executable at once, and pages are given
out again only when nobody holds the image any more: whoever may run it does. What is too large has
a mapping of its own.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable, Sequence
from functools import cache

from tenfold.backends.cpu.link.elf import CODE, CONSTANT, DATA, LIMIT, PAGE, bad
from tenfold.errors import FileError
from tenfold.locks import Lock

AREA = 1 << 22  # bytes of one area of a chunk
_PARTS = (CODE, CONSTANT, DATA)
_RIGHTS = {CODE: mmap.PROT_READ | mmap.PROT_EXEC, CONSTANT: mmap.PROT_READ}
_OPEN = mmap.PROT_READ | mmap.PROT_WRITE


class _Chunk:
    """A mapping and which of its pages are given out."""

    __slots__ = ("area", "base", "fresh", "pages", "used")

    def __init__(self, area: int) -> None:
        self.area = area
        # Private, not shared: after a fork each process has its own.
        self.pages = mmap.mmap(-1, 3 * area, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.pages[0] = 0  # written to while it is whole: its parts can be joined again
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.pages))
        self.used = bytearray(area // PAGE)
        self.fresh = 0  # the pages from here on were never given out

    def take(self, count: int) -> tuple[int, bool] | None:
        """The first of so many free pages and whether some were given out before, if there are."""
        first = self.used.find(bytes(count))
        if first < 0:
            return None
        end, again = first + count, first < self.fresh
        self.used[first:end] = b"\1" * count
        self.fresh = max(self.fresh, end)
        return first, again


_chunks: list[_Chunk] = []
_taking = Lock()


class ImagePages:
    """The pages of one image, open for writing until it is sealed. Given back when dropped.

    `pages` is the mapping they are part of, `starts` has where in it code, constants and data
    begin, `sizes` how many bytes of whole pages each has.
    """

    __slots__ = ("_chunk", "_count", "_first", "base", "pages", "sizes", "starts")

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = [-(-size // PAGE) * PAGE for size in sizes]
        if self.size > LIMIT:
            bad(f"it takes {self.size} bytes in memory")
        self._count = max(*self.sizes, PAGE) // PAGE
        with _taking:
            again = self._take()
        self.pages, self.base = self._chunk.pages, self._chunk.base
        self.starts = [self._first * PAGE + part * self._chunk.area for part in _PARTS]
        if again:
            self._open()

    def _take(self) -> bool:
        """Choose a chunk and pages of it; whether some of them were given out before."""
        for chunk in _chunks if self.shared else ():
            found = chunk.take(self._count)
            if found is not None:
                break
        else:
            chunk = _Chunk(AREA if self.shared else self._count * PAGE)
            if self.shared:
                _chunks.append(chunk)
            found = chunk.take(self._count)
            assert found is not None
        self._first, again = found
        self._chunk = chunk
        return again

    def _open(self) -> None:
        """Make pages that were given out before writable again, and clear them."""
        for part in _RIGHTS:
            self._protect(part, _OPEN)
        for start in self.starts:
            self.pages[start : start + self._count * PAGE] = bytes(self._count * PAGE)

    @property
    def size(self) -> int:
        """The bytes of all parts."""
        return sum(self.sizes)

    @property
    def shared(self) -> bool:
        """Whether its parts lie as far from each other as those of all images do."""
        return self._count * PAGE <= AREA

    @property
    def origin(self) -> int:
        """The address of the code."""
        return self.base + self.starts[CODE]

    def part(self, number: int) -> memoryview:
        """The bytes of one part."""
        start = self.starts[number]
        return memoryview(self.pages)[start : start + self.sizes[number]]

    def seal(self) -> None:
        """Let code be run, and neither code nor constants be written any more."""
        clear = _clear_cache()
        if clear is not None:
            clear(self.origin, self.origin + self.sizes[CODE])
        for part, rights in _RIGHTS.items():
            self._protect(part, rights)

    def _protect(self, part: int, rights: int) -> None:
        if _mprotect()(self.base + self.starts[part], self._count * PAGE, rights):
            raise OSError(ctypes.get_errno(), "this system does not let pages become code")

    def __del__(self) -> None:
        if hasattr(self, "_chunk"):
            self._chunk.used[self._first : self._first + self._count] = bytes(self._count)


@cache
def _mprotect() -> Callable[[int, int, int], int]:
    function = ctypes.CDLL(None, use_errno=True).mprotect
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return function


@cache
def _clear_cache() -> Callable[[int, int], None] | None:
    """Has processors fetch anew what was written as data, in pages that held code before; None
    where they see to it themselves."""
    if os.uname().machine != "aarch64":
        return None
    try:
        function = ctypes.CDLL("libgcc_s.so.1").__clear_cache
    except (OSError, AttributeError) as error:
        raise FileError(
            "object code: this system has no libgcc_s.so.1, by which aarch64 is told of new code: "
            "install it (Debian: libgcc-s1)"
        ) from error
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_void_p), None
    return function
