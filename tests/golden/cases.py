"""Golden cases: files of text that a person can read, each case with what goes in and what comes
out.

    == a title
    # why it is here
    what goes in
    -- a stage, with its words
    what comes out
    -- another stage
    …
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path


@dataclass
class Case:
    """A title, its comment lines and what goes in, then what comes out of each stage."""

    title: str
    comment: str
    given: str
    outputs: dict[str, str]

    def __str__(self) -> str:
        parts = [f"== {self.title}\n{self.comment}{self.given}"]
        parts += [f"-- {stage}\n{text}" for stage, text in self.outputs.items()]
        return "\n".join(parts) + "\n"


def read(path: Path) -> list[Case]:
    cases = []
    for block in re.split(r"(?m)^(?=== )", path.read_text())[1:]:
        head, *outputs = re.split(r"(?m)^-- ", block.strip("\n") + "\n")
        title, _, rest = head[3:].partition("\n")
        comment = "".join(re.findall(r"(?m)^#.*\n", rest))
        given = re.sub(r"(?m)^#.*\n", "", rest).rstrip("\n")
        found = [one.partition("\n") for one in outputs]
        stages = {stage: text.rstrip("\n") for stage, _, text in found}
        cases.append(Case(title, comment, given, stages))
    return cases


def write(path: Path, cases: list[Case]) -> None:
    path.write_text("\n".join(map(str, cases)))


def update(path: Path, title: str, run: Callable[[str, str], str]) -> None:
    """Write down anew what comes out of a case."""
    cases = read(path)
    for case in cases:
        if case.title == title:
            case.outputs = {stage: run(stage, case.given) for stage in case.outputs}
    write(path, cases)


def difference(path: Path, case: Case, run: Callable[[str, str], str]) -> str:
    """What comes out of a case and should not, as lines; empty where all is as written."""
    parts = []
    for stage, wanted in case.outputs.items():
        got = run(stage, case.given)
        lines = unified_diff(wanted.splitlines(), got.splitlines(), "written", "now", lineterm="")
        if found := list(lines):
            parts.append("\n".join([f"{path.name}: {case.title}: {stage}", *found]))
    return "\n\n".join(parts)
