"""Tables: the figures of relations and modes, for a paper (LaTeX) and for other programs (CSV)."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.evaluation import Run
from tenfold.apps.prover.output.files import write_text
from tenfold.apps.prover.report.ranks import KINDS, LEVELS
from tenfold.apps.prover.report.relations import relation_rows
from tenfold.apps.prover.report.summary import by_mode

ENDINGS = (".tex", ".csv")
_ESCAPED = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}


def check_table(path: Path | None) -> None:
    """An error where a file's name says no kind of table."""
    if path is not None and path.suffix not in ENDINGS:
        raise InputError(
            f"--table {path} has the ending {path.suffix!r}", fix=f"say {' or '.join(ENDINGS)}"
        )


def write_table(path: Path, run: Run, relations: int | None = None) -> None:
    """Write the table, in the form that the file's name says."""
    check_table(path)
    write_text(path, (latex if path.suffix == ".tex" else comma_separated)(run, relations))


def _rows(run: Run, relations: int | None) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        *relation_rows(run, relations),
        *(("all", mode, made) for mode, made in by_mode(run).items()),
    ]


def comma_separated(run: Run, relations: int | None = None) -> str:
    """A line that begins with `# ` and holds the provenance, then every figure of every kind."""
    file = io.StringIO()
    file.write(f"# {json.dumps(run.provenance.as_dict())}\n")
    lines = csv.writer(file, lineterminator="\n")
    counts = ("queries", "proved", "candidates")
    means = [f"mrr_{kind}" for kind in KINDS]
    means += [f"hits{level}_{kind}" for level in LEVELS for kind in KINDS]
    lines.writerow(("relation", "mode", *counts, *means))
    for name, mode, made in _rows(run, relations):
        shares = [made["mrr"][kind] for kind in KINDS]
        shares += [made["hits"][str(level)][kind] for level in LEVELS for kind in KINDS]
        lines.writerow((name, mode, *(made[count] for count in counts), *shares))
    return file.getvalue()


def latex(run: Run, relations: int | None = None) -> str:
    r"""A `tabular` that needs the package booktabs. MRR has the realistic rank, with the
    optimistic and the pessimistic beside it; Hits are realistic."""
    heads = ["Relation", "Mode", "Queries", "Proved", "MRR", "MRR (opt.)", "MRR (pess.)"]
    heads += [f"Hits@{level}" for level in LEVELS]
    lines = [f"% {_one_line(line)}" for line in _origin(run)]
    lines += [r"% \usepackage{booktabs}", r"\begin{tabular}{ll" + "r" * (len(heads) - 2) + "}"]
    lines += [r"\toprule", " & ".join(heads) + r" \\", r"\midrule"]
    whole = [*by_mode(run)]
    rows = _rows(run, relations)
    for number, (name, mode, made) in enumerate(rows):
        if number == len(rows) - len(whole) and number:
            lines.append(r"\midrule")
        shares = [made["mrr"][kind] for kind in ("realistic", "optimistic", "pessimistic")]
        shares += [made["hits"][str(level)]["realistic"] for level in LEVELS]
        counts = [str(made["queries"]), str(made["proved"])]
        cells = [escaped(name), mode, *counts, *("--" if s is None else f"{s:.3f}" for s in shares)]
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _origin(run: Run) -> list[str]:
    made = run.provenance
    files = [f"{name}: SHA-256 {digest}" for name, digest in made.files.items()]
    return [
        f"{made.command or 'tenfold'}",
        f"tenfold {made.version}, {made.target}, {made.date}",
        f"facts: SHA-256 {made.data}",
        f"rules: SHA-256 {made.rules}",
        *files,
    ]


def _one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def escaped(name: str) -> str:
    r"""A name as LaTeX prints it.

    >>> print(escaped("has_part & 50%"))
    has\_part \& 50\%
    """
    return "".join(_ESCAPED.get(letter, letter) for letter in _one_line(name))
