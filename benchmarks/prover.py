"""The prover: milliseconds a query, and the exact evaluation of a whole data set.

Greedy rollout of 20 steps, learned policy, a query with 50 corruptions at a time, against the
plain-Python reference in the same run; then the closure of a data set with all its ranks.
`python benchmarks/prover.py [DATA …]`; without data sets, the embedded one.
"""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import replace
from pathlib import Path

from tenfold.apps.prover.bottom_up import close
from tenfold.apps.prover.by_rollout import lanes_of
from tenfold.apps.prover.closure import close_by_joins
from tenfold.apps.prover.closure_ranks import rank_by_lookup
from tenfold.apps.prover.load import load
from tenfold.apps.prover.policy import random_weights
from tenfold.apps.prover.program import Program, program_of
from tenfold.apps.prover.queries import Query, queries, sample
from tenfold.apps.prover.rollout_reference import roll_plainly
from tenfold.apps.prover.rollout_run import Room, Search, roll_all
from tenfold.apps.prover.settings import Settings
from tenfold.apps.prover.top_down import Searcher

CORRUPTIONS, STEPS, QUERIES = 50, 20, 24


def rollouts(name: str, program: Program, asked: list[Query], room: Room) -> None:
    """Milliseconds a query by Tenfold and by plain Python."""
    settings = Settings(name, engine="rollout")
    weights = random_weights(program, 64, 0)
    search = Search(weights, steps=STEPS, room=room, batch=1 + CORRUPTIONS)
    searcher, count = Searcher(program), len(program.constants)
    lanes = [lanes_of(query, settings) for query in asked]
    began = time.perf_counter()
    first = roll_all(program, lanes[0], search)
    print(f"  first query, with compiling: {time.perf_counter() - began:.2f} s")
    for some in lanes:  # whatever room they need is compiled now
        roll_all(program, some, search)
    began = time.perf_counter()
    ours = [roll_all(program, some, search) for some in lanes]
    mine = (time.perf_counter() - began) / len(lanes)
    few = lanes[: max(1, len(lanes) // 8)]
    began = time.perf_counter()
    plain = [[roll_plainly(searcher, lane, search, count) for lane in some] for some in few]
    theirs = (time.perf_counter() - began) / len(few)
    same = sum(
        a.outcome == b.outcome and a.choices == b.choices
        for x, y in zip(ours, plain, strict=False)
        for a, b in zip(x, y, strict=True)
    )
    total = sum(len(some) for some in few)
    near = sum(end.near > 0 for some in ours[: len(few)] for end in some)
    assert first == ours[0]
    print(f"  rollout: {1000 * mine:.2f} ms a query; plain Python {1000 * theirs:.1f} ms", end="")
    print(f" ({theirs / mine:.0f} times); {same} of {total} lanes alike, {near} with near-ties")


def exact(program: Program, asked: list[Query], height: int) -> None:
    """Every query of both modes, every candidate."""
    for turn in ("cold", "warm"):
        began = time.perf_counter()
        closed = close_by_joins(program, height)
        closing = time.perf_counter() - began
        began = time.perf_counter()
        count = sum(1 for _ in rank_by_lookup(asked, program, closed))
        ranking = time.perf_counter() - began
        print(f"  closure {turn}: {len(closed.keys):,} facts in {closing:.2f} s, ", end="")
        print(f"{count:,} rankings in {ranking:.2f} s")
    began = time.perf_counter()
    close(program, height)
    print(f"  closure, plain Python: {time.perf_counter() - began:.2f} s")


def main() -> None:
    for name in sys.argv[1:] or ["family:families=40"]:
        data = load(name)
        program = program_of(data)
        modes = ("tail",) if data.domains else ("head", "tail")
        asked = queries(data, program, modes)
        print(f"{Path(name).name}: {len(data.train):,} facts, {len(data.rules)} rules")
        # 50 corruptions, drawn from all constants where a domain has fewer
        wide = queries(replace(data, domains={}), program, modes, QUERIES)
        rollouts(name, program, sample(wide, CORRUPTIONS, 0), Room(64, 8, 16))
        exact(program, asked, 3 if "kinship" in name else 10)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory: {peak:.2f} GiB")


if __name__ == "__main__":
    main()
