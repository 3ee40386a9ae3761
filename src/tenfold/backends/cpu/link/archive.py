"""Several objects in one run of bytes, as `ar` writes them; one object stays as it is.

Kernels are compiled several at a time, each part of them an object of its own, and are kept, sent
and loaded together.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.cpu.link.elf import bad

_MAGIC = b"!<arch>\n"
_HEAD = 60
_END = b"`\n"


def pack(objects: Sequence[bytes]) -> bytes:
    """These objects as one. No dates, no owners: the same objects give the same bytes.

    >>> members(pack([b"one", b"two"]))
    [b'one', b'two']
    >>> pack([b"one"])
    b'one'
    """
    if len(objects) == 1:
        return objects[0]
    parts = [_MAGIC]
    for number, data in enumerate(objects):
        head = f"{number}/".ljust(16) + "0".ljust(12) + "0".ljust(6) * 2 + "644".ljust(8)
        parts += (
            head.encode(),
            str(len(data)).ljust(10).encode(),
            _END,
            data,
            b"\n" * (len(data) % 2),
        )
    return b"".join(parts)


def members(data: bytes) -> list[bytes]:
    """The objects in these bytes."""
    if not data.startswith(_MAGIC):
        return [data]
    found = []
    at = len(_MAGIC)
    while at < len(data):
        head = data[at : at + _HEAD]
        size = head[48:58].rstrip()
        if len(head) < _HEAD or head[58:] != _END or not size.isdigit():
            bad("an archive of no known form")
        at += _HEAD
        end = at + int(size)
        if end > len(data):
            bad("an archive that ends too soon")
        found.append(data[at:end])
        at = end + end % 2
    return found
