"""Diagnose: runs that say whether the prover works here, agrees with itself, and how fast it is."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tenfold.apps.prover.backend import is_device
from tenfold.apps.prover.compare import (
    Difference,
    compare_closures,
    compare_exhaustions,
    compare_rollouts,
)
from tenfold.apps.prover.evaluation import Run, evaluate, load_for
from tenfold.apps.prover.input.program import program_of
from tenfold.apps.prover.input.queries import queries, sample
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.reference.top_down import Searcher
from tenfold.apps.prover.report.summary import by_mode
from tenfold.apps.prover.rollout.engine import lanes_of, search_of
from tenfold.apps.prover.rollout.exhaustive_run import Exhaustion
from tenfold.apps.prover.settings import Settings

BACKENDS = ("python", "evaluator", "compiled")


def compiled(settings: Settings) -> str:
    """The compiled backend to be looked at: the GPU that the settings name, if they do."""
    return settings.backend if is_device(settings.backend) else "compiled"


@dataclass(frozen=True, slots=True)
class Timing:
    """A run by one backend: seconds by stage, and whether it found what the first one found."""

    backend: str
    seconds: dict[str, float]
    same: bool
    searched: int  # candidates and queries
    asked: int  # of so many
    queries: int = 0
    mrr: float | None = None  # realistic; None where not all was searched
    speed: float | None = None  # times as fast as the plain reference of the engine

    @property
    def total(self) -> float:
        """Seconds of closing, searching and ranking."""
        return sum(value for stage, value in self.seconds.items() if stage != "read")

    @property
    def query_ms(self) -> float | None:
        """Milliseconds a query."""
        return 1000 * self.total / self.queries if self.queries else None

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for a file."""
        return {**asdict(self), "total": self.total, "query_ms": self.query_ms}

    def __str__(self) -> str:
        spent = "  ".join(f"{stage} {value:8.3f} s" for stage, value in self.seconds.items())
        parts = [f"{self.backend:16} {spent}"]
        if self.query_ms is not None:
            parts.append(f"{self.query_ms:9.3f} ms a query")
        if self.speed is not None:
            parts.append(f"{self.speed:6.2f}×")
        if self.mrr is not None:
            parts.append(f"MRR {self.mrr:.4f}")
        parts.append("equal" if self.same else "DIFFERS")
        if self.searched != self.asked:
            parts.append(f"{self.searched:,} of {self.asked:,} alone")
        return "  ".join(parts)


def performance(settings: Settings, patience: float = 10.0) -> Iterator[Timing]:
    """The same run by the references, the evaluator and compiled, on a GPU too if the settings name
    one; the last of them twice, to see it warm.

    Speeds are against the plain reference, bottom-up for a closure. Top-down searches for each
    candidate by itself, so beside a closure it stops after so many seconds of patience, and says
    how far it came.
    """
    first: Any = None
    plain = 0.0
    backends = [*dict.fromkeys((*BACKENDS, compiled(settings)))]
    for turn, backend in enumerate((*backends, backends[-1])):
        run = evaluate(replace(settings, backend=backend))
        made = by_mode(run)
        count = made["both"]["queries"] + made["both"]["candidates"]
        if first is None:
            first = made
            if run.closed is not None:
                yield _top_down(run, patience)
        name = "bottom-up" if backend == "python" and run.closed is not None else backend
        name = f"{name}, again" if turn == len(backends) else name
        queries, mrr = made["both"]["queries"], made["both"]["mrr"]["realistic"]
        one = Timing(name, run.seconds, _alike(made, first), count, count, queries, mrr)
        plain = plain or one.total
        yield replace(one, speed=plain / one.total if one.total else None)


def _top_down(run: Run, patience: float) -> Timing:
    """The other reference on what a closure was asked, as far as it comes."""
    assert run.closed is not None
    heights, searcher = run.closed.by_triple(), Searcher(run.program)
    goals = [r.query.corrupt(c) for r in run.results for c in (r.query.own, *r.query.candidates)]
    began, done, same = time.perf_counter(), 0, True
    for goal in goals:
        if time.perf_counter() - began >= patience:
            break
        answer = searcher.prove(goal, run.settings.height, budget=100_000)
        if answer.outcome != Outcome.GAVE_UP:
            same &= answer.height == heights.get(goal)
            done += 1
    return Timing("top-down", {"rank": time.perf_counter() - began}, same, done, len(goals))


@dataclass(frozen=True, slots=True)
class Seeded:
    """A seed: the MRR it gives, and whether compiled code and plain reference agree on it."""

    seed: int
    same: bool
    mrr: dict[str, float | None]  # by kind of rank

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for a file."""
        return asdict(self)

    def __str__(self) -> str:
        shares = ", ".join(
            f"{kind} {'-' if share is None else f'{share:.4f}'}" for kind, share in self.mrr.items()
        )
        return f"{'equal' if self.same else 'DIFFER'}  seed {self.seed}  MRR {shares}"


def seed_test(settings: Settings, count: int) -> Iterator[Seeded]:
    """For each seed, what the compiled engine finds, and whether the plain reference finds it too.

    The embedded data set is made anew by each seed.
    """
    for seed in range(count):
        data = settings.data
        if data == "family" or data.startswith("family:"):
            rest = [p for p in data.partition(":")[2].split(",") if p and "seed=" not in p]
            data = "family:" + ",".join([*rest, f"seed={seed}"])
        here = replace(settings, data=data, seed=seed)
        ours = by_mode(evaluate(replace(here, backend=compiled(settings))))
        same = _alike(ours, by_mode(evaluate(replace(here, backend="python"))))
        yield Seeded(seed, same, ours["both"]["mrr"])


def spread(seeds: Sequence[Mapping[str, Any]]) -> str:
    """The mean and the deviation (of a sample) of the realistic MRR over seeds.

    >>> spread([{"mrr": {"realistic": 0.5}}, {"mrr": {"realistic": 0.7}}])
    'MRR over 2 seeds, realistic: mean 0.6000, deviation 0.1414'
    """
    found = [one["mrr"]["realistic"] for one in seeds]
    known = [share for share in found if share is not None]
    if len(known) < 2:
        return f"MRR over {len(found)} seeds: none"
    middle, off = statistics.mean(known), statistics.stdev(known)
    return f"MRR over {len(known)} seeds, realistic: mean {middle:.4f}, deviation {off:.4f}"


def _alike(ours: Any, theirs: Any) -> bool:
    """Equal figures; where choices were near-ties, equal counts of queries and candidates."""
    if ours["both"]["near_ties"] or theirs["both"]["near_ties"]:
        names = ("queries", "candidates")
        return all(ours["both"][name] == theirs["both"][name] for name in names)
    return bool(ours == theirs)


def compare(settings: Settings) -> tuple[int, Difference | None]:
    """The compiled engine against the evaluator, step by step."""
    data = load_for(settings)
    program = program_of(data)
    if settings.engine == "closure":
        return compare_closures(program, settings.height, backend=compiled(settings))
    asked = sample(queries(data, program, settings.modes, settings.limit or 4), 15, settings.seed)
    lanes = [lane for query in asked for lane in lanes_of(query, settings)]
    if settings.search == "exhaustive":
        small = Exhaustion(
            settings.height, places=1 << 12, batch=len(lanes), backend=compiled(settings)
        )
        return compare_exhaustions(program, lanes, small)
    search = search_of(replace(settings, backend=compiled(settings)), program)
    search = replace(search, batch=len(lanes))
    return compare_rollouts(program, lanes, search)


def smoke() -> Iterator[tuple[str, bool]]:
    """A minute's check that everything works here: each engine, against its reference."""
    small = Settings("family:families=2", limit=6, sample=5, height=3, batch=36)
    rolled: dict[str, Any] = {"engine": "rollout", "steps": 4, "check": True}
    kinds: dict[str, dict[str, Any]] = {
        "closure": {"sample": None},
        "closure, by weight": {"sample": None, "score": "weight", "aggregate": "noisy-or"},
        "rollout, greedy": rolled,
        "rollout, sampled": {**rolled, "search": "sampled"},
        "rollout, beam": {**rolled, "search": "beam"},
        "rollout, learned": {**rolled, "policy": "learned"},
        "rollout, exhaustive": {"engine": "rollout", "search": "exhaustive", "height": 2},
        "rollout, by weight": {
            "engine": "rollout",
            "search": "exhaustive",
            "height": 1,
            "score": "weight",
            "aggregate": "max-then-next",
        },
    }
    for name, changes in kinds.items():
        here = replace(small, **changes)
        ours = by_mode(evaluate(here))
        yield name, _alike(ours, by_mode(evaluate(replace(here, backend="python"))))
    yield "closure, proofs replayed", evaluate(replace(small, check=True)).checked > 0
