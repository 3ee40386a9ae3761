"""Files that can't be read, beside the table of `bad_inputs`: the very long and the very odd."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tenfold.apps.prover.command import app
from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.read_folder import read_folder

GOOD = {"train": b"a\tp\tb\n", "valid": b"", "test": b"b\tp\ta\n", "rules": b""}

BAD = {
    "NUL": ("valid", b"a\tp\tb\na\tp\t\0\n", "NUL byte", "valid.txt:2"),
    "four fields": (
        "train",
        b"a\tp\tb\na\tp\tb\t1\n",
        "4 fields, not three, between tabs",
        "train.txt:2",
    ),
    "a huge line": ("test", b"p(" + b"a" * 3_000_000, "no ',' or", "test.txt:1"),
    "a huge rule": ("rules", b"r:1:p(x,y) " + b"q" * 3_000_000, "neither '->'", "rules.txt:1"),
}


def folder(path: Path, **files: bytes) -> Path:
    for name, content in (GOOD | files).items():
        (path / f"{name}.txt").write_bytes(content)
    return path


@pytest.mark.parametrize(("name", "content", "message", "where"), BAD.values(), ids=BAD.keys())
def test_a_bad_file(tmp_path: Path, name: str, content: bytes, message: str, where: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        read_folder(folder(tmp_path, **{name: content}))
    assert error.value.where == where
    assert error.value.fix
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("name", ["train", "valid", "test", "rules"])
def test_a_folder_in_place_of_a_file(tmp_path: Path, name: str) -> None:
    path = folder(tmp_path)
    (path / f"{name}.txt").unlink()
    (path / f"{name}.txt").mkdir()
    with pytest.raises(InputError, match=rf"{name}\.txt: Is a directory") as error:
        read_folder(path)
    assert error.value.fix


@pytest.mark.parametrize("name", ["train", "test"])
def test_an_empty_split_is_said(tmp_path: Path, name: str) -> None:
    made = read_folder(folder(tmp_path, **{name: b"\n% nothing\n"}))
    notice = next(notice for notice in made.notices if notice.kind == "empty")
    assert f"{name}.txt has no facts" in str(notice)


def test_marks_of_other_systems_are_no_part_of_names(tmp_path: Path) -> None:
    rules = b"\xef\xbb\xbfr:1:p(x,y) -> p(y,x)\r\n"
    made = read_folder(folder(tmp_path, train=b"\xef\xbb\xbfa\tp\tb\r\n", rules=rules))
    assert made.entities == ("a", "b")
    assert len(made.rules) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--confidence", "best"], "confidence is 'best'"),
        (["--mine", "0"], "mine is 0"),
        (["--mine-to", "mined.txt"], "mine-to without rules to mine"),
        (["--mine", "5", "--rules", "rules.txt"], "rules and mine at once"),
        (["--mine", "5", "--mine-to", "no/such/folder/rules.txt"], "can't be written"),
        (["--rules", "no-such-file.txt"], "No such file"),
    ],
)
def test_the_command_ends_with_a_message(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    ended = CliRunner().invoke(app, [str(folder(tmp_path)), "--backend", "python", *arguments])
    assert ended.exit_code == 2
    assert message in ended.output
    assert "Traceback" not in ended.output
