"""The command's options for scores and metrics, and what it writes of them."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors_file import write_arrays

from tenfold.apps.prover.input.load import load
from tenfold.apps.prover.input.program import program_of

from .test_command import SMALL, prove, prove_to_json

RULES = """\
a:0.9:husband(x,y) -> wife(y,x)
b:0.8:wife(x,y) -> husband(y,x)
c:0.7:father(x,z), mother(y,z) -> husband(x,y)
d:0.6:mother(x,z), father(y,z) -> wife(x,y)
e:0.55:father(x,z), brother(z,y) -> father(x,y)
f:0.5:mother(x,z), brother(z,y) -> mother(x,y)
g:0.45:sister(x,z), father(z,y) -> aunt(x,y)
h:0.35:brother(x,z), father(z,y) -> uncle(x,y)
i:0.35:uncle(x,z), sister(z,y) -> uncle(x,y)
j:0.2:father(x,y) -> uncle(x,y)
k:0.1:brother(x,y) -> uncle(x,y)
l:0.15:nephew(x,y) -> husband(x,y)
m:0.65:son(x,y) -> father(x,y)
"""
EXHAUSTIVE = ("--engine", "rollout", "--search", "exhaustive")


@pytest.fixture
def rules(tmp_path: Path) -> tuple[str, ...]:
    """Options for a small run by weights of rules of our own."""
    (tmp_path / "own.txt").write_text(RULES)
    return (SMALL, "--rules", str(tmp_path / "own.txt"), "--score", "weight", "--height", "2")


def embedding(path: Path) -> str:
    program = program_of(load(SMALL))
    draw = np.random.default_rng(0)
    kinds = {"entities": program.constants, "relations": program.predicates}
    tensors = {kind: draw.standard_normal((len(names), 4)) for kind, names in kinds.items()}
    write_arrays(path, tensors, {kind: json.dumps(names) for kind, names in kinds.items()})
    return str(path)


@pytest.mark.parametrize("how", ["max", "noisy-or", "product", "count", "max-then-next"])
def test_engines_and_references_print_the_same(
    tmp_path: Path, rules: tuple[str, ...], how: str
) -> None:
    options = (*rules, "--aggregate", how, "--limit", "9", "--sample", "6", "--auc-pr")
    first = prove_to_json(tmp_path, *options)
    assert first["settings"]["aggregate"] == how
    assert 0 < first["both"]["auc_pr"] <= 1
    for other in (
        ("--backend", "python"),
        (*EXHAUSTIVE, "--backend", "python"),
        (*EXHAUSTIVE, "--batch", "32"),
    ):
        made = prove_to_json(tmp_path, *options, *other)
        for part in ("head", "tail", "both"):
            for name in ("mrr", "hits", "proved", "auc_pr", "mean_rank"):
                assert made[part][name] == first[part][name]


def test_the_greatest_is_the_default_and_scores_differ(
    tmp_path: Path, rules: tuple[str, ...]
) -> None:
    made = prove_to_json(tmp_path, *rules)
    assert made["settings"]["aggregate"] == "max"
    named = prove_to_json(tmp_path, *rules, "--aggregate", "max")
    assert named["both"] == made["both"]
    by_height = prove_to_json(tmp_path, *rules[:3], "--height", "2")
    assert by_height["settings"]["aggregate"] is None
    assert by_height["both"]["proved"] == made["both"]["proved"]
    assert by_height["both"]["mrr"] != made["both"]["mrr"]


def test_the_table_says_what_was_scored(rules: tuple[str, ...]) -> None:
    code, output = prove(*rules, "--aggregate", "noisy-or", "--mode", "tail")
    assert code == 0
    assert "score weight (noisy-or)" in " ".join(output.split())
    for name in ("Mean rank,", "Adjusted mean rank,", "Adjusted mean rank index,"):
        assert name in output
    assert "AUC-PR" not in output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--aggregate", "max"), "--score weight"),
        (("--score", "weight", "--aggregate", "mean"), "max-then-next"),
        (("--score", "weight", "--engine", "rollout"), "--search exhaustive"),
        (("--score", "weight", "--engine", "rollout", "--search", "beam"), "--engine closure"),
        (("--score", "embedding"), "--embedding FILE"),
        (("--score", "embedding", "--embedding", "nowhere"), "No such file"),
        (("--score", "embedding", "--embedding", "some", "--engine", "rollout"), "--engine"),
        (("--score", "embedding", "--embedding", "some", "--check-proofs"), "--check-proofs"),
        (("--embedding", "nowhere"), "No such file"),
        (("--seed", "-1"), "seed is -1"),
        (("--seeds", "0"), "seeds is 0"),
        (("--seeds", "-2"), "seeds is -2"),
        (("--seeds", "3"), "nothing is drawn"),
        (("--seed-test", "-1"), "seed-test is -1"),
        (("--bootstrap", "-5"), "bootstrap is -5"),
        (("--bootstrap", "9", "--confidence-level", "95"), "confidence-level is 95"),
        (("--bootstrap", "9", "--confidence-level", "0"), "confidence-level is 0"),
        (("--bootstrap", "9", "--confidence-level", "nan"), "confidence-level is nan"),
        (("--sample", "-1"), "sample is -1"),
    ],
)
def test_what_does_not_go_together_is_said(options: tuple[str, ...], said: str) -> None:
    code, output = prove(SMALL, *options)
    assert code == 2
    assert "Traceback" not in output
    assert said in " ".join(output.split())


@pytest.mark.parametrize("weight", ["0", "-0.1", "42", "1.5"])
def test_weights_that_are_no_confidences_name_their_line(
    tmp_path: Path, rules: tuple[str, ...], weight: str
) -> None:
    text = RULES.replace("d:0.6:", f"d:{weight}:")
    (tmp_path / "own.txt").write_text(text)
    code, output = prove(*rules)
    said = " ".join(output.split())
    assert code == 2
    assert "own.txt:4" in said
    assert "no confidence" in said
    assert ("percentages" in said) == (float(weight) > 1)
    assert prove(*rules[:3])[0] == 0  # no other score looks at weights


def test_notices_of_weights_are_in_the_file(tmp_path: Path) -> None:
    made = prove_to_json(tmp_path, SMALL, "--score", "weight", "--height", "1", "--limit", "2")
    assert any("every rule weighs 1" in notice for notice in made["notices"])


def test_a_journal_of_another_score_is_refused(tmp_path: Path, rules: tuple[str, ...]) -> None:
    options = (*rules, "--resume", str(tmp_path / "journal"))
    whole = prove_to_json(tmp_path, *options, "--aggregate", "max-then-next", "--auc-pr")
    lines = (tmp_path / "journal").read_text().splitlines(keepends=True)
    (tmp_path / "journal").write_text("".join(lines[:9]))
    again = prove_to_json(tmp_path, *options, "--aggregate", "max-then-next", "--auc-pr")
    assert again["both"] == whole["both"]
    for other in ((), ("--aggregate", "noisy-or"), ("--aggregate", "max-then-next")):
        code, output = prove(*options, *other)
        assert code == 2
        assert "other settings" in output
    (tmp_path / "own.txt").write_text(RULES.replace("0.35", "0.3"))  # a weight alone
    code, output = prove(*options, "--aggregate", "max-then-next", "--auc-pr")
    assert code == 2
    assert "other settings or data" in output


def test_intervals_are_of_the_report_and_of_no_run(tmp_path: Path, rules: tuple[str, ...]) -> None:
    """Another count of resamples goes on from the same journal."""
    options = (*rules, "--resume", str(tmp_path / "journal"))
    plain = prove_to_json(tmp_path, *options)
    assert plain["intervals"] is None
    made = prove_to_json(tmp_path, *options, "--bootstrap", "100", "--confidence-level", "0.9")
    assert made["both"] == plain["both"]
    assert made["intervals"]["resamples"] == 100
    low, high = made["intervals"]["both"]["mrr"]["realistic"]
    assert low < made["both"]["mrr"]["realistic"] < high
    again = prove_to_json(tmp_path, *options, "--bootstrap", "100", "--confidence-level", "0.9")
    assert again["intervals"] == made["intervals"]
    code, output = prove(*options, "--bootstrap", "100")
    assert code == 0
    assert re.search(r"95 % intervals.*100 resamples", output)


def test_embeddings_alone_and_as_breakers(tmp_path: Path, rules: tuple[str, ...]) -> None:
    file = embedding(tmp_path / "e.safetensors")
    alone = prove_to_json(tmp_path, SMALL, "--score", "embedding", "--embedding", file)
    assert alone["closure"] is None
    assert alone["both"]["proved"] == 0
    assert set(alone["both"]["outcomes"].values()) == {0}
    assert alone["settings"]["embedding"] == file
    mrr = alone["both"]["mrr"]
    assert mrr["optimistic"] == mrr["pessimistic"]
    plain = prove_to_json(tmp_path, *rules)
    broken = prove_to_json(tmp_path, *rules, "--embedding", file)
    before, after = plain["both"]["mrr"], broken["both"]["mrr"]
    assert before["pessimistic"] < after["pessimistic"] == after["optimistic"]
    assert after["optimistic"] < before["optimistic"]
    code, output = prove(*rules, "--embedding", file, "--auc-pr", "--bootstrap", "20")
    assert code == 0
    assert "ties broken by" in " ".join(output.split())
    code, output = prove(SMALL, "--score", "embedding", "--embedding", file)
    assert code == 0
    assert "score by the embedding" in " ".join(output.split())


def test_the_page_shows_scores_and_metrics(tmp_path: Path, rules: tuple[str, ...]) -> None:
    page = tmp_path / "page.html"
    options = (*rules, "--aggregate", "count", "--limit", "12", "--auc-pr", "--bootstrap", "20")
    code, output = prove(*options, "--sample", "9", "--seeds", "2", "--html", str(page))
    assert code == 0, output
    text = page.read_text()
    for part in (
        "<dt>aggregate</dt><dd class=set>count</dd>",
        "AUC-PR",
        "95 % intervals, 20 resamples",
        "over 2 seeds",
    ):
        assert part in text
    assert re.search(r"\"weight\":\d", text)  # of the queries that are listed
    file = embedding(tmp_path / "e.safetensors")
    code, output = prove(SMALL, "--score", "embedding", "--embedding", file, "--html", str(page))
    assert code == 0, output
    assert "<details>" not in page.read_text()


def test_several_seeds(tmp_path: Path, rules: tuple[str, ...]) -> None:
    options = (*rules, "--sample", "4")
    made = prove_to_json(tmp_path, *options, "--seeds", "3", "--seed", "5")
    each: list[dict[str, Any]] = [
        prove_to_json(tmp_path, *options, "--seed", str(seed)) for seed in (5, 6, 7)
    ]
    values = [one["both"]["mrr"]["realistic"] for one in each]
    found = made["seeds"]["both"]["mrr"]["realistic"]
    assert made["seeds"]["seeds"] == [5, 6, 7]
    assert found["each"] == values
    assert len(set(values)) > 1
    assert found["deviation"] == pytest.approx(statistics.stdev(values))
    assert made["both"] == each[0]["both"]
    assert each[0]["seeds"] is None
    code, output = prove(*options, "--seeds", "2")
    assert code == 0
    assert "Over the seeds 0, 1: mean ± standard deviation" in output
    code, output = prove(*options, "--seeds", "2", "--resume", str(tmp_path / "journal"))
    assert code == 2
    assert "give a folder" in output
    assert prove(*options, "--seeds", "2", "--resume", str(tmp_path))[0] == 0


def test_the_answers_have_weights_and_what_beats_them(
    tmp_path: Path, rules: tuple[str, ...]
) -> None:
    """Whatever is better is listed, the best first, and the same by every engine."""
    path, made = tmp_path / "out.jsonl", []
    for engine in ((), ("--backend", "python"), ("--engine", "rollout", "--search", "exhaustive")):
        code, output = prove(*rules, *engine, "--limit", "12", "--queries", str(path))
        assert code == 0, output
        rows = [json.loads(line) for line in path.read_text().splitlines()[1:]]
        assert len(rows) == 24
        assert any(row["above"] for row in rows)
        for row in rows:
            assert len(row["above"]) == min(row["better"], 20)
            assert (row["weight"] is None) == (row["height"] is None)
            assert row["weight"] is None or 0 < row["weight"] <= 1
        made.append([(row["better"], row["ties"], row["weight"], row["above"]) for row in rows])
    assert made[0] == made[1] == made[2]
