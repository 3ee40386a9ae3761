"""Object code brought into memory: linked right, protected, freed, and never trusted."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pages import pages_held

from tenfold.backends.cpu.link import loader
from tenfold.backends.cpu.link.elf import read
from tenfold.backends.cpu.link.link import link
from tenfold.backends.cpu.link.loader import Image, load, process_symbol, route
from tenfold.backends.cpu.link.pages import AREA
from tenfold.backends.cpu.link.prelink import prelink
from tenfold.backends.cpu.target import host_target
from tenfold.errors import FileError

Assemble = Callable[[str], bytes]
only_elf = pytest.mark.skipif(route() != "elf", reason="LLVM's loader is used here")

ADD_ONE = """
define i64 @add_one(i64 %x) {
  %y = add i64 %x, 1
  ret i64 %y
}
"""

# A little of everything: constants, a table of addresses, data, zeroed data, imports, weak names.
MIXED = """
@table = constant [2 x ptr] [ptr @twice, ptr @thrice]
@count = dso_local global i64 5
@zeroed = dso_local global [100 x i64] zeroinitializer, align 64
@outside = external global i64
declare double @exp(double)
declare i64 @add_one(i64)
define weak i64 @twice(i64 %x) {
  %y = mul i64 %x, 2
  ret i64 %y
}
define internal i64 @thrice(i64 %x) {
  %y = mul i64 %x, 3
  ret i64 %y
}
define i64 @pick(i64 %which, i64 %x) {
  %p = getelementptr ptr, ptr @table, i64 %which
  %f = load ptr, ptr %p
  %y = call i64 %f(i64 %x)
  ret i64 %y
}
define i64 @bump() {
  %a = load i64, ptr @count
  %b = call i64 @add_one(i64 %a)
  store i64 %b, ptr @count
  store i64 %b, ptr getelementptr (i64, ptr @zeroed, i64 99)
  ret i64 %b
}
define i64 @read_outside() {
  %x = load i64, ptr @outside
  ret i64 %x
}
define double @scaled_exp(double %x) {
  %y = call double @exp(double %x)
  %z = fmul double %y, 0.3
  ret double %z
}
"""


def call(image: Image, name: str, *args: int) -> int:
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(args))
    return int(kind(image.address(name))(*args))


def rights(address: int) -> str:
    """What the system lets be done at an address: 'r-x' and its like; '' when nothing is there."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, allowed = line.split()[:2]
        low, high = (int(end, 16) for end in span.split("-"))
        if low <= address < high:
            return allowed[:3]
    return ""


@pytest.fixture(params=["elf", "llvmlite"])
def any_route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "elf" and route() != "elf":
        pytest.skip("LLVM's loader is used here")
    monkeypatch.setattr(loader, "route", lambda: request.param)
    return str(request.param)


def test_objects_are_linked_with_each_other_and_outside(any_route: str, assemble: Assemble) -> None:
    cell = ctypes.c_int64(77)
    names = ["pick", "bump", "read_outside", "scaled_exp", "add_one"]
    given = {"outside": ctypes.addressof(cell)}
    image = load([assemble(MIXED), assemble(ADD_ONE)], names, given)
    assert image.route == any_route
    assert [call(image, "pick", which, 7) for which in (0, 1)] == [14, 21]
    assert [call(image, "bump") for _ in range(3)] == [6, 7, 8]
    assert call(image, "read_outside") == 77
    scaled = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(image.address("scaled_exp"))
    assert scaled(1.5) == math.exp(1.5) * 0.3


def test_an_image_calls_another_and_keeps_it_alive(any_route: str, assemble: Assemble) -> None:
    first = load([assemble(ADD_ONE)], ["add_one"])
    text = """
    declare i64 @add_one(i64)
    define i64 @add_two(i64 %x) {
      %y = call i64 @add_one(i64 %x)
      %z = call i64 @add_one(i64 %y)
      ret i64 %z
    }
    """
    second = load([assemble(text)], ["add_two"], libraries=[first])
    del first
    gc.collect()
    assert call(second, "add_two", 40) == 42


def test_each_image_has_its_own_data(any_route: str, assemble: Assemble) -> None:
    objects = [assemble(MIXED.replace("@outside = external", "@outside = ")
                        .replace("global i64\ndeclare", "global i64 0\ndeclare")),
               assemble(ADD_ONE)]  # fmt: skip
    first, second = load(objects, ["bump"]), load(objects, ["bump"])
    assert [call(first, "bump"), call(first, "bump"), call(second, "bump")] == [6, 7, 6]


def test_a_missing_export_is_named(any_route: str, assemble: Assemble) -> None:
    with pytest.raises(FileError, match="absent"):
        load([assemble(ADD_ONE)], ["absent"])


def test_a_missing_import_is_named(any_route: str, assemble: Assemble) -> None:
    text = "declare void @nowhere()\ndefine void @f() {\n  call void @nowhere()\n  ret void\n}"
    with pytest.raises(FileError, match="nowhere" if any_route == "elf" else "object code"):
        load([assemble(text)], ["f"])


@only_elf
def test_constants_leave_the_end_of_pages_to_frames(assemble: Assemble) -> None:
    """What kernels spill lies there: reads of constants would wait for it."""
    numbers = ", ".join(f"i64 {n}" for n in range(1, 76))
    texts = [f"@c{n} = constant [75 x i64] [{numbers}]" for n in range(12)]
    exports, memory, _ = link([read(assemble(text)) for text in texts], lambda name: None)
    assert len(exports) == 12
    constants = bytes(memory.part(1))
    assert all(not any(constants[at + 3072 : at + 4096]) for at in range(0, len(constants), 4096))


@only_elf
def test_no_page_is_writable_and_executable(assemble: Assemble) -> None:
    image = load([assemble(MIXED), assemble(ADD_ONE)], ["pick"], {"outside": 0})
    where = {name: rights(image.address(name)) for name in ("pick", "count", "zeroed", "table")}
    assert where["pick"] == "r-x"
    assert where["count"] == where["zeroed"] == "rw-"
    assert "x" not in where["table"]


@only_elf
def test_constants_cannot_be_written(assemble: Assemble) -> None:
    text = "@fixed = constant [4 x i64] [i64 1, i64 2, i64 3, i64 4]"
    image = load([assemble(text)], ["fixed"])
    assert rights(image.address("fixed")) == "r--"


@only_elf
def test_memory_is_given_back(assemble: Assemble) -> None:
    data, before = assemble(ADD_ONE), pages_held()
    image = load([data], ["add_one"])
    address = image.address("add_one")
    assert rights(address) == "r-x"
    assert pages_held() == before + 1
    kept = load([data], ["add_one"])
    del image
    assert pages_held() == before + 1
    again = load([data], ["add_one"])
    assert again.address("add_one") == address
    assert rights(address) == "r-x"
    assert [call(one, "add_one", 41) for one in (kept, again)] == [42, 42]


@only_elf
def test_pages_that_are_used_again_are_cleared(assemble: Assemble) -> None:
    data = assemble("@zeroed = global [100 x i64] zeroinitializer")
    image = load([data], ["zeroed"])
    address = image.address("zeroed")
    ctypes.c_int64.from_address(address).value = 7
    del image
    again = load([data], ["zeroed"])
    assert again.address("zeroed") == address
    assert ctypes.c_int64.from_address(address).value == 0


@only_elf
def test_images_share_mappings(assemble: Assemble) -> None:
    data = assemble(MIXED.replace("@outside = external", "@outside = ")
                    .replace("global i64\ndeclare", "global i64 0\ndeclare"))  # fmt: skip
    objects = [data, assemble(ADD_ONE)]
    images = [load(objects, ["pick"])]
    before = len(Path("/proc/self/maps").read_text().splitlines())
    images += [load(objects, ["pick"]) for _ in range(300)]
    del images[1:300:2]  # holes are filled, and do not part what lies beside them
    images += [load(objects, ["pick"]) for _ in range(100)]
    after = len(Path("/proc/self/maps").read_text().splitlines())
    assert after < before + 20
    assert all(call(image, "pick", 1, 7) == 21 for image in images)


@only_elf
def test_what_is_too_large_for_a_chunk_has_a_mapping_of_its_own(assemble: Assemble) -> None:
    text = f"@large = global [{AREA // 8 + 1} x i64] zeroinitializer\n" + ADD_ONE
    before, data = pages_held(), assemble(text)
    image = load([data], ["large", "add_one"])
    assert pages_held() == before
    assert call(image, "add_one", 41) == 42
    assert (rights(image.address("add_one")), rights(image.address("large"))) == ("r-x", "rw-")
    assert prelink(data, ["add_one"]) == data
    address = image.address("large")
    del image
    assert rights(address) == ""


@only_elf
def test_data_is_private_after_a_fork(assemble: Assemble) -> None:
    image = load([assemble(MIXED), assemble(ADD_ONE)], ["bump"], {"outside": 0})
    child = os.fork()
    if child == 0:
        os._exit(0 if [call(image, "bump") for _ in range(4)] == [6, 7, 8, 9] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert call(image, "bump") == 6


@only_elf
def test_a_strong_definition_wins_over_a_weak_one(assemble: Assemble) -> None:
    weak = ADD_ONE.replace("define", "define weak").replace("i64 %x, 1", "i64 %x, 100")
    for objects in ([weak, ADD_ONE], [ADD_ONE, weak]):
        assert call(load([assemble(o) for o in objects], ["add_one"]), "add_one", 1) == 2
    assert call(load([assemble(weak), assemble(weak)], ["add_one"]), "add_one", 1) == 101
    with pytest.raises(FileError, match="two objects define 'add_one'"):
        load([assemble(ADD_ONE), assemble(ADD_ONE)], ["add_one"])


@only_elf
def test_weak_imports_may_be_missing(assemble: Assemble) -> None:
    text = """
    declare extern_weak void @nowhere()
    define i64 @there() {
      %c = icmp ne ptr @nowhere, null
      %r = zext i1 %c to i64
      ret i64 %r
    }
    """
    assert call(load([assemble(text)], ["there"]), "there") == 0


ABSOLUTE = """
module asm ".globl forty_two"
module asm "forty_two = 42"
"""

ADDRESSES = """
module asm ".data"
module asm ".globl near, word, apart, short, small"
module asm "near: .quad 0"
module asm "word: .quad near"
module asm "apart: .quad outer - ."
module asm "short: .long outer - ."
module asm "small: .long forty_two"
@outer = global i64 0
@far = external global i64
declare i64 @import(i64)
define ptr @far_address() {
  ret ptr @far
}
define i64 @imported(i64 %x) {
  %y = call i64 @import(i64 %x)
  ret i64 %y
}
define ptr @import_address() {
  ret ptr @import
}
"""


GIVEN = {"far": 1 << 46, "import": 1 << 46, "forty_two": 42}


# Kinds of relocations by what they are called in these tests.
KINDS = {
    "x86_64": {"word": 1, "near": 2, "call": 4, "small": 10, "apart": 24, "slot": 42},
    "aarch64": {"word": 257, "near": 261, "call": 283, "small": 258, "apart": 260, "slot": 311},
}.get(host_target().arch, {})


def kinds_in(data: bytes) -> set[int]:
    found = set()
    for _, records in read(data).relocations:
        found |= {info & 0xFFFFFFFF for _, info, _ in struct.iter_unpack("<QQq", records)}
    return found


@only_elf
def test_every_kind_of_relocation(assemble: Assemble) -> None:
    data = assemble(ADDRESSES)
    assert kinds_in(data) >= {*KINDS.values()}
    other = load([assemble(ADD_ONE)], ["add_one"])
    given = {"far": 0x123456789ABC, "import": other.address("add_one")}
    image = load([data, assemble(ABSOLUTE)], [], given)
    near, outer = image.address("near"), image.address("outer")
    for name, kind, expected in (
        ("word", ctypes.c_int64, near),
        ("apart", ctypes.c_int64, outer - image.address("apart")),
        ("short", ctypes.c_int32, outer - image.address("short")),
        ("small", ctypes.c_int32, 42),
    ):
        assert kind.from_address(image.address(name)).value == expected, name
    assert call(image, "far_address") == 0x123456789ABC
    assert call(image, "import_address") == other.address("add_one")
    assert call(image, "imported", 6) == 7


def with_kind(data: bytes, old: int, new: int) -> bytes:
    """The same object with the relocations of one kind turned into another."""
    changed = bytearray(data)
    for _, records in read(data).relocations:
        start = data.index(records)
        for offset in range(start, start + len(records), 24):
            info = struct.unpack_from("<Q", data, offset + 8)[0]
            if info & 0xFFFFFFFF == old:
                struct.pack_into("<Q", changed, offset + 8, info - old + new)
    return bytes(changed)


@only_elf
@pytest.mark.parametrize("number", range(5))
def test_an_unknown_relocation_is_named(assemble: Assemble, number: int) -> None:
    kind, name = {
        "x86_64": [(18, "TPOFF64"), (22, "GOTTPOFF"), (25, "GOTOFF64"), (14, "8"), (99, "99")],
        "aarch64": [(259, "ABS16"), (262, "PREL16"), (314, "PLT32"), (513, "TLSGD_ADR_PAGE21"),
                    (99, "99")],
    }[host_target().arch][number]  # fmt: skip
    with pytest.raises(FileError, match=rf"R_[A-Z0-9]+(_64)?_{name} "):
        load([with_kind(assemble(ADDRESSES), KINDS["word"], kind)], [], GIVEN)


@pytest.mark.skipif(host_target().arch != "x86_64", reason="a relocation of x86-64 alone")
def test_a_signed_half_takes_what_fits(assemble: Assemble) -> None:
    image = load([with_kind(assemble(ADDRESSES), 10, 11)], ["small"], GIVEN)
    assert ctypes.c_int32.from_address(image.address("small")).value == 42
    with pytest.raises(FileError, match="does not fit 32 bits"):
        load([with_kind(assemble(ADDRESSES), 1, 11)], [], GIVEN)


@only_elf
def test_a_far_import_declared_near_is_refused(assemble: Assemble) -> None:
    text = ADDRESSES.replace("@far = external", "@far = external dso_local")
    with pytest.raises(FileError, match="dso_local"):
        load([assemble(text)], [], GIVEN)


@only_elf
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("@t = thread_local global i64 1", "thread-local"),
        (
            "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] "
            "[{ i32, ptr, ptr } { i32 1, ptr @f, ptr null }]\n"
            "define void @f() {\n  ret void\n}",
            "run at load",
        ),
        (
            'module asm ".section .strange,\\22awx\\22,@progbits"\nmodule asm ".quad 1"',
            "writable and executable",
        ),
    ],
)
def test_what_is_not_wanted_is_refused(assemble: Assemble, text: str, why: str) -> None:
    with pytest.raises(FileError, match=why):
        load([assemble(text)], [])


@only_elf
def test_a_truncated_object_is_refused(assemble: Assemble) -> None:
    data = assemble(MIXED)
    for size in range(0, len(data) - 1, 97):
        with pytest.raises(FileError):
            load([data[:size]], ["pick"], {"outside": 0})
    for other in (b"", b"\x7fELF", b"\x00" * 4096, data.replace(b"\x7fELF\x02", b"\x7fELF\x01", 1)):
        with pytest.raises(FileError):
            load([other], [])


@only_elf
def test_huge_sizes_are_refused(assemble: Assemble) -> None:
    for size in (1 << 28, 1 << 40):
        data = assemble(f"@big = global [{size} x i64] zeroinitializer")
        with pytest.raises(FileError, match="bytes"):
            load([data], ["big"])


def test_process_symbols() -> None:
    assert all(map(process_symbol, ("exp", "sinf", "PyLong_FromLong", "memcpy")))
    assert process_symbol("system") is None
    assert process_symbol("no_such_thing") is None


@only_elf
def test_unresolved_names_are_all_listed(assemble: Assemble) -> None:
    with pytest.raises(FileError, match=re.escape("add_one, exp, outside")):
        link([read(assemble(MIXED))], lambda _: None)


FUZZ = """
import random, sys
from pathlib import Path
from tenfold.backends.cpu.link.loader import load
from tenfold.errors import FileError

files = [Path(name).read_bytes() for name in sys.argv[1:]]
draw = random.Random(20)
words = (0, 1, 2, 7, 8, 0x7F, 0xFF, 0x80)
loaded = refused = 0
for turn in range(900):
    data = bytearray(draw.choice(files))
    for _ in range(draw.choice((1, 1, 2, 5, 30))):
        where = draw.randrange(len(data))
        match draw.randrange(4):
            case 0:
                data[where] = draw.choice(words)
            case 1:
                data[where] ^= 1 << draw.randrange(8)
            case 2:
                del data[where : where + draw.randrange(1, 9)]
            case 3:  # the tables at the end are the most telling
                where = max(0, len(data) - draw.randrange(1, 64 * 14))
                data[where : where + 8] = draw.randbytes(8)
    try:
        load([bytes(data)], [], {"outside": 1 << 40, "far": 8, "import": 9, "add_one": 10,
            "forty_two": 42})
        loaded += 1
    except FileError:
        refused += 1
print(loaded, refused)
"""


@only_elf
def test_damaged_objects_never_crash(assemble: Assemble, tmp_path: Path) -> None:
    paths = []
    for number, text in enumerate((ADD_ONE, MIXED, ADDRESSES)):
        path = tmp_path / f"{number}.o"
        path.write_bytes(assemble(text))
        paths.append(str(path))
    done = subprocess.run(
        [sys.executable, "-c", FUZZ, *paths], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded, refused = map(int, done.stdout.split())
    assert loaded > 50
    assert refused > 50
