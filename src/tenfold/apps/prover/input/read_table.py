"""Read tables: triples of a CSV or a Parquet file.

Columns are found by their names, in any order; three columns with other names are head, relation
and tail as they stand.
"""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.lexer import shown
from tenfold.apps.prover.input.notice import Notice
from tenfold.apps.prover.input.terms import Fact

NAMES = (("head", "relation", "tail"), ("subject", "predicate", "object"))
Row = tuple[str, Sequence[str | None]]  # where it stands, and its fields


def csv_facts(text: str, file: str) -> tuple[Iterator[tuple[str, Fact]], tuple[Notice, ...]]:
    """The facts of a CSV text with their places, and a notice where columns go by position.

    >>> facts, _ = csv_facts('tail,head,relation\\nb,"a,c",p\\n', "train.csv")
    >>> for where, fact in facts: print(where, fact)
    train.csv:2 p(a,c,b)
    """
    rows = _csv_rows(text, file)
    first = next(rows, None)
    if first is None:
        return iter(()), ()
    chosen = _chosen([field or "" for field in first[1]])
    if chosen is not None:
        return _facts(rows, chosen), ()
    said = Notice("columns", "no column names: read as head, relation, tail", first[0])
    return _facts(_chain(first, rows), (0, 1, 2), 3), (said,)


def parquet_facts(path: Path) -> tuple[Iterator[tuple[str, Fact]], tuple[Notice, ...]]:
    """The facts of a Parquet file, by pyarrow."""
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InputError(
            f"{path} needs pyarrow, which is not installed", fix="pip install pyarrow"
        ) from None
    arrow: Any = importlib.import_module("pyarrow")
    try:
        table = parquet.ParquetFile(path).read()
    except (OSError, arrow.ArrowException) as error:
        raise InputError(
            f"{path} is no Parquet file that can be read: {shown(str(error))}",
            fix="write it again, or as CSV",
        ) from None
    chosen = _chosen(table.column_names)
    notices: tuple[Notice, ...] = ()
    if chosen is None:
        if table.num_columns != 3:
            raise _columns(table.num_columns, path.name)
        chosen = (0, 1, 2)
        named = ", ".join(table.column_names)
        notices = (Notice("columns", f"{named} are read as head, relation, tail", path.name),)
    columns = [_texts(table, at, path.name, arrow) for at in chosen]
    rows = zip(*columns, strict=True)
    placed = ((f"{path.name}:row {i}", row) for i, row in enumerate(rows, 1))
    return _facts(placed, (0, 1, 2)), notices


def _texts(table: Any, at: int, file: str, arrow: Any) -> list[str | None]:
    kind = table.schema.field(at).type
    value = kind.value_type if arrow.types.is_dictionary(kind) else kind
    texts = arrow.types.is_string(value) or arrow.types.is_large_string(value)
    texts = texts or getattr(arrow.types, "is_string_view", lambda _: False)(value)
    if not texts and not arrow.types.is_integer(value):
        raise InputError(
            f"the column {table.column_names[at]} holds {kind}",
            where=file,
            fix="give names as texts or integers",
        )
    return [None if one is None else str(one) for one in table.column(at).to_pylist()]


def _chosen(names: Sequence[str]) -> tuple[int, int, int] | None:
    """Where head, relation and tail stand, if these names say so."""
    plain = [name.strip().lower() for name in names]
    for wanted in NAMES:
        if all(plain.count(name) == 1 for name in wanted):
            first, second, third = map(plain.index, wanted)
            return first, second, third
    return None


def _csv_rows(text: str, file: str) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(
                f"no CSV: {error}",
                where=f"{file}:{reader.line_num}",
                fix="put a name with commas or quotes between quotes, and double quotes in it",
            ) from None
        if row:
            yield f"{file}:{reader.line_num}", row


def _facts(
    rows: Iterable[Row], chosen: tuple[int, int, int], width: int = 0
) -> Iterator[tuple[str, Fact]]:
    for where, row in rows:
        if len(row) <= max(chosen) or (width and len(row) != width):
            raise _columns(len(row), where)
        head, relation, tail = (row[at] for at in chosen)
        if not head or not relation or not tail:
            raise InputError(
                f"a name is missing: {shown(str(list(row)))}",
                where=where,
                fix="give every row a head, a relation and a tail",
            )
        yield where, Fact(relation, head, tail)


def _chain(first: Row, rows: Iterable[Row]) -> Iterator[Row]:
    yield first
    yield from rows


def _columns(count: int, where: str) -> InputError:
    return InputError(
        f"{count} columns where there should be three",
        where=where,
        fix="give three, or name them head, relation, tail or subject, predicate, object",
    )
