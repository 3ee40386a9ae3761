"""One program of NPBench, run by one system in this process: see `npbench.py`, which starts it.

    python benchmarks/npbench_program.py JOB

JOB is a `Job` as JSON. The process reads orders, a line of JSON each, and answers each:

    {"first": FILE}   the first call; all it returned and wrote to is saved. `made`: how long the
                      system took to be imported, and its function to be made, before that
    {"nudged": FILE}  the same of a call whose floats are one ulp up: how far results may be apart
    {"settle": S}     wait up to S seconds for what the first call has left to later ones
    {"time": S}       call for so long, at least once: the shortest call, and the peak of memory
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

BODIES = Path(__file__).with_name("npbench")
PEERS = ("numpy", "numba", "jax")
MOST = 200  # calls a round


@dataclass
class Job:
    """What to run. `way` is numpy, numba or jax, or for Tenfold unchanged, static, convert or
    changed."""

    checkout: str
    name: str
    way: str
    size: str


@dataclass
class Program:
    """A program as NPBench's own description of it says."""

    info: dict[str, Any]
    size: str

    @classmethod
    def found(cls, checkout: Path, name: str, size: str) -> Program:
        text = (checkout / "bench_info" / f"{name}.json").read_text()
        return cls(json.loads(text)["benchmark"], size)

    @property
    def module(self) -> str:
        place = self.info["relative_path"].replace("/", ".")
        return f"npbench.benchmarks.{place}.{self.info['module_name']}"

    def arguments(self) -> dict[str, Any]:
        """The arguments by name, in the order of the function."""
        known = dict(self.info["parameters"][self.size])
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


def changed(name: str) -> Callable[..., Any] | None:
    """Our own body of a program, where there is one."""
    path = BODIES / f"{name}.py"
    spec = spec_from_file_location(f"changed_{name}", path) if path.exists() else None
    if spec is None or spec.loader is None:
        return None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    body: Callable[..., Any] = getattr(module, name)
    return body


def nudged(value: Any) -> Any:
    """An array of floats moved up by one ulp; anything else as it is."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
        return value * (1 + np.finfo(value.dtype).eps)
    return value


def copied(arguments: Sequence[Any]) -> list[Any]:
    return [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]


def arrays_in(value: Any) -> list[np.ndarray[Any, Any]]:
    """The returned values, as a flat list."""
    if value is None:
        return []
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in arrays_in(part)]
    return [np.asarray(value)]


class System:
    """One system with one program: NumPy itself, and what others do otherwise."""

    now = staticmethod(time.thread_time_ns)  # on one core a call is carried out by its thread

    def __init__(self, program: Program, job: Job) -> None:
        self.arguments = program.arguments()
        self.given = list(self.arguments.values())
        self.outputs = program.info["output_args"]
        start = time.perf_counter()
        self.call = self.compiled(program, job)
        self.made = time.perf_counter() - start

    def compiled(self, program: Program, job: Job) -> Callable[..., Any]:
        return program.function("numpy")

    def fresh(self) -> list[Any]:
        """Arguments for one call: programs write to theirs."""
        return copied(self.given)

    def settle(self, seconds: float) -> dict[str, Any]:
        return {}

    def once(self, given: list[Any]) -> tuple[float, list[np.ndarray[Any, Any]]]:
        """Seconds of a call, and all arrays that it returned, wrote to or has as outputs."""
        start = time.perf_counter()
        result = self.call(*given)
        seconds = time.perf_counter() - start
        wrote = [
            given[n]
            for n, (name, old) in enumerate(self.arguments.items())
            if isinstance(given[n], np.ndarray)
            and (name in self.outputs or not np.array_equal(given[n], old, equal_nan=True))
        ]
        return seconds, [*arrays_in(result), *wrote]


class Numba(System):
    def compiled(self, program: Program, job: Job) -> Callable[..., Any]:
        return program.function("numba_n")


class Jax(System):
    """Arguments lie with JAX before its calls; its functions write to none."""

    now = staticmethod(time.process_time_ns)  # the work is done by a pool of its own

    def compiled(self, program: Program, job: Job) -> Callable[..., Any]:
        import jax

        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_enable_x64", True)
        given = [jax.numpy.array(a) if isinstance(a, np.ndarray) else a for a in self.given]
        self.given = jax.block_until_ready(given)
        function = program.function("jax")
        return lambda *given: jax.block_until_ready(function(*given))


class Tenfold(System):
    def compiled(self, program: Program, job: Job) -> Callable[..., Any]:
        import tenfold as tn

        counts = [n for n, a in enumerate(self.given) if isinstance(a, (int, np.integer))]
        body = changed(job.name) if job.way == "changed" else program.function("numpy")
        self.jitted = tn.jit(
            body,
            static=() if job.way == "unchanged" else tuple(counts),
            control="convert" if job.way == "convert" else None,
        )
        return self.jitted

    def settle(self, seconds: float) -> dict[str, Any]:
        end = time.perf_counter() + seconds
        while self.jitted.certificate(*self.fresh()).left and time.perf_counter() < end:
            self.call(*self.fresh())
            time.sleep(0.01)
        plan = self.jitted.plan(*self.fresh())
        return {
            "state": str(self.jitted.certificate(*self.fresh()).state),
            "kernels": len(plan.kernels),
            "loops": plan.explain().count("rounds found"),
        }


def timed(system: System, seconds: float) -> dict[str, float]:
    """The shortest call, each on fresh copies, by the processor's time: waiting for others is not
    counted."""
    now, taken = system.now, []
    end = time.perf_counter() + seconds
    while not taken or (time.perf_counter() < end and len(taken) < MOST):
        given = system.fresh()
        start = now()
        system.call(*given)
        taken.append((now() - start) / 1e9)
    return {"steady": min(taken), "peak": peak()}


def peak() -> float:
    """The most memory that this process held, in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(n for n in lines if n.startswith("VmHWM")).split()[1]) / 1e3


def answer(system: System, order: dict[str, Any]) -> dict[str, Any]:
    if "first" in order:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            seconds, arrays = system.once(system.fresh())
        np.savez(order["first"], *arrays)
        refuted = [str(w.message) for w in told if w.category.__name__ == "ParityWarning"]
        return {"first": seconds, "made": system.made, "refuted": refuted}
    if "nudged" in order:
        np.savez(order["nudged"], *system.once([nudged(a) for a in system.fresh()])[1])
        return {}
    return system.settle(order["settle"]) if "settle" in order else timed(system, order["time"])


def main() -> None:
    job = Job(**json.loads(sys.argv[1]))
    sys.path.insert(0, job.checkout)
    out, sys.stdout = sys.stdout, sys.stderr  # what programs print is no answer
    warnings.simplefilter("ignore")
    program = Program.found(Path(job.checkout), job.name, job.size)
    kinds = {"numpy": System, "numba": Numba, "jax": Jax}
    system = kinds.get(job.way, Tenfold)(program, job)
    for line in sys.stdin:
        print(json.dumps(answer(system, json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main()
