"""The command `tenfold prove`, and what it writes."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from tenfold.apps.prover import command, evaluation
from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.evaluation import evaluate
from tenfold.apps.prover.journal import Journal
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.progress import Event
from tenfold.apps.prover.report.ranks import KINDS, Rank
from tenfold.apps.prover.report.summary import by_mode, by_relation, figures
from tenfold.apps.prover.report.table import show
from tenfold.apps.prover.result import Finding
from tenfold.apps.prover.settings import Settings
from tenfold.cli import app

SMALL = "family:families=2"


def prove(*options: str) -> tuple[int, str]:
    """Run the command, by the evaluator unless another backend is named: most runs are small."""
    if "--backend" not in options:
        options = (*options, "--backend", "evaluator")
    result = CliRunner().invoke(app, ["prove", *options], env={"COLUMNS": "120"})
    return result.exit_code, result.output


def prove_to_json(path: Path, *options: str) -> dict[str, Any]:
    code, output = prove(*options, "--json", str(path / "out.json"))
    assert code == 0, output
    made: dict[str, Any] = json.loads((path / "out.json").read_text())
    return made


def test_json_holds_each_mode_and_both(tmp_path: Path) -> None:
    made = prove_to_json(tmp_path, SMALL)
    for part in ("head", "tail", "both"):
        assert set(made[part]) >= {
            "queries",
            "candidates",
            "proved",
            "mrr",
            "hits",
            "outcomes",
            "overflows",
        }
        assert set(made[part]["mrr"]) == set(KINDS)
        assert set(made[part]["hits"]) == {"1", "3", "10"}
        assert set(made[part]["hits"]["10"]) == set(KINDS)
        total = sum(made[part]["outcomes"].values())
        assert total == made[part]["candidates"] + made[part]["queries"]
        assert set(made[part]["overflows"].values()) == {0}
    for name in ("queries", "candidates", "proved"):
        assert made["head"][name] + made["tail"][name] == made["both"][name]
    assert set(made["seconds"]) == {"read", "close", "rank"}
    assert made["settings"]["data"] == SMALL
    assert (made["settings"]["engine"], made["settings"]["height"]) == ("closure", 10)
    assert set(made["versions"]) >= {"tenfold", "numpy", "python"}


def test_one_mode_alone(tmp_path: Path) -> None:
    made = prove_to_json(tmp_path, SMALL, "--mode", "tail")
    assert "head" not in made
    assert made["tail"] == made["both"]


def test_the_reference_says_the_same(tmp_path: Path) -> None:
    ours = prove_to_json(tmp_path, SMALL, "--batch", "13")
    for backend in ("python", "compiled"):
        other = prove_to_json(tmp_path, SMALL, "--backend", backend)
        for part in ("head", "tail", "both", "relations"):
            assert ours[part] == other[part]


def test_options_reach_the_run(tmp_path: Path) -> None:
    rules = tmp_path / "own.txt"
    rules.write_text("r:1:husband(x,y) -> wife(y,x)\n")
    made = prove_to_json(
        tmp_path, SMALL, "--rules", str(rules), "--limit", "7", "--sample", "5", "--height", "1"
    )
    assert made["both"]["queries"] == 14
    assert made["both"]["candidates"] == 70
    assert made["settings"]["rules"] == str(rules)
    assert set(made["closure"]["heights"]) == {"0", "1"}


def test_binary_scores_only_say_whether(tmp_path: Path) -> None:
    made = prove_to_json(tmp_path, SMALL, "--score", "binary")
    expected = prove_to_json(tmp_path, SMALL)
    assert made["both"]["proved"] == expected["both"]["proved"]
    assert made["both"]["mrr"]["realistic"] <= expected["both"]["mrr"]["realistic"]


def test_countries(data: Path, tmp_path: Path) -> None:
    made = prove_to_json(tmp_path, str(data / "countries_s3"), "--mode", "tail")
    mrr = made["tail"]["mrr"]
    assert (mrr["optimistic"], round(mrr["realistic"], 3)) == (1, 0.917)
    assert made["tail"]["proved"] == 24
    assert len(made["notices"]) == 2


def test_the_table_has_a_line_for_each_relation_and_mode() -> None:
    code, output = prove(SMALL, "--mode", "head")
    assert code == 0
    for relation in ("husband", "mother", "all"):
        assert relation in output
    assert "Outcomes: PROVED" in output


def test_the_table_fits_eighty_columns() -> None:
    """Every figure of a relation with a long name and large counts, at 80 columns."""
    run = evaluate(Settings(SMALL, modes=("tail",), backend="evaluator"))
    name = "/film/actor/" * 9
    program = replace(run.program, predicates=(name, *run.program.predicates[1:]))
    many = [replace(r, found=replace(r.found, rank=Rank(1, 0, 20_000_000))) for r in run.results]
    text = StringIO()
    show(replace(run, program=program, results=tuple(many)), Console(file=text, width=80))
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in text.getvalue()
    heads = next(line.split() for line in lines if "relation" in line)
    assert heads[-3:] == ["H@1", "H@3", "H@10"]
    rows = [line.split() for line in lines if " tail " in line]
    assert all(len(row) == len(heads) for row in rows)
    assert rows[0][-3:] == [".000", "1.000", "1.000"]
    first = next(i for i, line in enumerate(lines) if "/film" in line)
    folded = [line.split()[0] for line in lines[first : first + len(name) // 8] if line.split()]
    assert "".join(folded).startswith(name)


@pytest.mark.parametrize(
    "options",
    [
        ("nowhere",),
        ("family:x=1",),
        (SMALL, "--mode", "middle"),
        (SMALL, "--engine", "steam"),
        (SMALL, "--backend", "steam"),
        (SMALL, "--score", "steam"),
        (SMALL, "--batch", "0"),
        (SMALL, "--height", "-1"),
        (SMALL, "--limit", "-1"),
        (SMALL, "--seed", "-1"),
        (SMALL, "--seed-test", "-1"),
        (SMALL, "--relations", "-1"),
        (SMALL, "--queries", "answers.txt"),
        (SMALL, "--table", "table.html"),
        (SMALL, "--explain", "husband(nobody,person0)"),
        (SMALL, "--explain", "husband(person0"),
        (SMALL, "--explain", "husband(person0,person1), wife(person1,person0)"),
        (SMALL, "--explain", "husband(person0,person1)", "--engine", "rollout"),
        (SMALL, "--explain", "husband(person0,person1)", "--html", "page.html"),
        (SMALL, "--score", "logprob"),
        (SMALL, "--alone"),
        (SMALL, "--search", "beam"),
        (SMALL, "--policy", "learned"),
        (SMALL, "--steps", "5"),
        (SMALL, "--overflow", "error"),
        (SMALL, "--engine", "rollout", "--beam", "8"),
        (SMALL, "--engine", "rollout", "--weights", "some"),
        (SMALL, "--engine", "rollout", "--search", "exhaustive", "--policy", "learned"),
        (SMALL, "--engine", "rollout", "--search", "exhaustive", "--steps", "5"),
        (SMALL, "--engine", "rollout", "--search", "exhaustive", "--score", "logprob"),
        (SMALL, "--engine", "rollout", "--weights", "nowhere", "--policy", "learned"),
    ],
)
def test_what_is_wrong_is_said_without_a_traceback(options: tuple[str, ...]) -> None:
    code, output = prove(*options)
    assert code == 2
    assert "Traceback" not in output
    assert output.strip()


def test_no_queries_have_no_means(tmp_path: Path) -> None:
    made = prove_to_json(tmp_path, SMALL, "--limit", "0")
    assert made["both"]["mrr"]["realistic"] is None
    assert made["both"]["queries"] == 0


def test_figures_by_relation_come_to_those_of_all() -> None:
    run = evaluate(Settings(SMALL))
    whole = by_mode(run)["both"]
    parts = [part for modes in by_relation(run).values() for part in modes.values()]
    assert sum(part["queries"] for part in parts) == whole["queries"]
    weighed = math.fsum(part["mrr"]["realistic"] * part["queries"] for part in parts)
    assert math.isclose(weighed / whole["queries"], whole["mrr"]["realistic"])
    assert figures([])["outcomes"] == {o.name: 0 for o in Outcome}


ROLL = (
    SMALL,
    "--engine",
    "rollout",
    "--limit",
    "4",
    "--sample",
    "3",
    "--height",
    "3",
    "--mode",
    "tail",
)


@pytest.mark.parametrize("search", ["greedy", "sampled", "beam"])
@pytest.mark.parametrize("policy", ["uniform", "learned"])
def test_rollouts_and_their_reference(tmp_path: Path, search: str, policy: str) -> None:
    options = (*ROLL, "--search", search, "--policy", policy, "--steps", "4", "--check-proofs")
    options = (*options, "--score", "logprob" if policy == "uniform" else "height")
    ours = prove_to_json(tmp_path, *options, "--batch", "16")
    plain = prove_to_json(tmp_path, *options, "--backend", "python")
    if not ours["both"]["near_ties"]:
        assert ours["tail"] == plain["tail"]
        assert ours["checked"] == plain["checked"] == ours["tail"]["outcomes"].get("PROVED")
    assert ours["closure"] is None


def test_exhaustive_rollout(tmp_path: Path) -> None:
    options = (*ROLL, "--search", "exhaustive", "--height", "2")
    ours = prove_to_json(tmp_path, *options, "--check-proofs", "--batch", "16")
    plain = prove_to_json(tmp_path, *options, "--backend", "python")
    closed = prove_to_json(tmp_path, *ROLL, "--engine", "closure", "--height", "2")
    assert ours["tail"] == plain["tail"]
    for name in ("mrr", "hits", "proved", "candidates"):
        assert ours["tail"][name] == closed["tail"][name]


def test_a_query_may_not_use_itself(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    for name, text in {"train": "p(a,b).", "valid": "", "test": "p(a,b).", "rules": ""}.items():
        (folder / f"{name}.txt").write_text(text)
    options = (str(folder), "--engine", "rollout", "--batch", "4")
    assert prove_to_json(tmp_path, *options)["both"]["proved"] == 2
    assert prove_to_json(tmp_path, *options, "--alone")["both"]["proved"] == 0


def test_marked_overflows_make_bounds(tmp_path: Path) -> None:
    """A clause of eight goals, which could make more than there is room for at first."""
    folder = tmp_path / "wide"
    folder.mkdir()
    chain = "\n".join(f"s{i}(n{i},n{i + 1})." for i in range(7))
    body = ", ".join(f"s{i}(x{i},x{i + 1})" for i in range(8))
    files = {
        "train": f"{chain}\ns7(n7,y).\ns7(n7,z).",
        "valid": "",
        "test": "r(n0,z).",
        "rules": f"r:1:{body} -> r(x0,x8)",
    }
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    options = (str(folder), "--engine", "rollout", "--mode", "tail", "--batch", "16")
    grown = prove_to_json(tmp_path, *options)
    assert grown["tail"]["outcomes"]["PROVED"] == 2  # r(n0,z) and r(n0,y)
    assert grown["tail"]["mrr"]["pessimistic"] == 0.5
    marked = prove_to_json(tmp_path, *options, "--overflow", "mark")
    assert marked["tail"]["overflows"]["atoms"] == 10
    assert marked["tail"]["mrr"]["optimistic"] == 1
    assert marked["tail"]["mrr"]["pessimistic"] == 1 / 10
    code, output = prove(*options, "--overflow", "error")
    assert code == 2
    assert "OVERFLOW_ATOMS" in output


def test_closures_are_checked_too(tmp_path: Path) -> None:
    made = prove_to_json(tmp_path, SMALL, "--check-proofs")
    assert made["checked"] == made["closure"]["facts"]


def test_interrupted_runs_go_on(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    whole = prove_to_json(tmp_path, SMALL, "--resume", str(journal))
    lines = journal.read_text().splitlines(keepends=True)
    assert len(lines) == 1 + whole["both"]["queries"]
    journal.write_text("".join(lines[:20]) + lines[20][:7])  # cut short in the middle of a line
    again = prove_to_json(tmp_path, SMALL, "--resume", str(journal))
    assert again["both"] == whole["both"]
    assert journal.read_text() == "".join(lines)
    code, output = prove(SMALL, "--resume", str(journal), "--height", "2")
    assert code == 2
    assert "other settings" in output


def test_a_journal_of_other_data_is_refused(tmp_path: Path) -> None:
    """The same settings, but the file of rules was changed meanwhile."""
    rules, journal = tmp_path / "rules.txt", tmp_path / "journal"
    rules.write_text("r:1:husband(x,y) -> wife(y,x)\n")
    options = (SMALL, "--rules", str(rules), "--resume", str(journal))
    assert prove(*options)[0] == 0
    rules.write_text("r:1:husband(x,y) -> wife(x,y)\n")
    code, output = prove(*options)
    assert code == 2
    assert "other settings or data" in output


def test_a_journal_is_used_by_one_run_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with Journal(path, "a", 3):
        with pytest.raises(InputError, match="in use"), Journal(path, "a", 3):
            pass
        with Journal(path, "a", 3, passing=True) as other:
            other.write(Finding(Rank(0, 0, 1), 0, Counter()))
    with Journal(path, "a", 3) as again:
        assert again.done == ()


def test_the_closure_is_kept_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = tmp_path / "journal"
    whole = prove_to_json(tmp_path, SMALL, "--resume", str(journal))
    monkeypatch.setattr(evaluation, "close_program", None)  # a second closure would fail
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:9]))
    again = prove_to_json(tmp_path, SMALL, "--resume", str(journal))
    assert (again["both"], again["closure"]) == (whole["both"], whole["closure"])


# The command, stopped by a signal when ten queries are done.
CUT_SHORT = """
import os, signal, sys
from tenfold.apps.prover.journal import Journal
from tenfold.cli import app

write, done = Journal.write, []

def stopping(journal, found):
    write(journal, found)
    done.append(found)
    if len(done) == 10:
        os.kill(os.getpid(), signal.SIGINT)

Journal.write = stopping
app(sys.argv[1:], prog_name="tenfold")
"""


def test_an_interrupt_and_the_same_command_again(tmp_path: Path) -> None:
    """A process stopped by Ctrl-C in the middle; nothing but the cache was asked to remember."""
    import tenfold

    source = str(Path(tenfold.__file__).parents[1])
    env = {**os.environ, "TENFOLD_CACHE": str(tmp_path / "cache"), "PYTHONPATH": source}
    command = [sys.executable, "-m", "tenfold", "prove", "family:families=6"]
    command += ["--backend", "python", "--engine", "rollout", "--limit", "60", "--sample", "20"]
    command += ["--json", str(tmp_path / "out.json")]
    cut = [sys.executable, "-c", CUT_SHORT, *command[3:]]
    first = subprocess.run(cut, env=env, stderr=subprocess.PIPE, text=True, check=False)
    runs = tmp_path / "cache" / "runs"
    assert first.returncode == 130, first.stderr
    assert "the same command goes on from there" in " ".join(first.stderr.split())
    second = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert "Resumed:" in second.stderr
    assert not [*runs.iterdir()]  # what has ended is not kept
    third = prove_to_json(tmp_path, *command[4:-2])
    assert json.loads((tmp_path / "out.json").read_text())["both"] == third["both"]


def test_a_sample_is_drawn_once_and_shared(tmp_path: Path) -> None:
    file = tmp_path / "sample.jsonl"
    options = (SMALL, "--limit", "8", "--candidates", str(file))
    code, output = prove(*options)
    assert code == 2
    assert "--sample" in output
    drawn = prove_to_json(tmp_path, *options, "--sample", "5", "--seed", "3")
    text = file.read_text()
    assert len(text.splitlines()) == 16
    assert all(len(json.loads(line)["candidates"]) == 5 for line in text.splitlines())
    for backend in ("evaluator", "python"):  # another seed draws nothing: the file is read
        other = prove_to_json(tmp_path, *options, "--backend", backend, "--seed", "9")
        assert other["both"] == drawn["both"]
    assert file.read_text() == text
    for change, message in (
        (("--sample", "4"), "5 candidates"),
        (("--limit", "9"), "no candidates for"),
    ):
        code, output = prove(*options, *change)
        assert code == 2
        assert message in " ".join(output.split())
    file.write_text(text.replace(json.loads(text.splitlines()[0])["candidates"][0], "nobody"))
    code, output = prove(*options)
    assert code == 2
    assert "nobody is no candidate" in " ".join(output.split())


def test_the_bar_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    from tenfold.apps.prover import command

    screen = Console(file=StringIO(), force_terminal=True, width=80)
    settings = Settings(SMALL, limit=3, backend="python")
    run = command._evaluate(settings, screen, None, True)
    assert len(run.results) == 6
    drawn = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "6 of 6 queries" in drawn
    assert "closing" in drawn


def test_weights_from_a_file(tmp_path: Path) -> None:
    from safetensors_file import write_arrays

    from tenfold.apps.prover.input.load import load
    from tenfold.apps.prover.input.program import program_of
    from tenfold.apps.prover.rollout.policy import random_weights

    program = program_of(load(SMALL))
    file = tmp_path / "weights.safetensors"
    made = random_weights(program, 64, seed=0)
    write_arrays(file, made._asdict())
    options = (*ROLL, "--policy", "learned", "--score", "logprob", "--steps", "3", "--batch", "16")
    drawn = prove_to_json(tmp_path, *options, "--seed", "0")
    read = prove_to_json(tmp_path, *options, "--seed", "0", "--weights", str(file))
    assert drawn["tail"] == read["tail"]
    write_arrays(file, made._replace(predicates=made.predicates[1:])._asdict())
    code, output = prove(*options, "--weights", str(file))
    assert code == 2
    assert "predicates has the shape" in output
    file.write_bytes(b"no tensors")
    code, output = prove(*options, "--weights", str(file))
    assert code == 2
    assert "safetensors" in output


@pytest.mark.parametrize("limit", [("--max-facts", "10"), ("--memory", "1K")])
def test_a_limit_that_is_met_is_said(tmp_path: Path, limit: tuple[str, str]) -> None:
    page, out = tmp_path / "out.html", tmp_path / "out.json"
    options = (SMALL, *limit, "--html", str(page), "--json", str(out), "--limit", "6")
    code, output = prove(*options)
    assert code == 0, output
    said = f"Stopped by {limit[0]}"
    assert said in output
    assert said in page.read_text()
    made = json.loads(out.read_text())
    assert made["closure"]["stopped"] == limit[0].removeprefix("--")
    assert (made["closure"]["height"], made["closure"]["complete"]) == (0, False)
    low, high = made["both"]["bounds"]["mrr"]["realistic"]
    assert low < made["both"]["mrr"]["realistic"] < high


@pytest.mark.parametrize(
    ("option", "value"), [("--memory", "lots"), ("--memory", "-4G"), ("--max-facts", "0")]
)
def test_a_limit_that_can_not_be_read(option: str, value: str) -> None:
    code, output = prove(SMALL, option, value)
    assert code == 2
    assert f"{option.removeprefix('--')} is" in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (Event("searching", 0, 9, kept=True), "nothing is kept"),
        (Event("searching", 3, 9, kept=True), "3 queries are kept"),
        (Event("ranking", 0, 9, kept=True), "the closure is kept"),
        (Event("ranking", 3, 9), "nothing is kept"),
    ],
)
def test_what_is_said_to_be_kept(last: Event, said: str) -> None:
    """A search has no closure."""
    assert command._kept(last).startswith(said)
