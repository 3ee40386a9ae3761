"""Cold compile of an unrolled rollout, beside JAX and torch.compile.

A step gathers, compares, selects, runs a two-layer network, softmax, argmax and concatenates:
some 60 ops. The rollout is unrolled 1, 3, 5, 20, 100, 400 and 640 times (40,000 nodes), and written
as `scan`. From 16 steps on the planner finds the loop that was unrolled; what is left of the
difference to the scan is tracing. Each figure is the first call in a fresh process, with no check
and every cache empty: Tenfold's and torch's are new folders, and JAX has none unless asked.
Packages are imported before the clock starts: tenfold and llvmlite, jax, torch. Two figures are
given of Tenfold, since it loads its own modules when they are first needed: `first`, with `import
tenfold` and `tn.jit` alone before the clock; and `loaded`, with the modules in `OWN` imported too,
as the others' are.

Times are the least of several rounds, in turns; the processor's time beside the clock's says how
much of it was spent waiting for a busy machine.

Run: python benchmarks/rollout.py [--rounds 3] [--jax] [--torch] [--peers]
"""

from __future__ import annotations

import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

LANES, GOALS, WIDTH, NAMES, HIDDEN = 32, 6, 16, 50, 32
STEPS = (1, 3, 5, 20, 100, 400, 640)
SCANNED = (20, 400, 640)  # written as a scan, too
MOST = {"jax": 400, "torch": 20}  # torch takes minutes beyond
OWN = (
    "tenfold.api.checking",
    "tenfold.api.call.entry_point",
    "tenfold.api.explain_cache",
    "tenfold.api.call.unpack",
    "tenfold.backends.cpu.link.compile",
    "tenfold.backends.cpu.link.prelink",
    "tenfold.cache",
    "tenfold.plan.steps.build",
    "tenfold.graph.file",
)


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "state": rng.integers(0, NAMES, (LANES, GOALS)).astype("i4"),
        "table": rng.normal(size=(NAMES, WIDTH)).astype("f4"),
        "facts": rng.integers(0, NAMES, (NAMES, 4)).astype("i4"),
        "w1": (rng.normal(size=(GOALS * WIDTH, HIDDEN)) / 10).astype("f4"),
        "b1": np.zeros(HIDDEN, "f4"),
        "w2": (rng.normal(size=(HIDDEN, 4)) / 6).astype("f4"),
        "b2": np.zeros(4, "f4"),
    }


def step(xp: Any, state: Any, score: Any, p: dict[str, Any]) -> tuple[Any, Any]:
    """One step: every op is NumPy's; `xp` is numpy or jax.numpy."""
    first = state[:, 0]
    offers = p["facts"][first]  # lanes × 4
    known = (offers[:, :, None] == state[:, None, :]).any(axis=2)
    embedded = p["table"][state].reshape(LANES, GOALS * WIDTH)
    centred = embedded - embedded.mean(axis=1, keepdims=True)
    scale = xp.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5)
    hidden = xp.tanh((centred / scale) @ p["w1"] + p["b1"])
    hidden = hidden * (1.0 / (1.0 + xp.exp(-1.702 * hidden)))
    logits = hidden @ p["w2"] + p["b2"]
    logits = xp.where(known, logits - 10.0, logits)
    shifted = logits - logits.max(axis=1, keepdims=True)
    weights = xp.exp(shifted)
    chances = weights / weights.sum(axis=1, keepdims=True)
    chosen = chances.argmax(axis=1)
    mask = chosen[:, None] == np.arange(4)
    picked = xp.where(mask, offers, 0).sum(axis=1).astype("int32")
    gain = xp.log(xp.where(mask, chances, 0.0).sum(axis=1) + 1e-9)
    done = (first == picked) | (picked == 0)
    moved = xp.concatenate([state[:, 1:], picked[:, None]], axis=1)
    moved = (moved * 3 + 1) % NAMES
    state = xp.where(done[:, None], state, moved.astype("int32"))
    score = xp.where(done, score, score + gain.astype("float32"))
    return state, score


def rollout(xp: Any, p: dict[str, Any], steps: int) -> Any:
    state, score = p["state"], xp.zeros(LANES, "float32")
    for _ in range(steps):
        state, score = step(xp, state, score, p)
    return state, score


def first_call(f: Callable[[], Any]) -> dict[str, float]:
    """The seconds of the first call by the clock and of the processor, then of a later call."""
    start, used = time.perf_counter(), time.process_time()
    f()
    found = {"first": time.perf_counter() - start, "processor": time.process_time() - used}
    return found | {"run": _fastest(f)}


def ours(steps: int, scanned: bool, loaded: bool = False) -> dict[str, float]:
    import llvmlite.binding  # noqa: F401

    import tenfold as tn

    if loaded:
        for name in OWN:
            importlib.import_module(name)
    p = arrays()

    def unrolled(p: Any) -> Any:
        return rollout(np, p, steps)

    def looped(p: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            return step(np, *carry, p), None

        return tn.scan(body, (p["state"], np.zeros(LANES, "f4")), length=steps)[0]

    f = tn.jit(looped if scanned else unrolled, verify="off")
    found = first_call(lambda: f(p))
    compiled = tn.stats()["kernels_compiled"]
    state, score = f(p)
    want = rollout(np, p, steps)
    graph, plan = f.trace(p), f.plan(p)
    return found | {
        "nodes": sum(len(g.nodes) for g in (graph, *graph.scopes())),
        "kernels": compiled,
        "host": len(plan.host_steps),
        "equal": float((state == want[0]).mean()),
        "near": float(np.abs(score - want[1]).max()),
        **{f"s_{k}": v for k, v in tn.stats()["seconds"].items()},
    }


def jax(steps: int, scanned: bool) -> dict[str, float]:
    import jax
    import jax.numpy as jnp

    p = {k: jnp.asarray(v) for k, v in arrays().items()}

    def looped(p: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            return step(jnp, *carry, p), None

        return jax.lax.scan(body, (p["state"], jnp.zeros(LANES, "float32")), length=steps)[0]

    f = jax.jit(looped if scanned else lambda p: rollout(jnp, p, steps))
    return first_call(lambda: jax.block_until_ready(f(p)))


def torch(steps: int, scanned: bool) -> dict[str, float]:
    import torch

    p = {k: torch.from_numpy(v) for k, v in arrays().items()}
    torch.set_num_threads(1)
    f = torch.compile(in_torch(steps), fullgraph=True)
    return first_call(lambda: f(p))


def in_torch(steps: int, device: str = "cpu") -> Callable[[Any], Any]:
    """The rollout in torch's words."""
    import torch

    def one(state: Any, score: Any, p: Any) -> Any:
        first = state[:, 0].long()
        offers = p["facts"][first]
        known = (offers[:, :, None] == state[:, None, :]).any(dim=2)
        embedded = p["table"][state.long()].reshape(LANES, GOALS * WIDTH)
        centred = embedded - embedded.mean(dim=1, keepdim=True)
        scale = torch.sqrt((centred * centred).mean(dim=1, keepdim=True) + 1e-5)
        hidden = torch.tanh((centred / scale) @ p["w1"] + p["b1"])
        hidden = hidden * (1.0 / (1.0 + torch.exp(-1.702 * hidden)))
        logits = hidden @ p["w2"] + p["b2"]
        logits = torch.where(known, logits - 10.0, logits)
        weights = torch.exp(logits - logits.max(dim=1, keepdim=True).values)
        chances = weights / weights.sum(dim=1, keepdim=True)
        chosen = chances.argmax(dim=1)
        mask = chosen[:, None] == torch.arange(4, device=device)
        picked = torch.where(mask, offers, 0).sum(dim=1).int()
        gain = torch.log(torch.where(mask, chances, 0.0).sum(dim=1) + 1e-9)
        done = (state[:, 0] == picked) | (picked == 0)
        moved = (torch.cat([state[:, 1:], picked[:, None]], dim=1) * 3 + 1) % NAMES
        return torch.where(done[:, None], state, moved.int()), torch.where(
            done, score, score + gain
        )

    def whole(p: Any) -> Any:
        state, score = p["state"], torch.zeros(LANES, device=device)
        for _ in range(steps):
            state, score = one(state, score, p)
        return state, score

    return whole


def _fastest(f: Any) -> float:
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        f()
        best = min(best, time.perf_counter() - start)
    return best


def fresh(who: str, steps: int, scanned: bool = False) -> dict[str, float] | None:
    """One measurement in a process of its own, with caches of its own."""
    command = [sys.executable, __file__, "--one", who, str(steps), str(int(scanned))]
    with tempfile.TemporaryDirectory() as folder:
        caches = {
            "TENFOLD_CACHE": f"{folder}/tenfold",
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/torch",
        }
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            env=os.environ | caches,
        )
    if done.returncode:
        print(f"{who} {steps}: {done.stderr.strip().splitlines()[-1:]}")
        return None
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def least(rounds: list[dict[str, float]]) -> dict[str, float]:
    """The least of each figure."""
    return {key: min(found[key] for found in rounds) for key in rounds[0]}


def main() -> None:
    if "--one" in sys.argv:
        who, steps, scanned = sys.argv[sys.argv.index("--one") + 1 :]
        makers = {"tenfold": ours, "jax": jax, "torch": torch}
        makers["loaded"] = lambda steps, scanned: ours(steps, scanned, loaded=True)
        print(json.dumps(makers[who](int(steps), bool(int(scanned)))))
        return
    peers = [who for who in ("jax", "torch") if {"--peers", f"--{who}"} & {*sys.argv}]
    count = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else 3
    cases = [
        (who, steps, False)
        for steps in STEPS
        for who in ("tenfold", "loaded", *peers)
        if steps <= MOST.get(who, steps)
    ]
    cases += [("tenfold", steps, True) for steps in SCANNED]
    cases += [(who, 400, True) for who in peers if who != "torch"]
    found: dict[tuple[str, int, bool], list[dict[str, float]]] = {case: [] for case in cases}
    for turn in range(count):
        for case in cases:
            if case[0] == "torch" and turn:
                continue  # one round of it takes longer than all the rest
            made = fresh(*case)
            if made:
                found[case].append(made)
    table = {case: least(rounds) for case, rounds in found.items() if rounds}
    print(f"{'':16} {'first call s':>12} {'processor s':>12} {'run ms':>9}")
    for (who, steps, scanned), row in table.items():
        line = f"{row['first']:12.3f} {row['processor']:12.3f} {row['run'] * 1e3:9.3f}"
        if who == "tenfold":
            line += (
                f"  {row['nodes']:.0f} nodes, {row['kernels']:.0f} kernels compiled, "
                f"{row['host']:.0f} host steps, states equal {row['equal']:.3f}"
            )
        print(f"{who:8} {'scan' if scanned else '':4} {steps:4} × {line}")
    for steps in SCANNED:
        looped, unrolled = table["tenfold", steps, True], table["tenfold", steps, False]
        ratios = [
            f"{figure} {unrolled[figure] / looped[figure]:.2f}"
            for figure in ("kernels", "first", "processor", "run")
        ]
        print(f"unrolled {steps} times, against the scan: {', '.join(ratios)}")
    summary({who_steps[:2]: row for who_steps, row in table.items() if not who_steps[2]})


def summary(table: dict[tuple[str, int], dict[str, float]]) -> None:
    """What is asked of the figures."""
    for figure in ("first", "processor"):
        growth = [
            math.log(table["tenfold", b][figure] / table["tenfold", a][figure]) / math.log(b / a)
            for a, b in ((20, 100), (100, 400), (100, 640))
        ]
        print(f"exponent of growth, {figure}: " + ", ".join(f"{g:.2f}" for g in growth))
    kernels = {steps: int(table["tenfold", steps]["kernels"]) for steps in (3, 20, 400)}
    print(f"kernels compiled, by steps: {kernels}")
    row = table["tenfold", 640]
    print(f"{row['nodes']:.0f} nodes: {row['first']:.2f} s, processor {row['processor']:.2f} s")
    for (who, steps), other in table.items():
        if who in ("jax", "torch"):
            ratios = [
                f"{name} {other[figure] / table[name, steps][figure]:.1f}"
                for name in ("tenfold", "loaded")
                for figure in ("first", "processor")
            ]
            print(f"times faster than {who} at {steps}: (first, processor) " + ", ".join(ratios))


if __name__ == "__main__":
    main()
