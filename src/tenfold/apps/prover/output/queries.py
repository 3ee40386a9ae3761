"""Queries: the answers as a file of lines, with where they come from in front."""

from __future__ import annotations

import csv
import importlib
import io
import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.output.answers import COLUMNS, Answer
from tenfold.apps.prover.output.files import writing
from tenfold.apps.prover.output.provenance import Provenance

KINDS = (".jsonl", ".csv", ".parquet")
GROUP = 10_000  # rows of a parquet file that are written together


def check_queries(path: Path | None) -> None:
    """An error where a file's name says no kind that can be written here."""
    if path is None:
        return
    if path.suffix not in KINDS:
        raise InputError(
            f"--queries {path} has the ending {path.suffix!r}", fix=f"say {' or '.join(KINDS)}"
        )
    if path.suffix == ".parquet":
        _arrow(path)


def write_answers(path: Path, answers: Iterable[Answer], origin: Provenance) -> None:
    """Write the answers, in the form that the file's name says.

    - `.jsonl`: a line with the provenance, then a line for each ranking.
    - `.csv`: a line that begins with `# ` and holds the provenance, the names of the columns, a
      line for each ranking. Lists are JSON.
    - `.parquet`: the provenance is the file's metadata `tenfold`.
    """
    check_queries(path)
    if path.suffix == ".parquet":
        _write_parquet(path, answers, origin)
        return
    with writing(path) as binary, io.TextIOWrapper(binary, "utf-8", newline="") as file:
        if path.suffix == ".jsonl":
            file.write(json.dumps({"provenance": origin.as_dict()}) + "\n")
            for answer in answers:
                file.write(json.dumps(answer.as_dict(), ensure_ascii=False) + "\n")
            return
        file.write(f"# {json.dumps(origin.as_dict())}\n")
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for answer in answers:
            cells = answer.as_dict().values()
            rows.writerow(
                json.dumps(cell, ensure_ascii=False) if isinstance(cell, list) else cell
                for cell in cells
            )


def _write_parquet(path: Path, answers: Iterable[Answer], origin: Provenance) -> None:
    arrow, parquet = _arrow(path)
    kinds = {"str": arrow.string(), "int": arrow.int64(), "float": arrow.float64()}
    kinds |= {f"{name} | None": kind for name, kind in kinds.items()}
    kinds["tuple[str, ...]"] = arrow.list_(arrow.string())
    schema = arrow.schema(
        [(name, kinds[str(Answer.__annotations__[name])]) for name in COLUMNS],
        metadata={"tenfold": json.dumps(origin.as_dict())},
    )
    left = iter(answers)
    with writing(path) as file, parquet.ParquetWriter(file, schema) as writer:
        while part := [answer.as_dict() for answer in islice(left, GROUP)]:
            writer.write_table(arrow.Table.from_pylist(part, schema=schema))


def _arrow(path: Path) -> tuple[Any, Any]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InputError(
            f"{path} needs pyarrow, which is not installed",
            fix="pip install pyarrow, or give a .jsonl or .csv",
        ) from None
