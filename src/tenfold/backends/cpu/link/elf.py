"""Read a relocatable ELF object, as LLVM writes it, trusting nothing in it.

Every offset, index and size is checked before it is used; what is wrong raises FileError.
"""

from __future__ import annotations

import mmap
import struct
from typing import NoReturn

from tenfold.errors import FileError
from tenfold.frozen import mutable

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")

_MAGIC = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian, version 1
_RELOCATABLE = 1
_PROGBITS, _SYMTAB, _RELA, _NOBITS, _REL = 1, 2, 4, 8, 9
_NOTE, _UNWIND, _GROUP, _LONG_INDEX = 7, 0x70000001, 17, 18
_RELOCATES = (_RELA, _REL)
_RUN_AT_LOAD = (14, 15, 16)  # init, fini and pre-init arrays
_WRITE, _ALLOC, _EXEC, _TLS, _COMPRESSED = 1, 2, 4, 0x400, 0x800
_ABSOLUTE, _RESERVED = 0xFFF1, 0xFF00
_LOCAL, _WEAK = 0, 2
_ODD_TYPES = (6, 10)  # thread-local; chosen at load

X86_64, AARCH64 = 62, 183  # processors, by their numbers
MACHINES = {X86_64: "x86_64", AARCH64: "aarch64"}
LIMIT = 1 << 30  # bytes of one image: relative addresses reach twice as far
PAGE = max(4096, mmap.PAGESIZE)

CODE, CONSTANT, DATA = 0, 1, 2  # where a section is mapped


@mutable
class Section:
    """One section that is mapped: its bytes, or none and a size to be zeroed."""

    index: int
    place: int
    content: bytes | None
    size: int
    align: int


# One symbol: its name ('' for one that other objects can't see), whether it is weak, the index of
# its section (IMPORTED, or ABSOLUTE for a plain value), and its offset there. A tuple, not a class:
# there are tens of thousands, and loading is to take milliseconds.
Symbol = tuple[str, bool, int, int]
IMPORTED, ABSOLUTE = 0, -1


@mutable
class ElfObject:
    """What linking needs of an object. Relocations: (section index, records)."""

    machine: int  # the processor's number
    sections: dict[int, Section]
    symbols: list[Symbol]
    relocations: list[tuple[int, bytes]]


def bad(why: str) -> NoReturn:
    raise FileError(f"object code: {why}; it is damaged or of another kind: compile it anew")


def read(data: bytes) -> ElfObject:
    """The object in these bytes."""
    if len(data) < _HEADER.size or not data.startswith(_MAGIC):
        bad("not a 64-bit little-endian ELF file")
    head = _HEADER.unpack_from(data)
    kind, machine, table, width, count = head[1], head[2], head[6], head[11], head[12]
    if kind != _RELOCATABLE or machine not in MACHINES:
        bad(f"ELF type {kind} for machine {machine}, not a relocatable object for a known one")
    if width != _SECTION.size or count == 0 or table + count * width > len(data):
        bad("its table of sections does not lie within it")
    headers = list(_SECTION.iter_unpack(data[table : table + count * width]))
    if head[13] >= count:
        bad("its sections have no names")
    names = _slice(data, headers, head[13])
    if b".ctors" in names or b".dtors" in names:  # the older form of init arrays
        bad("it asks for code to be run at load")
    sections: dict[int, Section] = {}
    records: list[tuple[int, bytes]] = []
    symtab = 0
    for index, (_, kind, flags, _, _, size, link, info, _, entry) in enumerate(headers):
        if kind in _RELOCATES:
            if info >= count:
                bad(f"section {index} relocates section {info} of {count}")
            if _is_mapped(headers[info]):
                if kind == _REL or entry != RELOCATION.size or size % entry:
                    bad(f"section {index} holds relocations of an unknown form")
                if link >= count or headers[link][1] != _SYMTAB:
                    bad(f"section {index} names no table of symbols")
                records.append((info, _slice(data, headers, index)))
        elif kind == _SYMTAB:
            if symtab:
                bad("it has two tables of symbols")
            symtab = index
        elif kind == _LONG_INDEX:
            bad("it has more sections than a short index can name")
        elif flags & _ALLOC and _is_mapped(headers[index]):
            sections[index] = _section(data, headers, index)
    for target, _ in records:
        if target not in sections:
            bad(f"its relocations are for section {target}, which holds no code or data")
    symbols = _symbols(data, headers, symtab, sections) if symtab else []
    return ElfObject(machine, sections, symbols, records)


def _is_mapped(header: tuple[int, ...]) -> bool:
    """Whether the section takes part: unwinding tables and notes do not."""
    kind, flags = header[1], header[2]
    return bool(flags & _ALLOC) and kind not in (_UNWIND, _NOTE, _GROUP)


def _slice(data: bytes, headers: list[tuple[int, ...]], index: int) -> bytes:
    start, size = headers[index][4], headers[index][5]
    if start + size > len(data):
        bad(f"section {index} does not lie within it")
    return data[start : start + size]


def _section(data: bytes, headers: list[tuple[int, ...]], index: int) -> Section:
    _, kind, flags, _, _, size, _, _, align, _ = headers[index]
    if kind in _RUN_AT_LOAD:
        bad(f"section {index} asks for code to be run at load")
    if kind not in (_PROGBITS, _NOBITS):
        bad(f"section {index} is of the unknown kind {kind}")
    if flags & (_TLS | _COMPRESSED):
        bad(f"section {index} is thread-local or compressed")
    if flags & _WRITE and flags & _EXEC:
        bad(f"section {index} is writable and executable at once")
    align = align or 1
    if align & (align - 1) or align > PAGE:
        bad(f"section {index} asks to be aligned to {align}")
    if size > LIMIT:
        bad(f"section {index} takes {size} bytes")
    place = CODE if flags & _EXEC else DATA if flags & _WRITE else CONSTANT
    content = None if kind == _NOBITS else _slice(data, headers, index)
    return Section(index, place, content, size, align)


def _symbols(
    data: bytes, headers: list[tuple[int, ...]], table: int, sections: dict[int, Section]
) -> list[Symbol]:
    link, entry = headers[table][6], headers[table][9]
    raw = _slice(data, headers, table)
    if entry != _SYMBOL.size or len(raw) % entry:
        bad("its table of symbols is of an unknown form")
    if link >= len(headers):
        bad("its symbols have no names")
    names = _slice(data, headers, link)
    symbols = []
    for number, (start, info, _, section, value, _) in enumerate(_SYMBOL.iter_unpack(raw)):
        binding, kind = info >> 4, info & 15
        if binding > _WEAK:
            bad(f"symbol {number} has the unknown binding {binding}")
        if kind in _ODD_TYPES:
            bad(f"symbol {number} is thread-local or chosen at load")
        name = ""
        if binding != _LOCAL:
            end = names.find(b"\0", start)
            if end <= start:
                bad(f"symbol {number} has no name")
            try:
                name = names[start:end].decode()
            except UnicodeDecodeError:
                bad(f"the name of symbol {number} is not text")
        if section == _ABSOLUTE:
            section = ABSOLUTE
        elif section >= _RESERVED:
            bad(f"symbol {number} lies in the special section {section:#x}")
        elif section >= len(headers):
            bad(f"symbol {number} lies in section {section} of {len(headers)}")
        elif section in sections and value > sections[section].size:
            bad(f"symbol {number} lies beyond its section")
        symbols.append((name, binding == _WEAK, section, value))
    return symbols
