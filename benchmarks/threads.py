"""Two threads beside one, what cutting work costs, and many callers at once.

    python benchmarks/threads.py [--threads N] [--rounds N] [case ...]

Calls take turns, with one thread and with several, and the least time of each counts: on a machine
that others use, two processors are seldom free at once, and a median says more of them than of us.
GB/s are bytes read and written. 'hot' is the cost of cutting work while workers spin, 'cold' while
they sleep.

'callers': calls a second of so many Python threads, against the best of any number of them; and the
processor's time of a call, which no other process disturbs.
"""

from __future__ import annotations

import argparse
import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tenfold as tn
from tenfold.backends.cpu.link.loader import load
from tenfold.backends.cpu.target import host_target
from tenfold.backends.cpu.threads.pool import thread_pool
from tenfold.backends.llvm.assemble import assemble

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)
CALLERS = (1, 2, 4, 16)


def draw(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype("f4")


def chain(x: Array) -> Any:
    return np.tanh(np.exp(-x * x) + 1) / (1 + np.exp(-x))


def softmax(x: Array) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def layernorm(x: Array) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)


def update(x: Array, y: Array) -> None:
    """Written into an argument: no fresh memory, whose pages the system clears one by one."""
    x[:] = y * 2 + 1


CASES: dict[str, tuple[Callable[..., Any], tuple[Array, ...], int]] = {  # and bytes
    "chain 1e5": (chain, (draw(10**5),), 8 * 10**5),
    "chain 1e7": (chain, (draw(10**7),), 8 * 10**7),
    "copy 1e6": (update, (draw(10**6), draw(10**6)), 8 * 10**6),
    "copy 1e7": (update, (draw(10**7), draw(10**7)), 8 * 10**7),
    "softmax 1024²": (softmax, (draw(1024, 1024),), 8 << 20),
    "softmax 16384×64": (softmax, (draw(16384, 64),), 8 << 20),
    "softmax 64×65536": (softmax, (draw(64, 65536),), 32 << 20),
    "layernorm 1024²": (layernorm, (draw(1024, 1024),), 8 << 20),
    "transpose 1024²": (lambda x: x.T * 2 + 1, (draw(1024, 1024),), 8 << 20),
    "sum 1e7": (lambda x: x.sum(), (draw(10**7),), 4 * 10**7),
    "max 1e7": (lambda x: x.max(), (draw(10**7),), 4 * 10**7),
    "column sums 1024²": (lambda x: x.sum(0), (draw(1024, 1024),), 4 << 20),
    "sort 1024 rows": (lambda x: np.sort(x, -1), (draw(1024, 1024),), 8 << 20),
}

# As many indices as threads, again and again, each of which waits for all others to be begun: so
# every thread takes part.
TEXT = """
declare i32 @tn_parallel_for(ptr, ptr, i64, ptr)
define internal i32 @meet(ptr %context, i64 %i, i64 %worker) {
  %threads.at = getelementptr i64, ptr %context, i64 8
  %threads = load i64, ptr %threads.at
  %before = atomicrmw add ptr %context, i64 1 monotonic
  %round = udiv i64 %before, %threads
  %next = add i64 %round, 1
  %all = mul i64 %next, %threads
  br label %wait
wait:
  %now = load atomic i64, ptr %context monotonic, align 8
  %met = icmp uge i64 %now, %all
  br i1 %met, label %end, label %wait
end:
  ret i32 0
}
define dso_local i32 @cut(ptr %context, i64 %threads, i64 %times) {
begin:
  br label %again
again:
  %turn = phi i64 [ 0, %begin ], [ %more, %again ]
  %done = call i32 @tn_parallel_for(ptr @meet, ptr %context, i64 %threads, ptr null)
  %more = add i64 %turn, 1
  %on = icmp slt i64 %more, %times
  br i1 %on, label %again, label %end
end:
  ret i32 %done
}
"""


def timed(call: Callable[..., object], *arguments: Any) -> float:
    start = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - start


def speed_ups(names: list[str], threads: int, rounds: int) -> None:
    print(f"{'':20}{'1 thread':>12}{f'{threads} threads':>12}{'speed-up':>10}{'GB/s':>8}")
    for name, (function, arrays, nbytes) in CASES.items():
        if names and not any(one in name for one in names):
            continue
        jitted = tn.jit(function, verify="off")
        times = 20 if nbytes < 1 << 24 else 3
        best: dict[int, float] = {}
        for _ in range(rounds):
            for number in (1, threads):
                tn.config.threads = number
                jitted(*arrays)
                found = min(timed(jitted, *arrays) for _ in range(times))
                best[number] = min(found, best.get(number, found))
        one, several = best[1] * 1e6, best[threads] * 1e6
        rate = nbytes / best[threads] / 1e9
        print(f"{name:20}{one:9.1f} µs{several:9.1f} µs{one / several:9.2f}×{rate:8.1f}")


def fork_and_join(threads: int, rounds: int) -> None:
    tn.config.threads = threads
    pool = thread_pool(host_target())
    pool.moment, before = 1 << 62, pool.moment  # workers are woken each time
    image = load([assemble(TEXT, host_target())], ["cut"], None, [pool.image])
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    cut, context = kind(image.address("cut")), np.zeros(16, np.int64)
    context[8] = threads
    hot, cold = [], []
    for _ in range(10 * rounds):
        time.sleep(0.002)  # workers sleep by now
        cold.append(timed(cut, context.ctypes.data, threads, 1))
        hot.append(timed(cut, context.ctypes.data, threads, 100) / 100)
    pool.moment = before
    print(f"fork and join of {threads} threads, all of which take part: ", end="")
    print(f"hot {min(hot) * 1e6:.2f} µs, cold {min(cold) * 1e6:.1f} µs")


def callers(threads: int, seconds: float) -> None:
    tn.config.threads = threads
    jitted, x = tn.jit(softmax, verify="off"), draw(512, 512)
    jitted(x)
    found: dict[int, list[float]] = {}
    for _ in range(3):
        for number in CALLERS:
            counts, until = [0] * number, time.perf_counter() + seconds

            def work(n: int, counts: list[int] = counts, until: float = until) -> None:
                while time.perf_counter() < until:
                    jitted(x)
                    counts[n] += 1

            before = time.process_time()
            running = [threading.Thread(target=work, args=(n,)) for n in range(number)]
            for thread in running:
                thread.start()
            for thread in running:
                thread.join()
            spent = (time.process_time() - before) / sum(counts)
            rate, least = found.get(number, [0.0, spent])
            found[number] = [max(rate, sum(counts) / seconds), min(least, spent)]
    best = max(rate for rate, _ in found.values())
    for number, (rate, spent) in found.items():
        print(
            f"{number:3} callers: {rate:7.0f} calls a second, {rate / best:.2f} of the best; "
            f"{spent * 1e6:.0f} µs of a processor's time each"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Two threads beside one.")
    parser.add_argument("names", nargs="*", metavar="case")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args()
    speed_ups(given.names, given.threads, given.rounds)
    if not given.names:
        fork_and_join(given.threads, given.rounds)
        callers(given.threads, 0.1 * given.rounds)


if __name__ == "__main__":
    main()
