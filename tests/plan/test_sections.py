"""The frame of plan files."""

from __future__ import annotations

import zlib

import msgpack
import pytest

from tenfold.errors import PlanError
from tenfold.plan.sections import Sections, pack

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
    from tenfold.plan import sections

    monkeypatch.setattr(sections.msgpack, "packb", lambda directory: listed)
    data = pack({"a": b"\0" * 1_000_000})
    monkeypatch.undo()
    with pytest.raises(PlanError, match="not as long"):
        Sections(data).raw("a")
