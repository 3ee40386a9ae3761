"""Map ELF objects into memory and link them.

Code, constants and data lie on separate pages, filled while writable, then sealed (`pages`). An
import is reached through a table of addresses among the
constants, and called by a small jump after the code, since it may lie farther than a relative
address reaches.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tenfold.backends.cpu.link.elf import (
    ABSOLUTE,
    CODE,
    CONSTANT,
    IMPORTED,
    RELOCATION,
    ElfObject,
    bad,
)
from tenfold.backends.cpu.link.pages import ImagePages
from tenfold.errors import FileError

_WORD, _HALF = struct.Struct("<Q"), struct.Struct("<i")
_MASK = 2**64 - 1

_NONE, _64, _PC32, _PLT32, _GOTPCREL, _32, _32S, _PC64 = 0, 1, 2, 4, 9, 10, 11, 24
_GOTPCRELX, _REX_GOTPCRELX = 41, 42
_DIRECT = frozenset((_PC32, _PLT32))
_RELATIVE = _DIRECT | {_GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX}
_WORDS = frozenset((_64, _PC64))
# The names of the others, for the message that refuses them.
_KINDS = {
    3: "GOT32", 5: "COPY", 6: "GLOB_DAT", 7: "JUMP_SLOT", 8: "RELATIVE", 12: "16", 13: "PC16",
    14: "8", 15: "PC8", 16: "DTPMOD64", 17: "DTPOFF64", 18: "TPOFF64", 19: "TLSGD", 20: "TLSLD",
    21: "DTPOFF32", 22: "GOTTPOFF", 23: "TPOFF32", 25: "GOTOFF64", 26: "GOTPC32", 27: "GOT64",
    28: "GOTPCREL64", 29: "GOTPC64", 31: "PLTOFF64", 32: "SIZE32", 33: "SIZE64",
}  # fmt: skip

_JUMP = b"\xff\x25"  # jmp *offset(%rip), the offset follows
_STUB = 16

Resolve = Callable[[str], int | None]
Origin = str | None  # of an address: "" here, None a constant, else the name of an import


@dataclass(slots=True)
class Relocations:
    """Which words of linked memory depend on where it lies, and which on what it imports, by their
    offsets in the mapping."""

    own: list[int] = field(default_factory=list)
    imports: dict[str, list[int]] = field(default_factory=dict)
    movable: bool = True  # whether there is nothing else that does

    def note(self, here: int, origin: Origin, addend: int = 0) -> None:
        """A word that holds an address."""
        if here % 8 or (origin and addend):
            self.movable = False
        elif origin == "":
            self.own.append(here)
        elif origin is not None:
            self.imports.setdefault(origin, []).append(here)


def _up(offset: int, align: int) -> int:
    return (offset + align - 1) & -align


def link(
    objects: Sequence[ElfObject], resolve: Resolve
) -> tuple[dict[str, int], ImagePages, Relocations]:
    """The addresses of all names the objects define, the memory they lie in, and what in it would
    be different elsewhere."""
    sizes = [0, 0, 0]
    offsets: list[dict[int, int]] = []
    for item in objects:
        own = {}
        for index, section in item.sections.items():
            start = own[index] = _up(sizes[section.place], section.align)
            sizes[section.place] = start + section.size
        offsets.append(own)
    imports = _imports(objects, resolve)
    # Room for a jump to each import, and for the address of each symbol: an upper bound, since
    # pages that are not touched cost nothing.
    stubs = _up(sizes[CODE], _STUB)
    sizes[CODE] = stubs + _STUB * len(imports)
    slots = _up(sizes[CONSTANT], 8)
    sizes[CONSTANT] = slots + 8 * (len(imports) + sum(len(item.symbols) for item in objects))

    memory = ImagePages(sizes)
    for item, own in zip(objects, offsets, strict=True):
        for index, section in item.sections.items():
            start = own[index] = own[index] + memory.starts[section.place]
            if section.content:
                memory.pages[start : start + section.size] = section.content
    exports = _exports(objects, offsets, memory.base)
    linker = _Linker(memory, memory.starts[CODE] + stubs, memory.starts[CONSTANT] + slots)
    for item, own in zip(objects, offsets, strict=True):
        linker.relocate(item, own, exports, imports)
    memory.seal()
    return exports, memory, linker.relocations


def _imports(objects: Sequence[ElfObject], resolve: Resolve) -> dict[str, int]:
    """The address of every name that is used and not defined here; 0 for a weak one not found."""
    defined = {
        name for item in objects for name, _, section, _ in item.symbols if section != IMPORTED
    }
    found: dict[str, int] = {}
    missing = []
    for item in objects:
        for name, weak, section, _ in item.symbols:
            if section == IMPORTED and name and name not in defined and name not in found:
                address = resolve(name)
                if address is None and not weak:
                    missing.append(name)
                found[name] = (address or 0) & _MASK
    if missing:
        raise FileError(
            f"object code: it needs {', '.join(sorted(missing))}, which nothing here defines: "
            "give their addresses or compile for this machine"
        )
    return found


def _exports(
    objects: Sequence[ElfObject], offsets: Sequence[dict[int, int]], base: int
) -> dict[str, int]:
    """The address of every name defined here. A weak definition gives way to a strong one."""
    found: dict[str, int] = {}
    soft: set[str] = set()
    for item, own in zip(objects, offsets, strict=True):
        for name, weak, section, value in item.symbols:
            if not name or section == IMPORTED:
                continue
            if section == ABSOLUTE:
                address = value
            elif section in own:
                address = base + own[section] + value
            else:
                continue
            if name not in found or (name in soft and not weak):
                found[name] = address
                if weak:
                    soft.add(name)
                else:
                    soft.discard(name)
            elif not weak:
                raise FileError(f"object code: two objects define {name!r}: rename one")
    return found


class _Linker:
    """Writes addresses into pages that are still writable."""

    __slots__ = ("_base", "_memory", "_slot", "_slots", "_stub", "_stubs", "relocations")

    def __init__(self, memory: ImagePages, stub: int, slot: int) -> None:
        self._memory = memory
        self._base = memory.base
        self._stub, self._slot = stub, slot  # the offsets of the next free ones
        self._stubs: dict[str, int] = {}  # import → offset of the jump there
        self._slots: dict[tuple[int, Origin], int] = {}  # offset of the word with an address
        self.relocations = Relocations()

    def _slot_of(self, address: int, origin: Origin) -> int:
        slot = self._slots.get((address, origin))
        if slot is None:
            slot = self._slots[address, origin] = self._slot
            self._slot += 8
            _WORD.pack_into(self._memory.pages, slot, address)
            self.relocations.note(slot, origin)
        return slot

    def _stub_of(self, address: int, name: str) -> int:
        stub = self._stubs.get(name)
        if stub is None:
            stub = self._stubs[name] = self._stub
            self._stub += _STUB
            pages = self._memory.pages
            pages[stub : stub + 2] = _JUMP
            _HALF.pack_into(pages, stub + 2, self._slot_of(address, name) - (stub + 6))
        return stub

    def _origin(self, address: int, name: str, imports: dict[str, int]) -> Origin:
        if name in imports:
            return name
        return "" if self._base <= address <= self._base + len(self._memory.pages) else None

    def relocate(
        self, item: ElfObject, own: dict[int, int], exports: dict[str, int], imports: dict[str, int]
    ) -> None:
        """Fill in the addresses of one object's symbols wherever it uses them."""
        base, pages = self._base, self._memory.pages
        symbols = item.symbols
        addresses: list[int | None] = []
        for name, _, section, value in symbols:
            if name:
                address = exports.get(name)
                addresses.append(imports.get(name) if address is None else address)
            elif section == ABSOLUTE:
                addresses.append(value)
            else:
                start = own.get(section)
                addresses.append(None if start is None else base + start + value)
        for target, records in item.relocations:
            start, size = own[target], item.sections[target].size
            writable = item.sections[target].content is not None
            for offset, info, addend in RELOCATION.iter_unpack(records):
                kind, number = info & 0xFFFFFFFF, info >> 32
                if kind == _NONE:
                    continue
                if number >= len(symbols):
                    bad(f"a relocation names symbol {number} of {len(symbols)}")
                if offset + (8 if kind in _WORDS else 4) > size or not writable:
                    bad(f"a relocation at {offset:#x} lies outside its section")
                address = addresses[number]
                if address is None:
                    bad(f"a relocation names symbol {number}, which is not mapped")
                here = start + offset
                name = symbols[number][0]
                origin = self._origin(address, name, imports)
                if kind in _RELATIVE:
                    if kind not in _DIRECT:
                        address = base + self._slot_of(address, origin)
                    elif origin:
                        if kind == _PC32:
                            raise FileError(
                                f"object code: it takes {name!r} to lie near; declare that "
                                "import without dso_local"
                            )
                        address = base + self._stub_of(address, origin)
                    elif origin is None:
                        self.relocations.movable = False
                    _put_half(pages, here, address + addend - (base + here), -(2**31), 2**31)
                elif kind == _64:
                    self.relocations.note(here, origin, addend)
                    _WORD.pack_into(pages, here, (address + addend) & _MASK)
                elif kind == _PC64:
                    self.relocations.movable &= origin == ""
                    _WORD.pack_into(pages, here, (address + addend - base - here) & _MASK)
                elif kind in (_32, _32S):
                    self.relocations.movable &= origin is None
                    low, high = (0, 2**32) if kind == _32 else (-(2**31), 2**31)
                    _put_half(pages, here, address + addend, low, high)
                else:
                    bad(f"a relocation of kind R_X86_64_{_KINDS.get(kind, kind)} is not supported")


def _put_half(pages: mmap.mmap, here: int, value: int, low: int, high: int) -> None:
    if not low <= value < high:
        bad(f"a relocation needs {value:#x}, which does not fit 32 bits")
    _HALF.pack_into(pages, here, value - 2**32 if value >= 2**31 else value)
