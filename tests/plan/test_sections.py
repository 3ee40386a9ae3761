"""The frame of plan files."""

from __future__ import annotations

import hashlib
import os
import tracemalloc
import zlib
from contextlib import contextmanager, suppress
from functools import cache

import msgpack
import pytest

from tenfold.errors import PlanError
from tenfold.plan.file.sections import _FIRST, _HEAD, MAGIC, VERSION, Sections, pack, unpack

PARTS = {"a": b"x" * 1000, "b": b"", "c": bytes(range(256))}


@pytest.mark.parametrize("compress", [True, False])
def test_what_is_packed_is_read(compress):
    found = Sections(pack(PARTS, compress=compress))
    assert {name: bytes(found.raw(name)) for name in found.names} == PARTS
    with pytest.raises(PlanError, match="no section 'd'"):
        found.raw("d")


@pytest.mark.parametrize("compress", [True, False])
def test_every_bit_counts(compress):
    data = pack(PARTS, compress=compress)
    for at in range(0, len(data), 7):
        if 48 <= at < 80:
            continue  # the signature is judged by its key alone
        wrong = bytearray(data)
        wrong[at] ^= 1 << at % 8
        with pytest.raises(PlanError):
            Sections(bytes(wrong))


def test_every_byte_counts():
    data = pack(PARTS)
    for length in range(len(data)):
        with pytest.raises(PlanError):
            Sections(data[:length])
    with pytest.raises(PlanError):
        Sections(data + b"\0")


def test_another_version_is_named():
    data = bytearray(pack(PARTS))
    data[8] = 99
    with pytest.raises(PlanError, match="version 99"):
        Sections(bytes(data))


def test_a_signature_is_that_of_the_key():
    data = pack(PARTS, key=b"mine")
    assert Sections(data).signed(b"mine")
    assert not Sections(data).signed(b"yours")
    assert not Sections(pack(PARTS)).signed(b"mine")
    changed = bytearray(data)
    changed[50] ^= 1
    assert not Sections(bytes(changed)).signed(b"mine")


def test_a_section_that_swells_is_refused(monkeypatch):
    """A length that does not hold is not believed."""
    swollen = zlib.compress(b"\0" * 1_000_000)
    listed = msgpack.packb([["a", 1, len(swollen), 10]])
    from tenfold.plan.file import sections

    monkeypatch.setattr(sections.msgpack, "packb", lambda directory: listed)
    data = pack({"a": b"\0" * 1_000_000})
    monkeypatch.undo()
    with pytest.raises(PlanError, match="not as long"):
        Sections(data).raw("a")


def framed(directory, body=b""):
    """A file with this directory, its checksum made right."""
    listed = directory if isinstance(directory, bytes) else msgpack.packb(directory)
    first = _HEAD.pack(MAGIC, VERSION, 0, len(listed), b"", b"")[:_FIRST]
    digest = hashlib.sha256(first + listed + body).digest()
    return first + digest + bytes(32) + listed + body


@cache
def zeros():
    """A quarter of a gigabyte, deflated."""
    made = zlib.compressobj(1)
    parts = [made.compress(bytes(1 << 20)) for _ in range(1 << 8)]
    return b"".join((*parts, made.flush()))


@contextmanager
def taking_at_most(count):
    """Memory that may be taken meanwhile, in bytes."""
    tracemalloc.start()
    try:
        yield
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken < count


@pytest.mark.parametrize("said", [10, 1 << 20, 1 << 28, 1 << 30])
def test_deflated_zeros_are_not_inflated(said):
    data = framed([["a", 1, len(zeros()), said]], zeros())
    with taking_at_most(16 * len(data)), pytest.raises(PlanError):
        Sections(data).raw("a")


@pytest.mark.parametrize("item", [b"\x80", b"\x90", b"\x91\xc0", b"\xa2ab"])
def test_data_takes_memory_by_its_length(item):
    """Maps, lists and texts: the smallest in a file for what they take in memory."""
    count = (2 << 20) // len(item)
    raw = b"\xdd" + count.to_bytes(4, "big") + item * count
    with taking_at_most(40 * len(raw)), suppress(PlanError):
        unpack(raw)


def test_a_refusal_does_not_recite_the_file():
    with pytest.raises(PlanError) as refusal:
        unpack(bytes(1 << 20))
    assert len(str(refusal.value)) < 1000


def test_what_shrinks_much_is_written_as_it_is():
    parts = {"a": b"\0" * (8 << 20), "b": bytes(100), "c": os.urandom(100)}
    data = pack(parts)
    found = Sections(data)
    assert {name: bytes(found.raw(name)) for name in found.names} == parts


@pytest.mark.parametrize(
    "directory",
    [
        5,
        "abc",
        {"a": 1},
        [5],
        [["a"]],
        [["a", 0, -1, -1]],
        [["a", 1, -1, -1]],
        [["a", 0, 1, 2]],
        [["a", 0, 1 << 63, 1 << 63]],
        [["a", 1, 1 << 62, 1 << 62]],
        [["a", 2, 0, 0]],
        [[b"a", 0, 0, 0]],
        [["a", 0, 0, 0], ["a", 0, 0, 0]],
        [["a", 0, 0, 0, 0]],
        [["a", 0, 0.0, 0.0]],
        b"",
        b"\x91" * 5000,
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xc1",
    ],
)
def test_a_directory_that_is_none_is_refused(directory):
    with pytest.raises(PlanError):
        Sections(framed(directory))
