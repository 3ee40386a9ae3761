"""Read facts: `predicate(subject,object).` lines, or `subject<TAB>predicate<TAB>object`.

Tables, in CSV and Parquet, are read by `read_table`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.lexer import read_calls, shown
from tenfold.apps.prover.input.notice import Notice
from tenfold.apps.prover.input.read_table import csv_facts, parquet_facts
from tenfold.apps.prover.input.terms import Fact

Lines = dict[Fact, str]  # facts in their order, and where each stands

# The common line, read in one match; all others go through the lexer, which says what is wrong.
_PLAIN = re.compile(r"""([^\s(),'"]+)\(([^\s(),'"]+),\s*([^\s(),'"]+)\)\.?""")


def read_facts(path: Path) -> tuple[Lines, tuple[Notice, ...]]:
    """The facts of a file, each once, in its order, and a notice for each that stands twice.

    A `.tsv` holds tabs; of a `.txt` the first line says which it is.
    """
    if path.suffix == ".parquet":
        found, odd = parquet_facts(path)
    elif path.suffix == ".csv":
        found, odd = csv_facts(read_text(path), path.name)
    else:
        text = read_text(path)
        tabs = path.suffix == ".tsv" or _has_tabs(text)
        return parse_facts(text, path.name, tabs=tabs)
    lines, twice = _each_once(found)
    return lines, (*odd, *twice)


def parse_facts(text: str, file: str, *, tabs: bool = False) -> tuple[Lines, tuple[Notice, ...]]:
    """The facts of a text.

    >>> facts, notices = parse_facts("p(a,b).\\np(a,b).", "train.txt")
    >>> for fact, where in facts.items(): print(fact, where)
    p(a,b) train.txt:1
    >>> print(notices[0])
    p(a,b) stands twice, first at train.txt:1
      at train.txt:2
    """
    return _each_once(
        (where, _tabbed(line, where) if tabs else _called(line, where))
        for where, line in numbered(text, file)
        if tabs or not line.startswith("%")
    )


def _each_once(facts: Iterable[tuple[str, Fact]]) -> tuple[Lines, tuple[Notice, ...]]:
    lines: Lines = {}
    notices: list[Notice] = []
    for where, fact in facts:
        if fact in lines:
            message = f"{shown(str(fact))} stands twice, first at {lines[fact]}"
            notices.append(Notice("duplicate", message, where))
        else:
            lines[fact] = where
    return lines, tuple(notices)


def numbered(text: str, file: str) -> Iterator[tuple[str, str]]:
    """The lines of a text that are not empty, each with its place.

    Only a newline ends a line: a name may hold any other character.

    >>> list(numbered("a\\n\\n b\\r\\n", "f"))
    [('f:1', 'a'), ('f:3', 'b')]
    """
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"{file}:{number}", line.strip(" \r")


def _has_tabs(text: str) -> bool:
    """Whether the first fact stands between tabs."""
    for _, line in numbered(text, ""):
        if not line.startswith("%"):
            return line.count("\t") == 2
    return False


def read_text(path: Path) -> str:
    """The text of a file, or an error that names it and the line."""
    try:
        made = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror or error}", fix="give a file that can be read"
        ) from None
    try:
        text = made.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = made.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}: byte {error.start} is not UTF-8",
            where=f"{path.name}:{line}",
            fix="save the file as UTF-8, and not compressed",
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError(
            f"{path}: a NUL byte, which no text has",
            where=f"{path.name}:{line}",
            fix="save the file as UTF-8; in UTF-16 there are such bytes",
        )
    return text


def _called(line: str, where: str) -> Fact:
    match = _PLAIN.fullmatch(line.strip())
    if match is not None:
        return Fact(*match.groups())
    calls = read_calls(_undotted(line), where)
    if len(calls) != 1:
        raise InputError(
            f"{len(calls)} atoms in a line of facts: {shown(line)}",
            where=where,
            fix="write one fact a line, and rules in the file of rules",
        )
    call = calls[0]
    return Fact(call.predicate, call.arguments[0].text, call.arguments[1].text)


def _tabbed(line: str, where: str) -> Fact:
    parts = [part.strip() for part in line.split("\t")]
    if len(parts) != 3 or not all(parts):
        what = "an empty field" if len(parts) == 3 else f"{len(parts)} fields, not three,"
        raise InputError(
            f"{what} between tabs: {shown(line)!r}",
            where=where,
            fix="write subject<TAB>predicate<TAB>object",
        )
    return Fact(parts[1], parts[0], parts[2])


def _undotted(line: str) -> str:
    text = line.strip()
    return text[:-1] if text.endswith(").") else text
