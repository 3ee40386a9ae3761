"""Tables and a picture of what `run.py` measured.

    python benchmarks/peers/report.py

reads `benchmarks/results/*.json`, writes `README.md` and `peers.svg` beside them, and puts the
means into the project's own README. A figure of a peer is its time over Tenfold's in the same run:
above 1, Tenfold is faster. A case that a peer wins by more than the noise is marked as lost, with
the reason that stands in `LOST`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import exp, log
from typing import Any

from run import RESULTS
from worker import PEERS

OTHERS = [peer for peer in PEERS if peer != "tenfold"]
README = RESULTS.parents[1] / "README.md"
BEGIN, END = "<!-- made by benchmarks/peers/report.py -->", "<!-- end -->"
NOISE = 0.95  # of Tenfold's time: a peer that took less has won

# Cases in which JAX is not kept to AVX2: profiles show its products in kernels of YNNPACK for
# AVX-512 (dot_fp32_6x8x4_1x4x4_avx512), whatever --xla_cpu_max_isa says. Its figures stand in
# brackets there and count nowhere.
UNKEPT = (
    "products",
    "programs: MLP",
    "programs: transformer",
    "programs: convolution",
    "programs: LSTM",
)

# Why a case is lost, and what would win it, by the beginning of its title.
LOST: dict[str, str] = {
    "pointwise": "all wait for memory: it moves from run to run.",
    "rows: argmax": "within the noise: both read a row once.",
    "rows: softmax": "JAX's exp is off by up to 4.8 ulp and flushes subnormals; ours is off by 0.9 "
    "at most. With AVX2 it takes 18 instructions a vector, 14 of them products, bounds and a shift "
    "for two units; registers are short, so 13 more move constants and values.",
    "rows: logsumexp": "as softmax.",
    "rows: variance": "within the noise: all read the rows once, from the nearest cache but one.",
    "rows: sort": "both part lines until registers hold what is left, so it moves from run to run; "
    "with AVX2 NumPy's networks sort up to 256 elements of 32 bits at once, ours 128.",
    "rows: sum": "all wait for memory.",
    "products: thin": "eight columns fill half a vector of ours; JAX's kernel has six rows of "
    "eight.",
    "products: batch of 8": "not profiled; likely since no product of a batch of four or more is "
    "cut, so that a thread that is held up holds up a whole one.",
    "products": "with AVX-512 panels of our own multiply, else the library on one thread: peers' "
    "inner kernels may be some percent faster. Long ones move by a third from run to run.",
    "programs: stencil": "not profiled; both read and write each row once a step, and on two "
    "threads each step, some 25 µs, waits for both of ours.",
    "programs: LSTM": "128 products of eight rows one after the other; those of the inputs are one "
    "before the loop.",
    "programs: Black-Scholes": "JAX's erf is a quotient of two polynomials: off by up to 6.7 ulp, "
    "and above 1 at some places; ours is off by 1.6 at most. All of it in one kernel is one chain, "
    "longer than a processor looks ahead: it takes 1.25 times what log, exp and erf twice take.",
    "programs: Mandelbrot": "numba cuts the points among threads; our loop goes round for all of "
    "them at once, on one thread. A loop for each part of the points would win it.",
    "programs: transformer": "products take most of it: see there.",
    "programs: MLP": "products take most of it: see there.",
    "programs: convolution": "its convolutions take oneDNN's time or some percent more.",
}


# Why two threads take more than 1/1.7 of one's time, by a part of the title.
TOGETHER = 1.7
ALONE: dict[str, str] = {
    "1e3": "too little work to share",
    "by a vector": "too little work to share, or memory: see copies",
    "a vector by": "too little work to share, or memory: see copies",
    "64²": "too little work to share",
    "rows:": "memory: see copies",
    "LSTM": "the gates of a round are too little work to share",
    "Kalman": "rounds follow one another, each too short to share",
    "k-means": "rows are added to centres in order",
    "MLP": "memory: see copies",
    "1e5": "memory: see copies",
    "1e7": "memory: see copies",
    "stencil": "each step, some 25 µs, waits for both threads",
    "Mandelbrot": "our loop goes round for all points at once",
}


def mean(ratios: Iterable[float]) -> float:
    """The geometric mean."""
    logs = [log(r) for r in ratios]
    return exp(sum(logs) / len(logs)) if logs else float("nan")


def ratios(case: dict[str, Any]) -> dict[str, float]:
    """The time of each peer that took part over Tenfold's."""
    ours = case.get("tenfold", {})
    if "failed" in ours or "best" not in ours:
        return {}
    told = {
        p: c["best"] / ours["best"] for p, c in case.items() if "best" in c and "failed" not in c
    }
    return {peer: ratio for peer, ratio in told.items() if peer != "tenfold"}


def fair(level: str, title: str, case: dict[str, Any]) -> dict[str, float]:
    """The ratios of those peers that had the same instructions."""
    unkept = level == "x86-64-v3" and title.startswith(UNKEPT)
    return {p: r for p, r in ratios(case).items() if not (unkept and p == "jax")}


def reason(title: str) -> str:
    return next(
        (why for start, why in LOST.items() if title.startswith(start)), "not yet looked at"
    )


def alone(title: str) -> str:
    return next((why for part, why in ALONE.items() if part in title), "not yet looked at")


def groups_of(found: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(title.split(": ")[0] for title in found["cases"]))


def means(found: dict[str, Any], group: str) -> dict[str, float]:
    """The geometric mean of each peer over the cases of a group that it takes part in."""
    level = found["level"]
    theirs = [
        fair(level, title, case)
        for title, case in found["cases"].items()
        if title.startswith(f"{group}: ")
    ]
    kept = {peer: [r[peer] for r in theirs if peer in r] for peer in OTHERS}
    return {peer: mean(r) for peer, r in kept.items() if r}


def cells(figures: dict[str, float], unfair: dict[str, float] | None = None) -> str:
    """The figures of all peers; in brackets those that are not like with like."""
    shown = {p: f"({r:.2f})" for p, r in (unfair or {}).items()}
    shown |= {p: f"{r:.2f}" for p, r in figures.items()}
    return " | ".join(shown.get(p, "–") for p in OTHERS)


def summary(runs: list[dict[str, Any]]) -> list[str]:
    """The geometric means of all groups, and how many cases are not lost to anyone."""
    head = f"| geometric means | {' | '.join(OTHERS)} | not lost |"
    lines = [head, "|---" * (len(OTHERS) + 2) + "|"]
    for found in runs:
        for group in groups_of(found):
            best = [
                min(fair(found["level"], title, case).values(), default=0.0)
                for title, case in found["cases"].items()
                if title.startswith(f"{group}: ")
            ]
            kept = f"{sum(r >= NOISE for r in best)} of {len(best)}"
            name = f"{group}, {heading(found)}"
            lines.append(f"| {name} | {cells(means(found, group))} | {kept} |")
    return lines


def table(found: dict[str, Any], group: str) -> list[str]:
    lines = [f"| {group} | Tenfold, µs | " + " | ".join(OTHERS) + " | best peer |"]
    lines.append("|---" * (len(OTHERS) + 3) + "|")
    lost = []
    for title, case in found["cases"].items():
        kind, name = title.split(": ", 1)
        if kind != group:
            continue
        theirs = fair(found["level"], title, case)
        best = min(theirs.values(), default=float("nan"))
        ours = case.get("tenfold", {}).get("best", float("nan")) * 1e6
        mark = f"**{best:.2f}, lost**" if best < NOISE else f"{best:.2f}"
        lines.append(f"| {name} | {ours:.3g} | {cells(theirs, ratios(case))} | {mark} |")
        if best < NOISE:
            lost.append(f"- {name}: {reason(title)}")
    lines.append(f"| *geometric mean* | | {cells(means(found, group))} | |")
    return [*lines, "", *(["Lost:", "", *lost, ""] if lost else []), *beside_a_copy(found, group)]


def beside_a_copy(found: dict[str, Any], group: str) -> list[str]:
    """How near cases that memory bounds come to a plain copy of as many bytes."""
    told = [
        f"{title.split(': ', 1)[1]}: {case['tenfold']['of copy']:.2f}"
        for title, case in found["cases"].items()
        if title.startswith(f"{group}: ") and "of copy" in case.get("tenfold", {})
    ]
    if not told:
        return []
    return [
        "Bytes read and written a second, over those of a copy between arrays that are there, on",
        f"as many threads: {'; '.join(told)}.",
        "",
    ]


def heading(found: dict[str, Any]) -> str:
    level = found["level"] or "the machine's best level"
    threads = f"{found['threads']} thread" + ("s" if found["threads"] > 1 else "")
    return f"{level}, {threads}"


def page(runs: list[dict[str, Any]]) -> str:
    first = runs[0]["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in first["versions"].items())
    lines = [
        "# Beside the peers",
        "",
        f"Made by `make bench` on {first['processor']}, {first['cores']} cores; {versions}.",
        "A peer's figure is its time over Tenfold's: above 1, Tenfold is faster. Each row is of",
        "one run, its rounds interleaved, each peer in a process of its own on the same cores; the",
        "shortest call counts. For x86-64-v3 all peers are kept to AVX2, but for JAX's products,",
        "which use AVX-512 in spite of its flag: these stand in brackets and count nowhere.",
        "",
        *summary(runs),
        "",
    ]
    for found in runs:
        lines += [f"## {heading(found)}", ""]
        for group in groups_of(found):
            lines += table(found, group)
    lines += speedups(runs)
    return "\n".join(lines).rstrip() + "\n"


def speedups(runs: list[dict[str, Any]]) -> list[str]:
    """One thread's time over two threads', where both were measured."""
    by = {(f["level"], f["threads"]): f for f in runs}
    lines = []
    for level in dict.fromkeys(f["level"] for f in runs):
        one, two = by.get((level, 1)), by.get((level, 2))
        if not one or not two:
            continue
        lines += [
            f"## Two threads over one, {level or 'best level'}",
            "",
            f"What is below {TOGETHER} has its reason beside it. Copies are what memory gives:",
            "each thread copies its share of the bytes over and over.",
            "",
            "| case | speed-up | |",
            "|---|---|---|",
        ]
        for touched, rate in one.get("copies", {}).items():
            more = two["copies"][touched] / rate
            lines.append(f"| copies, {int(touched) / 1e6:.3g} MB read and written | {more:.2f} | |")
        for title, case in one["cases"].items():
            a, b = case.get("tenfold", {}), two["cases"].get(title, {}).get("tenfold", {})
            if "best" in a and "best" in b:
                more = a["best"] / b["best"]
                why = "" if more >= TOGETHER else alone(title)
                lines.append(f"| {title} | {more:.2f} | {why} |")
        lines.append("")
    return lines


def picture(runs: list[dict[str, Any]]) -> None:
    """Geometric means over each group, a bar for each peer."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "tenfold"  # the same figures give the same file
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, len(runs), figsize=(5 * len(runs), 3.2), sharey=True, squeeze=False
    )
    for at, found in zip(axes[0], runs, strict=True):
        groups = groups_of(found)
        for m, group in enumerate(groups):
            for peer, figure_of in means(found, group).items():
                n = OTHERS.index(peer)
                label = peer if m == 0 else None
                at.bar(m + (n - 2.5) / 8, figure_of, 1 / 9, color=f"C{n}", label=label)
        at.axhline(1, color="black", linewidth=0.8)
        at.set_xticks(range(len(groups)), groups)
        at.set_title(heading(found), fontsize=9)
        at.set_yscale("log")
    axes[0][0].set_ylabel("time over Tenfold's")
    axes[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(RESULTS / "peers.svg", metadata={"Date": None})


def put_into_readme(lines: list[str]) -> None:
    """Replace what stands between the marks in the project's README."""
    text = README.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    README.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after)


def main() -> None:
    runs = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("x86*.json"))]
    if not runs:
        raise SystemExit("nothing was measured yet: run benchmarks/peers/run.py first")
    (RESULTS / "README.md").write_text(page(runs))
    put_into_readme(summary(runs))
    picture(runs)


if __name__ == "__main__":
    main()
