"""The key of an entry: all that it was made of. It names the entry, and lies in it as the proof."""

from __future__ import annotations

from collections.abc import Sequence

import msgpack

from tenfold.backends.backend import Backend
from tenfold.digest import sha256
from tenfold.errors import FileError
from tenfold.frozen import frozen
from tenfold.plan.file.sections import unpack
from tenfold.version import versions

Fields = tuple[tuple[str, str], ...]


@frozen
class CacheKey:
    """The fields of a key, as the bytes that an entry carries."""

    data: bytes

    @property
    def name(self) -> str:
        """The name of the entry."""
        return sha256(self.data).hexdigest()

    @property
    def fields(self) -> dict[str, str]:
        """The fields, by name; FileError where these bytes are no key."""
        found = unpack(self.data)
        if not isinstance(found, tuple) or not all(
            isinstance(pair, tuple) and [str, str] == [type(part) for part in pair]
            for pair in found
        ):
            raise FileError("disk cache: what should be a key is none")
        return dict(found)


def key_with(fields: Fields) -> CacheKey:
    """A key of these fields and of every version."""
    return CacheKey(msgpack.packb(sorted((*fields, *versions().items()))))


def key_of(graph: str, backend: Backend, options: Sequence[tuple[str, str]]) -> CacheKey:
    """The key of a plan on this machine."""
    target = backend.target()
    made_for = (("backend", backend.kept_as), ("target", target.digest), *target.versions.items())
    return key_with((("graph", graph), *made_for, *options))


def another(carried: CacheKey, wanted: CacheKey) -> str:
    """What an entry says that carries another key than the one it is asked for by."""
    was, now = carried.fields, wanted.fields
    names = [name for name in dict.fromkeys((*now, *was)) if was.get(name) != now.get(name)]
    apart = (
        f"{name}: {was.get(name, 'none')} there, {now.get(name, 'none')} here" for name in names
    )
    return f"it is another's entry ({', '.join(apart)})"
