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
import os
import stat
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgpack

from tenfold.errors import FileError, PlanError
from tenfold.plan.sections import Sections, pack

if TYPE_CHECKING:
    from logging import Logger

_HOUR = 3600
_LOOK_AGAIN = 16  # a sixteenth of the limit may be written before sizes are counted again
_ASIDE = 32  # damaged files kept


def log() -> Logger:
    """The log. It takes longer to load than a plan does, and most runs have nothing to say."""
    from logging import getLogger

    return getLogger("tenfold")


class Disk:
    """The cache in one folder."""

    def __init__(self, folder: str | os.PathLike[str], limit: int) -> None:
        self.folder = os.fspath(folder)
        self.limit = limit
        self._usable: bool | None = None
        self._written = limit  # since sizes were last counted: count them at the first write
        self._mine: set[str] = set()  # read or written by this process: dropped last
        self._said: set[str] = set()

    def _say(self, what: str) -> None:
        """A warning, once for each cause."""
        if what not in self._said:
            self._said.add(what)
            log().warning("disk cache: %s", what)

    def usable(self) -> bool:
        """Whether the folder is there, or can be made, and is this user's alone."""
        if self._usable is None:
            try:
                _make_folders(self.folder)
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
        path = os.path.join(self.folder, name)
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
        path = os.path.join(self.folder, name)
        parent = os.path.dirname(path)
        partial = os.path.join(parent, f"partial-{os.getpid()}-{os.urandom(6).hex()}")
        try:
            _make_folders(parent)
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

    def move_aside(self, name: str, why: str) -> None:
        """Take a damaged file out of the way, and say so."""
        log().warning("disk cache: %s is not used and will be made again: %s", name, why)
        path, folder = os.path.join(self.folder, name), os.path.join(self.folder, "aside")
        try:
            _make_folders(folder)
            last = f"{os.urandom(4).hex()}-{os.path.basename(name)}"
            os.replace(path, os.path.join(folder, last))
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(path)

    # Size.

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        waiting = [""]
        for below in waiting:
            try:
                with os.scandir(os.path.join(self.folder, below)) as found:
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
            if os.path.basename(name).startswith("partial-"):
                if abs(age) > _HOUR:  # its writer is gone; the clock may have gone back since
                    self._drop(name)
                continue
            if age < -_HOUR:  # written before the clock went back: as if used now
                with contextlib.suppress(OSError):
                    os.utime(os.path.join(self.folder, name))
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
            os.unlink(os.path.join(self.folder, name))

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
            with open(os.path.join(self.folder, "index", function, key), "rb") as file:
                found = msgpack.unpackb(file.read())
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
        index = os.path.join(self.folder, "index", function)
        with contextlib.suppress(OSError), os.scandir(index) as items:
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
        return self.usable() and os.path.exists(os.path.join(self.folder, f"{key}.plan"))


def certificate_of(sections: Sections) -> dict[str, Any]:
    found = sections.data("certificate")
    return found if isinstance(found, dict) else {}


def _make_folders(folder: str) -> None:
    """A folder, and those it lies in; each that is made is the user's alone."""
    missing = []
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for level in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process was faster
            os.mkdir(level, 0o700)
