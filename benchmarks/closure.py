"""Closures of data sets with mined rules: ours beside SciPy, einsum and plain Python.

    python benchmarks/closure.py FOLDER[:HEIGHT[:RULES]] … [--seconds N] [--peers a,b] [--repeat N]

A folder holds `train.txt` (and what else the prover reads) and `rules.txt`, or the file of rules
that is named. Each of them runs in a process of its own, so that its peak of memory is its own;
they take turns, and the least time counts. A time is that of closing alone, with all that has to
be compiled for it; the one in parentheses is of all processors together, which counts where others
work on them too. Reading is left out, and the memory that it left behind is not counted.

- ours: `close_by_cost`, as `tenfold prove` runs it; warm: the same again in that process
- scipy: products of sparse boolean matrices, semi-naive; paths alone
- einsum: `np.einsum` of boolean matrices, up to 500 entities; paths alone
- python: the prover's plain reference, `--backend python`

All have to come to the same number of facts.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PEERS = ("ours", "scipy", "einsum", "python")
LARGEST = 500  # entities of dense products
OWN = 9  # bytes of a fact: its key and its height


Times = list[tuple[float, float]]  # seconds by the clock, and of all processors together


def now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def since(began: tuple[float, float]) -> tuple[float, float]:
    wall, cpu = now()
    return wall - began[0], cpu - began[1]


def peak() -> int:
    """The most bytes that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run_ours(program: Any, limit: int) -> tuple[int, Times]:
    from tenfold.apps.prover.closure.closing import close_by_cost

    times, count = [], 0
    for _ in range(2):
        began = now()
        count = len(close_by_cost(program, limit).keys)
        times.append(since(began))
    return count, times


def run_python(program: Any, limit: int) -> tuple[int, Times]:
    from tenfold.apps.prover.reference.bottom_up import close

    began = now()
    count = len(close(program, limit).heights)
    return count, [since(began)]


def paths(program: Any) -> list[Any]:
    from tenfold.apps.prover.closure.paths import path_of

    found = [path_of(clause) for clause in program.clauses]
    if None in found:
        raise SystemExit("some rules are no paths")
    return found


def run_scipy(program: Any, limit: int) -> tuple[int, Times]:
    import scipy.sparse as sp

    rules = paths(program)
    began = now()
    size = len(program.constants)
    facts = np.array(program.facts)
    empty = sp.csr_matrix((size, size), dtype=bool)

    def matrix(p: int) -> Any:
        own = facts[facts[:, 0] == p]
        ones = np.ones(len(own), bool)
        return sp.csr_matrix((ones, (own[:, 1], own[:, 2])), (size, size))

    known = [matrix(p) for p in range(len(program.predicates))]
    fresh, count = list(known), len(facts)
    for height in range(1, limit + 1):
        turned = [m.T.tocsr() for m in known], [m.T.tocsr() for m in fresh]
        found: dict[int, Any] = {}
        for head, links in rules:
            for place, link in enumerate(links):
                if not fresh[link.predicate].nnz:
                    continue
                made = None
                for at, (p, inverse) in enumerate(links):
                    new = at == place
                    one = turned[new][p] if inverse else (fresh if new else known)[p]
                    made = one if made is None else made @ one
                found[head] = made if head not in found else found[head] + made
                if height == 1:  # all is new: one product has it
                    break
        fresh, more = [empty] * len(known), 0
        for head, made in found.items():
            fresh[head] = made.astype(bool) > known[head]
            fresh[head].eliminate_zeros()
            known[head] = known[head] + fresh[head]
            more += fresh[head].nnz
        count += more
        if not more:
            break
    return count, [since(began)]


def run_einsum(program: Any, limit: int) -> tuple[int, Times]:
    rules, size = paths(program), len(program.constants)
    if size > LARGEST:
        raise SystemExit(f"{size} entities are too many for dense matrices")
    began = now()
    known = np.zeros((len(program.predicates), size, size), bool)
    known[tuple(np.array(program.facts).T)] = True
    for _ in range(limit):
        found = known.copy()
        for head, links in rules:
            made = None
            for p, inverse in links:
                one = known[p].T if inverse else known[p]
                made = one if made is None else np.einsum("ij,jk->ik", made, one)
            found[head] |= made
        if (found == known).all():
            break
        known = found
    return int(known.sum()), [since(began)]


RUNS: dict[str, Callable[[Any, int], tuple[int, Times]]] = {
    "ours": run_ours,
    "scipy": run_scipy,
    "einsum": run_einsum,
    "python": run_python,
}


def one(peer: str, folder: str, limit: int, rules: str) -> None:
    """Run one of them, and print what it took."""
    from tenfold.apps.prover.input.load import load
    from tenfold.apps.prover.input.program import program_of

    program = program_of(load(folder, Path(rules) if rules else None, ()))
    before = peak()
    count, times = RUNS[peer](program, limit)
    print(json.dumps({"facts": count, "seconds": times, "bytes": peak() - before, "base": before}))


def asked(text: str) -> tuple[str, int, str]:
    folder, _, rest = text.partition(":")
    height, _, rules = rest.partition(":")
    return folder, int(height or 10), rules


def measure(peer: str, text: str, seconds: float) -> dict[str, Any] | str:
    """What one run of a peer came to, or why it did not."""
    command = [sys.executable, __file__, "--one", peer, text]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"more than {seconds:.0f} s"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["failed"])[-1][:70]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", nargs="*")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--repeat", type=int, default=1)
    given = parser.parse_args()
    if given.one:
        one(given.one, *asked(given.data[0]))
        return
    if not given.data:
        print("skipped: no folder was named")
    for text in given.data:
        folder, limit, rules = asked(text)
        for path in (Path(folder) / "train.txt", Path(rules or f"{folder}/rules.txt")):
            if not path.is_file():
                print(f"{folder}: skipped, {path} is not there")
                break
        else:
            report(text, f"{Path(folder).name}, height {limit}", given)


def report(text: str, name: str, given: argparse.Namespace) -> None:
    best: dict[str, dict[str, Any] | str] = {}
    for _ in range(given.repeat):
        for peer in given.peers.split(","):
            made, known = measure(peer, text, given.seconds), best.get(peer)
            if isinstance(made, dict) and isinstance(known, dict):
                pairs = zip(made["seconds"], known["seconds"], strict=True)
                made["seconds"] = [
                    [min(parts) for parts in zip(*pair, strict=True)] for pair in pairs
                ]
                made["bytes"] = min(made["bytes"], known["bytes"])
            best[peer] = made
    print(name)
    for peer, made in best.items():
        if isinstance(made, str):
            print(f"  {peer:8} {made}")
            continue
        own = made["facts"] * OWN
        times = ", then ".join(f"{wall:.2f} s ({cpu:.2f})" for wall, cpu in made["seconds"])
        print(
            f"  {peer:8} {made['facts']:>11,} facts  {times:34}  {made['bytes'] / 2**20:7.0f} MiB "
            f"({made['bytes'] / own:.1f} times the facts' own)"
        )


if __name__ == "__main__":
    main()
