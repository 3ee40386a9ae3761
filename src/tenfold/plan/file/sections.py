"""The frame of plan files: named sections of bytes under one checksum, perhaps signed.

    magic, version, length of the directory
    SHA-256 of all but itself and the signature
    HMAC-SHA256 of that by the user's key, or zeros
    the directory: for each section its name, whether it is compressed, its length here, its length
    the sections, one after another

Reading copies nothing: a section is a view of the file until it is asked for.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NoReturn

import msgpack

from tenfold.digest import sha256
from tenfold.errors import FileError, PlanError
from tenfold.graph.data import read_data

MAGIC = b"TFPLAN\r\n"
VERSION = 4
_HEAD = struct.Struct("<8sHHI32s32s")
_FIRST = 16  # bytes before the checksum
LARGEST = 1 << 30  # bytes of a file, and of its sections when they are unpacked
_SWELL, _FREE = 16, 1 << 20  # what unpacking may make of each byte, and of a file however small
_UNSIGNED = bytes(32)


def bad(why: str) -> NoReturn:
    raise PlanError(f"plan file: {why}", fix="fetch the file again, or save the plan anew")


def pack(
    sections: Mapping[str, bytes], *, key: bytes | None = None, compress: bool = True
) -> bytes:
    """A file of these sections."""
    directory, body = [], []
    for name, raw in sections.items():
        # Level 6: the time goes into searching, and more of it gains a hundredth.
        packed = _compressed(raw) if compress else raw
        shrunk = compress and len(raw) <= _SWELL * len(packed) + _FREE // len(sections)
        directory.append([name, int(shrunk), len(packed if shrunk else raw), len(raw)])
        body.append(packed if shrunk else raw)
    listed: bytes = msgpack.packb(directory)
    tail = listed + b"".join(body)
    first = _HEAD.pack(MAGIC, VERSION, 0, len(listed), b"", b"")[:_FIRST]
    digest = sha256(first + tail).digest()
    return first + digest + (_UNSIGNED if key is None else _sign(digest, key)) + tail


def _compressed(raw: bytes) -> bytes:
    import zlib

    return zlib.compress(raw, 6)


def _sign(digest: bytes, key: bytes) -> bytes:
    import hmac  # few files are signed

    return hmac.new(key, b"tenfold plan" + digest, "sha256").digest()


class Sections:
    """A plan file in memory, checked against its checksum."""

    def __init__(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        if len(view) < _HEAD.size or bytes(view[:8]) != MAGIC:
            bad("this is none: its first bytes are not a plan's")
        _, version, _, length, self.digest, self.signature = _HEAD.unpack_from(view)
        if version != VERSION:
            raise PlanError(
                f"plan file of version {version}; this Tenfold reads version {VERSION}",
                fix="save the plan anew with this Tenfold",
            )
        sha = sha256(view[:_FIRST])
        sha.update(view[_HEAD.size :])
        if sha.digest() != self.digest:
            bad("damaged: the checksum does not fit")
        self._at: dict[str, tuple[bool, memoryview, int]] = {}
        start = _HEAD.size + length
        for name, compressed, size, raw in self._directory(view[_HEAD.size : start], length):
            part = view[start : start + size]
            if len(part) != size:
                bad(f"the section {name!r} does not lie within it")
            self._at[name] = (compressed, part, raw)
            start += size
        if start != len(view):
            bad("it does not end where its last section ends")

    @staticmethod
    def digest_of(data: bytes) -> bytes:
        """The checksum of a file that was just packed."""
        return data[_FIRST : _FIRST + 32]

    @staticmethod
    def _directory(part: memoryview, length: int) -> list[tuple[str, bool, int, int]]:
        if len(part) != length:
            bad("its directory does not lie within it")
        found: dict[str, tuple[str, bool, int, int]] = {}
        listed = unpack(part)
        for row in listed if isinstance(listed, tuple) else [listed]:
            match row:
                case [str() as name, (0 | 1) as packed, int() as size, int() as raw]:
                    right = raw >= 0 if packed else raw == size
                    if name not in found and size >= 0 and right:
                        found[name] = (name, bool(packed), size, raw)
                        continue
            bad("its directory is malformed")
        swollen = sum(raw - _SWELL * size for _, packed, size, raw in found.values() if packed)
        if swollen > _FREE or sum(raw for *_, raw in found.values()) > LARGEST:
            bad("its sections are larger, unpacked, than a plan's are")
        return list(found.values())

    @property
    def names(self) -> list[str]:
        return list(self._at)

    def __contains__(self, name: str) -> bool:
        return name in self._at

    def signed(self, key: bytes) -> bool:
        """Whether the holder of this key signed the file."""
        import hmac

        return hmac.compare_digest(self.signature, _sign(self.digest, key))

    def raw(self, name: str) -> bytes | memoryview:
        """The bytes of a section."""
        if name not in self._at:
            bad(f"it has no section {name!r}")
        compressed, part, size = self._at[name]
        if not compressed:
            return part
        import zlib  # a cache's entries are not packed

        reader = zlib.decompressobj()
        try:
            data = reader.decompress(part, size + 1)
        except zlib.error as error:
            bad(f"the section {name!r} can't be unpacked: {error}")
        if len(data) != size or not reader.eof or reader.unused_data:
            bad(f"the section {name!r} is not as long as it says")
        return data

    def data(self, name: str) -> Any:
        """The plain data of a section."""
        return unpack(self.raw(name))


def unpack(raw: bytes | memoryview) -> Any:
    """Plain data, read with tuples for lists."""
    try:
        return read_data(raw)
    except FileError as error:
        bad(error.message)
