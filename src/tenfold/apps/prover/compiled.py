"""Compiled: what each function of a run was compiled to, and how long that took."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import tenfold as tn
from tenfold.apps.prover.backend import TracedFunction


@dataclass(frozen=True, slots=True)
class CompiledFunction:
    """One plan: its function, its kernels and host steps, and the seconds by stage."""

    function: str
    kernels: int
    hosts: Counter[str]  # the op and why it is no kernel, and how often
    seconds: dict[str, float]

    def __str__(self) -> str:
        spent = ", ".join(f"{stage} {value:.2f}" for stage, value in self.seconds.items())
        lines = [
            f"{self.function}: {self.kernels} kernels, {self.hosts.total()} host steps; "
            f"seconds: {spent}"
        ]
        lines += [f"  {count} × {step}" for step, count in self.hosts.most_common()]
        return "\n".join(lines)


@dataclass(slots=True)
class Explaining:
    """While it is open, every plan that the prover's functions come to run is written down.

    >>> from tenfold.apps.prover.evaluation import evaluate
    >>> from tenfold.apps.prover.settings import Settings
    >>> with Explaining() as log:
    ...     run = evaluate(Settings("family:families=1,generations=2", limit=1))
    >>> sorted({made.function for made in log.plans.values()})
    ['multiply', 'prepare', 'rank_batch', 'run']
    """

    plans: dict[int, CompiledFunction] = field(default_factory=dict)  # by plan
    kept: list[Any] = field(default_factory=list)  # so that no plan's id comes twice

    def __enter__(self) -> Explaining:
        TracedFunction.watcher = self.call
        return self

    def __exit__(self, *_: object) -> None:
        TracedFunction.watcher = None

    def call(self, jitted: tn.Jitted, name: str, args: Any, kwargs: Any) -> Any:
        """Call a compiled function, and look which plan it ran."""
        before = _seconds()
        result = jitted(*args, **kwargs)
        spent = {stage: value - before[stage] for stage, value in _seconds().items()}
        plan = jitted.plan(*args, **kwargs).plan
        if id(plan) not in self.plans:
            self.kept.append(plan)
            hosts = Counter(f"{step.op}: {step.reason}" for step in plan.host_steps)
            self.plans[id(plan)] = CompiledFunction(name, len(plan.kernels), hosts, spent)
        return result

    def __str__(self) -> str:
        made = dict(tn.stats())
        made.pop("seconds")
        counts = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in made.items())
        total = ", ".join(f"{stage} {value:.2f}" for stage, value in _seconds().items())
        parts = [str(one) for one in self.plans.values()]
        return "\n".join([*parts, f"in all: {counts}; seconds: {total}"])


def _seconds() -> dict[str, float]:
    seconds = tn.stats()["seconds"]
    assert isinstance(seconds, dict)
    return seconds
