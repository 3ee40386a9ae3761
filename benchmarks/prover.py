"""The prover: milliseconds a query, and the exact evaluation of a whole data set.

Greedy rollout of 20 steps, learned policy, queries with 50 corruptions, against the plain-Python
reference, and against the same algorithm in JAX and in PyTorch. Two figures are given: of distinct
queries, drawn at random from those of the data set in every mode, as an evaluation has them; and of
four queries that are repeated, whose facts are in the caches. The reference answers some of either.
Then the time from the start of a process to its first answer on each engine, without and with plans
on disk; then the closure of a data set with all its ranks. Times are the least of several rounds,
taken in turn: seconds by the clock, and seconds of the processor, which other processes disturb
less.

`python benchmarks/prover.py [--rollout] [--peers] [--queries 100] [--start] [--closure] [DATA …]`;
without data sets the embedded one, without a choice all but the peers.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tenfold.apps.prover.closure.closing import close_by_cost
from tenfold.apps.prover.closure.lookups import rank_by_lookup
from tenfold.apps.prover.input.dataset import Dataset
from tenfold.apps.prover.input.load import load
from tenfold.apps.prover.input.program import Program, program_of
from tenfold.apps.prover.input.queries import Query, queries, sample
from tenfold.apps.prover.reference.bottom_up import close
from tenfold.apps.prover.reference.rollout import roll_plainly
from tenfold.apps.prover.reference.top_down import Searcher
from tenfold.apps.prover.rollout.engine import lanes_of
from tenfold.apps.prover.rollout.exhaustive_run import Exhaustion, exhaust_all
from tenfold.apps.prover.rollout.policy import random_weights
from tenfold.apps.prover.rollout.queue import Lane
from tenfold.apps.prover.rollout.room import Room
from tenfold.apps.prover.rollout.run import LaneResult, Rollout, Search
from tenfold.apps.prover.settings import Settings

CORRUPTIONS, STEPS, ROUNDS = 50, 20, 3
REPEATED, TIMES = 4, 6  # queries that are asked again and again
PLAIN = 6  # distinct queries that the reference answers at most
ENGINES = ("closure", "rollout", "exhaustive")
HEIGHT = 10
VARIABLES = 64  # that the policy has embeddings for


def asked_of(name: str, data: Dataset, program: Program, count: int) -> list[list[Lane]]:
    """The lanes of so many queries that differ, drawn at random from those of all modes, each with
    50 corruptions drawn from all constants; fewer where there are fewer."""
    modes = ("tail",) if data.domains else ("head", "tail")
    wide = queries(replace(data, domains={}), program, modes)
    drawn = random.Random(0).sample(wide, min(count, len(wide)))
    settings = Settings(name, engine="rollout")
    return [lanes_of(query, settings) for query in sample(drawn, CORRUPTIONS, 0)]


def search_of(program: Program, threads: int = 0) -> Search:
    weights = random_weights(program, VARIABLES, 0)
    room = Room.of(program, VARIABLES, HEIGHT)
    return Search(weights, steps=STEPS, height=HEIGHT, room=room, threads=threads)


def timed(run: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds by the clock and of the processor, and the result."""
    clock, processor = time.perf_counter(), time.process_time()
    result = run()
    return time.perf_counter() - clock, time.process_time() - processor, result


def alike(ours: list[LaneResult], theirs: list[LaneResult]) -> str:
    """How many lanes end alike; those that do not must be near-ties."""
    same = differ = 0
    for a, b in zip(ours, theirs, strict=True):
        equal = a.outcome == b.outcome and a.choices == b.choices and a.height == b.height
        same += equal
        differ += not equal and not (a.near or b.near)
    assert not differ, f"{differ} lanes end otherwise"
    near = sum(a.near > 0 for a in ours)
    return f"{same} of {len(ours)} lanes alike, {near} with near-ties"


def rollouts(name: str, data: Dataset, program: Program, peers: bool, count: int) -> None:
    """Milliseconds a query by Tenfold, by plain Python, and by other array libraries."""
    distinct = asked_of(name, data, program, count)
    rollout = Rollout(program, search_of(program))
    first, processor, _ = timed(lambda: rollout.run(distinct[0][:1]))
    print(f"  first answer in this process: {first:.2f} s ({processor:.2f} s of processor)")
    few = distinct[:REPEATED]
    _rollouts(f"{len(distinct)} distinct queries", rollout, distinct, distinct[:PLAIN], peers)
    _rollouts(f"{len(few)} queries, {TIMES} times", rollout, few * TIMES, few, peers)


def _rollouts(
    title: str, rollout: Rollout, asked: list[list[Lane]], some: list[list[Lane]], peers: bool
) -> None:
    """The queries that are asked, in one queue, and some of them, the first, by the reference."""
    print(f"  {title}:")
    many = [lane for lanes in asked for lane in lanes]
    lanes = [lane for lanes in some for lane in lanes]
    ran: dict[str, Callable[[], Any]] = {"Tenfold": lambda: rollout.run(many)}
    if peers:
        ran |= _peers(rollout, many)
    best = {label: (float("inf"), float("inf")) for label in ran}
    results: dict[str, list[LaneResult]] = {}
    for _ in range(ROUNDS):
        for label, run in ran.items():
            *seconds, results[label] = timed(run)
            best[label] = min(best[label][0], seconds[0]), min(best[label][1], seconds[1])
    searcher, constants = Searcher(rollout.program), len(rollout.program.constants)
    best["plain Python"] = (float("inf"), float("inf"))
    for _ in range(2):
        *seconds, plain = timed(
            lambda: [roll_plainly(searcher, x, rollout.search, constants) for x in lanes]
        )
        scaled = [s * len(asked) / len(some) for s in seconds]
        theirs = best["plain Python"]
        best["plain Python"] = min(theirs[0], scaled[0]), min(theirs[1], scaled[1])
        if seconds[0] > 20:  # once is enough
            break
    ours = results["Tenfold"]
    for label, (clock, processor) in best.items():
        ratio, share = clock / best["Tenfold"][0], processor / best["Tenfold"][1]
        print(f"    {label:22} {1000 * clock / len(asked):9.2f} ms a query, ", end="")
        print(f"{1000 * processor / len(asked):9.2f} ms of processor: {ratio:6.1f}×, {share:6.1f}×")
        if label in results and label != "Tenfold":
            print(f"      {alike(ours, results[label])}")
    print(f"      plain Python, {len(some)} of them: {alike(ours[: len(lanes)], plain)}")


def _peers(rollout: Rollout, lanes: list[Lane]) -> dict[str, Callable[[], Any]]:
    """The same in JAX and in PyTorch, compiled before they are timed."""
    import prover_jax
    import prover_torch
    from prover_peers import JAX, TORCH, Peer

    program, search, tables = rollout.program, rollout.search, rollout.tables
    weights = search.weights
    assert weights is not None
    peers = {
        "JAX": Peer(program, search, JAX, prover_jax.ready(tables, weights)),
        "PyTorch": Peer(program, search, TORCH, prover_torch.ready(tables, weights)),
        "PyTorch, compiled": Peer(
            program, search, TORCH, prover_torch.ready(tables, weights, compiled=True)
        ),
    }
    for label, peer in peers.items():
        clock, processor, _ = timed(partial(peer.run, lanes))
        print(f"  {label}: first run {clock:.1f} s ({processor:.1f} s of processor)")
    return {label: partial(peer.run, lanes) for label, peer in peers.items()}


def starts(name: str) -> None:
    """Seconds from the start of a process to its first answer on each engine, all checks on."""
    for engine in ENGINES:
        with tempfile.TemporaryDirectory() as folder:
            for turn in ("cold", "warm", "warm"):
                began = time.time()
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run(
                    [sys.executable, __file__, "--answer", engine, name],
                    check=True,
                    env={**os.environ, "TENFOLD_CACHE": folder},
                )
                clock = time.time() - began
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                print(f"  {turn} start, {engine:10} {clock:6.2f} s, {used:6.2f} s of processor")


def answer(name: str, engine: str) -> None:
    """The first query, with its corruptions, and nothing else."""
    data = load(name)
    program = program_of(data)
    if engine == "closure":
        closed = close_by_cost(program, height_of(name))
        modes = ("tail",) if data.domains else ("head", "tail")
        assert next(rank_by_lookup(queries(data, program, modes, 1), program, closed))
        return
    lanes = asked_of(name, data, program, 1)[0]
    if engine == "exhaustive":
        ends = exhaust_all(program, lanes, Exhaustion(2, batch=64))
    else:
        ends = Rollout(program, search_of(program)).run(lanes)
    assert len(ends) == len(lanes)


def height_of(name: str) -> int:
    """The height to which a data set is closed: kinship is dense."""
    return 3 if "kinship" in name else HEIGHT


def exact(program: Program, asked: list[Query], height: int) -> None:
    """Every query of both modes, every candidate."""
    for turn in ("cold", "warm"):
        began = time.perf_counter()
        closed = close_by_cost(program, height)
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=["family:families=40"])
    for option in ("rollout", "peers", "start", "closure"):
        parser.add_argument(f"--{option}", action="store_true")
    parser.add_argument("--answer", choices=ENGINES, help="one query by this engine, and no more")
    parser.add_argument("--queries", type=int, default=100, help="of a rollout, in one queue")
    chosen = parser.parse_args()
    if chosen.answer:
        answer(chosen.data[0], chosen.answer)
        return
    every = not (chosen.start or chosen.closure or chosen.rollout or chosen.peers)
    for name in chosen.data:
        data = load(name)
        program = program_of(data)
        print(f"{Path(name).name}: {len(data.train):,} facts, {len(data.rules)} rules")
        if every or chosen.start:
            starts(name)
        if every or chosen.rollout or chosen.peers:
            rollouts(name, data, program, chosen.peers, chosen.queries)
        if every or chosen.closure:
            modes = ("tail",) if data.domains else ("head", "tail")
            asked = queries(data, program, modes)
            exact(program, asked, height_of(name))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory: {peak:.2f} GiB")


if __name__ == "__main__":
    main()
