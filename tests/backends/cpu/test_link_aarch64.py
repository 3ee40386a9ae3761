"""Objects for aarch64 linked on any machine: each instruction reaches what it names."""

from __future__ import annotations

import ctypes
import mmap
import struct

import pytest

from tenfold.backends.cpu.link.aarch64 import AARCH64
from tenfold.backends.cpu.link.elf import read
from tenfold.backends.cpu.link.link import link
from tenfold.backends.cpu.link.loader import load
from tenfold.backends.llvm.assemble import assemble
from tenfold.backends.llvm.target import target_with
from tenfold.errors import FileError

TARGET = target_with("aarch64-unknown-linux-gnu", ())
FAR = 0x123456789ABC
PLACE = 0x7000_0000_1000

# Kinds with an instruction whose field is empty, what it is to reach from PLACE, and the
# instruction that does, as the manual of the processor has them.
ENCODED = [
    (273, 0x58000000, PLACE + 8, 0x58000040),  # ldr x0, .+8
    (274, 0x10000000, PLACE + 5, 0x30000020),  # adr x0, .+5
    (274, 0x10000000, PLACE - 4, 0x10FFFFE0),  # adr x0, .-4
    (275, 0x90000000, PLACE + 4097, 0xB0000000),  # adrp x0, .+4096
    (275, 0x90000000, PLACE - 1, 0xF0FFFFE0),  # adrp x0, .-4096
    (277, 0x91000000, 0x5010, 0x91004000),  # add x0, x0, #16
    (278, 0x39400000, 0x5001, 0x39400400),  # ldrb w0, [x0, #1]
    (279, 0x36180000, PLACE + 8, 0x36180040),  # tbz w0, #3, .+8
    (280, 0x54000000, PLACE - 8, 0x54FFFFC0),  # b.eq .-8
    (282, 0x14000000, PLACE + 8, 0x14000002),  # b .+8
    (283, 0x94000000, PLACE - 4, 0x97FFFFFF),  # bl .-4
    (284, 0x79400000, 0x5002, 0x79400400),  # ldrh w0, [x0, #2]
    (285, 0xB9400000, 0x5004, 0xB9400400),  # ldr w0, [x0, #4]
    (286, 0xF9400000, 0x5FF8, 0xF947FC00),  # ldr x0, [x0, #4088]
    (299, 0x3DC00000, 0x5010, 0x3DC00400),  # ldr q0, [x0, #16]
    (311, 0x90000000, PLACE + 0x3000, 0xF0000000),  # adrp x0, .+12288
    (312, 0xF9400000, 0x5008, 0xF9400400),  # ldr x0, [x0, #8]
]

# What does not fit: too far, or not a multiple of what is loaded.
REFUSED = [
    (274, PLACE + (1 << 20)), (275, PLACE + (1 << 33)), (280, PLACE + 2), (282, PLACE + (1 << 27)),
    (283, PLACE - (1 << 27) - 4), (284, 0x5001), (299, 0x5008), (261, PLACE + (1 << 31)),
    (258, -1), (279, PLACE + (1 << 15)),
]  # fmt: skip


def changed(kind: int, before: int, value: int) -> int:
    pages = mmap.mmap(-1, mmap.PAGESIZE)
    struct.pack_into("<I", pages, 8, before)
    AARCH64.relocations[kind].put(pages, 8, value, PLACE)
    return int(struct.unpack_from("<I", pages, 8)[0])


@pytest.mark.parametrize(("kind", "before", "value", "after"), ENCODED)
def test_fields_of_instructions(kind: int, before: int, value: int, after: int) -> None:
    assert hex(changed(kind, before, value)) == hex(after)


@pytest.mark.parametrize(("kind", "value"), REFUSED)
def test_what_does_not_fit_is_refused(kind: int, value: int) -> None:
    with pytest.raises(FileError, match="a relocation needs"):
        changed(kind, 0, value)


# All ways in which LLVM's code reaches data, functions and imports.
TEXT = """
@near = internal global [5 x i64] [i64 1, i64 2, i64 3, i64 4, i64 5], align 16
@word = constant ptr getelementptr (i64, ptr @near, i64 3)
@distance = dso_local constant i64 sub (i64 ptrtoint (ptr @near to i64),
                                        i64 ptrtoint (ptr @distance to i64))
@far = external global i64
declare i64 @import(i64)
define ptr @near_address() {
  ret ptr @near
}
define i64 @loaded() {
  %x = load i64, ptr getelementptr (i64, ptr @near, i64 2)
  ret i64 %x
}
define ptr @far_address() {
  ret ptr @far
}
define i64 @imported(i64 %x) {
  %y = call i64 @import(i64 %x)
  %z = call i64 @import(i64 %y)
  ret i64 %z
}
"""


def instructions(address: int, count: int = 16) -> list[int]:
    return list((ctypes.c_uint32 * count).from_address(address))


def page_reached(instruction: int, address: int) -> int:
    """What ADRP makes at an address."""
    assert instruction >> 24 & 0x9F == 0x90
    pages = (instruction >> 5 & 0x7FFFF) << 2 | instruction >> 29 & 3
    return (address >> 12) + (pages - (pages >> 20 << 21)) << 12


def inside(instruction: int, scale: int) -> int:
    return (instruction >> 10 & 0xFFF) << scale


def word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def test_code_reaches_data_imports_and_functions() -> None:
    item = read(assemble(TEXT, TARGET))
    exports, memory, relocations = link([item], {"far": FAR, "import": FAR + 64}.get)
    at = exports["near_address"]
    first, second = instructions(at, 2)
    near = page_reached(first, at) + inside(second, 0)
    assert [word(near + 8 * n) for n in range(5)] == [1, 2, 3, 4, 5]
    assert word(exports["word"]) == near + 24
    assert (exports["distance"] + word(exports["distance"])) % 2**64 == near
    at = exports["loaded"]
    first, second = instructions(at, 2)
    assert word(page_reached(first, at) + inside(second, 3)) == 3
    at = exports["far_address"]
    first, second = instructions(at, 2)
    slot = page_reached(first, at) + inside(second, 3)
    assert word(slot) == FAR
    at = exports["imported"]
    calls = [(n, i) for n, i in enumerate(instructions(at, 8)) if i >> 26 in (0b100101, 0b000101)]
    assert len(calls) == 2  # a call, and the jump that the function ends in
    for n, i in calls:
        away = i & 0x3FFFFFF
        jump = at + 4 * n + 4 * (away - (away >> 25 << 26))
        page, load_, go = instructions(jump, 3)
        assert (load_ >> 22, go) == (0xF9400210 >> 22, 0xD61F0200)
        assert word(page_reached(page, jump) + inside(load_, 3)) == FAR + 64
    assert relocations.movable
    assert memory.base <= slot < memory.base + len(memory.pages)


def test_parts_are_for_one_processor() -> None:
    other = target_with("x86_64-unknown-linux-gnu", ())
    text = "define void @{}() {{\n  ret void\n}}"
    items = [read(assemble(text.format("f"), TARGET)), read(assemble(text.format("g"), other))]
    with pytest.raises(FileError, match=r"machines \[62, 183\], not for one"):
        link(items, {}.get)


def test_code_for_another_processor_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    from tenfold.backends.cpu.link import loader
    from tenfold.backends.cpu.target import host_target

    arch = "x86_64" if host_target().arch == "aarch64" else "aarch64"
    monkeypatch.setattr(loader, "route", lambda: "elf")
    target = target_with(f"{arch}-unknown-linux-gnu", ())
    data = assemble("define void @f() {\n  ret void\n}", target)
    with pytest.raises(FileError, match="it is not for"):
        load([data], ["f"])
