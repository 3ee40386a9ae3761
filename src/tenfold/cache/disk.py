"""Plans on disk: content-addressed files in a folder that is the user's alone.

A file is written under a name nobody reads and moved into place whole, so readers need no lock and
never see a part of one, on network file systems too. A file that is damaged is moved aside and
made again. Whatever the disk refuses to do costs time, never a result: it is reported once, and
the program is compiled as if there were no cache.

    KEY.plan        code of a plan, with its certificate
    NAME.object     object code that is the same for every plan
    index/FUNCTION/KEY   what a plan was made for, to explain the next miss
    aside/          what was damaged
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgpack

from tenfold.errors import FileError, PlanError
from tenfold.plan.sections import Sections, pack

log = logging.getLogger("tenfold")

_HOUR = 3600
_LOOK_AGAIN = 16  # a sixteenth of the limit may be written before sizes are counted again
_ASIDE = 32  # damaged files kept


class Disk:
    """The cache in one folder."""

    def __init__(self, folder: str | os.PathLike[str], limit: int) -> None:
        self.folder = Path(folder)
        self.limit = limit
        self._usable: bool | None = None
        self._written = limit  # since sizes were last counted: count them at the first write
        self._mine: set[str] = set()  # read or written by this process: dropped last
        self._said: set[str] = set()

    def _say(self, what: str) -> None:
        """A warning, once for each cause."""
        if what not in self._said:
            self._said.add(what)
            log.warning("disk cache: %s", what)

    def usable(self) -> bool:
        """Whether the folder is there, or can be made, and is this user's alone."""
        if self._usable is None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._usable = self._own()
            except OSError as error:
                self._say(f"not used: {self.folder}: {error.strerror or error}")
                self._usable = False
        return self._usable

    def _own(self) -> bool:
        """Code is loaded from here: nobody else may write to it."""
        state = os.stat(self.folder)
        if hasattr(os, "getuid") and state.st_uid != os.getuid():
            self._say(f"not used: {self.folder} belongs to another user")
            return False
        if state.st_mode & 0o077:
            with contextlib.suppress(OSError):  # ours: close it
                os.chmod(self.folder, 0o700)
            if os.stat(self.folder).st_mode & 0o022:
                self._say(f"not used: others may write to {self.folder}")
                return False
        return True

    # Files.

    def read(self, name: str) -> Sections | None:
        """The sections of a file, or None; a damaged one is moved aside."""
        if not self.usable():
            return None
        path = self.folder / name
        try:
            # Read, not mapped: a file that another machine removes must not pull the pages away.
            with open(path, "rb") as file:
                state = os.fstat(file.fileno())
                if not stat.S_ISREG(state.st_mode) or (
                    hasattr(os, "getuid") and state.st_uid != os.getuid()
                ):
                    self._say(f"not used: {path} belongs to another user")
                    return None
                data = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._say(f"{path} can't be read: {error.strerror or error}")
            return None
        try:
            sections = Sections(data)
        except PlanError as error:
            self.move_aside(name, error.message)
            return None
        self._mine.add(name)
        with contextlib.suppress(OSError):
            os.utime(path)  # used now: dropped later
        return sections

    def write(self, name: str, data: bytes) -> bool:
        """Put a file in place, whole or not at all."""
        if not self.usable():
            return False
        path = self.folder / name
        partial = path.parent / f"partial-{os.getpid()}-{secrets.token_hex(6)}"
        try:
            self._make_folder(path.parent)
            number = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(number, "wb") as file:
                file.write(data)
            os.replace(partial, path)
        except OSError as error:
            self._say(f"not written to: {self.folder}: {error.strerror or error}")
            with contextlib.suppress(OSError):
                os.unlink(partial)
            return False
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(partial)
            raise
        self._mine.add(name)
        self._written += len(data)
        if self._written * _LOOK_AGAIN >= self.limit:
            self.sweep()
        return True

    def _make_folder(self, folder: Path) -> None:
        """A folder below ours; each level is the user's alone."""
        missing = []
        while folder != self.folder and not folder.exists():
            missing.append(folder)
            folder = folder.parent
        for level in reversed(missing):
            level.mkdir(exist_ok=True, mode=0o700)

    def move_aside(self, name: str, why: str) -> None:
        """Take a damaged file out of the way, and say so."""
        log.warning("disk cache: %s is not used and will be made again: %s", name, why)
        folder = self.folder / "aside"
        try:
            folder.mkdir(exist_ok=True, mode=0o700)
            os.replace(self.folder / name, folder / f"{secrets.token_hex(4)}-{Path(name).name}")
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(self.folder / name)

    # Size.

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        waiting = [""]
        for below in waiting:
            try:
                with os.scandir(self.folder / below) as found:
                    for item in found:
                        name = os.path.join(below, item.name)
                        if item.is_dir(follow_symlinks=False):
                            waiting.append(name)
                        else:
                            with contextlib.suppress(OSError):
                                yield name, item.stat(follow_symlinks=False)
            except OSError:
                continue

    def size(self) -> int:
        """The bytes of all files."""
        return sum(state.st_size for _, state in self._files())

    def sweep(self) -> None:
        """Drop what was not used for longest until the rest fits; and what writers left behind."""
        self._written = 0
        now = time.time()
        kept: list[tuple[bool, float, int, str]] = []
        aside: list[tuple[float, str]] = []
        for name, state in self._files():
            age = now - state.st_mtime
            if Path(name).name.startswith("partial-"):
                if abs(age) > _HOUR:  # its writer is gone; the clock may have gone back since
                    self._drop(name)
                continue
            if age < -_HOUR:  # written before the clock went back: as if used now
                with contextlib.suppress(OSError):
                    os.utime(self.folder / name)
                age = 0.0
            if name.startswith("aside" + os.sep):
                aside.append((-age, name))
            kept.append((name in self._mine, -age, state.st_size, name))
        for _, name in sorted(aside)[:-_ASIDE]:
            self._drop(name)
        total = sum(size for _, _, size, _ in kept)
        if total <= self.limit:
            return
        for _, _, size, name in sorted(kept):
            if total <= self.limit * 0.9:
                break
            self._drop(name)
            total -= size

    def _drop(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.folder / name)

    def clear(self) -> None:
        """Drop every file."""
        for name, _ in list(self._files()):
            self._drop(name)

    # What is kept.

    def find(self, name: str) -> bytes | None:
        """Object code that is the same for every plan."""
        sections = self.read(f"{name}.object")
        if sections is None:
            return None
        try:
            return bytes(sections.raw("object"))
        except FileError as error:
            self.move_aside(f"{name}.object", error.message)
            return None

    def keep(self, name: str, data: bytes) -> None:
        self.write(f"{name}.object", pack({"object": data}, compress=False))

    def find_record(self, function: str, key: str) -> Mapping[str, str] | None:
        """What a plan was made for."""
        try:
            raw = (self.folder / "index" / function / key).read_bytes()
            found = msgpack.unpackb(raw)
        except Exception:  # gone, or damaged: it only explains
            return None
        if not isinstance(found, dict):
            return None
        return {str(k): str(v) for k, v in found.items()}

    def records(self, function: str, most: int = 64) -> list[tuple[str, Mapping[str, str]]]:
        """What plans of a function were made for, the latest first, with their keys."""
        if not self.usable():
            return []
        found: list[tuple[float, str]] = []
        with contextlib.suppress(OSError), os.scandir(self.folder / "index" / function) as items:
            for item in items:
                if not item.name.startswith("partial-"):
                    with contextlib.suppress(OSError):
                        found.append((item.stat().st_mtime, item.name))
        made = []
        for _, key in sorted(found, reverse=True)[:most]:
            record = self.find_record(function, key)
            if record is not None:
                made.append((key, record))
        return made

    def keep_record(self, function: str, key: str, record: Mapping[str, str]) -> None:
        self.write(os.path.join("index", function, key), msgpack.packb(dict(record)))

    def has(self, key: str) -> bool:
        return self.usable() and (self.folder / f"{key}.plan").exists()


def certificate_of(sections: Sections) -> dict[str, Any]:
    found = sections.data("certificate")
    return found if isinstance(found, dict) else {}
