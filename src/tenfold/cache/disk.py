"""Entries on disk: content-addressed files in a folder of the cache's own.

A file is written under a name nobody reads and moved into place whole, so readers need no lock and
never see a part of one, on network file systems too. It carries its key: one that was copied or
renamed is found out. A file that is damaged is moved aside and made again. Whatever the disk
refuses to do costs time, never a result: it is reported once, and the program is compiled as if
there were no cache.

The folder that the user names is his. In it the cache makes one for each user, touches nothing
outside of that, and in it only what bears the names and the marks that it gives.

    tenfold-USER/
        KEY.plan                code of a plan
        KEY.certificate         what checks found of that code
        KEY.object              object code that is the same for every plan
        index/FUNCTION/KEY.record   what a plan was made for, to explain the next miss
        aside/                  what was damaged
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tenfold.cache.key import CacheKey, another
from tenfold.errors import FileError
from tenfold.plan.file.sections import LARGEST, MAGIC, Sections, pack
from tenfold.whole import PARTIAL, write_whole

if TYPE_CHECKING:
    from logging import Logger

PLAN, CERTIFICATE, OBJECT, RECORD = KINDS = ("plan", "certificate", "object", "record")
KEY = "key"  # the section that every entry has
_ASIDE, _INDEX = "aside", "index"
_HOUR = 3600
_LOOK_AGAIN = 16  # a sixteenth of the limit may be written before sizes are counted again
_DAMAGED = 32  # files kept aside


def log() -> Logger:
    """The log. It takes longer to load than a plan does, and most runs have nothing to say."""
    from logging import getLogger

    return getLogger("tenfold")


def explains() -> bool:
    """Whether anyone reads what the log explains. Who does has loaded it."""
    return "logging" in sys.modules and log().isEnabledFor(sys.modules["logging"].INFO)


class Disk:
    """The cache in one folder."""

    def __init__(self, given: str | os.PathLike[str], limit: int) -> None:
        self.owner = os.getuid() if hasattr(os, "getuid") else 0
        self.folder = os.path.abspath(os.path.join(given, f"tenfold-{self.owner}"))
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

    def refuse(self, why: str) -> None:
        """Use the folder no more."""
        self._say(f"not used: {self.folder}: {why}")
        self._usable = False

    def usable(self) -> bool:
        """Whether the cache's own folder is there, or can be made, and is safe."""
        if self._usable is None:
            try:
                _make_folders(self.folder)
                why = self._unsafe()
            except OSError as error:
                why = error.strerror or str(error)
            if why is not None:
                self.refuse(why)
            self._usable = why is None
        return self._usable

    def _unsafe(self) -> str | None:
        """Why code can't be loaded from the folder, or None: nobody else may write to it."""
        state = os.lstat(self.folder)
        if not stat.S_ISDIR(state.st_mode):
            return "it is a link, or no folder; remove it"
        if state.st_uid != self.owner:
            return "it belongs to another user"
        if state.st_mode & 0o022:
            return "others may write to it; remove it, or close it to them"
        return None

    # Files.

    def read(self, kind: str, key: CacheKey) -> Sections | None:
        """An entry, or None; one that is damaged or another's is moved aside."""
        if not self.usable():
            return None
        name = f"{key.name}.{kind}"
        try:
            sections = self._open(name, key)
        except FileError as error:
            self.move_aside(kind, key, error.message)
            return None
        if sections is not None:
            self._mine.add(name)
            with contextlib.suppress(OSError):
                os.utime(os.path.join(self.folder, name))  # used now: dropped later
        return sections

    def fault(self, kind: str, key: CacheKey) -> str | None:
        """What is wrong with an entry, '' for nothing; None where there is none."""
        if not self.usable():
            return None
        try:
            found = self._open(f"{key.name}.{kind}", key)
        except FileError as error:
            return error.message
        return None if found is None else ""

    def _open(self, name: str, key: CacheKey) -> Sections | None:
        """The file of this name, or None; FileError unless it is whole and carries the key."""
        data = self._data(name)
        if data is None:
            return None
        sections = Sections(data)
        carried = CacheKey(bytes(sections.raw(KEY)))
        if carried != key:
            raise FileError(another(carried, key))
        return sections

    def _data(self, name: str) -> bytes | None:
        path = os.path.join(self.folder, name)
        try:
            # Read, not mapped: a file that another machine removes must not pull the pages away.
            with open(_ready(path), "rb") as file:
                state = os.fstat(file.fileno())
                if not self._own(state):
                    self._say(f"not used: {path} belongs to another user, or is open to others")
                    return None
                if state.st_size > LARGEST:
                    raise FileError(f"{state.st_size} bytes are more than an entry has")
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._say(f"{path} can't be read: {error.strerror or error}")
            return None

    def _own(self, state: os.stat_result) -> bool:
        """Whether this is a file that this user alone may write."""
        return (
            stat.S_ISREG(state.st_mode) and state.st_uid == self.owner and not state.st_mode & 0o022
        )

    def write(
        self, kind: str, key: CacheKey, sections: Mapping[str, bytes], below: str = ""
    ) -> bytes | None:
        """Put an entry in place, whole or not at all; its checksum, or None where it is not."""
        if not self.usable():
            return None
        data = pack({KEY: key.data, **sections}, compress=False)
        name = os.path.join(below, f"{key.name}.{kind}")
        path = os.path.join(self.folder, name)
        try:
            _make_folders(os.path.dirname(path))
            write_whole(path, data, 0o600)
        except OSError as error:
            self._say(f"not written to: {self.folder}: {error.strerror or error}")
            return None
        self._mine.add(name)
        self._written += len(data)
        if self._written * _LOOK_AGAIN >= self.limit:
            self.sweep()
        return Sections.digest_of(data)

    def move_aside(self, kind: str, key: CacheKey, why: str) -> None:
        """Take a file that is not what it should be out of the way, and say so."""
        name = f"{key.name}.{kind}"
        log().warning("disk cache: %s is not used and will be made again: %s", name, why)
        path, folder = os.path.join(self.folder, name), os.path.join(self.folder, _ASIDE)
        try:
            _make_folders(folder)
            os.replace(path, os.path.join(folder, f"{os.urandom(4).hex()}-{name}"))
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(path)

    # What plans were made for.

    def records(self, function: str, most: int = 64) -> list[Sections]:
        """The records of a function, the latest first."""
        if not self.usable():
            return []
        below = os.path.join(_INDEX, function)
        found = [(state.st_mtime, name) for name, state in self._within(below)]
        made = []
        for _, name in sorted(found, reverse=True)[:most]:
            with contextlib.suppress(FileError):  # damaged: it only explains
                data = self._data(name)
                sections = Sections(data) if data else None
                if sections and _stem(name) == CacheKey(bytes(sections.raw(KEY))).name:
                    made.append(sections)
        return made

    def keep_record(self, function: str, key: CacheKey, sections: Mapping[str, bytes]) -> None:
        self.write(RECORD, key, sections, os.path.join(_INDEX, function))

    # Size.

    def _within(self, below: str) -> Iterator[tuple[str, os.stat_result]]:
        """The files in one folder that bear names which the cache gives."""
        with contextlib.suppress(OSError), os.scandir(os.path.join(self.folder, below)) as found:
            for item in found:
                name = os.path.join(below, item.name)
                if _named(name):
                    with contextlib.suppress(OSError):
                        yield name, item.stat(follow_symlinks=False)

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        yield from self._within("")
        yield from self._within(_ASIDE)
        with contextlib.suppress(OSError), os.scandir(os.path.join(self.folder, _INDEX)) as found:
            for item in found:
                if item.is_dir(follow_symlinks=False):
                    yield from self._within(os.path.join(_INDEX, item.name))

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
            if os.path.basename(name).startswith(PARTIAL):
                if abs(age) > _HOUR:  # its writer is gone; the clock may have gone back since
                    self._drop(name)
                continue
            if age < -_HOUR:  # written before the clock went back: as if used now
                with contextlib.suppress(OSError):
                    os.utime(os.path.join(self.folder, name), follow_symlinks=False)
                age = 0.0
            if name.startswith(_ASIDE + os.sep):
                aside.append((-age, name))
            kept.append((name in self._mine, -age, state.st_size, name))
        for _, name in sorted(aside)[:-_DAMAGED]:
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
        """Remove a file if it is of the cache's own making."""
        path = os.path.join(self.folder, name)
        with contextlib.suppress(OSError):
            with open(_ready(path), "rb") as file:
                ours = self._own(os.fstat(file.fileno()))
                first = file.read(len(MAGIC))
            # A writer may have been killed at any byte; what is aside may be damaged at any.
            partly = os.path.basename(name).startswith(PARTIAL) and MAGIC.startswith(first)
            if ours and (first == MAGIC or partly or name.startswith(_ASIDE + os.sep)):
                os.unlink(path)


def _ready(path: str) -> int:
    """A file opened for reading: no link is followed, and no pipe is waited for."""
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)


def _stem(name: str) -> str:
    return os.path.basename(name).partition(".")[0]


def _named(name: str) -> bool:
    """Whether this is a name that the cache gives to files."""
    last = os.path.basename(name)
    if last.startswith(PARTIAL):
        process, _, random = last[len(PARTIAL) :].partition("-")
        return process.isdecimal() and _hexadecimal(random, 16)
    if name.startswith(_ASIDE + os.sep):
        random, _, last = last.partition("-")
        if not _hexadecimal(random, 8):
            return False
    stem, _, kind = last.partition(".")
    return kind in KINDS and _hexadecimal(stem, 64)


def _hexadecimal(text: str, length: int) -> bool:
    return len(text) == length and set(text) <= set("0123456789abcdef")


def _make_folders(folder: str) -> None:
    """A folder, and those it lies in; each that is made is the user's alone."""
    missing = []
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for level in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process was faster
            os.mkdir(level, 0o700)
