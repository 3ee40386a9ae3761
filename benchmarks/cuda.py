"""Kernels on a GPU beside torch, torch.compile, JAX and CuPy, in one process on the same arrays.

    python benchmarks/cuda.py [--maths fast] [--parts cases,calls] [--json results.json] [case …]

A figure is the time that the device spends in kernels and copies for one call, several at once or
not, by CUPTI's records (torch's profiler reads them, for all peers alike): the median of ten
calls. What fits the L2 cache is warm in it, for all alike. `copy` is the best copy of as many
bytes on this device; a peer's figure stands beside its ratio to ours: above 1, Tenfold is faster.
All multiply floats as such: JAX is told not to cut them to TF32. torch.compile and JAX add
scattered floats in whatever order they come; ours, and torch, in order.

Then whole calls by the clock, from arrays on the device or NumPy's. Programs and loops are in
`cuda_programs.py`.
"""

from __future__ import annotations

import sys

sys.path.pop(0)  # this folder: CuPy is to find NVIDIA's package `cuda`, not this file

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

import tenfold as tn
from tenfold.backends.cuda.driver.device import gpu
from tenfold.backends.registry import backend_named

Function = Callable[..., Any]
CALLS, WARM = 10, 3


@dataclass(frozen=True)
class Case:
    """A program in NumPy's words (`xp` is NumPy, JAX's or CuPy's namespace) and in torch's."""

    name: str
    plain: Function  # of xp and the arrays
    other: Function  # of the arrays as torch's
    arrays: tuple[np.ndarray, ...]


def rng(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def softmax(axis: int) -> tuple[Function, Function]:
    def plain(xp: Any, x: Any) -> Any:
        e = xp.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    return plain, lambda x: torch.softmax(x, axis)


def layernorm(xp: Any, x: Any) -> Any:
    d = x - x.mean(-1, keepdims=True)
    return d / xp.sqrt((d * d).mean(-1, keepdims=True) + np.float32(1e-5))


def torch_layernorm(x: Any) -> Any:
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def chain(xp: Any, x: Any, y: Any, z: Any) -> Any:
    return xp.tanh(xp.exp(x) * y) + xp.sqrt(abs(z)) / xp.exp(y)


def cases() -> list[Case]:
    v5, v7, x1, x8 = rng(100_000), rng(10_000_000), rng(1024, 1024), rng(8192, 4096)
    q, rows = rng(8192, 8192), rng(65536, 256)
    index = np.random.default_rng(1).integers(0, 65536, 65536)
    places = np.random.default_rng(2).integers(0, 100_000, 1_000_000)
    found: list[Case] = []

    def case(name: str, plain: Function, other: Function, *arrays: np.ndarray) -> None:
        found.append(Case(name, plain, other, arrays))

    def as_torch(x: Any, y: Any, z: Any) -> Any:
        return chain(torch, x, y, z)

    case("chain 1e5", chain, as_torch, v5, v5[::-1].copy(), v5)
    case("chain 1e7", chain, as_torch, v7, v7[::-1].copy(), v7)
    case("light chain 1e7", lambda xp, x, y, z: x * y + z, lambda x, y, z: x * y + z, v7, v7, v7)
    case("broadcasts 8192×4096", lambda xp, x, b, c: (x + b) * c, lambda x, b, c: (x + b) * c,
         x8, rng(4096), rng(8192, 1))  # fmt: skip
    case("broadcasts 1000×1003", lambda xp, x, b, c: (x + b) * c, lambda x, b, c: (x + b) * c,
         rng(1000, 1003), rng(1003), rng(1000, 1))  # fmt: skip
    for shape in ((1024, 1024), (16384, 64), (8192, 4096), (64, 65536)):
        case(f"softmax {shape[0]}×{shape[1]}", *softmax(-1), rng(*shape))
    for shape in ((1024, 1024), (8192, 4096)):
        case(f"softmax, first axis {shape[0]}×{shape[1]}", *softmax(0), rng(*shape))
    case("layernorm 1024²", layernorm, torch_layernorm, x1)
    case("layernorm 8192×4096", layernorm, torch_layernorm, x8)
    for x, size in ((x1, "1024²"), (x8, "8192×4096")):
        case(f"argmax with max {size}", lambda xp, x: (x.argmax(-1), x.max(-1)),
             lambda x: (x.argmax(-1), x.amax(-1)), x)  # fmt: skip
    case("sum 1e7", lambda xp, x: x.sum(), lambda x: x.sum(), v7)
    case("column sums 8192×4096", lambda xp, x: x.sum(0), lambda x: x.sum(0), x8)
    case("gather rows, add, mean", lambda xp, x, i: (x[i] + 1).mean(-1),
         lambda x, i: (x[i] + 1).mean(-1), rows, index)  # fmt: skip
    for x, size in ((x1, "1024"), (q, "8192")):
        case(f"x.T*2+z {size}", lambda xp, x, z: x.T * 2 + z, lambda x, z: x.T * 2 + z, x, x)
    case("concatenate + tanh", lambda xp, a, b: xp.tanh(xp.concatenate([a, b])),
         lambda a, b: torch.tanh(torch.cat([a, b])), v7[:5_000_000], v7[:5_000_000])  # fmt: skip
    case("cumsum 1e5", lambda xp, x: xp.cumsum(x), lambda x: x.cumsum(0), v5)
    case("cumsum 1e7", lambda xp, x: xp.cumsum(x), lambda x: x.cumsum(0), v7)
    case("sort 1e6", lambda xp, x: xp.sort(x), lambda x: x.sort()[0], v7[:1_000_000])
    case("bincount-like add, 1e6 into 1e5", _scattered, _torch_scattered,
         places, v7[:1_000_000])  # fmt: skip
    for n in (1024, 4096):
        case(f"product {n}", lambda xp, a, b: a @ b, lambda a, b: a @ b, rng(n, n), rng(n, n))
    return found


def _scattered(xp: Any, i: Any, v: Any) -> Any:
    out = xp.zeros(100_000, xp.float32)
    if hasattr(out, "at") and not isinstance(out, np.ndarray) and xp is not np:
        try:
            return out.at[i].add(v)
        except AttributeError:
            pass
    xp.add.at(out, i, v)
    return out


def _torch_scattered(i: Any, v: Any) -> Any:
    return torch.zeros(100_000, device="cuda").index_put_((i,), v, accumulate=True)


# Times.


def device_time(call: Callable[[], Any], finish: Callable[[], Any]) -> float:
    """Microseconds that the device works for one call."""
    for _ in range(WARM):
        call()
    finish()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(CALLS):
            call()
        finish()
    spans = sorted(
        (e.time_range.start, e.time_range.end)
        for e in found.events()
        if e.device_type == torch.autograd.DeviceType.CUDA
    )
    each = len(spans) // CALLS
    if not each or len(spans) % CALLS:
        return covered(spans) / CALLS
    return statistics.median(covered(spans[n * each :][:each]) for n in range(CALLS))


def covered(spans: Sequence[tuple[float, float]]) -> float:
    """How long there was any of these, in order: kernels of a graph overlap."""
    total, last = 0.0, float("-inf")
    for start, end in spans:
        total += max(0.0, end - max(start, last))
        last = max(last, end)
    return total


def ours(case: Case, maths: str) -> float:
    one = gpu()
    graph = tn.trace(lambda *a: case.plain(np, *a), *case.arrays)
    record = backend_named("cuda" if maths == "exact" else f"cuda+{maths}")
    program: Any = record.compile(graph)
    with program.room() as room:
        replay = program.replay(room)
        for place, array in zip(room.places, case.arrays, strict=False):
            one.upload(place, array, room.stream)
        one.wait(room.stream)
        if any(isinstance(item, int) for item in replay.items):
            return float("nan")  # the host has a part in it
        return device_time(
            lambda: replay.run(room.places, room.stream), lambda: one.wait(room.stream)
        )


def by_torch(case: Case, compiled: str | None) -> float:
    arrays = [torch.from_numpy(a).cuda() for a in case.arrays]
    f = case.other
    if compiled is not None:
        torch._dynamo.reset()
        f = torch.compile(f, mode=compiled or None)
    return device_time(lambda: f(*arrays), torch.cuda.synchronize)


def by_jax(case: Case) -> float:
    import jax

    jax.config.update("jax_default_matmul_precision", "highest")
    arrays = [jax.device_put(a) for a in case.arrays]
    f = jax.jit(lambda *a: case.plain(jax.numpy, *a))
    last: list[Any] = []

    def call() -> None:
        last[:] = [f(*arrays)]

    return device_time(call, lambda: jax.block_until_ready(last))


def by_cupy(case: Case) -> float:
    import cupy

    arrays = [cupy.asarray(a) for a in case.arrays]
    return device_time(lambda: case.plain(cupy, *arrays), cupy.cuda.runtime.deviceSynchronize)


# Calls and programs, by the clock.


def clock(call: Callable[[], Any], finish: Callable[[], Any], count: int = 0) -> float:
    """Microseconds of one call, of as many as take some tenths of a second."""
    for _ in range(WARM):
        call()
    finish()
    began = time.perf_counter()
    call()
    finish()
    count = count or int(min(2000, max(3, 0.1 / (time.perf_counter() - began))))
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(count):
            call()
        finish()
        best = min(best, (time.perf_counter() - began) / count)
    return best * 1e6


def compared(title: str, rows: dict[str, dict[str, float]]) -> None:
    print(f"\n{title}, µs")
    for name, row in rows.items():
        mine = row["tenfold"]
        cells = [f"{who} {t:.1f} ({t / mine:.2f})" for who, t in row.items()]
        print(f"  {name:30s} " + "  ".join(cells), flush=True)


def call_times() -> dict[str, dict[str, float]]:
    """One call of a small function."""
    return {**_calls(8), **_calls(1_000_000)}


def _calls(n: int) -> dict[str, dict[str, float]]:
    import jax

    def function(a: Any) -> Any:
        return a * 2 + 1

    x = rng(n)
    f = tn.jit(function, backend="cuda")
    g = tn.jit(function, backend="cuda", keep=True)
    h, t = jax.jit(function), torch.compile(function)
    there, of_jax, of_torch = tn.device_put(x, "cuda"), jax.device_put(x), torch.tensor(x).cuda()
    nothing, wait = int, torch.cuda.synchronize
    bound = f.plan(x).bind(there)
    return {
        f"{n} floats, a bound plan's replay": {"tenfold": clock(bound.replay, bound.wait)},
        f"{n} floats on the device": {
            "tenfold": clock(lambda: g(there), wait),
            "jax": clock(lambda: h(of_jax), lambda: jax.block_until_ready(h(of_jax))),
            "torch.compile": clock(lambda: t(of_torch), wait),
        },
        f"{n} floats on the device, waited for": {
            "tenfold": clock(lambda: (g(there), wait()), nothing),
            "jax": clock(lambda: jax.block_until_ready(h(of_jax)), nothing),
            "torch.compile": clock(lambda: (t(of_torch), torch.cuda.synchronize()), nothing),
        },
        f"{n} floats, NumPy in and out": {
            "tenfold": clock(lambda: f(x), nothing),
            "jax": clock(lambda: np.asarray(h(x)), nothing),
            "torch": clock(lambda: function(torch.from_numpy(x).cuda()).cpu().numpy(), nothing),
        },
    }


def copy_time(nbytes: int) -> float:
    """Of as many bytes, half of them read."""
    x = torch.empty(max(1, nbytes // 8), device="cuda")
    y = torch.empty_like(x)
    return device_time(lambda: y.copy_(x), torch.cuda.synchronize)


def peers(maths: str) -> dict[str, Callable[[Case], float]]:
    return {
        "tenfold": lambda case: ours(case, maths),
        "torch": lambda case: by_torch(case, None),
        "torch.compile": lambda case: by_torch(case, ""),
        "jax": by_jax,
        "cupy": by_cupy,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--maths", default="exact")
    parser.add_argument("--json")
    parser.add_argument("--peers", default="")
    parser.add_argument("--parts", default="cases,calls")
    parser.add_argument("cases", nargs="*")
    asked = parser.parse_args()
    who = peers(asked.maths)
    if asked.peers:
        who = {name: who[name] for name in asked.peers.split(",")}
    names = list(who)
    print(f"{'µs':34s} {'copy':>8s} " + " ".join(f"{n:>16s}" for n in names), flush=True)
    found: dict[str, dict[str, float]] = {}
    parts = asked.parts.split(",")
    for case in cases() if "cases" in parts else ():
        if asked.cases and not any(part in case.name for part in asked.cases):
            continue
        made = tn.trace(lambda *a, case=case: case.plain(np, *a), *case.arrays).output_types
        nbytes = sum(a.nbytes for a in case.arrays) + sum(t.nbytes for t in made)
        row = {"copy": copy_time(nbytes)}
        for name, measure in who.items():
            try:
                row[name] = measure(case)
            except Exception as error:  # a peer that lacks something is left out, with its reason
                print(f"  {case.name}: {name}: {type(error).__name__}: {str(error)[:200]}")
        found[case.name] = row
        mine = row.get("tenfold", float("nan"))
        cells = [
            f"{row[n]:8.1f} ({row[n] / mine:5.2f})" if n in row else f"{'–':>16s}" for n in names
        ]
        print(
            f"{case.name:34s} {row['copy']:8.1f} " + " ".join(f"{c:>16s}" for c in cells),
            flush=True,
        )
    for name in names[1:]:
        ratios = [
            row[name] / row["tenfold"]
            for row in found.values()
            if name in row and row.get("tenfold", 0) > 0
        ]
        if ratios:
            print(f"geometric mean against {name}: {statistics.geometric_mean(ratios):.2f}")
    more: dict[str, dict[str, dict[str, float]]] = {}
    if "calls" in parts and not asked.cases:
        more["calls"] = call_times()
        compared("calls", more["calls"])
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as file:
            json.dump(
                {"gpu": gpu().name, "maths": asked.maths, "cases": found, **more}, file, indent=1
            )


if __name__ == "__main__":
    sys.exit(main())
