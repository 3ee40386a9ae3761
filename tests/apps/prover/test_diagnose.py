"""The prover's checks of itself."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tenfold.apps.prover import diagnose
from tenfold.apps.prover.backend import TracedFunction
from tenfold.apps.prover.closure.fixpoint import State, run
from tenfold.apps.prover.compare import first_difference
from tenfold.apps.prover.evaluation import evaluate
from tenfold.apps.prover.report.summary import by_mode
from tenfold.apps.prover.rollout.exhaustive import exhaust
from tenfold.apps.prover.rollout.loop import roll
from tenfold.apps.prover.settings import Settings
from tenfold.cli import app

SMALL = Settings("family:families=1,generations=3", limit=3, sample=3, height=3, batch=24)
ROLLED = replace(SMALL, engine="rollout", steps=3, modes=("tail",))
EXHAUSTIVE = replace(SMALL, engine="rollout", search="exhaustive", modes=("tail",), height=2)


def test_closures_compare_step_by_step() -> None:
    steps, difference = diagnose.compare(SMALL)
    assert difference is None
    assert steps > 1


def test_rollouts_compare_step_by_step() -> None:
    assert diagnose.compare(ROLLED) == (3, None)


def test_exhaustions_compare_step_by_step() -> None:
    small = replace(
        SMALL, engine="rollout", search="exhaustive", modes=("tail",), height=2, limit=2
    )
    steps, difference = diagnose.compare(small)
    assert difference is None
    assert steps > 3


def test_the_rules_given_are_the_rules_compared(tmp_path: Path) -> None:
    rules = tmp_path / "own.txt"
    rules.write_text("r:1:nothing(x,y) -> wife(y,x)\n")
    assert diagnose.compare(replace(SMALL, rules=str(rules))) == (1, None)  # nothing follows


@pytest.mark.parametrize("engine", ["closure", "rollout", "exhaustive"])
def test_a_planted_difference_is_shown_with_its_state(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiled backend made to answer wrong from the third step on."""
    settings, function, change = {
        "closure": (SMALL, run, lambda out: out._replace(facts=_wrong(out.facts))),
        "rollout": (
            ROLLED,
            roll,
            lambda out: (out[0]._replace(choices=_wrong(out[0].choices)), *out[1:]),
        ),
        "exhaustive": (
            EXHAUSTIVE,
            exhaust,
            lambda out: out._replace(store=out.store._replace(words=_wrong(out.store.words))),
        ),
    }[engine]
    calls: list[int] = []
    honest = function.on("evaluator")

    def on(backend: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            calls.append(1)
            out = honest(*args, **kwargs)
            return change(out) if len(calls) >= 3 else out

        return call if backend == "compiled" else honest

    monkeypatch.setattr(function, "on", on)
    steps, difference = diagnose.compare(settings)
    assert steps == 2
    assert difference is not None
    assert difference.ours
    assert difference.theirs
    assert "(" in difference.ours + difference.theirs  # a fact or a goal, by its names
    assert f"evaluator: {difference.theirs}" in str(difference)


def _wrong(values: np.ndarray) -> np.ndarray:
    made = values.copy()
    made[(0,) * made.ndim] += 1
    return made


def test_the_first_difference_is_found() -> None:
    one = State(*[np.arange(4)] * 13)
    other = one._replace(index=np.array([0, 1, 5, 6]))
    found = first_difference(2, State._fields, one, other)
    assert found is not None
    assert (found.column, found.place) == ("index", (2,))
    assert first_difference(2, State._fields, one, one) is None
    shorter = first_difference(2, ["work"], one, one._replace(work=np.arange(3)))
    assert shorter is not None
    assert shorter.compiled == (4,)


def test_performance_and_seeds() -> None:
    timed = [*diagnose.performance(SMALL)]
    names = ["top-down", "bottom-up", "evaluator", "compiled", "compiled, again"]
    assert [one.backend for one in timed] == names
    assert all(one.same for one in timed)
    assert timed[0].searched > 0
    assert timed[0].asked == timed[1].searched
    assert [one.mrr for one in timed[1:]] == [timed[1].mrr] * 4
    assert timed[1].speed == 1
    assert all(one.speed and one.query_ms for one in timed[1:])
    assert "ms a query" in str(timed[2])
    assert "MRR 0." in str(timed[2]) or "MRR 1." in str(timed[2])
    seeds = [*diagnose.seed_test(SMALL, 2)]
    assert [(one.seed, one.same) for one in seeds] == [(0, True), (1, True)]
    mrr = by_mode(evaluate(replace(SMALL, data=f"{SMALL.data},seed=1", seed=1)))["both"]["mrr"]
    assert seeds[1].mrr == mrr
    assert f"realistic {mrr['realistic']:.4f}" in str(seeds[1])


def test_diagnoses_obey_json(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    options = [SMALL.data, "--height", "2", "--limit", "2", "--performance", "--seed-test", "2"]
    result = CliRunner().invoke(app, ["prove", *options, "--json", str(file)])
    assert result.exit_code == 0, result.output
    assert "deviation" in result.output
    made = json.loads(file.read_text())
    assert made["good"] is True
    assert [one["seed"] for one in made["seeds"]] == [0, 1]
    assert [one["backend"] for one in made["performance"]][-1] == "compiled, again"
    assert made["performance"][1]["mrr"] is not None
    assert set(made["provenance"]) >= {"command", "data", "rules", "version", "target", "date"}
    result = CliRunner().invoke(app, ["prove", *options, "--html", str(tmp_path / "p.html")])
    assert result.exit_code == 2
    assert "--html" in result.output


def test_the_command_says_so() -> None:
    result = CliRunner().invoke(
        app, ["prove", SMALL.data, "--height", "3", "--compare", "--seed-test", "1"]
    )
    assert result.exit_code == 0, result.output
    assert "alike in" in result.output
    assert "equal  seed 0" in result.output


def test_what_was_compiled_is_said() -> None:
    result = CliRunner().invoke(app, ["prove", SMALL.data, "--limit", "2", "--explain-compile"])
    assert result.exit_code == 0, result.output
    for name in ("prepare", "run", "rank_batch"):
        found = re.search(
            rf"^{name}: (\d+) kernels, (\d+) host steps; .*compile", result.output, re.M
        )
        assert found is not None, result.output
        assert int(found[1]) > 0
        lines = result.output[found.end() :].splitlines()[1:]
        steps = [re.match(r"  (\d+) × \w+: ", line) for line in lines]
        until = next(i for i, step in enumerate(steps) if step is None)
        assert sum(int(step[1]) for step in steps[:until] if step) == int(found[2])
    assert re.search(r"^in all: .*kernels compiled \d+.*compile \d", result.output, re.M)
    assert TracedFunction.watcher is None


@pytest.mark.parametrize("name", ["closure", "rollout, greedy"])
def test_smoke(name: str) -> None:
    found = {}
    for kind, same in diagnose.smoke():
        found[kind] = same
        if kind == name:
            break
    assert all(found.values())
