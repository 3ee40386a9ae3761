"""Convolutions, pooling and sums over windows beside torch: interleaved rounds, minima.

    python benchmarks/conv.py [--threads N] [--rounds N] [--explain] [case ...]

On one thread, which is the default, the processor's time is told; on several, the clock's.

Figures are µs and, for torch, how many times longer than ours it took in the same run; below 0.9
stands a '<'. Both hand out a new array. Results are compared with torch's. Where torch has no such
function (np.convolve), it runs the nearest one of its own and NumPy stands beside it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod
from time import perf_counter_ns, thread_time_ns
from typing import Any

import numpy as np
import torch

import tenfold as tn

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)
LOST = 0.9


@dataclass
class Case:
    """A jitted function with its arguments, and what the peers run."""

    name: str
    run: Any
    arguments: tuple[Array, ...]
    peers: dict[str, Callable[[], Any]]
    work: float = 0.0  # multiplications
    best: dict[str, float] = field(default_factory=dict)


def drawn(*shape: int) -> Array:
    return RNG.standard_normal(shape, np.float32)


def layer(name: str, x: tuple[int, ...], w: tuple[int, ...], **given: Any) -> Case:
    """A convolution as a layer of a network has it."""
    image, kernel = drawn(*x), drawn(*w)
    rank = len(x) - 2
    function = (torch.conv1d, torch.conv2d, torch.conv3d)[rank - 1]
    stride, padding = given.get("strides", 1), given.get("padding", 0)
    dilation, groups = given.get("dilation", 1), given.get("groups", 1)
    left, right = torch.from_numpy(image), torch.from_numpy(kernel)

    def peer() -> Any:
        return function(left, right, None, stride, padding, dilation, groups)

    run = tn.jit(
        lambda x, w: tn.conv(
            x, w, strides=stride, padding=padding, dilation=dilation, groups=groups
        )
    )
    work = prod(peer().shape) * prod(w[1:])
    return Case(name, run, (image, kernel), {"torch": peer}, work)


def transposed(name: str, x: tuple[int, ...], w: tuple[int, ...], stride: int, pad: int) -> Case:
    """A transposed convolution; torch has the kernel's channels the other way about."""
    image, kernel = drawn(*x), drawn(*w)
    left, right = torch.from_numpy(image), torch.from_numpy(kernel)

    def peer() -> Any:
        return torch.conv_transpose2d(left, right, None, stride, pad)

    run = tn.jit(lambda x, w: tn.conv_transpose(x, w, strides=stride, padding=pad))
    return Case(name, run, (image, kernel), {"torch": peer}, prod(x[2:]) * x[0] * prod(w))


def block(name: str, x: tuple[int, ...], w: tuple[int, ...]) -> Case:
    """Two convolutions, each with bias and relu, and the residual: ResNet's block."""
    image, first, second = drawn(*x), drawn(*w), drawn(*w)
    bias = drawn(w[0], 1, 1)
    left, one, two = (torch.from_numpy(a) for a in (image, first, second))
    flat = torch.from_numpy(bias.reshape(-1))

    def ours(x: Any, a: Any, b: Any, bias: Any) -> Any:
        h = np.maximum(tn.conv(x, a, padding=1) + bias, 0)
        return np.maximum(tn.conv(h, b, padding=1) + bias + x, 0)

    def peer() -> Any:
        h = torch.relu_(torch.conv2d(left, one, flat, 1, 1))
        return torch.relu_(torch.conv2d(h, two, flat, 1, 1).add_(left))

    work = 2 * x[0] * prod(x[2:]) * prod(w)
    return Case(name, tn.jit(ours), (image, first, second, bias), {"torch": peer}, work)


def pool(name: str, kind: str, x: tuple[int, ...], window: int, stride: int) -> Case:
    image = drawn(*x)
    given = torch.from_numpy(image)
    function = torch.max_pool2d if kind == "max" else torch.nn.functional.avg_pool2d

    def peer() -> Any:
        return function(given, window, stride)

    run = tn.jit(
        lambda x: tn.reduce_window(x, kind, (1, 1, window, window), strides=(1, 1, stride, stride))
    )
    return Case(name, run, (image,), {"torch": peer})


def sums(name: str, shape: tuple[int, int], window: int) -> Case:
    """Sums over sliding windows; torch's nearest is a mean over them times their size."""
    image = drawn(*shape)
    given = torch.from_numpy(image)[None, None]

    def ours(x: Any) -> Any:
        seen = np.lib.stride_tricks.sliding_window_view(x, (window, window))
        return seen.sum(axis=(2, 3))

    def peer() -> Any:
        return torch.nn.functional.avg_pool2d(given, window, 1, divisor_override=1)[0, 0]

    return Case(name, tn.jit(ours), (image,), {"torch": peer, "numpy": lambda: ours(image)})


def line(name: str, n: int, m: int) -> Case:
    a, v = drawn(n), drawn(m)
    left, right = torch.from_numpy(a)[None, None], torch.from_numpy(v[::-1].copy())[None, None]

    def peer() -> Any:
        return torch.conv1d(left, right, None, 1, m - 1)[0, 0]

    peers = {"torch": peer, "numpy": lambda: np.convolve(a, v)}
    return Case(name, tn.jit(lambda a, v: np.convolve(a, v)), (a, v), peers, n * m)


def cases() -> Iterator[Case]:
    for n in (1, 8):
        yield layer(f"3x3 64>64 56² ×{n}", (n, 64, 56, 56), (64, 64, 3, 3), padding=1)
        yield layer(f"7x7/2 3>64 224² ×{n}", (n, 3, 224, 224), (64, 3, 7, 7), strides=2, padding=3)
        yield layer(f"1x1 256>64 56² ×{n}", (n, 256, 56, 56), (64, 256, 1, 1))
        yield layer(
            f"3x3/2 128>128 56² ×{n}", (n, 128, 56, 56), (128, 128, 3, 3), strides=2, padding=1
        )
        yield layer(f"3x3 512>512 7² ×{n}", (n, 512, 7, 7), (512, 512, 3, 3), padding=1)
        yield layer(
            f"depthwise 3x3 144 56² ×{n}", (n, 144, 56, 56), (144, 1, 3, 3), padding=1, groups=144
        )
        yield layer(
            f"depthwise 3x3/2 144 56² ×{n}",
            (n, 144, 56, 56),
            (144, 1, 3, 3),
            strides=2,
            padding=1,
            groups=144,
        )
        yield layer(
            f"depthwise 5x5 480 14² ×{n}", (n, 480, 14, 14), (480, 1, 5, 5), padding=2, groups=480
        )
        yield layer(
            f"dilated 3x3·2 64>64 56² ×{n}", (n, 64, 56, 56), (64, 64, 3, 3), padding=2, dilation=2
        )
        yield layer(
            f"32 groups 3x3 128 28² ×{n}", (n, 128, 28, 28), (128, 4, 3, 3), padding=1, groups=32
        )
        yield layer(
            f"2 groups 3x3 128 28² ×{n}", (n, 128, 28, 28), (128, 64, 3, 3), padding=1, groups=2
        )
        yield transposed(
            f"transposed 4x4/2 128>64 28² ×{n}", (n, 128, 28, 28), (128, 64, 4, 4), 2, 1
        )
        yield transposed(f"transposed 2x2/2 64>32 56² ×{n}", (n, 64, 56, 56), (64, 32, 2, 2), 2, 0)
        yield layer(f"1-D 5 128>128 1024 ×{n}", (n, 128, 1024), (128, 128, 5), padding=2)
        yield layer(f"3-D 3³ 16>32 8x28² ×{n}", (n, 16, 8, 28, 28), (32, 16, 3, 3, 3), padding=1)
        yield block(f"block 64 56² ×{n}", (n, 64, 56, 56), (64, 64, 3, 3))
        for kind in ("max", "mean"):
            yield pool(f"{kind} 2x2/2 64 112² ×{n}", kind, (n, 64, 112, 112), 2, 2)
            yield pool(f"{kind} 3x3/2 64 112² ×{n}", kind, (n, 64, 112, 112), 3, 2)
            yield pool(f"{kind} 3x3/1 64 56² ×{n}", kind, (n, 64, 56, 56), 3, 1)
    yield sums("sum 3x3 1024²", (1024, 1024), 3)
    yield sums("sum 9x9 1024²", (1024, 1024), 9)
    yield line("convolve 1e5 31", 100_000, 31)
    yield line("convolve 1000 5", 1000, 5)


def measure(case: Case, rounds: int, now: Callable[[], int]) -> None:
    ours = case.run
    given = case.arguments
    result = ours(*given)
    wanted = np.asarray(case.peers["torch"]())
    assert result.shape == wanted.shape, (case.name, result.shape, wanted.shape)
    assert np.allclose(result, wanted, rtol=1e-3, atol=1e-3 * float(np.abs(wanted).max())), (
        case.name
    )
    runs = {"tenfold": lambda: ours(*given), **case.peers}
    for run in runs.values():
        run()
    for _ in range(rounds):
        for name, run in runs.items():
            start = now()
            run()
            took = (now() - start) / 1000
            case.best[name] = min(took, case.best.get(name, took))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help="names, or how they begin")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--explain", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    tn.config.threads = options.threads
    now = thread_time_ns if options.threads == 1 else perf_counter_ns
    torch.set_grad_enabled(False)
    ratios = []
    print(f"{'case':32}{'tenfold':>10}{'Gmul/s':>8}  peers, × ours")
    for case in cases():
        if options.cases and not any(case.name.startswith(c) for c in options.cases):
            continue
        measure(case, options.rounds, now)
        own = case.best.pop("tenfold")
        row = "  ".join(
            f"{n} {t / own:5.2f}{'<' if t / own < LOST else ' '}" for n, t in case.best.items()
        )
        ratios.append(case.best["torch"] / own)
        print(f"{case.name:32}{own:10.1f}{case.work / own / 1000:8.1f}  {row}", flush=True)
        if options.explain:
            print(case.run.plan(*case.arguments).explain())
    print(f"torch's time over ours, geometric mean: {np.exp(np.log(ratios).mean()):.2f}")


if __name__ == "__main__":
    main()
