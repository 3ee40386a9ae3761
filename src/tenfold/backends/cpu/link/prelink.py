"""Linked once, loaded often: an image of object code with the few words that depend on where it
lies, or on what it imports, listed beside it.

Code refers to itself by relative addresses, and its constants and data lie at one distance from it
(`pages`), so most of an image is the same wherever it lies. Linking notes the words that are not
(`link.Relocations`); where there is more to it, object code is kept as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgpack
import numpy as np

from tenfold.backends.cpu.link.elf import DATA, LIMIT, PAGE, bad
from tenfold.backends.cpu.link.loader import LINKED, Image, process_symbol, route
from tenfold.backends.cpu.link.pages import AREA, ImagePages
from tenfold.errors import FileError
from tenfold.frozen import frozen

if TYPE_CHECKING:
    from tenfold.backends.cpu.link.link import Relocations

Array = np.ndarray[Any, Any]


@frozen
class LinkedImage:
    """An image: its three parts without the zeros they end in, and what is to be filled in.

    `own` are numbers of words to which the image's address is added, `imports` the names of
    imports with the numbers of the words that hold their addresses.
    """

    sizes: tuple[int, ...]
    parts: tuple[bytes, ...]
    own: bytes  # int32
    imports: tuple[tuple[str, bytes], ...]
    exports: Mapping[str, int]  # offsets

    def pack(self) -> bytes:
        data = (self.sizes, self.parts, self.own, self.imports, dict(self.exports))
        packed: bytes = msgpack.packb(data)
        return LINKED + packed


def prelink(data: bytes, exports: Sequence[str]) -> bytes:
    """Object code as an image that is quickly loaded; or as it is, where that can't be done."""
    if route() != "elf":
        return data
    from tenfold.backends.cpu.link.archive import members
    from tenfold.backends.cpu.link.elf import read
    from tenfold.backends.cpu.link.link import link

    found, memory, relocations = link([read(one) for one in members(data)], lambda name: 0)
    made = _linked(found, memory, relocations, exports)
    return data if made is None else made.pack()


def written(image: Image, exports: Sequence[str]) -> bytes | None:
    """An image in memory as one that is quickly loaded, without linking again; None where that
    can't be done: it may have written into its data since."""
    if image.linked is None or image.linked[0].sizes[DATA]:
        return None
    made = _linked(image.symbols, *image.linked, exports)
    return None if made is None else made.pack()


def _linked(
    found: Mapping[str, int], memory: ImagePages, relocations: Relocations, exports: Sequence[str]
) -> LinkedImage | None:
    if not (memory.shared and relocations.movable):
        return None
    parts = [bytes(memory.part(n)) for n in range(3)]
    words = np.frombuffer(b"".join(parts), np.int64).copy()
    own = _numbers(memory, relocations.own)
    words[own] -= memory.origin
    imports = {name: _numbers(memory, at) for name, at in relocations.imports.items()}
    for at in imports.values():
        words[at] = 0
    raw, start, cut = words.tobytes(), 0, []
    for part in parts:
        cut.append(raw[start : start + len(part)].rstrip(b"\0"))
        start += len(part)
    return LinkedImage(
        tuple(map(len, parts)),
        tuple(cut),
        own.astype("<i4").tobytes(),
        tuple((name, at.astype("<i4").tobytes()) for name, at in sorted(imports.items())),
        {name: found[name] - memory.origin for name in exports},
    )


def _numbers(memory: ImagePages, offsets: Sequence[int]) -> Array:
    """The numbers of words of the parts, one after the other, that lie at these offsets."""
    found, before = [], 0
    for start, size in zip(memory.starts, memory.sizes, strict=True):
        found += [(at - start + before) // 8 for at in offsets if start <= at < start + size]
        before += size
    return np.array(sorted(found), np.int64)


def load_linked(
    data: bytes | memoryview, given: Mapping[str, int] = MappingProxyType({}), *owners: object
) -> Image:
    """Bring an image into this process; imports are sought in `given` first. The owners live as
    long as it does."""
    try:
        made = LinkedImage(*msgpack.unpackb(data[len(LINKED) :], use_list=False))
        return _load(made, given, owners)
    except FileError:
        raise
    except Exception as error:  # whatever malformed data makes of it
        bad(f"a malformed image: {error!r}")


def _load(made: LinkedImage, given: Mapping[str, int], owners: tuple[object, ...]) -> Image:
    if any(size < 0 or size % PAGE for size in made.sizes) or sum(made.sizes) > LIMIT:
        bad("an image of no size")
    if any(len(raw) > size for raw, size in zip(made.parts, made.sizes, strict=True)):
        bad("an image larger than its pages")
    if max(made.sizes) > AREA:
        bad("an image larger than those that are linked before")
    memory = ImagePages(made.sizes)
    filled = b"".join(
        raw.ljust(size, b"\0") for raw, size in zip(made.parts, made.sizes, strict=True)
    )
    words = np.frombuffer(bytearray(filled), np.int64)
    words[np.frombuffer(made.own, "<i4")] += memory.origin
    for name, at in made.imports:
        address = given.get(name)
        if address is None:
            address = process_symbol(name)
        if address is None:
            raise FileError(f"object code: it needs {name!r}, which is not here; compile it anew")
        words[np.frombuffer(at, "<i4")] = address
    ready, start = words.tobytes(), 0
    for number, size in enumerate(made.sizes):
        memory.part(number)[:] = ready[start : start + size]
        start += size
    memory.seal()
    for offset in made.exports.values():
        part, inside = divmod(offset, AREA)
        if not (0 <= part < 3 and inside < made.sizes[part]):
            bad("an export lies outside its image")
    exports = {name: memory.origin + offset for name, offset in made.exports.items()}
    return Image(exports, memory.size, "elf", (memory, *owners))
