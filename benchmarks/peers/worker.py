"""One peer in a process of its own. It reads orders, a line of JSON each, and answers each:

    {"prepare": CASE, "into": FILE}   compile and run the case; its results are saved
    {"time": SECONDS}                 call it for so long: the shortest call and the median
    {"copy": SECONDS, "streamed": N}  read and write N bytes in all by copies, likewise
    {"copies": SECONDS, "touched": N} bytes a second that all threads read and write together, each
                                      copying its share of N bytes over and over
    {"drop": true}                    forget it

Peers' pools of threads spin while they wait, and wreck each other's times in one process. In
processes of their own they sleep while another has its turn.
"""

from __future__ import annotations

import functools
import gc
import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns, sleep
from typing import Any

import numpy as np
from case import Array, Case
from groups import find

SETTLE = 60  # seconds


@dataclass
class Call:
    """`settle` has a peer finish what it does behind the first calls."""

    run: Callable[[], Any]
    settle: Callable[[], None] = lambda: None


class Absent(Exception):
    """The peer does not take part in a case."""


def tenfold(case: Case, given: Sequence[Array], threads: int) -> Call:
    import tenfold as tn

    own = case.own.get("tenfold")
    function = functools.partial(own, tn) if own else functools.partial(_array(case), np)
    compiled = tn.jit(lambda *arrays: function(*arrays))

    def settle() -> None:
        """Wait for what the first call has left to the background and to later calls."""
        end = perf_counter_ns() + int(SETTLE * 1e9)
        while compiled.certificate(*given).left and perf_counter_ns() < end:
            compiled(*given)
            sleep(0.01)

    return Call(lambda: compiled(*given), settle)


def numpy(case: Case, given: Sequence[Array], threads: int) -> Call:
    function = _array(case)
    return Call(lambda: function(np, *given))


def numexpr(case: Case, given: Sequence[Array], threads: int) -> Call:
    import numexpr

    numexpr.set_num_threads(threads)
    names, text = _own(case, "numexpr")
    arrays = dict(zip(names.split(), given, strict=True))
    return Call(lambda: numexpr.evaluate(text, arrays))


def jax(case: Case, given: Sequence[Array], threads: int) -> Call:
    import jax

    jax.config.update("jax_enable_x64", True)
    own = case.own.get("jax")
    function = functools.partial(own, jax) if own else functools.partial(_array(case), jax.numpy)
    arrays = [jax.numpy.asarray(a) for a in given]
    compiled = jax.jit(function)
    return Call(lambda: jax.block_until_ready(compiled(*arrays)))


def torch(case: Case, given: Sequence[Array], threads: int) -> Call:
    import torch

    torch.set_num_threads(threads)
    function, tensors = _own(case, "torch"), [torch.from_numpy(a) for a in given]

    def call() -> Any:
        with torch.inference_mode():
            return function(torch, *tensors)

    return Call(call)


def torch_compile(case: Case, given: Sequence[Array], threads: int) -> Call:
    import torch

    if case.own.get("torch.compile", True) is None:
        raise Absent
    torch.set_num_threads(threads)
    torch._dynamo.reset()
    function, tensors = _own(case, "torch"), [torch.from_numpy(a) for a in given]
    compiled = torch.compile(lambda *tensors: function(torch, *tensors))

    def call() -> Any:
        with torch.inference_mode():
            return compiled(*tensors)

    return Call(call)


def numba(case: Case, given: Sequence[Array], threads: int) -> Call:
    import numba as nb

    nb.set_num_threads(threads)
    options = {"fastmath": True, "error_model": "numpy", "parallel": threads > 1}
    compiled = _own(case, "numba")(nb, options)
    return Call(lambda: compiled(*given))


PEERS = {
    "tenfold": tenfold,
    "numpy": numpy,
    "numexpr": numexpr,
    "jax": jax,
    "torch": torch,
    "torch.compile": torch_compile,
    "numba": numba,
}


def _array(case: Case) -> Any:
    if case.array is None:
        raise Absent
    return case.array


def _own(case: Case, peer: str) -> Any:
    if case.own.get(peer) is None:
        raise Absent
    return case.own[peer]


def save(made: Any, into: str) -> None:
    results = made if isinstance(made, tuple | list) else [made]
    np.savez(into, *(np.asarray(r) for r in results))


def rounds(call: Callable[[], Any], seconds: float) -> dict[str, float]:
    """The shortest call and the median, in seconds. Short calls are timed in bunches."""
    once = 20_000
    for _ in range(3):  # the first is slow after a rest
        since = perf_counter_ns()
        call()
        once = min(once, perf_counter_ns() - since)
    bunch, taken = max(1, 20_000 // max(once, 1)), []
    end = perf_counter_ns() + int(seconds * 1e9)
    while True:
        since = perf_counter_ns()
        for _ in range(bunch):
            call()
        now = perf_counter_ns()
        taken.append((now - since) / bunch / 1e9)
        if now > end:
            return {"best": min(taken), "median": median(taken)}


def copy(streamed: int, threads: int, seconds: float) -> dict[str, float]:
    """Read and write so many bytes in all, a part on each thread, into memory that is there."""
    parts = [np.ones(streamed // 2 // threads, np.uint8) for _ in range(2 * threads)]
    with ThreadPoolExecutor(threads) as pool:
        return rounds(lambda: list(pool.map(np.copyto, parts[::2], parts[1::2])), seconds)


def copies(touched: int, threads: int, seconds: float) -> dict[str, float]:
    """What the memory gives that holds so many bytes: threads do not wait for each other."""
    parts = [np.ones(touched // 2 // threads, np.uint8) for _ in range(2 * threads)]
    turns = max(1, int(seconds * 2e10 / touched))

    def over_and_over(source: Any, target: Any) -> None:
        for _ in range(turns):
            np.copyto(target, source)

    with ThreadPoolExecutor(threads) as pool:
        taken = []
        for _ in range(5):
            since = perf_counter_ns()
            list(pool.map(over_and_over, parts[::2], parts[1::2]))
            taken.append((perf_counter_ns() - since) / 1e9)
    return {"rate": turns * touched / min(taken)}


def answer(order: dict[str, Any], peer: str, threads: int, calls: list[Call]) -> dict[str, Any]:
    if "prepare" in order:
        case = find(order["prepare"])
        given = case.inputs(np.random.default_rng(7))
        since = perf_counter_ns()
        calls.append(PEERS[peer](case, given, threads))
        made = calls[0].run()
        first = (perf_counter_ns() - since) / 1e9
        save(made, order["into"])
        calls[0].settle()
        settled = (perf_counter_ns() - since) / 1e9
        streamed = sum(a.nbytes for a in (*given, np.asarray(made))) if case.streams else 0
        return {"first": first, "settled": settled, "streamed": streamed}
    if "time" in order:
        return rounds(calls[0].run, order["time"])
    if "copy" in order:
        return copy(order["streamed"], threads, order["copy"])
    if "copies" in order:
        return copies(order["touched"], threads, order["copies"])
    calls.clear()
    gc.collect()
    return {}


def main(peer: str, threads: int) -> None:
    calls: list[Call] = []
    out, sys.stdout = sys.stdout, sys.stderr  # what peers print is no answer
    for line in sys.stdin:
        try:
            found = answer(json.loads(line), peer, threads, calls)
        except (Absent, ImportError):
            found = {"absent": True}
        except Exception as error:
            found = {"failed": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(found), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
