"""What a relocation of an object asks for, whatever the processor."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from tenfold.backends.cpu.link.elf import bad

_HALF, _WORD = struct.Struct("<i"), struct.Struct("<Q")


class Reach(Enum):
    """By what address a place refers to a symbol."""

    NEAR = "near"  # the symbol's own, seen from here: it has to lie in the image
    FAR = "far"  # the symbol's own, seen from here, wherever it lies
    CALL = "call"  # the symbol's own, or that of a jump to it
    SLOT = "slot"  # that of a word which holds the symbol's
    WORD = "word"  # the symbol's own, as a word
    SMALL = "small"  # the symbol's own, in less than a word


# Writes a value at an offset in pages, the last argument being the address there.
Put = Callable[[mmap.mmap, int, int, int], None]


class Relocation(NamedTuple):
    """One kind: by what it refers to a symbol, how many bytes it changes, and how."""

    reach: Reach
    size: int
    put: Put


class Processor(NamedTuple):
    """What linking has to know of a processor."""

    name: str  # as the system calls it
    number: int  # in the head of an ELF file
    prefix: str  # of the names of its relocations
    relocations: Mapping[int, Relocation]
    refused: Mapping[int, str]  # names of others, for the message
    jump: Callable[[int, int], bytes]  # at most 16 bytes at an address: they go where a word says


def put_word(pages: mmap.mmap, here: int, value: int, place: int) -> None:
    """All 64 bits."""
    _WORD.pack_into(pages, here, value & 2**64 - 1)


def put_word_from_here(pages: mmap.mmap, here: int, value: int, place: int) -> None:
    """The distance from here in 64 bits."""
    _WORD.pack_into(pages, here, (value - place) & 2**64 - 1)


def put_half_from_here(pages: mmap.mmap, here: int, value: int, place: int) -> None:
    """The distance from here in 32 bits."""
    put_signed_half(pages, here, value - place, place)


def put_signed_half(pages: mmap.mmap, here: int, value: int, place: int) -> None:
    """A value of 32 bits with a sign."""
    if not -(2**31) <= value < 2**31:
        bad(f"a relocation needs {value:#x}, which does not fit 32 bits")
    _HALF.pack_into(pages, here, value)


def put_half(pages: mmap.mmap, here: int, value: int, place: int) -> None:
    """A value of 32 bits without a sign."""
    if not 0 <= value < 2**32:
        bad(f"a relocation needs {value:#x}, which does not fit 32 bits")
    _HALF.pack_into(pages, here, value - 2**32 if value >= 2**31 else value)
