"""Settings: what a run of the prover is told, and nothing else."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.queries import MODES

ENGINES = ("closure", "rollout")
BACKENDS = ("tenfold", "python")  # python: the plain reference of the engine


@dataclass(frozen=True, slots=True)
class Settings:
    """A run. Two runs of equal settings give the same ranks, bit for bit."""

    data: str
    rules: str | None = None
    constants: tuple[str, ...] = ()
    modes: tuple[str, ...] = MODES
    engine: str = "closure"
    score: str = "height"  # or binary: proved or not
    height: int = 10
    backend: str = "tenfold"
    batch: int = 256
    limit: int | None = None  # queries
    sample: int | None = None  # candidates of a query
    seed: int = 0

    def __post_init__(self) -> None:
        _one_of("engine", self.engine, ENGINES)
        _one_of("backend", self.backend, BACKENDS)
        _one_of("score", self.score, ("height", "binary"))
        for mode in self.modes:
            _one_of("mode", mode, MODES)
        for name in ("batch", "height"):
            if getattr(self, name) < (name == "batch"):
                raise InputError(f"{name} is {getattr(self, name)}", fix="give a larger number")

    def as_dict(self) -> dict[str, Any]:
        """The settings as plain data."""
        return asdict(self)


def _one_of(name: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise InputError(f"{name} is {given!r}", fix=f"say {' or '.join(allowed)}")
