"""Kernels, routines, calls and loops on a WebGPU adapter, beside NumPy, the CPU backend, torch and
our own CUDA backend on the same GPU, and tinygrad's WEBGPU on the same adapter.

    python benchmarks/webgpu.py [--small] [--number 1] [--peers torch,…] [--json FILE] [case …]

`device` is what an adapter takes for a program whose arrays lie there: several runs in a row, then
one wait. `call` is a call of NumPy's arrays, with the ways there and back; `kept` one whose arrays
and results stay. All are the best of three. On an adapter that is a CPU arrays are small: a few
thousand elements for each that a GPU has. Peers that are not there are left out; a row says if the
host or the CPU has a part in it. What is printed last is the geometric mean of a peer's times by
ours, over the cases that it has.

tinygrad (`pip install tinygrad`) asks for Dawn's library: that of `dawn-python` 0.3.0 does, named
by WEBGPU_PATH. It picks its adapter itself. Its own sorts take minutes to compile for large arrays.
"""

from __future__ import annotations

import sys

sys.path.pop(0)  # this folder: torch is to find NVIDIA's package `cuda`, not the file

import argparse
import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tenfold as tn
from tenfold.backends.registry import backend_named, backend_record
from tenfold.backends.webgpu.native.adapter import adapter_of

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

Function = Callable[..., Any]
WORK = 0.1  # seconds of a measurement, about
PEERS = ("kept", "call", "cpu", "numpy", "torch", "cuda", "tinygrad")


@dataclass(frozen=True)
class Case:
    """A program in NumPy's words, in torch's and in tinygrad's."""

    name: str
    plain: Function
    other: Function | None
    tiny: Function | None
    arrays: tuple[Any, ...]
    parts: int = 1  # that its figures are divided by


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


def tiny_pointwise(x: Any, y: Any) -> Any:
    return (x.exp() * y).tanh() + y.abs().sqrt()


def added(out: Any, i: Any, v: Any) -> Any:
    np.add.at(out, i, v)
    return out


def chain(x: Any) -> Any:
    """A hundred kernels, each of which waits for the one before."""
    return tn.fori_loop(0, 100, lambda i, c: c * np.float32(0.5) + np.float32(1), x)


def torch_chain(x: Any) -> Any:
    for _ in range(100):
        x = torch.add(1.0, x, alpha=0.5)
    return x


def tiny_chain(x: Any) -> Any:
    for _ in range(100):
        x = (x * 0.5 + 1).contiguous()
    return x


def cases(small: bool) -> list[Case]:
    by = 64 if small else 1  # how much less there is of all
    long, side = (1 << 24) // by, 4096 // (8 if small else 1)
    found: list[Case] = []

    def case(
        name: str, plain: Function, other: Function, tiny: Function | None, *arrays: np.ndarray,
        parts: int = 1,
    ) -> None:  # fmt: skip
        sizes = ", ".join("×".join(map(str, a.shape)) for a in arrays[:1])
        found.append(Case(f"{name} {sizes}", plain, other, tiny, arrays, parts))

    def alike(name: str, function: Function, *arrays: np.ndarray) -> None:
        case(name, function, function, function, *arrays)

    alike("call", lambda x: x * 2, rng(8))
    case("each of 100", chain, torch_chain, tiny_chain, rng(1024), parts=100)
    found.append(rollout())
    x, square = rng(long), rng(side, side)
    case("copy", lambda x: x.copy(), lambda x: x.clone(), lambda x: x.clone(), x)
    alike("light", lambda x, y: x * 2 + y, x, x[::-1].copy())
    case("pointwise", pointwise, torch_pointwise, tiny_pointwise, x, x[::-1].copy())
    for rows, columns in ((262144, 64), (16384, 1024), (2048, 8192), (64, 262144)):
        case("softmax", softmax, lambda x: torch.softmax(x, -1), lambda x: x.softmax(-1),
             rng(max(1, rows // by), columns))  # fmt: skip
    rows = rng(16384 // by, 1024)
    case("layernorm", layernorm, lambda x: torch.layer_norm(x, x.shape[-1:]),
         lambda x: x.layernorm(), rows)  # fmt: skip
    alike("sum", lambda x: x.sum(), x)
    alike("argmax", lambda x: x.argmax(-1), rows)
    alike("x.T*2+y", lambda x, y: x.T * 2 + y, square, square)
    random = np.random.default_rng(1)
    some = random.integers(0, len(rows), 2 * len(rows))
    alike("gather", lambda x, i: x[i], rows, some)
    case("concatenate", lambda x, y: np.concatenate([x, y], 1), lambda x, y: torch.cat([x, y], 1),
         lambda x, y: x.cat(y, dim=1), rows, rows + 1)  # fmt: skip
    alike("cumsum", lambda x: x.cumsum(-1), rows)
    places = random.integers(0, 65536, long // 16)
    case("scatter-add", added, lambda x, i, v: x.index_put((i,), v, accumulate=True),
         (lambda x, i, v: x.scatter_reduce(0, i, v, "sum")) if small else None,
         np.zeros(65536, np.float32), places, rng(long // 16))  # fmt: skip
    case("sort", np.sort, lambda x: torch.sort(x, stable=True)[0], None, x[: long // 16])
    case("top 10", lambda x: tn.top_k(x, 10), lambda x: torch.topk(x, 10), None, rows)
    for n in (side // 4, side):
        alike("product", lambda a, b: a @ b, rng(n, n), rng(n, n))
    half = square.astype(np.float16)
    alike("product, f16", lambda a, b: a @ b, half, half)
    alike("with a vector", lambda a, b: a @ b, square, square[0])
    alike("batched", lambda a, b: a @ b, rng(256 // by, 128, 128), rng(256 // by, 128, 128))
    return found


def rollout() -> Case:
    """Two queries of the prover with their corruptions, one batch of a rollout's program."""
    from tenfold.apps.prover.input.load import load
    from tenfold.apps.prover.input.program import program_of
    from tenfold.apps.prover.input.queries import queries, sample
    from tenfold.apps.prover.rollout.engine import lanes_of
    from tenfold.apps.prover.rollout.loop import roll
    from tenfold.apps.prover.rollout.policy import random_weights
    from tenfold.apps.prover.rollout.room import Room
    from tenfold.apps.prover.rollout.run import Rollout, Search, options_of
    from tenfold.apps.prover.settings import Settings

    name = "family:families=40"
    data = load(name)
    program = program_of(data)
    asked = sample(queries(data, program, ("head", "tail"))[:2], 50, 0)
    lanes = [lane for one in asked for lane in lanes_of(one, Settings(name, engine="rollout"))]
    room = Room.of(program, 64, 10)
    made = Rollout(program, Search(random_weights(program, 64, 0), room=room))
    options = options_of(made.search, room, 128)
    given = (made.asked(lanes, room), made.tables, made.search.weights)
    graph = roll.graph("compiled", *given, **options)
    return Case("prover's rollout", lambda: graph, None, None, tuple(_leaves(given)))


def _leaves(value: Any) -> list[np.ndarray]:
    """The arrays in tuples."""
    if isinstance(value, tuple):
        return [leaf for one in value for leaf in _leaves(one)]
    return [] if value is None else [np.asarray(value)]


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
    made = clock(lambda: run.run(found.items), lambda: run.read([]))
    program.rooms.append(found)
    return made


def kept(program: Any, name: str, arrays: tuple[np.ndarray, ...]) -> float:
    """A program whose arrays and results lie there, as its callers have them."""
    there, last = [tn.device_put(a, name) for a in arrays], [None]

    def call() -> None:
        last[:] = program.answer_kept(there)[:1]

    return clock(call, tn.device_put(np.zeros(1, np.float32), name).numpy)


def by_cuda(case: Case) -> float:
    """Our own backend, called as its users do."""
    assert case.other is not None
    jitted = tn.jit(case.plain, backend="cuda", keep=True)
    there = [tn.device_put(a, "cuda") for a in case.arrays]
    jitted(*there)
    jitted.ready(60)
    return clock(lambda: jitted(*there), torch.cuda.synchronize)


def by_tinygrad(case: Case) -> float:
    from tinygrad import Device, Tensor, TinyJit

    def given(a: np.ndarray) -> Any:
        a = a.astype(np.int32) if a.dtype == np.int64 else a  # WGSL has no wider ones there
        return Tensor(a, device="WEBGPU").realize()

    assert case.tiny is not None
    there, tiny = [given(a) for a in case.arrays], case.tiny
    jitted: Any = TinyJit(lambda *x: tiny(*x).realize())
    for _ in range(3):
        jitted(*there)
    return clock(lambda: jitted(*there), Device["WEBGPU"].synchronize)


def by_torch(case: Case) -> float:
    assert case.other is not None
    there, other = [torch.from_numpy(a).cuda() for a in case.arrays], case.other
    return clock(lambda: other(*there), torch.cuda.synchronize)


def measured(case: Case, name: str, peers: Sequence[str]) -> tuple[dict[str, float], str]:
    """All figures of a case, and what there is to say of it."""
    arrays = case.arrays
    graph = case.plain() if case.other is None else tn.trace(case.plain, *arrays)
    program: Any = backend_named(name).compile(graph)
    ways: dict[str, Callable[[], float]] = {
        "kept": lambda: kept(program, name, arrays),
        "call": lambda: clock(lambda: program(arrays)),
        "cpu": lambda: clock(partial(backend_named("cpu").compile(graph), arrays)),
    }
    if case.other is not None:
        ways |= {
            "numpy": lambda: clock(lambda: case.plain(*arrays)),
            "torch": lambda: by_torch(case),
            "cuda": lambda: by_cuda(case),
        }
    if case.tiny is not None:
        ways["tinygrad"] = lambda: by_tinygrad(case)
    said = dict.fromkeys(f"{op}: {why}" for op, why, _ in program.fallbacks())
    row = {"device": on_device(program, arrays)}
    for peer in peers:
        if peer in ways:
            try:
                row[peer] = ways[peer]()
            except Exception as error:
                said[f"{peer}: {type(error).__name__}: {str(error)[:100]}"] = None
    return {key: value / case.parts for key, value in row.items()}, "; ".join(said)


def here() -> list[str]:
    """The peers that can be had."""
    cuda = torch is not None and torch.cuda.is_available()
    ours = cuda and backend_record("cuda").missing() is None
    missing = {"torch": not cuda, "cuda": not ours, "tinygrad": "WEBGPU_PATH" not in os.environ}
    return [peer for peer in PEERS if not missing.get(peer)]


def means(found: dict[str, dict[str, float]]) -> dict[str, float]:
    """How many times ours a peer's figures are, in geometric mean: tinygrad's arrays stay, torch's
    and CUDA's too."""
    made = {}
    for peer in PEERS[1:]:
        ratios = [row[peer] / row["device"] for row in found.values() if peer in row]
        if ratios:
            made[peer] = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--number", type=int, default=0, help="of the adapter")
    parser.add_argument("--peers", default=",".join(here()))
    parser.add_argument("--json")
    parser.add_argument("cases", nargs="*")
    asked = parser.parse_args()
    adapter = adapter_of(asked.number)
    name = f"webgpu:{asked.number}" if asked.number else "webgpu"
    small = asked.small or adapter.kind_name == "CPU"
    print(f"{adapter.name}, {adapter.driver}; µs, in brackets how many times those of the device")
    peers = asked.peers.split(",")
    print(f"{'':26s}{'device':>11s}" + "".join(f"{h:>19s}" for h in peers), flush=True)
    found: dict[str, dict[str, float]] = {}
    for case in cases(small):
        if asked.cases and not any(part in case.name for part in asked.cases):
            continue
        row, said = measured(case, name, peers)
        found[case.name] = row
        cells = [
            f"{row[h]:11.1f} ({row[h] / row['device']:6.2f})" if h in row else "" for h in peers
        ]
        line = f"{case.name:26s}{row['device']:11.1f}" + "".join(f"{c:>19s}" for c in cells)
        print(line.rstrip(), said, flush=True)
    for peer, ratio in means(found).items():
        print(f"{peer}: {ratio:.2f} times ours in geometric mean")
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as file:
            json.dump({"adapter": adapter.name, "small": small, "cases": found}, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
