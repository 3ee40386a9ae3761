"""Tables: figures that can be sorted; on a narrow screen the less important columns wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

from tenfold.apps.prover.evaluation import Run
from tenfold.apps.prover.report.ranks import KINDS, LEVELS
from tenfold.apps.prover.report.relations import relation_rows
from tenfold.apps.prover.report.summary import by_mode


class Column(NamedTuple):
    """The head of a column: whether it holds text, and whether a narrow screen does without it."""

    name: str
    text: bool = False
    wide: bool = False

    @property
    def classes(self) -> str:
        return " ".join(kind for kind, is_so in (("text", self.text), ("wide", self.wide)) if is_so)


def table(
    columns: Sequence[Column], rows: Iterable[Sequence[Any]], total: Iterable[Sequence[Any]] = ()
) -> str:
    """A table that sorts, with rows below it that stay where they are. A cell that is a pair is
    shown as its first and sorted by its second."""
    heads = "".join(
        f'<th scope=col class="{c.classes}"><button type=button>{escape(c.name)}</button></th>'
        for c in columns
    )
    body = "".join(_row(columns, row) for row in rows)
    foot = "".join(_row(columns, row) for row in total)
    return (
        f"<div class=wrap><table class=sorts><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody><tfoot>{foot}</tfoot></table></div>"
    )


def _row(columns: Sequence[Column], row: Sequence[Any]) -> str:
    cells = []
    for column, value in zip(columns, row, strict=True):
        shown: str
        sort: str | None
        if isinstance(value, tuple):
            shown, sort = value
        elif isinstance(value, float):
            shown, sort = f"{value:.4f}", repr(value)
        elif isinstance(value, int):
            shown, sort = f"{value:,}", str(value)
        elif value is None:
            shown, sort = "–", "-1"
        else:
            shown, sort = str(value), None
        given = "" if sort is None else f' data-v="{sort}"'
        cells.append(f'<td class="{column.classes}"{given}>{escape(shown)}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def figures_table(run: Run, relations: int | None) -> str:
    """The figures of each relation and mode, and of all."""
    columns = [Column("relation", text=True), Column("mode", text=True), Column("queries")]
    columns += [Column("proved", wide=True), Column("candidates", wide=True)]
    columns += [Column(f"MRR {kind}", wide=kind != "realistic") for kind in KINDS]
    columns += [Column(f"Hits@{level}", wide=level != LEVELS[-1]) for level in LEVELS]
    return table(
        columns,
        [_figures(*row) for row in relation_rows(run, relations)],
        [_figures("all", mode, made) for mode, made in by_mode(run).items()],
    )


def _figures(name: str, mode: str, made: dict[str, Any]) -> list[Any]:
    counts = [made[count] for count in ("queries", "proved", "candidates")]
    shares = [made["mrr"][kind] for kind in KINDS]
    shares += [made["hits"][str(level)]["realistic"] for level in LEVELS]
    return [name, mode, *counts, *shares]
