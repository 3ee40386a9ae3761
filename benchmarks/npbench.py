"""NPBench: its programs under `tn.jit`, beside NumPy, numba and JAX.

    python benchmarks/npbench.py CHECKOUT [program ...] [--size S] [--rounds 5] [--seconds 0.2]
                                 [--limit S] [--peers numpy,numba,jax] [--save FILE] [--report]

CHECKOUT is a copy of github.com/spcl/npbench; without it, the environment's NPBENCH. Sizes are
NPBench's presets S and M. A table of all programs goes to `benchmarks/results/npbench-SIZE.md`. All
of them take an hour; with `--save` they may be measured by parts, and `--report` makes the table of
what was saved, the last of each program.

Each system has a process of its own, on one core with one thread; rounds of their calls are
interleaved, and the shortest call counts. How a program runs under `tn.jit`:
  unchanged  `tn.jit(f)`, and nothing else
  wrapped    f's body is NPBench's; its integers are `static=`, and if that does not do it branches
             and loops that hang on values are converted by `control="convert"`
  changed    the body stands in `benchmarks/npbench`: loops that Python would unroll are
             `tn.fori_loop`, `tn.scan` or `tn.while_loop`
NumPy's program, numba's (`_numba_n`) and JAX's are NPBench's own.

A program is right where all it returns and all arguments that it writes to agree with NumPy's: the
error is relative to an array's largest element. `first` is the first call with an empty cache,
without imports of peers; `peak` the most memory that the process held, imports, compilers
and checks included. A peer's figure is its time over Tenfold's: above 1, Tenfold is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from importlib.util import find_spec
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
from npbench_program import PEERS, changed
from peers.machine import machine, settings

ONE = Path(__file__).with_name("npbench_program.py")
RESULTS = Path(__file__).with_name("results")
RIGHT = 1e-11  # of the largest element of an array
RIGHT_SINGLE = 1e-5
NEAR = 1e-3  # a peer's: results farther off are another program's
SPREAD = 100  # times what NumPy's own results move by when its inputs move by one ulp
SETTLE = 20.0  # seconds for what a first call has left
NOISE = 0.95  # of Tenfold's time: a peer that took less has won
WAYS = ("unchanged", "static", "convert")
WORDS = {"static": "wrapped", "convert": "wrapped"}

# Why a line is lost, and what would win it.
_LOADS = "not profiled; likely loads that cross lines: JAX's vectors are half as wide."
_MEMORY = "all wait for the matrix from memory: within the noise of a shared bus."
_LIBRARY = "not profiled; likely LAPACK's time, and JAX's is another build."
_PRODUCTS = "its products: JAX's inner kernel for f64 is some percent faster than our panels."
LOST: dict[str, str] = {
    "doitgen": _PRODUCTS,
    "gemm": _PRODUCTS,
    "k3mm": _PRODUCTS,
    "deriche": "not profiled; likely rows that are read again for each direction.",
    "vadv": "not profiled; likely planes that go through memory between short kernels.",
    "atax": _MEMORY,
    "bicg": _MEMORY,
    "mvt": _MEMORY,
    "azimint_hist": "two passes in order over the bins that were found; one would win it.",
    "channel_flow": "a round of some 70 short kernels, most on an edge of the grid. Kernels that "
    "write several ranges would win it.",
    "cholesky2": _LIBRARY,
    "contour_integral": _LIBRARY,
    "covariance2": "a product of a matrix by itself, which NumPy gives to syrk.",
    "crc16": "not profiled; likely one more instruction in the chain of each bit.",
    "fdtd_2d": _LOADS,
    "hdiff": "the flux in one direction is stored and read again. Rows that are kept would win it.",
    "heat_3d": _LOADS,
    "jacobi_1d": _LOADS,
    "jacobi_2d": _LOADS,
    "seidel_2d": "a division waits for the one before; ours copies a row besides.",
    "trisolv": "not profiled; likely fewer prefetches than in the library's dot.",
}


class Worker:
    """A process of one system with one program. What it says last is kept for its errors."""

    def __init__(
        self, job: dict[str, Any], cores: str, cache: str, limit: float, threads: int = 1
    ) -> None:
        self.limit = limit
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `close`
        environment = os.environ | settings(None, threads)
        self.process = subprocess.Popen(
            ["taskset", "-c", cores, sys.executable, str(ONE), json.dumps(job)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=environment | {"TENFOLD_CACHE": cache},
        )

    def ask(self, **order: Any) -> dict[str, Any]:
        """Its answer; `failed` says why there is none."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            print(json.dumps(order), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            return {"failed": self.reason()}
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            if not ready.select(self.limit):
                self.process.kill()
                return {"failed": f"more than {self.limit:g} s"}
        line = self.process.stdout.readline()
        found: dict[str, Any] = json.loads(line) if line else {"failed": self.reason()}
        return found

    def reason(self) -> str:
        """The line of a traceback that names the error, without the error's module."""
        if self.process.wait() < 0:
            return f"died of signal {-self.process.returncode}"
        self.errors.seek(0)
        text = self.errors.read()
        lines = [line for line in text.splitlines() if line[:1].strip() and ": " in line]
        error, _, said = (lines or [": " + text])[-1].partition(": ")
        return f"{error.rpartition('.')[2]}: {said}"

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        self.process.wait()
        self.errors.close()


def apart(found: Path, expected: Path) -> float:
    """The largest error, relative to the largest element of its array; inf where forms differ."""
    most = 0.0
    with np.load(found) as ours, np.load(expected) as theirs:
        if len(ours.files) != len(theirs.files):
            return float("inf")
        for name in theirs.files:
            one, other = ours[name], theirs[name]
            if one.shape != other.shape:
                return float("inf")
            if not one.size:
                continue
            kind = np.promote_types(one.dtype, np.float64)
            with np.errstate(all="ignore"):
                a, b = one.astype(kind), other.astype(kind)
                same = (a == b) | (np.isnan(a) & np.isnan(b))
                scale = np.abs(b[np.isfinite(b)]).max(initial=0.0) or 1.0
                error = np.where(same, 0.0, np.abs(a - b) / scale)
            most = max(most, float("inf") if np.isnan(error).any() else float(error.max()))
    return most


def is_single(answers: Path) -> bool:
    with np.load(answers) as kept:
        return any(kept[name].dtype in (np.float32, np.complex64) for name in kept.files)


class Suite:
    """The programs of a checkout, and a process for each system with one of them."""

    def __init__(
        self, checkout: Path, folder: Path, peers: list[str], options: argparse.Namespace
    ) -> None:
        self.checkout, self.folder, self.peers, self.options = checkout, folder, peers, options
        self.core = str(max(os.sched_getaffinity(0)))

    def has(self, name: str, peer: str) -> bool:
        """Has NPBench the program for this peer?"""
        info = json.loads((self.checkout / "bench_info" / f"{name}.json").read_text())["benchmark"]
        place = self.checkout / "npbench" / "benchmarks" / info["relative_path"]
        postfix = {"numba": "numba_n"}.get(peer, peer)
        return (place / f"{info['module_name']}_{postfix}.py").exists()

    def start(self, name: str, way: str) -> tuple[Worker, dict[str, Any]]:
        """A worker after its first call, whose arrays lie in a file."""
        job = {"checkout": str(self.checkout), "name": name, "way": way, "size": self.options.size}
        cache = tempfile.mkdtemp(dir=self.folder)
        worker = Worker(job, self.core, cache, self.options.limit)
        return worker, {"way": way} | worker.ask(first=str(self.folder / f"{way}.npz"))

    def judge(self, way: str, bound: float) -> dict[str, Any]:
        """How far off a system is, and whether that is too far. Some of numba's and JAX's programs
        return what NumPy's write to, or nothing: those are not compared."""
        error = apart(self.folder / f"{way}.npz", self.folder / "numpy.npz")
        right = error <= bound or (error == float("inf") and way in PEERS)
        return {"error": error} | ({} if right else {"failed": "wrong"})

    def measure(self, name: str) -> dict[str, dict[str, Any]]:
        """All that is said of one program, by system."""
        found: dict[str, dict[str, Any]] = {}
        workers: dict[str, Worker] = {}
        try:
            for peer in self.peers:
                if self.has(name, peer):
                    workers[peer], found[peer] = self.start(name, peer)
            workers["numpy"].ask(nudged=str(self.folder / "nudged.npz"))
            spread = apart(self.folder / "nudged.npz", self.folder / "numpy.npz")
            single = is_single(self.folder / "numpy.npz")
            for way in ["changed"] if changed(name) else WAYS:
                workers["tenfold"], found["tenfold"] = self.start(name, way)
                if "failed" not in found["tenfold"] or "more than" in found["tenfold"]["failed"]:
                    break
                workers.pop("tenfold").close()
            bound = max(RIGHT_SINGLE if single else RIGHT, SPREAD * spread)
            for system, told in found.items():
                if "failed" not in told:
                    told |= self.judge(told["way"], NEAR if system in PEERS else bound)
                if system == "tenfold" and "failed" not in told:
                    told |= workers[system].ask(settle=SETTLE)
            self.time(workers, found)
        finally:
            for worker in workers.values():
                worker.close()
        return found

    def time(self, workers: dict[str, Worker], found: dict[str, dict[str, Any]]) -> None:
        """Rounds of all systems in turns; fewer where they are long."""
        start = time.perf_counter()
        for round in range(self.options.rounds):
            if round >= 2 and time.perf_counter() - start > self.options.limit / 4:
                break
            for system, worker in workers.items():
                kept = found[system]
                if "failed" in kept:
                    continue
                told = worker.ask(time=self.options.seconds)
                best = min(told.get("steady", np.inf), kept.get("steady", np.inf))
                kept |= told | {"steady": best}


def mean(ratios: Iterable[float]) -> float:
    """The geometric mean."""
    logs = [log(r) for r in ratios]
    return exp(sum(logs) / len(logs)) if logs else float("nan")


def ratios(row: dict[str, dict[str, Any]]) -> dict[str, float]:
    """The time of each peer over Tenfold's, of those that ran and are right."""
    good = {system: told["steady"] for system, told in row.items() if "failed" not in told}
    ours = good.pop("tenfold", None)
    return {peer: theirs / ours for peer, theirs in good.items()} if ours else {}


def seconds(told: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if told * scale >= 1 or unit == "µs":
            return f"{told * scale:.3g} {unit}"
    raise AssertionError


def cells(name: str, row: dict[str, dict[str, Any]], peers: list[str]) -> list[str]:
    ours, found = row["tenfold"], ratios(row)
    way = WORDS.get(ours["way"], ours["way"])
    if "failed" in ours:
        shown = [name, way, f"**{ours['failed'][:80]}**", "", "", ""]
    else:
        shown = [name, way, f"{ours['error']:.0e}", seconds(ours["first"])]
        shown += [seconds(ours["steady"]), f"{ours['peak']:.0f}"]
    for peer in peers:
        told = row.get(peer)
        if told is None:
            shown += ["–", "–", "–"]
        elif "failed" in told or peer not in found:
            shown += [told.get("failed", "ran")[:40], "–", "–"]
        else:
            ratio = f"{found[peer]:.2f}" if found[peer] >= NOISE else f"**{found[peer]:.2f}**"
            shown += [ratio, seconds(told["first"]), f"{told['peak']:.0f}"]
    return shown


def summary(rows: dict[str, dict[str, dict[str, Any]]], peers: list[str]) -> list[str]:
    ran = {name: row for name, row in rows.items() if "failed" not in row["tenfold"]}
    ways = [WORDS.get(row["tenfold"]["way"], row["tenfold"]["way"]) for row in ran.values()]
    counts = ", ".join(f"{ways.count(way)} {way}" for way in dict.fromkeys(ways))
    lines = [f"{len(ran)} of {len(rows)} programs run and are right: {counts}.", ""]
    lines += ["| over Tenfold's | programs | geometric mean | ahead in | lost |", "|---" * 5 + "|"]
    for peer in peers:
        theirs = {name: ratios(row)[peer] for name, row in ran.items() if peer in ratios(row)}
        lost = [name for name, ratio in theirs.items() if ratio < NOISE]
        ahead = f"{1 - len(lost) / len(theirs):.0%}" if theirs else "–"
        lines.append(
            f"| {peer} | {len(theirs)} | {mean(theirs.values()):.2f} | {ahead} | "
            f"{', '.join(lost) or 'none'} |"
        )
    lost = [name for name, row in ran.items() if min(ratios(row).values(), default=1.0) < NOISE]
    if lost:
        lines += ["", "Lost:", "", *(f"- {n}: {LOST.get(n, 'not yet looked at')}" for n in lost)]
    return lines


def page(
    rows: dict[str, dict[str, dict[str, Any]]], names: list[str], peers: list[str], size: str
) -> str:
    facts = machine()
    missing = [name for name in names if name not in rows]
    used = ", ".join(f"{name} {facts['versions'][name]}" for name in ("tenfold", *peers))
    heads = ["program", "runs", "error", "first", "steady", "peak, MB"]
    for peer in peers:
        heads += [peer, "first", "peak"]
    lines = [
        f"# NPBench, size {size}",
        "",
        f"Made by `npbench.py --size {size}` on {facts['processor']}, one thread; {used}.",
        "A peer's figure is its time over Tenfold's: above 1, Tenfold is faster. Rounds are",
        "interleaved, each system in a process of its own; the shortest call counts. Measured by",
        "parts, the last row of each program stands, and some are of an earlier state.",
        "",
        *summary(rows, peers),
        *(["", f"Not measured: {', '.join(missing)}."] if missing else []),
        "",
        "| " + " | ".join(heads) + " |",
        "|---" * len(heads) + "|",
    ]
    lines += ["| " + " | ".join(cells(name, row, peers)) + " |" for name, row in rows.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # modules would be compiled by each process
    parser = argparse.ArgumentParser(description="NPBench's programs under tn.jit")
    parser.add_argument("checkout", nargs="?", default=os.environ.get("NPBENCH", ""))
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--size", default="S", choices=("S", "M"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="for one system in a round")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one answer")
    parser.add_argument("--peers", default=",".join(PEERS), help="NumPy has to be among them")
    parser.add_argument("--save", help="a file for all that was found, as lines of JSON")
    parser.add_argument("--report", action="store_true", help="of what was saved, measure nothing")
    options = parser.parse_intermixed_args()
    checkout = Path(options.checkout)
    if not options.checkout or not (checkout / "bench_info").is_dir():
        raise SystemExit(
            f"no NPBench at {options.checkout!r}: git clone https://github.com/spcl/npbench beside "
            "the project, and give its path, or set NPBENCH"
        )
    names = sorted(path.stem for path in (checkout / "bench_info").glob("*.json"))
    unknown = set(options.programs) - set(names)
    if unknown:
        raise SystemExit(f"NPBench has no {', '.join(sorted(unknown))}; it has {', '.join(names)}")
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    peers = [p for p in options.peers.split(",") if p and find_spec(p)]
    if options.report:
        for saved in Path(options.save).read_text().splitlines():
            rows |= json.loads(saved)
        rows = dict(sorted(rows.items()))
    for name in () if options.report else options.programs or names:
        with tempfile.TemporaryDirectory() as folder:
            rows[name] = Suite(checkout.resolve(), Path(folder), peers, options).measure(name)
        print(" ".join(f"{cell:>10}" for cell in cells(name, rows[name], peers)), flush=True)
        if options.save:
            with open(options.save, "a") as file:
                file.write(json.dumps({name: rows[name]}) + "\n")
    print("\n".join(summary(rows, peers)))
    if options.report or not options.programs:
        (RESULTS / f"npbench-{options.size}.md").write_text(page(rows, names, peers, options.size))


if __name__ == "__main__":
    main()
