"""Map ELF objects into memory and link them.

Code, constants and data lie on separate pages, filled while writable, then sealed (`pages`). An
import is reached through a table of addresses among the constants, and called by a small jump after
the code, since it may lie farther than a relative address reaches. What differs between processors
stands in a file for each.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import field

from tenfold.backends.cpu.link.aarch64 import AARCH64
from tenfold.backends.cpu.link.elf import (
    ABSOLUTE,
    CODE,
    CONSTANT,
    IMPORTED,
    PAGE,
    RELOCATION,
    ElfObject,
    bad,
)
from tenfold.backends.cpu.link.pages import ImagePages
from tenfold.backends.cpu.link.relocation import Processor, Reach
from tenfold.backends.cpu.link.x86_64 import X86_64
from tenfold.errors import FileError
from tenfold.frozen import mutable

_WORD = struct.Struct("<Q")
_MASK = 2**64 - 1
_STUB = 16  # bytes of a jump to an import
_BEFORE = PAGE - 1024  # where in pages constants end: behind lie the frames of kernels (`emit`)
PROCESSORS = {one.number: one for one in (X86_64, AARCH64)}

Resolve = Callable[[str], int | None]
Origin = str | None  # of an address: "" here, None a constant, else the name of an import


@mutable
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
    processor = _processor(objects)
    sizes = [0, 0, 0]
    offsets: list[dict[int, int]] = []
    for item in objects:
        own = {}
        for index, section in item.sections.items():
            start = _up(sizes[section.place], section.align)
            if section.place == CONSTANT and start % PAGE + section.size > _BEFORE >= section.size:
                start = _up(start, PAGE)
            own[index] = start
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
    linker = _Linker(
        memory, memory.starts[CODE] + stubs, memory.starts[CONSTANT] + slots, processor
    )
    for item, own in zip(objects, offsets, strict=True):
        linker.relocate(item, own, exports, imports)
    memory.seal()
    return exports, memory, linker.relocations


def _processor(objects: Sequence[ElfObject]) -> Processor:
    machines = {item.machine for item in objects}
    if len(machines) != 1:
        bad(f"its parts are for machines {sorted(machines)}, not for one")
    return PROCESSORS[machines.pop()]


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

    __slots__ = (
        "_base", "_memory", "_processor", "_slot", "_slots", "_stub", "_stubs", "relocations",
    )  # fmt: skip

    def __init__(self, memory: ImagePages, stub: int, slot: int, processor: Processor) -> None:
        self._processor = processor
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
            jump = self._processor.jump(
                self._base + stub, self._base + self._slot_of(address, name)
            )
            self._memory.pages[stub : stub + len(jump)] = jump
        return stub

    def _origin(self, address: int, name: str, imports: dict[str, int]) -> Origin:
        if name in imports:
            return name
        return "" if self._base <= address <= self._base + len(self._memory.pages) else None

    def relocate(
        self, item: ElfObject, own: dict[int, int], exports: dict[str, int], imports: dict[str, int]
    ) -> None:
        """Fill in the addresses of one object's symbols wherever it uses them."""
        base, pages, processor = self._base, self._memory.pages, self._processor
        symbols, known = item.symbols, processor.relocations
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
                if kind == 0:  # none
                    continue
                relocation = known.get(kind)
                if relocation is None:
                    called = f"{processor.prefix}{processor.refused.get(kind, kind)}"
                    bad(f"a relocation of kind {called} is not supported")
                if number >= len(symbols):
                    bad(f"a relocation names symbol {number} of {len(symbols)}")
                reach, width, put = relocation
                if offset + width > size or not writable:
                    bad(f"a relocation at {offset:#x} lies outside its section")
                address = addresses[number]
                if address is None:
                    bad(f"a relocation names symbol {number}, which is not mapped")
                here = start + offset
                name = symbols[number][0]
                origin = self._origin(address, name, imports)
                if reach is Reach.WORD:
                    self.relocations.note(here, origin, addend)
                elif reach is Reach.SLOT:
                    address = base + self._slot_of(address, origin)
                elif reach is Reach.SMALL:
                    self.relocations.movable &= origin is None
                elif reach is Reach.CALL and origin:
                    address = base + self._stub_of(address, origin)
                elif reach is Reach.NEAR and origin:
                    raise FileError(
                        f"object code: it takes {name!r} to lie near; declare that import without "
                        "dso_local"
                    )
                elif origin != "":
                    self.relocations.movable = False
                put(pages, here, address + addend, base + here)
