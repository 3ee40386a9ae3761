"""Searches within a bound of memory: what does not fit is lost, said, and left open in figures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tenfold.apps.prover.command import app
from tenfold.apps.prover.errors import CapacityError, InputError
from tenfold.apps.prover.evaluation import evaluate
from tenfold.apps.prover.input.load import load
from tenfold.apps.prover.input.program import program_of
from tenfold.apps.prover.outcome import OVERFLOWS, Outcome
from tenfold.apps.prover.report.bounds import bounds
from tenfold.apps.prover.report.summary import report
from tenfold.apps.prover.resolution.tables import tables_of
from tenfold.apps.prover.rollout.exhaustive_run import Exhaustion, Keeper, Sizes, exhaust_all
from tenfold.apps.prover.rollout.queue import Lane
from tenfold.apps.prover.rollout.room import Room
from tenfold.apps.prover.rollout.run import LOST
from tenfold.apps.prover.rollout.usage import Usage
from tenfold.apps.prover.rollout.weighted import weigh_all
from tenfold.apps.prover.settings import Settings

from .generated import everything

FAMILY = "family:families=1,generations=3,children=2,held=10"
SMALL = Exhaustion(2, Room(64, 6, 8), places=64, batch=8, backend="evaluator")


def exhaustive(memory: int | None, lanes: int = 24, **changes: object) -> tuple[list, Usage]:
    program = program_of(load(FAMILY))
    asked = [Lane(goal) for goal in everything(program)[5::97][:lanes]]
    usage = Usage(memory)
    search = replace(SMALL, memory=memory, **changes)  # type: ignore[arg-type]
    return exhaust_all(program, asked, search, usage), usage


def test_lanes_that_do_not_fit_together_are_searched_for_apart() -> None:
    expected, free = exhaustive(None)
    assert {end.outcome for end in expected} == {Outcome.PROVED, Outcome.DEPTH}
    for share in (2, 6, 10):
        made, usage = exhaustive(free.nbytes // share)
        assert usage.nbytes <= free.nbytes // share
        for one, other in zip(made, expected, strict=True):
            assert one in (other, LOST)
        assert usage.lost == made.count(LOST) < len(made)


def test_which_candidates_are_lost_does_not_depend_on_the_others() -> None:
    _, free = exhaustive(None)
    bound = free.nbytes // 10
    together, _ = exhaustive(bound)
    program = program_of(load(FAMILY))
    lanes = [Lane(goal) for goal in everything(program)[5::97][:24]]
    search = replace(SMALL, memory=bound)
    assert LOST in together
    assert [exhaust_all(program, [lane], search)[0] for lane in lanes] == together


def test_too_little_memory_to_begin() -> None:
    made, usage = exhaustive(1000)
    assert made == [LOST] * len(made)
    assert usage.lost == len(made)
    with pytest.raises(CapacityError, match="more than the memory"):
        exhaustive(1000, overflow="error")


def test_states_are_compared_with_many_clauses_a_part_at_a_time() -> None:
    """A piece has fewer states where each is compared with many clauses: memory stays the same."""
    from .test_footprint import with_rules

    search = replace(SMALL, room=Room(1 << 12, 6, 8), places=1 << 12)
    few, many = (
        Keeper(tables_of(with_rules(n)), search, Usage()).count(
            search.room, Sizes(1 << 12, 1 << 12)
        )
        for n in (1 << 10, 1 << 12)
    )
    assert many < 1.2 * few


def test_proofs_that_outgrow_memory_have_no_weight() -> None:
    program = program_of(load(FAMILY))
    ends, _ = exhaustive(None)
    goals = everything(program)[5::97][:24]
    asked = [Lane(g) for g, e in zip(goals, ends, strict=True) if e.height]
    free = weigh_all(program, asked, 2, 8, "evaluator")
    assert None not in free
    assert weigh_all(program, asked, 2, 8, "evaluator", memory=1000) == [None] * len(asked)
    some = weigh_all(program, asked, 2, 8, "evaluator", memory=1 << 19)
    assert all(one in (None, other) for one, other in zip(some, free, strict=True))


# Whole runs.

SETTINGS = Settings(
    FAMILY,
    engine="rollout",
    search="exhaustive",
    height=2,
    limit=3,
    sample=6,
    batch=8,
    states=64,
    successors=64,
)


def test_figures_of_searches_that_were_lost_are_intervals_around_the_true_ones() -> None:
    true = evaluate(SETTINGS)
    assert true.usage is not None
    limited = replace(SETTINGS, memory=true.usage.nbytes // 8)
    run = evaluate(limited)
    made, exact = report(run), report(true)
    assert made["rollout"]["lost"] == sum(run.outcomes[o] for o in OVERFLOWS) > 0
    assert made["rollout"]["bytes"] <= made["rollout"]["memory"] == limited.memory
    assert exact["rollout"]["lost"] == 0
    assert "bounds" not in exact["both"]
    for mode in ("head", "tail", "both"):
        for kind, (low, high) in made[mode]["bounds"]["mrr"].items():
            assert low <= exact[mode]["mrr"][kind] <= high
        for level, kinds in made[mode]["bounds"]["hits"].items():
            for kind, (low, high) in kinds.items():
                assert low <= exact[mode]["hits"][level][kind] <= high
    for one, other in zip(run.results, true.results, strict=True):
        best, worst = bounds(one.found, "height")
        assert best.optimistic <= other.found.rank.optimistic
        assert other.found.rank.pessimistic <= worst.pessimistic


def test_the_command_says_the_limit_the_room_and_the_intervals(tmp_path: Path) -> None:
    data = ["family:families=1,generations=2", "--limit", "2", "--sample", "3", "--fresh"]
    rollout = [*data, "--engine", "rollout", "--steps", "3"]
    out = tmp_path / "out.json"
    made = CliRunner().invoke(app, [*rollout, "--memory", "1K", "--json", str(out)])
    said = " ".join(made.output.split())
    assert made.exit_code == 0, made.output
    assert "since --memory holds no more" in said
    assert "What more would be proved is not known: MRR" in said
    kept = json.loads(out.read_text())
    assert kept["rollout"]["lost"] == sum(kept["both"]["outcomes"].values())
    made = CliRunner().invoke(
        app, [*rollout, "--successors", "700", "--goals", "7", "--variables", "9", "--json", out]
    )
    said = " ".join(made.output.split())
    assert "Room, at most: 700 successors, 7 goals, 9 variables, 3 steps" in said
    (room,) = json.loads(out.read_text())["rollout"]["rooms"]
    assert (room["successors"], room["goals"], room["variables"]) == (700, 7, 9)
    assert room["nbytes"] == json.loads(out.read_text())["rollout"]["bytes"] > 0


def test_memory_that_runs_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("tenfold.apps.prover.evaluation.evaluate", short)
    made = CliRunner().invoke(app, ["family:families=1", "--fresh"])
    assert made.exit_code == 2
    assert "memory ran out: bound it by --memory" in " ".join(made.output.split())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"backend": "python", "memory": 1 << 20}, "plain Python counts no bytes"),
        ({"max_facts": 5}, "max_facts is 5, which an exhaustive search has not"),
        ({"search": "greedy"}, "states is 64, which a greedy search by the uniform policy has not"),
        ({"engine": "closure", "search": "greedy"}, "successors is 64, which a closure has not"),
        ({"successors": 0}, "successors is 0"),
    ],
)
def test_limits_that_a_run_has_not(changes: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        replace(SETTINGS, **changes)  # type: ignore[arg-type]
