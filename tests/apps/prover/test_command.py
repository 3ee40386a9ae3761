"""The command `tenfold prove`, and what it writes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tenfold.apps.prover.evaluation import evaluate
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.ranks import KINDS
from tenfold.apps.prover.settings import Settings
from tenfold.apps.prover.summary import by_mode, by_relation, figures
from tenfold.cli import app

SMALL = "family:families=2"


def prove(*options: str) -> tuple[int, str]:
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
    plain = prove_to_json(tmp_path, SMALL, "--backend", "python")
    for part in ("head", "tail", "both", "relations"):
        assert ours[part] == plain[part]


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
    assert set(made["closure"]["heights"]) == {"0"}


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
