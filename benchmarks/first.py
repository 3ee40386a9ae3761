"""First calls of NPBench's programs, as their authors wrote them, beside JAX and numba.

    python benchmarks/first.py CHECKOUT [program ...] [--size S] [--rounds 3] [--limit 60]

CHECKOUT is a copy of github.com/spcl/npbench, as for `npbench.py`, which says how programs are run;
none has a body of ours here. Every call is the first one of a process of its own, on all cores. In
a round the systems take turns; the median of the rounds is shown:

    first    the first call with an empty cache: trace, plan, compile, check, run
    loaded   the same in a second process, with the cache that the first one left
    whole    import and first call; for JAX also the arguments' way to it, for numba nothing more

Then the kernels of the plan, loops that were found again in what Python unrolled, and peers'
figures. A program that takes longer than the limit is named.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from npbench import SETTLE, WAYS, Suite, Worker, find_spec, seconds
from npbench_program import PEERS

CORES = ",".join(map(str, sorted(os.sched_getaffinity(0))))


class FirstCalls(Suite):
    """A program in a new process for each call."""

    def once(self, name: str, way: str, cache: str, settle: bool = False) -> dict[str, Any]:
        job = {"checkout": str(self.checkout), "name": name, "way": way, "size": self.options.size}
        worker = Worker(job, CORES, cache, self.options.limit, threads=len(CORES.split(",")))
        try:
            found = {"way": way} | worker.ask(first=str(self.folder / f"{way}.npz"))
            if settle and "failed" not in found:
                found |= worker.ask(settle=SETTLE)
            return found
        finally:
            worker.close()

    def way(self, name: str) -> str | None:
        """The first way in which the program runs."""
        for way in WAYS:
            told = self.once(name, way, "off")
            if "failed" not in told:
                return way
            if "more than" in told["failed"]:
                break
        return None

    def measure(self, name: str) -> dict[str, dict[str, Any]]:
        rounds: dict[str, list[dict[str, Any]]] = {}
        way = self.way(name)
        if way is None:
            return {}
        for round in range(self.options.rounds):
            cache = tempfile.mkdtemp(dir=self.folder)
            last = round == self.options.rounds - 1
            rounds.setdefault("tenfold", []).append(self.once(name, way, cache, settle=last))
            rounds.setdefault("loaded", []).append(self.once(name, way, cache))
            for peer in self.peers:
                if self.has(name, peer):
                    rounds.setdefault(peer, []).append(self.once(name, peer, "off"))
        made: dict[str, dict[str, Any]] = {}
        for system, told in rounds.items():
            if any("failed" in one for one in told):
                continue
            made[system] = told[-1] | {
                "first": median(one["first"] for one in told),
                "whole": median(one["first"] + one["made"] for one in told),
            }
        return made


def line(name: str, found: dict[str, dict[str, Any]], peers: list[str]) -> str:
    if "tenfold" not in found:
        return f"{name:>18}  failed, or took longer than the limit"
    ours = found["tenfold"]
    cells = [seconds(ours["first"]), seconds(found["loaded"]["first"]), seconds(ours["whole"])]
    cells += [str(ours.get("kernels", "?")), str(ours.get("loops", "?"))]
    for peer in peers:
        told = found.get(peer)
        cells += [seconds(told["first"]), seconds(told["whole"])] if told else ["–", "–"]
    return f"{name:>18} " + " ".join(f"{cell:>9}" for cell in cells)


def summary(rows: dict[str, dict[str, dict[str, Any]]], peers: list[str]) -> str:
    lines = []
    for system in ("tenfold", "loaded", *peers):
        both = {n: row for n, row in rows.items() if system in row and "tenfold" in row}
        if not both:
            continue
        first = {name: row[system]["first"] for name, row in both.items()}
        worst = max(first, key=lambda name: first[name])
        lines.append(
            f"{system}: {len(both)} programs, median {median(first.values()):.3f} s, with imports "
            f"{median(row[system]['whole'] for row in both.values()):.3f} s, worst {worst} "
            f"{first[worst]:.2f} s"
        )
    return "\n".join(lines)


def main() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # modules would be compiled by each process
    parser = argparse.ArgumentParser(description="first calls of NPBench's programs")
    parser.add_argument("checkout", nargs="?", default=os.environ.get("NPBENCH", ""))
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--size", default="S", choices=("S", "M"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one call")
    parser.add_argument("--peers", default="jax,numba")
    options = parser.parse_intermixed_args()
    checkout = Path(options.checkout)
    if not options.checkout or not (checkout / "bench_info").is_dir():
        raise SystemExit("give the path of a checkout of github.com/spcl/npbench, or set NPBENCH")
    names = options.programs or sorted(p.stem for p in (checkout / "bench_info").glob("*.json"))
    peers = [p for p in options.peers.split(",") if p in PEERS and find_spec(p)]
    heads = ["first", "loaded", "whole", "kernels", "loops"]
    heads += [word for peer in peers for word in (peer, "whole")]
    print(f"{'':>18} " + " ".join(f"{head:>9}" for head in heads))
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            suite = FirstCalls(checkout.resolve(), Path(folder), peers, options)
            rows[name] = suite.measure(name)
        print(line(name, rows[name], peers), flush=True)
    print(summary(rows, peers))


if __name__ == "__main__":
    main()
