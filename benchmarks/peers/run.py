"""Tenfold beside NumPy, numexpr, JAX, torch, torch.compile and numba.

    python benchmarks/peers/run.py [--level x86-64-v3] [--threads 1] [--rounds 5] [--seconds 0.04]
                                   [--only TEXT] [--pause 3]

Every peer has a process of its own, bound to as many cores as there are threads, and all go through
a case in turns: rounds are interleaved, the shortest call of all rounds counts. Results are
compared with NumPy's. With `--level` all peers that can be are kept to that level's instructions.
What is measured goes to `benchmarks/results/LEVEL-THREADS.json`; `report.py` makes tables of it.
With `--only` the cases that are measured again take the place of those in the file. `--pause` is
for machines that are slowed down after long work on all cores: seconds of rest before each case.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
from case import Case
from groups import cases
from machine import machine, settings
from worker import PEERS

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
LEVELS = ("x86-64-v3", "x86-64-v4")
TOUCHED = (1 << 19, 1 << 23, 1 << 27)  # bytes that are copied over and over
REST = 0.05  # seconds before each turn: OpenBLAS's threads spin for half of it after a product


class Worker:
    """A peer's process."""

    def __init__(self, peer: str, threads: int, level: str | None, cores: set[int]) -> None:
        self.peer = peer
        command = [sys.executable, str(HERE / "worker.py"), peer, str(threads)]
        if cores:
            command = ["taskset", "-c", ",".join(map(str, sorted(cores))), *command]
        environment = {**os.environ, **settings(level, threads)}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )

    def ask(self, **order: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(order), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        found: dict[str, Any] = json.loads(line) if line else {"failed": "the process ended"}
        return found

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def apart(made: str, theirs: str) -> float:
    """How far results are from NumPy's: of the largest element; for integers, the share that
    differs."""
    found = 0.0
    with np.load(made) as a, np.load(theirs) as b:
        for name in b.files:
            x, y = a[name], b[name]
            if x.shape != y.shape:
                return float("inf")
            if not y.size:
                continue
            if y.dtype.kind in "iub":
                found = max(found, float((x != y).mean()))
            else:
                scale = float(np.abs(y).max()) or 1.0
                found = max(found, float(np.abs(x - y).max()) / scale)
    return found


def measure(case: Case, workers: list[Worker], rounds: int, seconds: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    copied: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for worker in [*workers]:
            into = str(Path(folder) / f"{worker.peer}.npz")
            told = worker.ask(prepare=case.title, into=into)
            if "failed" in told and told["failed"] == "the process ended":
                workers.remove(worker)
            if "first" in told:
                told["apart"] = apart(into, str(Path(folder) / "numpy.npz"))
                if not told["apart"] <= case.close:
                    told["failed"] = f"off by {told['apart']:.1e}"
            if "absent" not in told:
                found[worker.peer] = told
        going = [w for w in workers if w.peer in found and "first" in found[w.peer]]
        for _ in range(rounds):
            for worker in going:
                sleep(REST)
                keep_least(found[worker.peer], worker.ask(time=seconds))
            if case.streams:
                streamed = found["numpy"]["streamed"]
                keep_least(copied, workers[0].ask(copy=seconds, streamed=streamed))
        if case.streams:
            found["tenfold"]["of copy"] = copied["best"] / found["tenfold"]["best"]
        for worker in workers:
            worker.ask(drop=True)
    return found


def keep_least(kept: dict[str, Any], told: dict[str, float]) -> None:
    for name, took in told.items():
        kept[name] = min(took, kept.get(name, np.inf))


def line(case: Case, found: dict[str, Any]) -> str:
    ours = found.get("tenfold", {}).get("best")
    shown = [f"{case.title:52s}"]
    for peer, told in found.items():
        best = told.get("best")
        if best is None or "failed" in told:
            shown.append(f"{peer} failed ({told.get('failed')})")
        elif peer == "tenfold":
            shown.append(f"{best * 1e6:10.1f} µs")
            if "of copy" in told:
                shown.append(f"{told['of copy']:.2f} of a copy's speed")
        else:
            shown.append(f"{peer} {best / ours:.2f}" if ours else f"{peer} {best * 1e6:.1f} µs")
    return "  ".join(shown)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--level", choices=LEVELS, default=None)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.04)
    parser.add_argument("--only", default="", help="cases whose title has this text")
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--peers", default=",".join(PEERS))
    options = parser.parse_args()
    at_hand = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    cores = set(at_hand[-options.threads :])
    # NumPy goes first, always: the others are compared with its results.
    peers = ["numpy", *(p for p in options.peers.split(",") if p != "numpy")]
    workers = [Worker(p, options.threads, options.level, cores) for p in peers]
    results: dict[str, Any] = {}
    for case in cases():
        if options.only not in case.title:
            continue
        sleep(options.pause)
        results[case.title] = measure(case, workers, options.rounds, options.seconds)
        print(line(case, results[case.title]), flush=True)
    rates = {str(n): workers[0].ask(copies=options.seconds, touched=n)["rate"] for n in TOUCHED}
    for worker in workers:
        worker.close()
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{options.level or 'best'}-{options.threads}.json"
    if options.only and path.exists():
        results = json.loads(path.read_text())["cases"] | results
    told = {"machine": machine(), "level": options.level, "threads": options.threads,
            "copies": rates}  # fmt: skip
    path.write_text(as_text({**told, "cases": results}))


def as_text(found: dict[str, Any]) -> str:
    """JSON with a line for each case."""
    cases = [f"{_json(title)}: {_json(case)}" for title, case in found["cases"].items()]
    rest = [f"{_json(key)}: {_json(value)}" for key, value in found.items() if key != "cases"]
    return "{" + ",\n".join([*rest, '"cases": {\n' + ",\n".join(cases)]) + "\n}}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    main()
