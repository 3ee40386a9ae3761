"""One program of NPBench, run by one system in this process: see `npbench.py`, which starts it.

    python benchmarks/npbench_program.py JOB

JOB is a `Job` as JSON. The last line printed is what was found, as JSON.
"""

from __future__ import annotations

import json
import re
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

STEADY = 0.5  # seconds for calls after the first
CALLS = 50
RIGHT = 1e-5  # of the largest element, of a body under jax.jit


@dataclass
class Job:
    """What to run. `way` is numpy, jax, jax-body, numba, or for Tenfold plain, static, convert."""

    checkout: str
    name: str
    way: str
    sizes: dict[str, Any]
    answers: str  # a file: NumPy writes it, the others read it
    verify: str
    compile: str
    loaded: bool  # Tenfold has compiled another function before


@dataclass
class Program:
    """A program as NPBench's own description of it says."""

    info: dict[str, Any]

    @property
    def module(self) -> str:
        place = self.info["relative_path"].replace("/", ".")
        return f"npbench.benchmarks.{place}.{self.info['module_name']}"

    def arguments(self, sizes: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name, in the order of the function."""
        known = {**self.info["parameters"]["S"], **sizes}
        init = self.info.get("init")
        if init:
            made = getattr(import_module(self.module), init["func_name"])
            results = made(*(known[name] for name in init["input_args"]))
            names = init["output_args"]
            known.update(zip(names, results if len(names) > 1 else [results], strict=True))
        return {name: known[name] for name in self.info["input_args"]}

    def function(self, postfix: str) -> Callable[..., Any]:
        """A version of the program."""
        found: Callable[..., Any] = getattr(
            import_module(f"{self.module}_{postfix}"), self.info["func_name"]
        )
        return found


def copied(arguments: dict[str, Any]) -> list[Any]:
    return [a.copy() if isinstance(a, np.ndarray) else a for a in arguments.values()]


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = run()
    return result, time.perf_counter() - start


def steady(run: Callable[[list[Any]], Any], arguments: dict[str, Any]) -> float:
    """The median time of a call, each on fresh copies."""
    times: list[float] = []
    end = time.perf_counter() + STEADY
    while not times or (time.perf_counter() < end and len(times) < CALLS):
        given = copied(arguments)
        times.append(timed(lambda given=given: run(given))[1])  # type: ignore[misc]
    return float(np.median(times))


def nudged(value: Any) -> Any:
    """An array of floats moved up by one ulp; anything else as it is."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
        return value * (1 + np.finfo(value.dtype).eps)
    return value


def arrays_in(value: Any) -> list[np.ndarray[Any, Any]]:
    """The returned values, as a flat list."""
    if value is None:
        return []
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in arrays_in(part)]
    return [np.asarray(value)]


def worst(found: list[np.ndarray[Any, Any]], expected: list[np.ndarray[Any, Any]]) -> float:
    """The largest error, relative to the largest element of its array; inf where forms differ."""
    if len(found) != len(expected):
        return float("inf")
    most = 0.0
    for one, other in zip(found, expected, strict=True):
        if one.shape != other.shape:
            return float("inf")
        if not one.size:
            continue
        kind = np.promote_types(one.dtype, np.float64)
        with np.errstate(all="ignore"):
            a, b = one.astype(kind), other.astype(kind)
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            scale = np.abs(b[np.isfinite(b)]).max(initial=0.0) or 1.0
            error = np.where(same, 0.0, np.abs(a - b) / scale)
        most = max(most, float("inf") if np.isnan(error).any() else float(error.max()))
    return most


def run_numpy(program: Program, job: Job) -> dict[str, Any]:
    arguments = program.arguments(job.sizes)
    function = program.function("numpy")
    given = copied(arguments)
    result, first = timed(lambda: function(*given))
    written = [
        n
        for n, (name, old) in enumerate(arguments.items())
        if isinstance(old, np.ndarray)
        and (name in program.info["output_args"] or given[n].tobytes() != old.tobytes())
    ]
    answers = [*arrays_in(result), *(given[n] for n in written)]
    moved = [nudged(a) for a in copied(arguments)]
    spread = [*arrays_in(function(*moved)), *(moved[n] for n in written)]
    np.savez(job.answers, *answers, written=np.array(written, dtype=np.int64))
    return {
        "first": first,
        "steady": steady(lambda given: function(*given), arguments),
        "spread": worst(spread, answers),
        "written": [list(arguments)[n] for n in written],
    }


def answers_of(job: Job) -> tuple[list[np.ndarray[Any, Any]], list[int]]:
    with np.load(job.answers) as kept:
        return (
            [kept[f"arr_{n}"] for n in range(len(kept.files) - 1)],
            [int(n) for n in kept["written"]],
        )


def jitted_by(program: Program, job: Job, arguments: dict[str, Any]) -> Any:
    """The program under `tn.jit`, as the job's way has it."""
    import tenfold as tn

    counts = [n for n, a in enumerate(arguments.values()) if isinstance(a, (int, np.integer))]
    return tn.jit(
        program.function("numpy"),
        static=() if job.way == "plain" else tuple(counts),
        control="convert" if job.way == "convert" else None,
        verify=job.verify,
        compile=job.compile,
    )


def run_tenfold(program: Program, job: Job) -> dict[str, Any]:
    from tenfold import jit

    arguments = program.arguments(job.sizes)
    expected, written = answers_of(job)
    jitted = jitted_by(program, job, arguments)
    if job.loaded:
        jit(lambda x: x + 1)(np.ones(1))

    def answers() -> list[np.ndarray[Any, Any]]:
        given = copied(arguments)
        return [*arrays_in(jitted(*given)), *(given[n] for n in written)]

    with warnings.catch_warnings(record=True) as told:  # a plan may be refuted by a later call
        warnings.simplefilter("always")
        used = time.process_time()
        found, first = timed(answers)
        used = time.process_time() - used
        given = copied(arguments)
        state = state_of(jitted, given)
        again = answers()
        later = steady(lambda given: jitted(*given), arguments)
    same = [a.tobytes() == b.tobytes() for a, b in zip(found, again, strict=True)]
    return {
        "first": first,
        "processor": used,
        "error": worst(found, expected),
        "single": any(a.dtype in (np.float32, np.complex64) for a in expected),
        "dtypes": [str(a.dtype) for a in found] == [str(a.dtype) for a in expected],
        "repeats": all(same),
        "steady": later,
        "warnings": [f"{w.category.__name__}: {w.message}" for w in told],
        "state": state,
        "state_later": state_of(jitted, given),
        "nodes": len(jitted.trace(*given).nodes),
        **kernels_of(jitted, given),
    }


def kernels_of(jitted: Any, given: list[Any]) -> dict[str, Any]:
    """The distinct kernels of the plan, and the rounds of each loop that was found in it."""
    if jitted.options.compile == "never":
        return {"kernels": 0, "rounds": []}
    plan = jitted.plan(*given)
    rounds = re.findall(r"(\d+) rounds found", plan.explain())
    return {"kernels": len(plan.kernels), "rounds": [int(count) for count in rounds]}


def state_of(jitted: Any, given: list[Any]) -> str:
    """Of the certificate of the plan; where nothing is compiled there is none."""
    certificate = None if jitted.options.compile == "never" else jitted.certificate(*given)
    return "none" if certificate is None else str(certificate.state)


def jax_body(program: Program, arguments: dict[str, Any]) -> Callable[..., Any]:
    """NumPy's body under `jax.jit`: its module's `np` is jax.numpy, its integers are static."""
    import jax

    function = program.function("numpy")
    function.__globals__["np"] = jax.numpy
    counts = [n for n, a in enumerate(arguments.values()) if isinstance(a, (int, np.integer))]
    return jax.jit(function, static_argnums=counts)


def run_jax(program: Program, job: Job) -> dict[str, Any]:
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", True)
    jax.block_until_ready(jax.numpy.zeros(1) + 1)  # the client is made
    arguments = program.arguments(job.sizes)
    body = job.way == "jax-body"
    function = jax_body(program, arguments) if body else program.function("jax")

    def taken(arguments: Sequence[Any]) -> list[Any]:
        moved = [jax.numpy.array(a) if isinstance(a, np.ndarray) else a for a in arguments]
        jax.block_until_ready(moved)
        return moved

    given = taken(copied(arguments))
    used = time.process_time()
    result, first = timed(lambda: jax.block_until_ready(function(*given)))
    used = time.process_time() - used
    if body:
        expected, written = answers_of(job)
        if written:
            raise TypeError("JAX can't write to arguments")
        if worst(arrays_in(result), expected) > RIGHT:
            raise ValueError("JAX's result is another")
    return {
        "first": first,
        "processor": used,
        "steady": steady(lambda _: jax.block_until_ready(function(*given)), {}),
    }


def run_numba(program: Program, job: Job) -> dict[str, Any]:
    arguments = program.arguments(job.sizes)
    function = program.function("numba_n")
    given = copied(arguments)
    first = timed(lambda: function(*given))[1]
    return {"first": first, "steady": steady(lambda given: function(*given), arguments)}


def main() -> None:
    job = Job(**json.loads(sys.argv[1]))
    sys.path.insert(0, job.checkout)
    text = (Path(job.checkout) / "bench_info" / f"{job.name}.json").read_text()
    program = Program(json.loads(text)["benchmark"])
    runs = {"numpy": run_numpy, "jax": run_jax, "jax-body": run_jax, "numba": run_numba}
    run = runs.get(job.way, run_tenfold)
    warnings.simplefilter("ignore")
    print(json.dumps(run(program, job)))


if __name__ == "__main__":
    main()
