"""Kernels and routines on a WebGPU adapter, beside NumPy, the CPU backend and torch on CUDA.

    python benchmarks/webgpu.py [--small] [--number 1] [--json results.json] [case …]

`device` is what an adapter takes for a program whose arrays lie there: several runs in a row, then
one wait. `call` is a call of NumPy's arrays, with the ways there and back. Both are the best of
three, and so is all else. On an adapter that is a CPU arrays are small: a few thousand elements for
each that a GPU has. Peers that are not there are left out; a row says if the host has a part in it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tenfold as tn
from tenfold.backends.registry import backend_named
from tenfold.backends.webgpu.native.adapter import adapter_of

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

Function = Callable[..., Any]
WORK = 0.1  # seconds of a measurement, about


@dataclass(frozen=True)
class Case:
    """A program in NumPy's words, and in torch's."""

    name: str
    plain: Function
    other: Function
    arrays: tuple[np.ndarray, ...]


def rng(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layernorm(x: Any) -> Any:
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + np.float32(1e-5))


def pointwise(x: Any, y: Any) -> Any:
    return np.tanh(np.exp(x) * y) + np.sqrt(abs(y))


def torch_pointwise(x: Any, y: Any) -> Any:
    return torch.tanh(torch.exp(x) * y) + torch.sqrt(abs(y))


def added(out: Any, i: Any, v: Any) -> Any:
    np.add.at(out, i, v)
    return out


def cases(small: bool) -> list[Case]:
    by = 64 if small else 1  # how much less there is of all
    long, side = (1 << 24) // by, 4096 // (8 if small else 1)
    found: list[Case] = []

    def case(name: str, plain: Function, other: Function, *arrays: np.ndarray) -> None:
        sizes = ", ".join("×".join(map(str, a.shape)) for a in arrays[:1])
        found.append(Case(f"{name} {sizes}", plain, other, arrays))

    x, square = rng(long), rng(side, side)
    case("copy", lambda x: x.copy(), lambda x: x.clone(), x)
    case("light", lambda x, y: x * 2 + y, lambda x, y: x * 2 + y, x, x[::-1].copy())
    case("pointwise", pointwise, torch_pointwise, x, x[::-1].copy())
    for rows, columns in ((262144, 64), (16384, 1024), (2048, 8192), (64, 262144)):
        case("softmax", softmax, lambda x: torch.softmax(x, -1), rng(max(1, rows // by), columns))
    rows = rng(16384 // by, 1024)
    case("layernorm", layernorm, lambda x: torch.layer_norm(x, x.shape[-1:]), rows)
    case("sum", lambda x: x.sum(), lambda x: x.sum(), x)
    case("argmax", lambda x: x.argmax(-1), lambda x: x.argmax(-1), rows)
    case("x.T*2+y", lambda x, y: x.T * 2 + y, lambda x, y: x.T * 2 + y, square, square)
    random = np.random.default_rng(1)
    some = random.integers(0, len(rows), 2 * len(rows))
    case("gather", lambda x, i: x[i], lambda x, i: x[i], rows, some)
    case("cumsum", lambda x: x.cumsum(-1), lambda x: x.cumsum(-1), rows)
    places = random.integers(0, 65536, long // 16)
    case("scatter-add", added, lambda x, i, v: x.index_put((i,), v, accumulate=True),
         np.zeros(65536, np.float32), places, rng(long // 16))  # fmt: skip
    case("sort", np.sort, lambda x: torch.sort(x, stable=True)[0], x[: long // 16])
    case("top 10", lambda x: tn.top_k(x, 10), lambda x: torch.topk(x, 10), rows)
    for n in (side // 4, side):
        case("product", lambda a, b: a @ b, lambda a, b: a @ b, rng(n, n), rng(n, n))
    half = square.astype(np.float16)
    case("product, f16", lambda a, b: a @ b, lambda a, b: a @ b, half, half)
    case("with a vector", lambda a, b: a @ b, lambda a, b: a @ b, square, square[0])
    case("batched", lambda a, b: a @ b, lambda a, b: a @ b,
         rng(256 // by, 128, 128), rng(256 // by, 128, 128))  # fmt: skip
    return found


def clock(call: Callable[[], Any], finish: Callable[[], Any] = int) -> float:
    """Microseconds of one call."""
    call()
    finish()
    began = time.perf_counter()
    call()
    finish()
    count = int(min(100, max(1, WORK / (time.perf_counter() - began))))
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(count):
            call()
        finish()
        best = min(best, (time.perf_counter() - began) / count)
    return best * 1e6


def on_device(program: Any, arrays: tuple[np.ndarray, ...]) -> float:
    """A program whose arrays lie there."""
    program(arrays)
    found = program.enter()
    run = program.execution(found.room, False)
    return clock(lambda: run.run(found.items), lambda: run.read([]))


def measured(case: Case, name: str) -> tuple[dict[str, float], str]:
    """All figures of a case, and what there is to say of it."""
    arrays = case.arrays
    graph = tn.trace(case.plain, *arrays)
    program: Any = backend_named(name).compile(graph)
    cpu: Any = backend_named("cpu").compile(graph)
    row = {
        "device": on_device(program, arrays),
        "call": clock(lambda: program(arrays)),
        "cpu": clock(lambda: cpu(arrays)),
        "numpy": clock(lambda: case.plain(*arrays)),
    }
    if torch is not None and torch.cuda.is_available():
        there = [torch.from_numpy(a).cuda() for a in arrays]
        row["torch"] = clock(lambda: case.other(*there), torch.cuda.synchronize)
    reasons = dict.fromkeys(f"{s.op} by the host: {s.reason}" for s in program.plan.host_steps)
    return row, "; ".join(reasons)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--number", type=int, default=0, help="of the adapter")
    parser.add_argument("--json")
    parser.add_argument("cases", nargs="*")
    asked = parser.parse_args()
    adapter = adapter_of(asked.number)
    name = f"webgpu:{asked.number}" if asked.number else "webgpu"
    small = asked.small or adapter.kind_name == "CPU"
    print(f"{adapter.name}, {adapter.driver}; µs, in brackets how many times those of the device")
    heads = ["device", "call", "cpu", "numpy", "torch"]
    print(f"{'':26s}" + "".join(f"{h:>19s}" for h in heads), flush=True)
    found: dict[str, dict[str, float]] = {}
    for case in cases(small):
        if asked.cases and not any(part in case.name for part in asked.cases):
            continue
        row, said = measured(case, name)
        found[case.name] = row
        cells = [
            f"{row[h]:11.1f}" + (f" ({row[h] / row['device']:5.2f})" if h != "device" else "")
            for h in heads
            if h in row
        ]
        print(f"{case.name:26s}" + "".join(f"{c:>19s}" for c in cells), said, flush=True)
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as file:
            json.dump({"adapter": adapter.name, "small": small, "cases": found}, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
