"""Whole programs on a GPU beside torch, torch.compile and JAX: first calls, runs, cold starts.

    python benchmarks/cuda_programs.py [--maths fast] [--parts programs,loops,rollouts,cold]
                                       [--json results.json] [program …]

A run is by the clock, from arrays on the device to results on it, waited for: the best of three
rounds of many calls. A first call is in this process, once the device is open and packages are
imported; Tenfold checks what it made meanwhile, and keeps nothing on disk. All multiply floats as
such: JAX and torch are told not to cut them to TF32. `reduce` is torch.compile's reduce-overhead,
which replays CUDA graphs; the rollout stands beside it where `torch` is named for a program,
since it takes 25 s to compile.

A cold start is a process of its own: a function of 100 kernels that do not merge, its first call
from when the context stands; then the same in a second process, which finds it on disk.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import rollout
from process import in_process

sys.path.pop(0)  # this folder: others are to find NVIDIA's package `cuda`, not the file beside this

import tenfold as tn

Function = Callable[..., Any]
WARM, HIDDEN = 3, 256
KERNELS = 100


def rng(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


@dataclass(frozen=True)
class Program:
    """A program in NumPy's words: `xp` is NumPy, JAX's namespace or torch by NumPy's names. What
    has no such words is given for each."""

    name: str
    plain: Function  # of xp and the arrays
    arrays: tuple[np.ndarray, ...]
    torch: Function | None = None  # of tensors
    jax: Function | None = None  # of JAX's arrays
    eager: bool = False  # torch's own kernels alone: nothing to compile


def black_scholes(xp: Any, s: Any, k: Any, t: Any) -> Any:
    d1 = (xp.log(s / k) + 0.07 * t) / (0.2 * xp.sqrt(t))
    d2 = d1 - 0.2 * xp.sqrt(t)
    return s * _normal(xp, d1) - k * xp.exp(-0.05 * t) * _normal(xp, d2)


def _normal(xp: Any, x: Any) -> Any:
    return 1 / (1 + xp.exp(-1.702 * x))


def bodies(xp: Any, p: Any, v: Any) -> Any:
    d = p[None, :, :] - p[:, None, :]
    r = (d * d).sum(-1) + np.float32(1e-3)
    a = (d / (r * xp.sqrt(r))[..., None]).sum(1)
    v = v + np.float32(0.01) * a
    return p + np.float32(0.01) * v, v


def k_means(xp: Any, x: Any, c: Any) -> Any:
    d = (x * x).sum(-1)[:, None] - 2 * (x @ c.T) + (c * c).sum(-1)
    near = d.argmin(-1)
    each = xp.astype(near[:, None] == xp.arange(c.shape[0]), xp.float32)
    return (each.T @ x) / (each.sum(0)[:, None] + np.float32(1e-6))


def layernorm(xp: Any, x: Any) -> Any:
    d = x - x.mean(-1, keepdims=True)
    return d / xp.sqrt((d * d).mean(-1, keepdims=True) + np.float32(1e-5))


def block(xp: Any, x: Any, w: Any, u: Any, up: Any, down: Any) -> Any:
    """A transformer's block of GPT-2's shape: 12 heads of 64."""
    n = layernorm(xp, x) @ w
    q, k, v = (n[:, i * 768 : (i + 1) * 768].reshape(-1, 12, 64) for i in range(3))
    q, k, v = (xp.transpose(a, (1, 0, 2)) for a in (q, k, v))
    e = q @ xp.transpose(k, (0, 2, 1)) * np.float32(0.125)
    e = xp.exp(e - xp.max(e, axis=-1, keepdims=True))
    e = e / e.sum(-1, keepdims=True)
    x = x + xp.transpose(e @ v, (1, 0, 2)).reshape(-1, 768) @ u
    h = layernorm(xp, x) @ up
    h = (
        h
        * np.float32(0.5)
        * (1 + xp.tanh(np.float32(0.79788) * (h + np.float32(0.0447) * h * h * h)))
    )
    return x + h @ down


def stencil(xp: Any, x: Any) -> Any:
    for _ in range(10):
        inner = x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        x = xp.pad(inner * np.float32(0.2), 1)
    return x


def residual(convolved: Function, xp: Any) -> Function:
    def run(x: Any, v: Any, w: Any) -> Any:
        return x + convolved(xp.maximum(convolved(x, v), np.float32(0)), w)

    return run


def _conv_block() -> Program:
    def of_torch(x: Any, v: Any, w: Any) -> Any:
        import torch

        conv = torch.nn.functional.conv2d
        return x + conv(torch.relu(conv(x, v, padding=1)), w, padding=1)

    def of_jax(x: Any, v: Any, w: Any) -> Any:
        import jax

        def conv(x: Any, w: Any) -> Any:
            return jax.lax.conv(x, w, (1, 1), "SAME")

        return residual(conv, jax.numpy)(x, v, w)

    def plain(xp: Any, x: Any, v: Any, w: Any) -> Any:
        return residual(lambda x, w: tn.conv(x, w, padding=1), xp)(x, v, w)

    weights = (rng(64, 64, 3, 3) / 24, rng(64, 64, 3, 3)[::-1] / 24)
    return Program("conv block 32×64×56²", plain, (rng(32, 64, 56, 56), *weights), of_torch, of_jax)


def cell(xp: Any, carry: Any, gates: Any, u: Any) -> Any:
    """A step of an LSTM; `gates` are of its input alone."""
    h, c = carry
    z = gates + h @ u
    i, f, g, o = (z[:, n * HIDDEN : (n + 1) * HIDDEN] for n in range(4))
    i, f, o = (1 / (1 + xp.exp(-a)) for a in (i, f, o))
    c = f * c + i * xp.tanh(g)
    h = o * xp.tanh(c)
    return (h, c), h


def _lstm() -> Program:
    steps, lanes = 128, 64
    x, w, u = rng(steps, lanes, HIDDEN), rng(HIDDEN, 4 * HIDDEN) / 16, rng(HIDDEN, 4 * HIDDEN) / 20

    def plain(xp: Any, x: Any, w: Any, u: Any) -> Any:
        zero = np.zeros((lanes, HIDDEN), np.float32)
        return tn.scan(lambda c, g: cell(np, c, g, u), (zero, zero), x @ w)[1]

    def of_jax(x: Any, w: Any, u: Any) -> Any:
        import jax

        zero = jax.numpy.zeros((lanes, HIDDEN), np.float32)
        return jax.lax.scan(lambda c, g: cell(jax.numpy, c, g, u), (zero, zero), x @ w)[1]

    kept: list[Any] = []

    def of_torch(x: Any, w: Any, u: Any) -> Any:
        import torch

        if not kept:
            made = torch.nn.LSTM(HIDDEN, HIDDEN, bias=False).cuda()
            with torch.no_grad():
                made.weight_ih_l0.copy_(w.T)
                made.weight_hh_l0.copy_(u.T)
            kept.append(made)
        with torch.no_grad():
            return kept[0](x)[0]

    return Program("LSTM, 128 steps of 64×256", plain, (x, w, u), of_torch, of_jax, eager=True)


def programs() -> Iterator[Program]:
    near = [abs(rng(100_000_000)) + np.float32(0.5)]
    near += [near[0][::-1].copy(), near[0] * np.float32(0.5) + np.float32(1)]
    yield Program("Black-Scholes 1e8", black_scholes, tuple(near))
    yield Program("sort 1e8", lambda xp, x: xp.sort(x), (near[0],), lambda x: x.sort()[0])
    yield Program("n-body step, 4096", bodies, (rng(4096, 3), rng(4096, 3)))
    yield Program("k-means step, 1e5×64, 256", k_means, (rng(100_000, 64), rng(256, 64)))
    shapes = ((768, 2304), (768, 768), (768, 3072), (3072, 768))
    weights = [rng(*shape) * np.float32(0.02) for shape in shapes]
    yield Program("transformer block, 1024×768", block, (rng(1024, 768), *weights))
    yield _conv_block()
    yield _lstm()
    yield Program("stencil, 10 steps of 4096²", stencil, (rng(4096, 4096),))


def in_torch(f: Function) -> Function:
    """A program of NumPy's words with torch's tensors."""
    import torch

    class Words:
        """torch by NumPy's names, as far as the programs ask."""

        float32 = torch.float32
        exp, log, sqrt, tanh = torch.exp, torch.log, torch.sqrt, torch.tanh

        @staticmethod
        def arange(n: int) -> Any:
            return torch.arange(n, device="cuda")

        @staticmethod
        def astype(a: Any, dtype: Any) -> Any:
            return a.to(dtype)

        @staticmethod
        def max(a: Any, axis: int, keepdims: bool) -> Any:
            return a.amax(axis, keepdims)

        @staticmethod
        def transpose(a: Any, axes: tuple[int, ...]) -> Any:
            return a.permute(axes)

        @staticmethod
        def pad(a: Any, by: int) -> Any:
            return torch.nn.functional.pad(a, (by,) * 4)

    return lambda *a: f(Words, *a)


def measured(call: Callable[[], Any]) -> dict[str, float]:
    """Milliseconds of the first call, and of one of many."""
    began = time.perf_counter()
    call()
    first = time.perf_counter() - began
    return {"first": first * 1e3, "run": clock(call)}


def clock(call: Callable[[], Any], seconds: float = 0.1) -> float:
    """Milliseconds of one call, of as many as take that long."""
    for _ in range(WARM):
        call()
    began = time.perf_counter()
    call()
    count = int(min(2000, max(3, seconds / (time.perf_counter() - began))))
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - began) / count)
    return best * 1e3


def ours(f: Function, arrays: Any, maths: str) -> dict[str, float]:
    """The figures, and the host's steps of the plan."""
    import torch

    g = tn.jit(f, backend="cuda", keep=True, maths=maths)
    there = _mapped(lambda a: tn.device_put(a, "cuda"), arrays)
    began = time.perf_counter()
    g(*there)
    torch.cuda.synchronize()
    first = time.perf_counter() - began
    for _ in range(2):  # until its certificate is whole: calls of large arrays take part in that
        g.ready(3)
        g(*there)
    plan = g.plan(*there)
    return {"first": first * 1e3, "run": clock(lambda: (g(*there), torch.cuda.synchronize())),
            "host steps": len(plan.host_steps)}  # fmt: skip


def _mapped(f: Function, given: Any) -> Any:
    if isinstance(given, dict):
        return {k: _mapped(f, v) for k, v in given.items()}
    return tuple(_mapped(f, v) for v in given) if isinstance(given, tuple) else f(given)


def by_torch(f: Function, arrays: Any, mode: str | None) -> dict[str, float]:
    import torch

    there = _mapped(lambda a: torch.from_numpy(np.ascontiguousarray(a)).cuda(), arrays)
    if mode is not None:
        torch._dynamo.reset()
        f = torch.compile(f, mode=mode or None)
    return measured(lambda: (f(*there), torch.cuda.synchronize()))


def by_jax(f: Function, arrays: Any) -> dict[str, float]:
    import jax

    g, there = jax.jit(f), _mapped(jax.device_put, arrays)
    return measured(lambda: jax.block_until_ready(g(*there)))


def beside(
    ours_: Callable[[], dict[str, float]], peers: Mapping[str, Callable[[], dict[str, float]]]
) -> dict[str, dict[str, float]]:
    row = {}
    for who, measure in {"tenfold": ours_, **peers}.items():
        try:
            row[who] = measure()
        except Exception as error:  # a peer that lacks something is left out, with its reason
            print(f"    {who}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    return row


def shown(name: str, row: dict[str, dict[str, float]]) -> None:
    mine = row.get("tenfold", {"run": float("nan")})
    cells = [
        f"{who} {t['run']:.3f}" + (f" ({t['run'] / mine['run']:.2f})" if who != "tenfold" else "")
        + (f" first {t['first']:.0f}" if "first" in t else "")
        for who, t in row.items()
    ]  # fmt: skip
    steps = f"  [{mine['host steps']} host steps]" if mine.get("host steps") else ""
    print(f"  {name:28s} " + "  ".join(cells) + steps, flush=True)


def program_times(maths: str, asked: list[str]) -> dict[str, dict[str, dict[str, float]]]:
    rows = {}
    for one in programs():
        if asked and not any(part in one.name for part in asked):
            continue
        f = one.torch or in_torch(one.plain)
        modes = (
            {"torch": None}
            if one.eager
            else {"torch": None, "compile": "", "reduce": "reduce-overhead"}
        )
        peers = {
            who: lambda f=f, one=one, mode=mode: by_torch(f, one.arrays, mode)
            for who, mode in modes.items()
        }

        def of_jax(*a: Any, one: Program = one) -> Any:
            import jax

            return one.jax(*a) if one.jax else one.plain(jax.numpy, *a)

        peers["jax"] = lambda of_jax=of_jax, one=one: by_jax(of_jax, one.arrays)
        row = beside(lambda one=one: ours(lambda *a: one.plain(np, *a), one.arrays, maths), peers)
        shown(one.name, row)
        rows[one.name] = row
    return rows


def rollout_times(maths: str, asked: list[str]) -> dict[str, dict[str, dict[str, float]]]:
    """The unrolled rollout of `rollout.py`, and the same as a while loop of 20 rounds."""
    import jax

    p, rows = rollout.arrays(), {}

    def unrolled(xp: Any, steps: int) -> Function:
        return lambda p: rollout.rollout(xp, p, steps)

    def looped(xp: Any, loop: Function) -> Function:
        def run(p: Any) -> Any:
            def body(c: Any) -> Any:
                return (*rollout.step(xp, c[0], c[1], p), c[2] + 1)

            start = (p["state"], xp.zeros(rollout.LANES, "float32"), xp.int32(0))
            return loop(lambda c: (c[2] < 20) & (c[1].min() > -1e9), body, start)

        return run

    jnp = jax.numpy
    cases: list[tuple[str, Function, Function, int]] = [
        (f"rollout, {n} steps", unrolled(np, n), unrolled(jnp, n), n) for n in (20, 400)
    ]
    cases.append(
        ("rollout, while of 20", looped(np, tn.while_loop), looped(jnp, jax.lax.while_loop), 0)
    )
    for name, mine, theirs, steps in cases:
        peers: dict[str, Callable[[], dict[str, float]]] = {
            "jax": lambda theirs=theirs: by_jax(theirs, (p,))
        }
        if steps == 20 and "torch" in asked:
            peers["reduce"] = lambda: by_torch(
                rollout.in_torch(20, "cuda"), (p,), "reduce-overhead"
            )
        row = beside(lambda mine=mine: ours(mine, (p,), maths), peers)
        shown(name, row)
        rows[name] = row
    return rows


def loop_times(maths: str, asked: list[str]) -> dict[str, dict[str, dict[str, float]]]:
    """A round of a loop: of softmax and a condition, and of a scan over a small state."""
    import jax

    def soft(xp: Any, x: Any) -> Any:
        e = xp.exp(x - x.max(-1, keepdims=True))
        return x * np.float32(0.9) + e / e.sum(-1, keepdims=True)

    def mine(x: Any) -> Any:
        return tn.while_loop(lambda c: (c[1] < 100) & (c[0].max() < 1e9),
                             lambda c: (soft(np, c[0]), c[1] + 1), (x, np.int32(0)))  # fmt: skip

    def theirs(x: Any) -> Any:
        return jax.lax.while_loop(lambda c: (c[1] < 100) & (c[0].max() < 1e9),
                                  lambda c: (soft(jax.numpy, c[0]), c[1] + 1), (x, 0))  # fmt: skip

    def scanned(x: Any) -> Any:
        return tn.scan(lambda c, r: (c * 0.9 + r, c.sum()), np.zeros(16, np.float32), x)

    def of_jax(x: Any) -> Any:
        zero = jax.numpy.zeros(16, jax.numpy.float32)
        return jax.lax.scan(lambda c, r: (c * 0.9 + r, c.sum()), zero, x)

    rows = {}
    for name, f, g, x, rounds in (
        ("100 rounds of while, 512×1024", mine, theirs, rng(512, 1024), 100),
        ("10,000 steps of scan, 16", scanned, of_jax, rng(10_000, 16), 10_000),
    ):
        row = beside(
            lambda f=f, x=x: ours(f, (x,), maths), {"jax": lambda g=g, x=x: by_jax(g, (x,))}
        )
        shown(name, row)
        print(f"    a round: {row['tenfold']['run'] / rounds * 1e3:.2f} µs", flush=True)
        rows[name] = row
    return rows


def many(*arrays: Any) -> Any:
    """As many kernels as there are arrays: none does what another does."""

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    def gelu(x: Any) -> Any:
        return x * sigmoid(np.float32(1.702) * x)

    def relu(x: Any) -> Any:
        return np.maximum(x, np.float32(0))

    ones = (np.exp, np.tanh, np.sqrt, np.log1p, np.square, abs, sigmoid, gelu, relu, np.reciprocal)
    made = []
    for n, x in enumerate(arrays):
        outer, inner = ones[n // 10], ones[n % 10]
        made.append(
            outer(abs(inner(x)) + np.float32(0.1)).sum(-1) if n % 3 else outer(inner(x) * x)
        )
    return tuple(made)


def one_start() -> None:
    """The first call of a function of 100 kernels, once the context stands."""
    from tenfold.backends.cuda.driver.device import gpu

    began = time.perf_counter()
    device = gpu()
    device.enter()
    context = time.perf_counter() - began
    arrays = [abs(rng(40 + n, 64)) for n in range(KERNELS)]
    tn.device_put(arrays[0], "cuda")
    f = tn.jit(many, backend="cuda")
    began = time.perf_counter()
    f(*arrays)
    first = time.perf_counter() - began
    began = time.perf_counter()
    f(*arrays)
    later = time.perf_counter() - began
    f.ready(60)
    stats = tn.stats()
    seconds = {f"s {stage}": spent for stage, spent in stats["seconds"].items()}
    row = {"context": context, "first": first, "later": later}
    print(json.dumps({**row, "kernels": stats["kernels_compiled"], **seconds}))


def cold_starts(maths: str, asked: list[str]) -> dict[str, dict[str, Any]]:
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("cold", "second process"):
            row = in_process(
                __file__, limit=120, settings={"TENFOLD_CACHE": folder, "CUDA_CACHE_DISABLE": "1"}
            )
            found[name] = row
            print(
                f"  {name}: "
                + ", ".join(
                    f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()
                ),
                flush=True,
            )
    return found


PARTS = {
    "programs": program_times,
    "loops": loop_times,
    "rollouts": rollout_times,
    "cold": cold_starts,
}


def main() -> None:
    if "--one" in sys.argv:
        one_start()
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--maths", default="fast", choices=("exact", "fast"))
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--json")
    parser.add_argument("programs", nargs="*")
    asked = parser.parse_args()
    tn.config.cache = None
    parts, found = asked.parts.split(","), {}
    if set(parts) - {"cold"}:
        import jax
        import torch

        jax.config.update("jax_default_matmul_precision", "highest")
        torch.backends.cudnn.allow_tf32 = False
    for name in parts:
        print(f"{name}, ms", flush=True)
        found[name] = PARTS[name](asked.maths, asked.programs)
    ratios: dict[str, list[float]] = {}
    for row in found.get("programs", {}).values():
        mine = row.get("tenfold", {}).get("run")
        others = {who: t["run"] for who, t in row.items() if who != "tenfold"}
        if mine and others:
            for who, t in others.items():
                ratios.setdefault(who, []).append(t / mine)
            ratios.setdefault("the best of them", []).append(min(others.values()) / mine)
    for who, all_ in ratios.items():
        print(f"geometric mean against {who}: {statistics.geometric_mean(all_):.2f}")
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as file:
            json.dump({"maths": asked.maths, **found}, file, indent=1)


if __name__ == "__main__":
    main()
