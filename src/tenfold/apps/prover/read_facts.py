"""Read facts: `predicate(subject,object).` lines, or `subject<TAB>predicate<TAB>object`."""

from __future__ import annotations

import re
from pathlib import Path

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.lexer import read_calls
from tenfold.apps.prover.notice import Notice
from tenfold.apps.prover.terms import Fact

# The common line, read in one match; all others go through the lexer, which says what is wrong.
_PLAIN = re.compile(r"""([^\s(),'"]+)\(([^\s(),'"]+),\s*([^\s(),'"]+)\)\.?""")


def read_facts(path: Path) -> tuple[tuple[Fact, ...], tuple[Notice, ...]]:
    """The facts of a file, each once, in its order, and a notice for each that stands twice."""
    return parse_facts(read_text(path), path.name, tabs=path.suffix == ".tsv")


def parse_facts(
    text: str, file: str, *, tabs: bool = False
) -> tuple[tuple[Fact, ...], tuple[Notice, ...]]:
    """The facts of a text.

    >>> facts, notices = parse_facts("p(a,b).\\np(a,b).", "train.txt")
    >>> print(facts[0], "|", notices[0])
    p(a,b) | p(a,b) stands twice, first in line 1
      at train.txt:2
    """
    lines: dict[Fact, int] = {}
    notices: list[Notice] = []
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{file}:{number}"
        if not line.strip() or (not tabs and line.lstrip().startswith("%")):
            continue
        fact = _tabbed(line, where) if tabs else _called(line, where)
        if fact in lines:
            message = f"{fact} stands twice, first in line {lines[fact]}"
            notices.append(Notice("duplicate", message, where))
        else:
            lines[fact] = number
    return tuple(lines), tuple(notices)


def read_text(path: Path) -> str:
    """The text of a file, or an error that names it."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror or error}", fix="give a file that can be read"
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: byte {error.start} is not UTF-8", fix="save the file as UTF-8"
        ) from None


def _called(line: str, where: str) -> Fact:
    match = _PLAIN.fullmatch(line.strip())
    if match is not None:
        return Fact(*match.groups())
    calls = read_calls(_undotted(line), where)
    if len(calls) != 1:
        raise InputError(
            f"{len(calls)} atoms in a line of facts: {line.strip()}",
            where=where,
            fix="write one fact a line, and rules in the file of rules",
        )
    call = calls[0]
    return Fact(call.predicate, call.arguments[0].text, call.arguments[1].text)


def _tabbed(line: str, where: str) -> Fact:
    parts = [part.strip() for part in line.split("\t")]
    if len(parts) != 3 or not all(parts):
        raise InputError(
            f"{len(parts)} fields between tabs, not three: {line.strip()!r}",
            where=where,
            fix="write subject<TAB>predicate<TAB>object",
        )
    return Fact(parts[1], parts[0], parts[2])


def _undotted(line: str) -> str:
    text = line.strip()
    return text[:-1] if text.endswith(").") else text
