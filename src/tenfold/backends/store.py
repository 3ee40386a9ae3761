"""Where backends keep object code that is the same for every plan, beyond this process."""

from __future__ import annotations

from typing import Protocol


class CodeStore(Protocol):
    """A place for object code, by name."""

    def find(self, name: str) -> bytes | None: ...
    def keep(self, name: str, data: bytes) -> None: ...


stores: list[CodeStore] = []  # the disk cache sets itself here
