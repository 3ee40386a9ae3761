"""Cold compile of an unrolled rollout, beside JAX and torch.compile.

A step gathers, compares, selects, runs a two-layer network, softmax, argmax and concatenates:
some 60 ops. The rollout is unrolled 1, 5, 20, 100 and 400 times, and written as `scan`. Each
figure is the first call in a fresh process, packages imported, caches empty, no check.

Run: python benchmarks/rollout.py [--jax] [--torch] [--peers]
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from typing import Any

import numpy as np

LANES, GOALS, WIDTH, NAMES, HIDDEN = 32, 6, 16, 50, 32
STEPS = (1, 5, 20, 100, 400)


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


def ours(steps: int, scanned: bool) -> dict[str, float]:
    import tenfold as tn

    p = arrays()

    def unrolled(p: Any) -> Any:
        return rollout(np, p, steps)

    def looped(p: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            return step(np, *carry, p), None

        return tn.scan(body, (p["state"], np.zeros(LANES, "f4")), length=steps)[0]

    f = tn.jit(looped if scanned else unrolled, **_no_check(tn))
    import llvmlite.binding  # noqa: F401  imported beforehand, as the peers' packages are

    start = time.perf_counter()
    state, score = f(p)
    first = time.perf_counter() - start
    run = _fastest(lambda: f(p))
    want = rollout(np, p, steps)
    nodes = sum(len(g.nodes) for g in (f.trace(p), *f.trace(p).scopes()))
    plan = f.plan(p)
    return {
        "first": first,
        "run": run,
        "nodes": nodes,
        "kernels": len(plan.kernels),
        "host": len(plan.host_steps),
        "equal": float((state == want[0]).mean()),
        "near": float(np.abs(score - want[1]).max()),
        **{f"s_{k}": v for k, v in tn.stats()["seconds"].items()},
    }


def _no_check(tn: Any) -> dict[str, Any]:
    import inspect

    return {"verify": "off"} if "verify" in inspect.signature(tn.jit).parameters else {}


def jax(steps: int, scanned: bool) -> dict[str, float]:
    import jax
    import jax.numpy as jnp

    p = {k: jnp.asarray(v) for k, v in arrays().items()}

    def looped(p: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            return step(jnp, *carry, p), None

        return jax.lax.scan(body, (p["state"], jnp.zeros(LANES, "float32")), length=steps)[0]

    f = jax.jit(looped if scanned else lambda p: rollout(jnp, p, steps))
    start = time.perf_counter()
    jax.block_until_ready(f(p))
    first = time.perf_counter() - start
    return {"first": first, "run": _fastest(lambda: jax.block_until_ready(f(p)))}


def torch(steps: int, scanned: bool) -> dict[str, float]:
    import torch

    p = {k: torch.from_numpy(v) for k, v in arrays().items()}
    torch.set_num_threads(1)

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
        mask = chosen[:, None] == torch.arange(4)
        picked = torch.where(mask, offers, 0).sum(dim=1).int()
        gain = torch.log(torch.where(mask, chances, 0.0).sum(dim=1) + 1e-9)
        done = (state[:, 0] == picked) | (picked == 0)
        moved = (torch.cat([state[:, 1:], picked[:, None]], dim=1) * 3 + 1) % NAMES
        return torch.where(done[:, None], state, moved.int()), torch.where(
            done, score, score + gain
        )

    def whole(p: Any) -> Any:
        state, score = p["state"], torch.zeros(LANES)
        for _ in range(steps):
            state, score = one(state, score, p)
        return state, score

    f = torch.compile(whole, fullgraph=True)
    start = time.perf_counter()
    f(p)
    first = time.perf_counter() - start
    return {"first": first, "run": _fastest(lambda: f(p))}


def _fastest(f: Any) -> float:
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        f()
        best = min(best, time.perf_counter() - start)
    return best


def fresh(who: str, steps: int, scanned: bool) -> dict[str, float] | None:
    """One measurement in a process of its own."""
    command = [sys.executable, __file__, "--one", who, str(steps), str(int(scanned))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        print(f"{who} {steps}: {done.stderr.strip().splitlines()[-1:]}")
        return None
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    if "--one" in sys.argv:
        who, steps, scanned = sys.argv[sys.argv.index("--one") + 1 :]
        makers = {"tenfold": ours, "jax": jax, "torch": torch}
        print(json.dumps(makers[who](int(steps), bool(int(scanned)))))
        return
    peers = [who for who in ("jax", "torch") if {"--peers", f"--{who}"} & {*sys.argv}]
    table: dict[tuple[str, int], float] = {}
    print(f"{'':16} {'first call s':>12} {'run ms':>9}")
    for steps in STEPS:
        for who in ("tenfold", *peers):
            if who == "torch" and steps > 20:
                continue  # it takes minutes
            found = fresh(who, steps, False)
            if found:
                table[who, steps] = found["first"]
                more = (
                    f"  {found['nodes']:.0f} nodes, {found['kernels']:.0f} kernels, "
                    f"{found['host']:.0f} host steps, states equal {found['equal']:.3f}"
                    if who == "tenfold"
                    else ""
                )
                line = f"{found['first']:12.3f} {found['run'] * 1e3:9.3f}{more}"
                print(f"{who:8} {steps:4} ×  {line}")
    for who in ("tenfold", *[p for p in peers if p == "jax"]):
        found = fresh(who, 400, True)
        if found:
            print(f"{who:8} scan 400 {found['first']:10.3f} {found['run'] * 1e3:9.3f}")
    if ("tenfold", 400) in table:
        growth = math.log(table["tenfold", 400] / table["tenfold", 100]) / math.log(4)
        print(f"exponent of growth from 100 to 400 steps: {growth:.2f}")
    if ("jax", 20) in table:
        print(f"at 20 steps: {table['jax', 20] / table['tenfold', 20]:.1f} times faster than JAX")


if __name__ == "__main__":
    main()
