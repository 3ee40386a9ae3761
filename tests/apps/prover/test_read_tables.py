"""Triples of CSV and Parquet files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.read_facts import read_facts
from tenfold.apps.prover.input.read_folder import read_folder
from tenfold.apps.prover.input.terms import Fact

EXPECTED = [Fact("p q", "a,b", "c"), Fact("r", "a,b", 'd"e')]


def table(path: Path, columns: dict[str, list[object]]) -> Path:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    parquet.write_table(arrow.table(columns), path)
    return path


@pytest.mark.parametrize(
    "text",
    [
        'head,relation,tail\n"a,b",p q,c\n"a,b",r,"d""e"\n',
        'Object,weight,Subject,Predicate\r\nc,1,"a,b",p q\r\n"d""e",2,"a,b",r\r\n',
        '\ufeffhead,relation,tail\n"a,b",p q,c\n\n"a,b",r,"d""e"',
    ],
)
def test_csv_by_names(tmp_path: Path, text: str) -> None:
    path = tmp_path / "train.csv"
    path.write_bytes(text.encode())
    facts, notices = read_facts(path)
    assert list(facts) == EXPECTED
    assert not notices


def test_csv_by_position_is_said(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text('"a,b",p q,c\n"a,b",r,"d""e"\n"a,b",p q,c\n')
    facts, (columns, twice) = read_facts(path)
    assert list(facts) == EXPECTED
    assert (columns.kind, twice.kind, twice.where) == ("columns", "duplicate", "train.csv:3")


def test_a_folder_of_tables(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("head,relation,tail\na,p,b\n")
    (tmp_path / "test.tsv").write_text("b\tp\ta\n")
    (tmp_path / "rules.txt").write_text("")
    made = read_folder(tmp_path)
    assert made.train == (Fact("p", "a", "b"),)
    assert [notice.kind for notice in made.notices] == ["missing"]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("head,relation,tail\na,p\n", "2 columns", 2),
        ("head,relation,tail\na,,b\n", "a name is missing", 2),
        ("a,p,b\nc,p,d,e\n", "4 columns", 2),
        ("a,b\n", "2 columns", 1),
        ('head,relation,tail\na,p,"b\n', "no CSV", 2),
        ('head,relation,tail\na,p,"b"c\n', "no CSV", 2),
        ("head,relation,tail\na,p," + "b" * 200_000, "no CSV: field larger", 2),
    ],
)
def test_wrong_csv_says_where(tmp_path: Path, text: str, message: str, line: int) -> None:
    path = tmp_path / "train.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read_facts(path)
    assert error.value.where == f"train.csv:{line}"
    assert error.value.fix
    assert len(str(error.value)) < 400


def test_an_empty_csv_has_no_facts(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("")
    assert read_facts(tmp_path / "train.csv") == ({}, ())


def test_parquet_by_names_and_position(tmp_path: Path) -> None:
    named = {"tail": ["c", 'd"e'], "head": ["a,b", "a,b"], "more": [1, 2], "relation": ["p q", "r"]}
    facts, notices = read_facts(table(tmp_path / "a.parquet", dict(named)))
    assert list(facts.items()) == [
        (EXPECTED[0], "a.parquet:row 1"),
        (EXPECTED[1], "a.parquet:row 2"),
    ]
    assert not notices
    by_place = {"x": ["a,b", "a,b"], "y": ["p q", "r"], "z": ["c", 'd"e']}
    facts, (notice,) = read_facts(table(tmp_path / "b.parquet", dict(by_place)))
    assert list(facts) == EXPECTED
    assert "x, y, z are read as head, relation, tail" in str(notice)


def test_parquet_of_integers_and_dictionaries(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    columns = {
        "head": arrow.array([1, 2]),
        "relation": arrow.array(["p", "p"]).dictionary_encode(),
        "tail": arrow.array(["x", "y"], arrow.large_string()),
    }
    facts, _ = read_facts(table(tmp_path / "a.parquet", columns))
    assert list(facts) == [Fact("p", "1", "x"), Fact("p", "2", "y")]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"head": ["a", "c"], "relation": ["p", None], "tail": ["b", "d"]}, "a name is missing"),
        ({"head": ["a"], "relation": [0.5], "tail": ["b"]}, "the column relation holds double"),
        ({"a": ["a"], "b": ["b"]}, "2 columns"),
    ],
)
def test_wrong_parquet_is_said(
    tmp_path: Path, columns: dict[str, list[object]], message: str
) -> None:
    path = table(tmp_path / "train.parquet", columns)
    with pytest.raises(InputError, match=message) as error:
        read_facts(path)
    assert str(error.value.where).startswith("train.parquet")


def test_a_file_that_is_no_parquet_is_said(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    path = tmp_path / "train.parquet"
    for content in (b"", b"head,relation,tail\na,p,b\n"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="is no Parquet file"):
            read_facts(path)


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match="needs pyarrow") as error:
        read_facts(tmp_path / "train.parquet")
    assert error.value.fix == "pip install pyarrow"
