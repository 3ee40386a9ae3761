"""The prover on a GPU beside the processor: rollouts by batch, and closures.

All candidates of the first queries of a data set are searched for, by the greedy uniform policy;
the ends of all backends have to be equal. Given are seconds by the clock of the first time in a
process, with its compiling and its check, and of the fastest of three more; candidates a second;
rounds of the largest call and microseconds of each. Then closures up to `--height`, in the same
way, by the rules of the data or mined ones. Two threads of the processor: `taskset -c 0,1`.

`python benchmarks/prover_devices.py [--queries 150] [--height 3] [--mine 2000] [--batch 2048 …]
[--backend cuda …] [DATA …]`; without data sets the embedded one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tenfold.apps.prover.backend import is_device
from tenfold.apps.prover.closure.engine import close_program
from tenfold.apps.prover.evaluation import load_for
from tenfold.apps.prover.input.program import Program, program_of
from tenfold.apps.prover.input.queries import queries
from tenfold.apps.prover.rollout.engine import lanes_of, search_of
from tenfold.apps.prover.rollout.loop import roll
from tenfold.apps.prover.rollout.queue import Lanes
from tenfold.apps.prover.rollout.run import Rollout
from tenfold.apps.prover.settings import Settings

AGAIN = 3


def timed(run: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds of the first time and of the fastest after it, and what came of it."""
    spent = []
    for _ in range(1 + AGAIN):
        start = time.perf_counter()
        made = run()
        spent.append(time.perf_counter() - start)
    return spent[0], min(spent[1:]), made


def rounds_of(rollout: Rollout, lanes: Lanes) -> str:
    """Rounds of one call with as many lanes as it takes, and how long each is."""
    search, room = rollout.search, rollout.search.room
    fit = rollout.fit(room)
    assert fit is not None
    options = rollout.options(room, fit.lanes)
    some = lanes.some(slice(rollout.batch.within(room, search.beam).queue))
    given = rollout.asked(some, room, options["slots"]), rollout.tables, search.weights
    _, spent, (_, rounds, used) = timed(lambda: roll.on(search.backend)(*given, **options))
    each = 1e6 * spent / max(1, int(rounds))
    share = int(used) / max(1, int(rounds)) / options["slots"]
    return f"{int(rounds)} rounds of {each:.0f} µs, {share:.0%} of the slots used"


def roll_all(settings: Settings, program: Program, lanes: Lanes, expected: list[Any]) -> None:
    search = replace(search_of(settings, program), batch=settings.batch)
    rollout = Rollout(program, search)
    first, again, ends = timed(lambda: rollout.ends(lanes))
    made = [*ends]
    same = "equal" if made == (expected or made) else "DIFFERS"
    expected[:] = expected or made
    spent = f"first {first:7.3f} s  again {again:7.3f} s  {len(lanes) / again:10,.0f} a second"
    rounds = rounds_of(rollout, lanes)
    print(f"  {settings.backend:9} {rollout.batch.lanes:6} lanes  {spent}  {rounds}  {same}")


def close_all(settings: Settings, program: Program, expected: list[Any]) -> None:
    first, again, closed = timed(lambda: close_program(settings, program))
    made = [closed.keys, closed.heights]
    same = all(np.array_equal(a, b) for a, b in zip(made, expected or made, strict=True))
    expected[:] = expected or made
    spent = f"first {first:7.3f} s  again {again:7.3f} s  {'equal' if same else 'DIFFERS'}"
    print(f"  {settings.backend:9} closure of {len(closed.keys):,} facts  {spent}")


def compare(data: str, backends: Sequence[str], asked: argparse.Namespace) -> None:
    plain = Settings(data, engine="rollout", limit=asked.queries)
    read = load_for(plain)
    program = program_of(read)
    some = queries(read, program, plain.modes, plain.limit)
    lanes = Lanes.of([lane for query in some for lane in lanes_of(query, plain)])
    print(f"{data}: {len(lanes):,} candidates")
    ends: list[Any] = []
    for backend in backends:
        for batch in [None, *(asked.batch if is_device(backend) else [])]:
            roll_all(replace(plain, backend=backend, batch=batch), program, lanes, ends)
    facts: list[Any] = []
    closing = Settings(data, height=asked.height, mine=asked.mine)
    if asked.mine:
        program = program_of(load_for(closing))
    for backend in backends:
        close_all(replace(closing, backend=backend), program, facts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=["family:"])
    parser.add_argument("--queries", type=int, default=150)
    parser.add_argument("--height", type=int, default=3)
    parser.add_argument("--mine", type=int)
    parser.add_argument("--batch", type=int, nargs="*", default=[2048, 16384])
    parser.add_argument("--backend", nargs="*", default=["compiled", "cuda"])
    asked = parser.parse_args()
    for data in asked.data:
        compare(data, asked.backend, asked)


if __name__ == "__main__":
    main()
