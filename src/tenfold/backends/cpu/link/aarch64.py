"""Relocations of aarch64: fields of instructions, which have 32 bits each.

A symbol is reached in two instructions: the first makes the address of its page of 4096 bytes as
seen from its own, the second has the last twelve bits. Images lie on whole pages, so neither
depends on where.
"""

from __future__ import annotations

import mmap
import struct

from tenfold.backends.cpu.link import elf
from tenfold.backends.cpu.link.elf import bad
from tenfold.backends.cpu.link.relocation import (
    Processor,
    Put,
    Reach,
    Relocation,
    put_half,
    put_half_from_here,
    put_word,
    put_word_from_here,
)

_INSTRUCTION = struct.Struct("<I")
_PAGE = 12  # bits of an address inside its page


def _or(pages: mmap.mmap, here: int, bits: int) -> None:
    """Fill in a field, which LLVM leaves empty."""
    (instruction,) = _INSTRUCTION.unpack_from(pages, here)
    _INSTRUCTION.pack_into(pages, here, instruction | bits)


def _branch(bits: int, shift: int) -> Put:
    """The distance to an instruction, in instructions."""

    def put(pages: mmap.mmap, here: int, value: int, place: int) -> None:
        _or(pages, here, _signed(value - place, 2, bits) << shift)

    return put


def _low(scale: int) -> Put:
    """The last bits of an address, in units of what is loaded or stored there."""

    def put(pages: mmap.mmap, here: int, value: int, place: int) -> None:
        inside = value - _page(value)
        if inside % (1 << scale):
            bad(f"a relocation needs {inside:#x} to be a multiple of {1 << scale}")
        _or(pages, here, inside >> scale << 10)

    return put


def _put_page(pages: mmap.mmap, here: int, value: int, place: int) -> None:
    _or(pages, here, _split(_signed(_page(value) - _page(place), _PAGE, 21)))


def _put_near(pages: mmap.mmap, here: int, value: int, place: int) -> None:
    _or(pages, here, _split(_signed(value - place, 0, 21)))


def _page(address: int) -> int:
    return address >> _PAGE << _PAGE


def _split(value: int) -> int:
    """21 bits as ADR and ADRP have them: the last two apart."""
    return (value & 3) << 29 | value >> 2 << 5


def _signed(distance: int, shift: int, bits: int) -> int:
    reach = 1 << bits + shift - 1
    if distance % (1 << shift) or not -reach <= distance < reach:
        bad(f"a relocation needs {distance:#x}, which does not fit its instruction")
    return distance >> shift & (1 << bits) - 1


def _jump(place: int, slot: int) -> bytes:
    page = 0x90000010 | _split(_signed(_page(slot) - _page(place), _PAGE, 21))  # adrp x16, slot
    load = 0xF9400210 | (slot - _page(slot)) >> 3 << 10  # ldr x16, [x16, slot in its page]
    return struct.pack("<3I", page, load, 0xD61F0200)  # br x16


def _near(put: Put) -> Relocation:
    return Relocation(Reach.NEAR, 4, put)


AARCH64 = Processor(
    name="aarch64",
    number=elf.AARCH64,
    prefix="R_AARCH64_",
    relocations={
        257: Relocation(Reach.WORD, 8, put_word),  # ABS64
        258: Relocation(Reach.SMALL, 4, put_half),  # ABS32
        260: Relocation(Reach.FAR, 8, put_word_from_here),  # PREL64
        261: _near(put_half_from_here),  # PREL32
        273: _near(_branch(19, 5)),  # LD_PREL_LO19
        274: _near(_put_near),  # ADR_PREL_LO21
        275: _near(_put_page),  # ADR_PREL_PG_HI21
        277: _near(_low(0)),  # ADD_ABS_LO12_NC
        278: _near(_low(0)),  # LDST8_ABS_LO12_NC
        279: _near(_branch(14, 5)),  # TSTBR14
        280: _near(_branch(19, 5)),  # CONDBR19
        282: Relocation(Reach.CALL, 4, _branch(26, 0)),  # JUMP26
        283: Relocation(Reach.CALL, 4, _branch(26, 0)),  # CALL26
        284: _near(_low(1)),  # LDST16_ABS_LO12_NC
        285: _near(_low(2)),  # LDST32_ABS_LO12_NC
        286: _near(_low(3)),  # LDST64_ABS_LO12_NC
        299: _near(_low(4)),  # LDST128_ABS_LO12_NC
        311: Relocation(Reach.SLOT, 4, _put_page),  # ADR_GOT_PAGE
        312: Relocation(Reach.SLOT, 4, _low(3)),  # LD64_GOT_LO12_NC
    },
    refused={
        259: "ABS16", 262: "PREL16", 276: "ADR_PREL_PG_HI21_NC", 313: "LD64_GOTPAGE_LO15",
        314: "PLT32", 512: "TLSGD_ADR_PREL21", 513: "TLSGD_ADR_PAGE21", 1024: "COPY",
        1025: "GLOB_DAT", 1026: "JUMP_SLOT", 1027: "RELATIVE",
    },
    jump=_jump,
)  # fmt: skip
