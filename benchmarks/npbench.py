"""NPBench: its programs under `tn.jit`, beside NumPy, JAX and numba.

    python benchmarks/npbench.py CHECKOUT [program ...] [--first] [--full] [--compile never]
                                 [--limit S] [--save FILE]

CHECKOUT is a copy of github.com/spcl/npbench; without it, the environment's NPBENCH. Sizes are
NPBench's preset S, but for those in SIZES (`--full`: for none). Each measurement is made in a
process of its own.

The bodies of programs are NPBench's, unchanged. How one runs is found by trying, in this order:
  plain    `tn.jit(f)`, and nothing else
  static   integers are `static=`: sizes, and numbers of rounds
  convert  `control="convert"` as well: branches and loops that hang on values, np.ndarray(shape)
A program is right where all it returns and all arguments that it writes to agree with NumPy's,
checked or not, and a second call gives the bits of the first; `error` is relative to an array's
largest element. With `--compile never` the evaluator answers: how programs run, and no times.

Times: `cold` is a first call with an empty cache, `off` the same with verify="off", `warm` a first
call in a new process with the cache of the first, `then` a later call; `checked` is the state of
the certificate after the first call. Imports and the making of JAX's client are not counted,
compilers' imports are. JAX's and numba's programs are NPBench's own: JAX's loops are rolled by
hand, Tenfold's are unrolled by Python as NumPy's source has them.

With `--first` the table is of cold first calls alone. `loaded` is one in a process that has
compiled `x + 1` before, as JAX's have: without Tenfold's imports and what a process does but once.
Then come the nodes traced, the distinct kernels, the loops found in the graph with the most rounds
of one, and JAX's first call: of NPBench's own program (`jax`), and of NumPy's unchanged body under
jax.jit with jax.numpy for numpy (`body`). What ends at the limit is `slow`, and counts as endless.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

ONE = Path(__file__).with_name("npbench_program.py")
RIGHT = 1e-11  # of the largest element of an array
RIGHT_SINGLE = 1e-5
SLOW = 3.0  # seconds: first calls above it are counted
SPREAD = 100  # times what NumPy's own results move by when its inputs move by one ulp

# Smaller than S: Python unrolls these into ten thousand steps and more, many of a shape of their
# own. NumPy, JAX and numba get the same sizes.
SIZES: dict[str, dict[str, Any]] = {
    "cholesky": {"N": 40},
    "gramschmidt": {"M": 30, "N": 20},
    "lu": {"N": 20},
    "ludcmp": {"N": 20},
    "nussinov": {"N": 12},
    "seidel_2d": {"TSTEPS": 3, "N": 20},
    "symm": {"M": 15, "N": 20},
    "syr2k": {"M": 15, "N": 20},
    "syrk": {"M": 20, "N": 25},
    "trisolv": {"N": 200},
    "trmm": {"M": 20, "N": 25},
}

WAYS = ("plain", "static", "convert")

# Why others do not run.
NOT = {
    "mandelbrot2": "keeps only the points that have not diverged: shapes hang on values",
    "spmv": "slices between bounds from an array: shapes hang on values",
}


class Suite:
    """The programs of a checkout, and a process for each measurement."""

    def __init__(
        self, checkout: Path, folder: Path, peers: list[str], options: argparse.Namespace
    ) -> None:
        self.checkout, self.folder, self.peers = checkout, folder, peers
        self.limit, self.compile, self.first = options.limit, options.compile, options.first
        self.sizes: dict[str, dict[str, Any]] = {} if options.full else SIZES
        self.caches = 0

    def version(self, name: str, postfix: str) -> Path:
        """The file of one version of a program."""
        info = json.loads((self.checkout / "bench_info" / f"{name}.json").read_text())["benchmark"]
        place = self.checkout / "npbench" / "benchmarks" / info["relative_path"]
        return place / f"{info['module_name']}_{postfix}.py"

    def cache(self) -> str:
        """A folder for a cache, empty."""
        self.caches += 1
        return str(self.folder / f"cache-{self.caches}")

    def run(
        self, name: str, way: str, cache: str = "", verify: str = "first", loaded: bool = False
    ) -> dict[str, Any]:
        """What one process found; `failed` says why it found nothing."""
        job = {
            "checkout": str(self.checkout),
            "name": name,
            "way": way,
            "sizes": self.sizes.get(name, {}),
            "answers": str(self.folder / f"{name}.npz"),
            "verify": verify,
            "compile": self.compile,
            "loaded": loaded,
        }
        try:
            ended = subprocess.run(
                [sys.executable, str(ONE), json.dumps(job)],
                capture_output=True,
                text=True,
                timeout=self.limit,
                env={**os.environ, "TENFOLD_CACHE": cache},
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"failed": f"more than {self.limit:g} s"}
        if ended.returncode < 0:
            return {"failed": f"died of signal {-ended.returncode}"}
        if ended.returncode:
            return {"failed": reason(ended.stderr)}
        found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
        return found

    def measure(self, name: str) -> dict[str, Any]:
        """All that is said of one program."""
        row: dict[str, Any] = {"name": name, "numpy": self.run(name, "numpy")}
        if "failed" in row["numpy"]:
            failed = row["numpy"]["failed"]
            return {**row, "class": "not", "why": f"NumPy: {failed}", "smaller": False}
        row |= {"class": "not", "why": NOT.get(name, ""), "tried": {}}
        for way in WAYS:
            cache = self.cache()
            found = self.run(name, way, cache)
            if "failed" in found:
                row["tried"][way] = found["failed"]
                row["why"] = NOT.get(name, found["failed"])
                if is_slow(found):
                    break
                continue
            row |= {"class": way, "why": "; ".join(row["tried"].values()), "cold": found}
            if self.first:
                row["loaded"] = self.run(name, way, self.cache(), loaded=True)
            elif self.compile == "now":
                row["warm"] = self.run(name, way, cache)
                row["off"] = self.run(name, way, self.cache(), verify="off")
            break
        for peer in self.peers:
            if self.version(name, {"numba": "numba_n"}.get(peer, peer)).exists():
                row[peer] = self.run(name, peer)
        if self.first and "jax" in self.peers:
            row["body"] = self.run(name, "jax-body")
        return row | {"smaller": name in self.sizes}


def reason(text: str) -> str:
    """The line of a traceback that names the error, without the error's module."""
    lines = [line for line in text.splitlines() if line[:1].strip() and ": " in line]
    if not lines:
        return text
    error, _, said = lines[-1].partition(": ")
    return f"{error.rpartition('.')[2]}: {said}"


def is_slow(found: dict[str, Any]) -> bool:
    """Did its process end at the limit?"""
    return bool(found.get("failed", "").startswith("more than"))


def first_of(found: dict[str, Any], clock: str = "first") -> float:
    """The seconds of a first call: without end where the limit ended it."""
    return math.inf if is_slow(found) else float(found[clock])


def runs_of(row: dict[str, Any]) -> list[dict[str, Any]]:
    """What checked and unchecked plans gave: a refused one does not answer."""
    return [row[run] for run in ("cold", "warm", "off") if run in row]


def error_of(row: dict[str, Any]) -> float:
    return max(float(run.get("error", 0.0)) for run in runs_of(row))


def is_refused(row: dict[str, Any]) -> bool:
    told = [warning for run in runs_of(row) for warning in run.get("warnings", ())]
    return any(warning.startswith("ParityWarning") for warning in told)


def is_right(row: dict[str, Any]) -> bool:
    bound = RIGHT_SINGLE if row["cold"]["single"] else RIGHT
    bound = max(bound, SPREAD * row["numpy"]["spread"])
    return error_of(row) <= bound and row["cold"]["dtypes"] and row["cold"]["repeats"]


def seconds(found: dict[str, Any] | None, what: str = "first") -> str:
    if found is None:
        return "–"
    if "failed" in found:
        return "slow" if is_slow(found) else "fails"
    return f"{found[what]:.3f}" if found[what] >= 0.1 else f"{found[what] * 1e3:.2f}m"


WIDTHS = {"program": -24, "runs": -8, "error": -12, "numpy": 8, "cold": 8, "off": 8, "warm": 8}
WIDTHS |= {"then": 8, "checked": 9, "jax": 8, "numba": 8}
FIRST = {"program": -24, "runs": -8, "error": -12, "numpy": 8, "cold": 8, "loaded": 8, "nodes": 7}
FIRST |= {"kernels": 8, "loops": 9, "jax": 8, "body": 8}


def line(cells: Iterable[str], widths: dict[str, int]) -> str:
    """Cells side by side, as wide as their columns; a negative width stands left."""
    return " ".join(
        cell.ljust(-width) if width < 0 else cell.rjust(width)
        for cell, width in zip(cells, widths.values(), strict=True)
    )


def print_first(row: dict[str, Any]) -> None:
    """The row of a first call."""
    cells = [row["name"] + ("*" if row["smaller"] else ""), row["class"], ""]
    ended = {"failed": row["why"]} if "cold" not in row else None
    cells += [seconds(row["numpy"], "steady"), seconds(row.get("cold", ended))]
    cells += [seconds(row.get("loaded", ended)), "", "", ""]
    if "cold" in row:
        cold = row["cold"]
        cells[2] = f"{'right' if is_right(row) else 'WRONG'} {error_of(row):.0e}"
        cells[6:] = [str(cold["nodes"]), str(cold["kernels"]), "–"]
        if cold["rounds"]:
            cells[8] = f"{len(cold['rounds'])} ({max(cold['rounds'])})"
    cells += [seconds(row.get("jax")), seconds(row.get("body"))]
    print(line(cells, FIRST), f" {row['why'][:90]}" if row["why"] else "", flush=True)


def first_summary(rows: list[dict[str, Any]]) -> None:
    """The median and the worst first call, of all programs and of those that others run too."""
    print()
    ran = [r for r in rows if "cold" in r]
    print(f"right     {sum(map(is_right, ran))} of {len(ran)} that run, of {len(rows)}")
    looped = sum(bool(r["cold"]["rounds"]) for r in ran)
    print(f"loops     found in {looped} of {len(ran)}")
    slow = {"failed": "more than the limit"}
    ran += [r | {"cold": slow, "loaded": slow} for r in rows if is_slow({"failed": r["why"]})]
    for peer in ("cold", "jax", "body"):
        both = [r for r in ran if "first" in r.get(peer, {}) or is_slow(r.get(peer, {}))]
        for who in dict.fromkeys(("cold", "loaded", peer)) if both else ():
            times = {r["name"]: first_of(r[who]) for r in both}
            used = median(first_of(r[who], "processor") for r in both)
            slowest = max(times, key=lambda name: times[name])
            print(
                f"{who:9} first calls of {len(both)} programs: "
                f"median {median(times.values()):.3f} s (processor {used:.3f}), "
                f"worst {times[slowest]:.3f} s ({slowest}), "
                f"{sum(t > SLOW for t in times.values())} above {SLOW:g} s"
            )


def print_row(row: dict[str, Any]) -> None:
    name = row["name"] + ("*" if row["smaller"] else "")
    cells = [name, row["class"], "", seconds(row["numpy"], "steady")]
    if "cold" in row:
        cold = row["cold"]
        cells[2] = f"{'right' if is_right(row) else 'WRONG'} {error_of(row):.0e}"
        cells += [seconds(row.get(run)) for run in ("cold", "off", "warm")]
        cells.append(seconds(cold, "steady"))
        cells.append("REFUSED" if is_refused(row) else cold["state"])
    else:
        cells += [""] * 5
    cells += [seconds(row.get("jax")), seconds(row.get("numba"))]
    print(line(cells, WIDTHS), f" {row['why'][:90]}" if row["why"] else "", flush=True)


def summary(rows: list[dict[str, Any]]) -> None:
    print()
    for name in (*WAYS, "not"):
        print(f"{name:<8} {sum(r['class'] == name for r in rows)}")
    ran = [r for r in rows if "cold" in r]
    print(f"run      {len(ran)} of {len(rows)} with their bodies unchanged")
    refused = [r for r in ran if is_refused(r)]
    print(f"right    {sum(map(is_right, ran))} of {len(ran)}")
    print(f"refused  {len(refused)}: {', '.join(r['name'] for r in refused) or 'none'}")
    compiled = [r for r in ran if r["cold"]["state"] != "none"]
    for when, state in (("first", "state"), ("last", "state_later")) if compiled else ():
        whole = sum(r["cold"][state] == "whole" for r in compiled)
        print(f"whole    {whole} of {len(compiled)} certificates after the {when} call")
    for peer in ("jax", "numba"):
        both = [r for r in ran if "warm" in r and peer in r and "failed" not in r[peer]]
        if not both:
            continue
        print(f"median first call over the {len(both)} programs that {peer} runs too:")
        for label, pick in (
            ("tenfold, cold", "cold"),
            ('tenfold, verify="off"', "off"),
            ("tenfold, warm cache", "warm"),
            (peer, peer),
        ):
            times = [r[pick]["first"] for r in both if "failed" not in r[pick]]
            later = [r[pick]["steady"] for r in both if "failed" not in r[pick]]
            print(f"  {label:<22} {median(times):8.3f} s, then {median(later) * 1e3:8.3f} ms")
        wins = sum(r["cold"]["first"] < r[peer]["first"] for r in both)
        print(f"  tenfold's cold first call is the shorter in {wins} of {len(both)}")


def main() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # modules would be compiled by each process
    parser = argparse.ArgumentParser(description="NPBench's programs under tn.jit")
    parser.add_argument("checkout", nargs="?", default=os.environ.get("NPBENCH", ""))
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one process")
    parser.add_argument("--save", help="a file for all that was found, as lines of JSON")
    parser.add_argument("--peers", default="jax,numba", help="those of jax and numba to run")
    parser.add_argument("--compile", default="now", choices=("now", "never"))
    parser.add_argument("--first", action="store_true", help="cold first calls alone")
    parser.add_argument("--full", action="store_true", help="preset S for every program")
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
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        peers = [peer for peer in options.peers.split(",") if peer and find_spec(peer)]
        if options.first:
            peers = [peer for peer in peers if peer == "jax"]
        suite = Suite(checkout.resolve(), Path(folder), peers, options)
        widths = FIRST if options.first else WIDTHS
        print(line(widths, widths), "  (seconds; m: milliseconds; *: smaller than S)")
        for name in options.programs or names:
            rows.append(suite.measure(name))
            (print_first if options.first else print_row)(rows[-1])
            if options.save:
                with open(options.save, "a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    (first_summary if options.first else summary)(rows)


if __name__ == "__main__":
    main()
