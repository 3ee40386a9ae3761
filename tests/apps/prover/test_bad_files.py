"""Files that can't be read: each has a message with file, line and remedy, and none a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tenfold.apps.prover.command import app
from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.read_folder import read_folder

GOOD = {"train": b"a\tp\tb\n", "valid": b"", "test": b"b\tp\ta\n", "rules": b""}

BAD = {
    "Latin-1": ("train", b"a\tp\tb\na\tp\t\xe9\n", "byte 10 is not UTF-8", "train.txt:2"),
    "UTF-16": ("test", "a\tp\tb\n".encode("utf-16"), "byte 0 is not UTF-8", "test.txt:1"),
    "UTF-16 without a mark": ("test", "a\tp\tb".encode("utf-16-le"), "NUL byte", "test.txt:1"),
    "compressed": ("train", b"\x1f\x8b\x08\x00\x00", "byte 1 is not UTF-8", "train.txt:1"),
    "NUL": ("valid", b"a\tp\tb\na\tp\t\0\n", "NUL byte", "valid.txt:2"),
    "two fields": ("train", b"a\tp\tb\na\tp\n", "2 fields between tabs", "train.txt:2"),
    "four fields": ("train", b"a\tp\tb\na\tp\tb\t1\n", "4 fields between tabs", "train.txt:2"),
    "an empty field": ("train", b"a\tp\tb\na\t\tb\n", "3 fields between tabs", "train.txt:2"),
    "cut short": ("test", b"p(a,b).\np(a", r"no ',' or '\)' after", "test.txt:2"),
    "three arguments": ("test", b"p(a,b,c).\n", "p has 3 arguments", "test.txt:1"),
    "an open quote": ("test", b"p('a,b).\n", "a quote that is not closed", "test.txt:1"),
    "a huge line": ("test", b"p(" + b"a" * 3_000_000, "no ',' or", "test.txt:1"),
    "a huge rule": ("rules", b"r:1:p(x,y) " + b"q" * 3_000_000, "neither '->'", "rules.txt:1"),
    "a rule of facts": ("train", b"q(X,Y) :- p(X,Y).\n", "comma or the end", "train.txt:1"),
    "a weight NaN": ("rules", b"r:NaN:p(x,y) -> p(y,x)\n", "the number NaN", "rules.txt:1"),
    "a weight with a comma": ("rules", b"r:0,5:p(x,y) -> p(y,x)", "decimal comma", "rules.txt:1"),
    "no weight": ("rules", b"r:p(x,y) -> p(y,x)\n", "no id and weight", "rules.txt:1"),
    "an unsafe rule": ("rules", b"\r\nr:1:p(x,y) -> p(z,x)\r\n", "unsafe: z", "rules.txt:2"),
    "a negative count": ("rules", b"9\t-1\t.5\tp(X,Y) <= p(Y,X)", "a count of -1", "rules.txt:1"),
    "a domain twice": ("domain2constants", b"d a\nd b\n", "stands twice", "domain2constants.txt:2"),
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
        (["--mine-to", "mined.txt"], "mine_to without rules to mine"),
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
