"""Relocations of x86-64."""

from __future__ import annotations

import struct

from tenfold.backends.cpu.link import elf
from tenfold.backends.cpu.link.relocation import (
    Processor,
    Reach,
    Relocation,
    put_half,
    put_half_from_here,
    put_signed_half,
    put_word,
    put_word_from_here,
)

_SLOT = Relocation(Reach.SLOT, 4, put_half_from_here)


def _jump(place: int, slot: int) -> bytes:
    return struct.pack("<2si", b"\xff\x25", slot - (place + 6))  # jmp *slot(%rip)


X86_64 = Processor(
    name="x86_64",
    number=elf.X86_64,
    prefix="R_X86_64_",
    relocations={
        1: Relocation(Reach.WORD, 8, put_word),  # 64
        2: Relocation(Reach.NEAR, 4, put_half_from_here),  # PC32
        4: Relocation(Reach.CALL, 4, put_half_from_here),  # PLT32
        9: _SLOT,  # GOTPCREL
        10: Relocation(Reach.SMALL, 4, put_half),  # 32
        11: Relocation(Reach.SMALL, 4, put_signed_half),  # 32S
        24: Relocation(Reach.FAR, 8, put_word_from_here),  # PC64
        41: _SLOT,  # GOTPCRELX
        42: _SLOT,  # REX_GOTPCRELX
    },
    refused={
        3: "GOT32", 5: "COPY", 6: "GLOB_DAT", 7: "JUMP_SLOT", 8: "RELATIVE", 12: "16", 13: "PC16",
        14: "8", 15: "PC8", 16: "DTPMOD64", 17: "DTPOFF64", 18: "TPOFF64", 19: "TLSGD", 20: "TLSLD",
        21: "DTPOFF32", 22: "GOTTPOFF", 23: "TPOFF32", 25: "GOTOFF64", 26: "GOTPC32", 27: "GOT64",
        28: "GOTPCREL64", 29: "GOTPC64", 31: "PLTOFF64", 32: "SIZE32", 33: "SIZE64",
    },
    jump=_jump,
)  # fmt: skip
