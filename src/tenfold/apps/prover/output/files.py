"""Files: whether an output can be written is seen before the run; it is there whole or not."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tenfold.apps.prover.errors import InputError


def check_outputs(outputs: Mapping[str, Path | None]) -> None:
    """An error before a long run rather than after it; outputs are by their options."""
    taken: dict[Path, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        try:
            _try(path)
        except OSError as error:
            raise InputError(
                f"{option} {path} can't be written: {error.strerror or error}",
                fix="give a file in a folder that is there and may be written to",
            ) from None
        first = taken.setdefault(path.resolve(), option)
        if first != option and path.resolve().is_file() | (not path.exists()):
            raise InputError(f"{first} and {option} are both {path}", fix="give each its own file")


def _try(path: Path) -> None:
    """Open a file as it will be opened, and leave all as it was."""
    if path.exists() and not path.is_file() and not path.is_dir():
        return  # a device or a pipe
    if path.exists():
        path.open("ab").close()
    if not path.is_dir():
        partial = _partial(path)
        try:
            partial.open("xb").close()
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of the old one at the end; an error that names
    the path where it can't."""
    direct = path.exists() and not path.is_file()
    target = path if direct else _partial(path)
    try:
        with target.open("wb") as file:
            yield file
        if not direct:
            os.replace(target, path.resolve())
    except OSError as error:
        raise InputError(
            f"{path} can't be written: {error.strerror or error}",
            fix="make room there, or give another file",
        ) from None
    finally:
        if not direct:
            with suppress(OSError):
                target.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a whole file of text."""
    with writing(path) as file:
        file.write(text.encode())


def _partial(path: Path) -> Path:
    """Where a file stands until it is whole: beside it, so that it can be moved there."""
    path = path.resolve()
    return path.with_name(f".{path.name[:200]}.{os.getpid()}.partial")
