"""Every query's answer, and the files that a run is written to."""

from __future__ import annotations

import csv
import errno
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.evaluation import Run, evaluate
from tenfold.apps.prover.input.program import Triple
from tenfold.apps.prover.journal import Journal
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.output.answers import COLUMNS, Answer, Answering
from tenfold.apps.prover.output.files import check_outputs, write_text, writing
from tenfold.apps.prover.output.queries import write_answers
from tenfold.apps.prover.output.tables import comma_separated, escaped, latex
from tenfold.apps.prover.progress import Event
from tenfold.apps.prover.reference.bottom_up import close
from tenfold.apps.prover.report.ranks import Rank
from tenfold.apps.prover.report.relations import relation_rows
from tenfold.apps.prover.report.summary import by_mode, figures
from tenfold.apps.prover.report.watching import Lines, watched
from tenfold.apps.prover.result import LISTED, Finding
from tenfold.apps.prover.settings import Settings
from tenfold.cli import app

SMALL = "family:families=2"
# Rules under which facts have several heights, so that candidates beat queries.
LOOSE = """\
r1:0.9:husband(x,y) -> wife(y,x)
r2:0.5:father(x,y) -> mother(x,y)
r3:0.4:mother(x,y) -> father(x,y)
r4:0.3:brother(x,y) -> sister(x,y)
r5:0.2:sister(x,y), father(z,x) -> daughter(y,z)
r6:0.2:daughter(x,y) -> son(x,y)
r7:0.1:son(x,y), son(z,y) -> sister(x,z)
"""


@pytest.fixture
def loose(tmp_path: Path) -> str:
    rules = tmp_path / "loose.txt"
    rules.write_text(LOOSE)
    return str(rules)


def prove(*options: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["prove", *options], env={"COLUMNS": "200"})
    return result.exit_code, result.output


def answers_of(settings: Settings) -> tuple[Run, list[Answer]]:
    run = evaluate(settings)
    return run, [*Answering(run).answers()]


@pytest.mark.parametrize("score", ["height", "binary"])
def test_answers_are_what_the_reference_says(loose: str, score: str) -> None:
    """Ranks, heights and the candidates that are better, from heights by the plain reference."""
    run, answers = answers_of(Settings(SMALL, rules=loose, score=score, backend="evaluator"))
    heights = close(run.program, 10).heights
    assert len(answers) == len(run.results) > 100
    beaten = 0
    for answer, result in zip(answers, run.results, strict=True):
        query = result.query

        def value(triple: Triple) -> float:
            height = heights.get(triple)
            return -1000 if height is None else (0 if score == "binary" else -height)

        mine = value(query.fact)
        others = {c: value(query.corrupt(c)) for c in query.candidates}
        better = sorted((-v, c) for c, v in others.items() if v > mine)
        ties = sum(v == mine for v in others.values())
        assert (answer.better, answer.ties, answer.candidates) == (len(better), ties, len(others))
        assert answer.optimistic == 1 + len(better)
        assert answer.pessimistic == 1 + len(better) + ties
        assert answer.realistic == (answer.optimistic + answer.pessimistic) / 2
        places = range(answer.optimistic, answer.pessimistic + 1)
        assert answer.expected == pytest.approx(sum(1 / k for k in places) / len(places))
        names = tuple(run.program.constants[c] for _, c in better)
        assert answer.above == names[:LISTED]
        beaten += bool(names)
        proved = query.fact in heights
        assert answer.outcome == ("PROVED" if proved else "REFUTED")
        assert bool(answer.rules) == proved
        assert len(answer.rules) == min(answer.rules_count, LISTED)
        assert (answer.relation, answer.subject, answer.object) == run.program.name(query.fact)
        assert answer.weight is None
    assert beaten > 5


@pytest.fixture
def crowded(tmp_path: Path) -> str:
    """Queries with many candidates before them, at several heights."""
    folder = tmp_path / "crowded"
    folder.mkdir()
    facts = [f"t(a,c{i:02})." for i in range(13)] + [f"u(a,d{i:02})." for i in range(13)]
    files = {
        "train": "\n".join([*facts, "u(b,c00).", "u(b,d00)."]),
        "valid": "",
        "test": "p(a,z).\np(b,d00).\np(a,d05).\nt(a,c00).",
        "rules": "r1:0.9:t(x,y) -> p(x,y)\nr2:0.5:u(x,y) -> t(x,y)\n"
        "r3:0.1:p(x,y), t(x,y) -> p(x,y)",
    }
    for name, content in files.items():
        (folder / f"{name}.txt").write_text(content)
    return str(folder)


@pytest.mark.parametrize("search", ["greedy", "beam", "exhaustive"])
@pytest.mark.parametrize("backend", ["evaluator", "python"])
def test_answers_of_rollouts(crowded: str, search: str, backend: str) -> None:
    rolled = {"engine": "rollout", "search": search, "height": 4, "backend": backend, "batch": 32}
    limits = {} if search == "exhaustive" else {"steps": 6}
    run, answers = answers_of(Settings(crowded, **rolled, **limits))  # type: ignore[arg-type]
    traced = (search, backend) != ("exhaustive", "python")
    for answer, result in zip(answers, run.results, strict=True):
        assert len(answer.above) == min(answer.better, LISTED)
        assert set(answer.above) <= {run.program.constants[c] for c in result.query.candidates}
        assert answer.outcome in Outcome.__members__
        assert (answer.outcome == "PROVED") == (answer.height is not None)
        # a rollout finds one proof: what is not known has the rule that was applied last
        assert answer.rules_count == (1 if traced and answer.height else 0)
    if search == "exhaustive":  # it is exact, so a closure says the same
        _, closed = answers_of(Settings(crowded, height=4, backend="python"))
        assert [(a.above, a.better, a.height) for a in answers] == [
            (a.above, a.better, a.height) for a in closed
        ]
        tails = {(a.subject, a.object): a for a in closed if (a.relation, a.mode) == ("p", "tail")}
        names = [f"c{i:02}" for i in range(13)] + [f"d{i:02}" for i in range(13) if i != 5]
        assert tails["a", "z"].above == tuple(names[:LISTED])
        assert tails["a", "z"].better == 25
        assert tails["a", "d05"].above == tuple(names[:13])
        assert tails["a", "d05"].rules == ("r1",)  # r3 would have it rest on itself
        assert tails["a", "z"].rules == ()


def test_interrupted_answers_are_whole(tmp_path: Path, loose: str) -> None:
    """What beats a query of a rollout is in the journal, too."""
    settings = Settings(SMALL, rules=loose, engine="rollout", steps=4, limit=8, sample=9,
                        backend="python")  # fmt: skip
    journal = tmp_path / "journal"
    whole = [*Answering(evaluate(settings, journal=journal)).answers()]
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:6]))
    again = evaluate(settings, journal=journal)
    assert again.resumed == 5
    assert [*Answering(again).answers()] == whole


def test_files_of_answers(tmp_path: Path, loose: str) -> None:
    run, answers = answers_of(Settings(SMALL, rules=loose, backend="python"))
    lines, commas = tmp_path / "a.jsonl", tmp_path / "a.csv"
    for path in (lines, commas):
        write_answers(path, answers, run.provenance)
    first, *rows = map(json.loads, lines.read_text().splitlines())
    assert first == {"provenance": run.provenance.as_dict()}
    assert rows == [answer.as_dict() for answer in answers]
    assert [*rows[0]] == [*COLUMNS]
    text = commas.read_text()
    assert json.loads(text.splitlines()[0].removeprefix("# ")) == run.provenance.as_dict()
    table = [*csv.DictReader(StringIO(text.partition("\n")[2]))]
    assert len(table) == len(answers)
    for row, answer in zip(table, answers, strict=True):
        assert json.loads(row["above"]) == list(answer.above)
        assert float(row["realistic"]) == answer.realistic
        assert row["height"] == ("" if answer.height is None else str(answer.height))
        assert row["weight"] == ""
    assert not [*tmp_path.glob("*.partial")]


def test_parquet(tmp_path: Path, loose: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    run, answers = answers_of(Settings(SMALL, rules=loose, backend="python", limit=9))
    path = tmp_path / "a.parquet"
    write_answers(path, answers, run.provenance)
    table = parquet.read_table(path)
    assert table.to_pylist() == [answer.as_dict() for answer in answers]
    assert json.loads(table.schema.metadata[b"tenfold"]) == run.provenance.as_dict()
    write_answers(path, [], run.provenance)
    assert parquet.read_table(path).num_rows == 0


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, output = prove(SMALL, "--queries", str(tmp_path / "a.parquet"))
    assert code == 2
    assert "needs pyarrow" in output
    assert "pip install pyarrow" in output
    assert "Outcomes" not in output


def test_provenance_is_in_every_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    files = {"train": "p(a,b).", "valid": "", "test": "q(a,b).", "rules": "r:0.5:p(x,y) -> q(x,y)"}
    for name, content in files.items():
        (folder / f"{name}.txt").write_text(content)
    (folder / "notes.txt").write_text("not read")
    endings = {"json": "json", "html": "html", "queries": "jsonl", "table": "tex"}
    outputs = {name: tmp_path / f"{name}.{ending}" for name, ending in endings.items()}
    options = [part for name, path in outputs.items() for part in (f"--{name}", str(path))]
    arguments = ["prove", str(folder), "--backend", "python", *options]
    monkeypatch.setattr(sys, "argv", ["tenfold", *arguments])
    assert CliRunner().invoke(app, arguments).exit_code == 0
    made = json.loads(outputs["json"].read_text())["provenance"]
    for name, content in files.items():
        wanted = hashlib.sha256(content.encode()).hexdigest()
        assert made["files"][str(folder / f"{name}.txt")] == wanted
    assert len(made["files"]) == 4
    assert made["command"].startswith(f"tenfold prove {folder} --backend python --json")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", made["date"])
    assert "x86-64" in made["target"] or "aarch64" in made["target"]
    for path in outputs.values():
        text = path.read_text()
        for part in (made["data"], made["rules"], made["date"], *made["files"].values()):
            assert part in text, (path, part)
    more = tmp_path / "table.csv"
    assert prove(str(folder), "--backend", "python", "--table", str(more))[0] == 0
    assert json.loads(more.read_text().splitlines()[0][2:])["data"] == made["data"]


def test_an_explanation_as_data(tmp_path: Path, crowded: str) -> None:
    file = tmp_path / "why.json"
    options = (crowded, "--backend", "python", "--json", str(file), "--explain")
    code, output = prove(*options, "p(a,d05)")
    assert code == 0
    assert "p(a,d05)  by r1 (0.9): p(x,y) :- t(x,y)." in output
    made = json.loads(file.read_text())
    assert (made["fact"], made["height"]) == (["p", "a", "d05"], 2)
    assert made["proofs"][0]["weight"] == pytest.approx(0.45)
    assert [step["fact"][0] for step in made["proofs"][0]["steps"]] == ["p", "t", "u"]
    assert len(made["provenance"]["files"]) == 4
    code, output = prove(*options, "p(b,z)")
    assert code == 0
    assert "t(b,z) has no proof" in output
    made = json.loads(file.read_text())
    assert made["height"] is None
    assert made["failures"][0]["rule"]["name"] == "r1"
    assert made["failures"][0]["fails"] == "t(b,z)"


def test_the_hashes_tell_data_and_rules_apart() -> None:
    def hashes(**changes: Any) -> tuple[str, str]:
        made = evaluate(Settings(**{"data": SMALL, "limit": 0, "backend": "python", **changes}))
        return made.provenance.data, made.provenance.rules

    assert hashes() == hashes(height=3)
    assert hashes()[0] != hashes(data="family:families=3")[0]
    assert hashes()[1] == hashes(data="family:families=3")[1]


def test_tables(tmp_path: Path) -> None:
    run = evaluate(Settings(SMALL, backend="python"))
    rows = [*csv.DictReader(StringIO(comma_separated(run).partition("\n")[2]))]
    whole = rows[-1]
    assert (whole["relation"], whole["mode"]) == ("all", "both")
    assert float(whole["mrr_realistic"]) == by_mode(run)["both"]["mrr"]["realistic"]
    assert float(whole["hits10_expected"]) == by_mode(run)["both"]["hits"]["10"]["expected"]
    text = latex(run)
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(body) == 1 + len(rows)
    assert len({line.count(" & ") for line in body}) == 1
    assert f"{by_mode(run)['both']['mrr']['realistic']:.3f}" in body[-1]
    assert escaped("a_b{c}\\^~ 100%\n") == (
        r"a\_b\{c\}\textbackslash{}\textasciicircum{}\textasciitilde{} 100\% "
    )


@pytest.mark.parametrize("count", [0, 1, 3, 100])
def test_long_tables_are_shortened(count: int) -> None:
    run = evaluate(Settings(SMALL, backend="python"))
    every, short = relation_rows(run), relation_rows(run, count)
    names = {name for name, _, _ in every}
    shown = {name for name, _, _ in short}
    kept = min(count, len(names))
    assert len(shown) == kept + (kept < len(names))
    assert sum(made["queries"] for _, _, made in short) == len(run.results)
    assert sum(made["proved"] for _, _, made in short) == figures(run.results)["proved"]
    if 0 < count < len(names):
        asked = {name: sum(m["queries"] for n, _, m in every if n == name) for name in names}
        left = names - shown
        assert f"{len(left)} others" in shown
        assert min(asked[name] for name in shown & names) >= max(asked[name] for name in left)


def test_where_nothing_can_be_written_is_said_before_the_run(tmp_path: Path) -> None:
    for option, ending in (("--json", "json"), ("--html", "html"), ("--queries", "csv"),
                           ("--table", "tex")):  # fmt: skip
        for path in (tmp_path, tmp_path / "no" / "file"):
            named = path.with_suffix(f".{ending}")
            if path == tmp_path:
                named.mkdir(exist_ok=True)
            code, output = prove(SMALL, option, str(named))
            assert code == 2
            assert "Outcomes" not in output
            assert str(named) in output
    both = str(tmp_path / "both.csv")
    code, output = prove(SMALL, "--queries", both, "--table", both)
    assert code == 2
    assert "--queries and --table are both" in output
    assert not Path(both).exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_leave_is_said_before_the_run(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="Permission denied"):
        check_outputs({"--json": tmp_path / "out.json"})


def test_checking_leaves_all_as_it_was(tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    old.write_text("old")
    check_outputs({"--json": old, "--html": tmp_path / "new.html", "--table": None})
    assert [path.name for path in tmp_path.iterdir()] == ["old.json"]
    assert old.read_text() == "old"
    check_outputs({"--json": Path("/dev/null"), "--queries": Path("/dev/null")})
    write_text(Path("/dev/null"), "nothing")


def test_a_full_disk_names_the_file_and_leaves_the_old_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="/dev/full can't be written: No space left"):
        write_text(Path("/dev/full"), "x" * 100_000)
    old = tmp_path / "old.json"
    old.write_text("old")
    with pytest.raises(TypeError), writing(old) as file:
        file.write("no bytes")  # type: ignore[arg-type]
    assert old.read_text() == "old"
    assert [*tmp_path.iterdir()] == [old]
    link = tmp_path / "link.json"
    link.symlink_to(old)
    write_text(link, "new")
    assert link.is_symlink()
    assert old.read_text() == "new"


# What is shown while a run goes on.


def test_lines_where_there_is_no_terminal() -> None:
    text = StringIO()
    console = Console(file=text, width=80, force_terminal=False)
    show = Lines(console, every=0)
    evaluate(Settings(SMALL, limit=2, backend="python"), show)
    lines = text.getvalue().splitlines()
    assert lines[0] == "reading"
    assert any(
        re.match(r"closing: height 1, [\d,]+ facts, [\d,]+ facts a second", x) for x in lines
    )
    assert lines[-1].startswith("ranking: 4 of 4 queries")
    text.truncate(0)
    with watched(console, every=3600) as quiet:
        quiet(Event("ranking", 1, 2))
    assert not text.getvalue().strip("\0")


@pytest.mark.parametrize("backend", ["evaluator", "compiled", "python"])
def test_every_height_of_a_closure_is_told(backend: str) -> None:
    events: list[Event] = []
    run = evaluate(Settings(SMALL, limit=1, backend=backend), events.append)
    assert run.closed is not None
    closing = [e for e in events if e.stage == "closing"]
    assert [e.stage for e in events if e.stage != "closing"][:2] == ["reading", "ranking"]
    assert [e.height for e in closing] == sorted(e.height or 0 for e in closing)
    assert [e.done for e in closing] == sorted(e.done for e in closing)
    assert closing[-1].done == len(run.closed.keys)
    assert events[-1] == Event("ranking", 2, 2)
    assert not any(event.kept for event in events)


def test_what_another_process_keeps_is_not_said_to_be_kept(tmp_path: Path) -> None:
    settings = Settings(SMALL, limit=2, backend="python")
    told: list[Event] = []

    def tell(event: Event) -> None:
        told.append(event)
        if event.done == 1 and event.stage == "ranking" and not inner:
            evaluate(settings, inner.append, tmp_path)

    inner: list[Event] = []
    evaluate(settings, tell, tmp_path)
    assert [e.kept for e in told if e.stage == "ranking"] == [True] * 5
    assert [e.kept for e in inner if e.stage == "ranking"] == [False] * 5


def test_a_journal_that_can_not_be_written_is_an_error_with_its_name(tmp_path: Path) -> None:
    code, output = prove(SMALL, "--backend", "python", "--resume", "/dev/null")
    assert code == 2
    assert "/dev/null is no file" in output

    class Full(StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Journal(tmp_path / "journal", "digest", 1) as journal:
        whole, journal._file = journal._file, Full()
        with pytest.raises(InputError, match="journal: No space left"):
            journal.write(Finding(Rank(0, 0, 1), 0, Counter()))
        journal._file = whole


# The command, stopped by a signal in the stage that is named.
STOPPED = """
import os, signal, sys
from tenfold.apps.prover.report import watching
from tenfold.cli import app

stage, show = sys.argv[1], watching.Lines.__call__

def stopping(lines, event):
    if event.stage == stage and event.done > 3:
        os.kill(os.getpid(), signal.SIGINT)
    show(lines, event)

watching.Lines.__call__ = stopping
app(sys.argv[2:], prog_name="tenfold")
"""


@pytest.mark.parametrize(
    ("stage", "options", "kept"),
    [
        ("closing", (), "nothing is kept, the same command begins anew"),
        ("ranking", (), "4 queries are kept, the same command goes on"),
        ("ranking", ("--fresh",), "nothing is kept"),
    ],
)
def test_an_interrupt_says_what_is_kept(
    tmp_path: Path, stage: str, options: tuple[str, ...], kept: str
) -> None:
    command = [sys.executable, "-c", STOPPED, stage, "prove", SMALL, "--backend", "python"]
    env = {**os.environ, "TENFOLD_CACHE": str(tmp_path / "cache"), "COLUMNS": "200"}
    ended = subprocess.run(
        [*command, *options], env=env, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 130
    assert f"Interrupted while {stage}" in ended.stderr
    assert kept in ended.stderr
    journals = [*(tmp_path / "cache" / "runs").glob("*.jsonl")]
    lines = len(journals[0].read_text().splitlines()) - 1 if journals else 0
    assert lines == (4 if "4 queries" in kept else 0)
