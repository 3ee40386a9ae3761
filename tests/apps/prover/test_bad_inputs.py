"""Every bad input ends with a message that names the place and a remedy, as the docs have it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tenfold.apps.prover.command import app

from .bad_inputs import BAD, GOOD, Bad

DOCS = Path(__file__).parents[3] / "docs" / "prover.md"


@pytest.mark.parametrize("bad", BAD, ids=[bad.what for bad in BAD])
def test_a_bad_input(tmp_path: Path, bad: Bad) -> None:
    for name, content in (GOOD | bad.files).items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
    options = [option.replace("{folder}", str(tmp_path)) for option in bad.options]
    if not options or options[0].startswith("-"):
        options.insert(0, str(tmp_path))
    ended = CliRunner().invoke(app, [*options, "--backend", "evaluator"], env={"COLUMNS": "400"})
    assert ended.exit_code == 2
    said = [line.strip().replace(str(tmp_path), "{folder}") for line in ended.output.splitlines()]
    place = [f"at {bad.place}"] if bad.place else []
    assert [line for line in said if line] == [bad.message, *place, bad.fix]


@pytest.mark.parametrize("bad", BAD, ids=[bad.what for bad in BAD])
def test_a_message_names_a_place(bad: Bad) -> None:
    """A file and line, or the argument that it is about."""
    words = (bad.message + " " + bad.fix).replace("-", "_")
    flags = [option[2:].replace("-", "_") for option in bad.options if option.startswith("--")]
    values = [option for option in bad.options if not option.startswith("--")]
    named = [*flags, *(value.replace("-", "_") for value in values), "{folder}"]
    assert bad.place or any(name in words for name in named)


def row(bad: Bad) -> str:
    """A bad input as a line of the table."""
    message, fix = (text.replace("{folder}", "DATA").replace("|", r"\|") for text in bad[-2:])
    return f"| {bad.what} | {bad.place} | `{message}` | `{fix}` |"


def test_the_docs_have_them_all() -> None:
    assert len(BAD) >= 35
    text = DOCS.read_text()
    begin = text.index("| input | at | message | remedy |")
    lines = text[begin:].split("\n\n")[0].splitlines()[2:]
    assert lines == [row(bad) for bad in BAD]
