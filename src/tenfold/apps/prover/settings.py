"""Settings: what a run of the prover is told, and nothing else."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.queries import MODES

CHOICES = {
    "engine": ("closure", "rollout"),
    "policy": ("uniform", "learned"),
    "search": ("exhaustive", "greedy", "sampled", "beam"),
    "score": ("height", "logprob", "binary"),
    "overflow": ("grow", "mark", "error"),
    "backend": ("compiled", "evaluator", "python"),  # python: the engine's plain reference
}


@dataclass(frozen=True, slots=True)
class Settings:
    """A run. Two runs of equal settings give the same ranks, bit for bit."""

    data: str
    rules: str | None = None
    constants: tuple[str, ...] = ()
    modes: tuple[str, ...] = MODES
    engine: str = "closure"
    policy: str = "uniform"
    weights: str | None = None  # a safetensors file; drawn by the seed without one
    search: str = "greedy"
    beam: int = 4
    steps: int = 20
    score: str = "height"
    height: int = 10
    overflow: str = "grow"
    alone: bool = False  # whether a query may not use itself as a fact
    backend: str = "compiled"
    batch: int | None = None  # queries or candidates at a time; None: as suits the engine
    limit: int | None = None  # queries
    sample: int | None = None  # candidates of a query
    candidates: str | None = None  # the file that keeps the sample
    seed: int = 0
    check: bool = False  # replay every proof
    memory: int | None = None  # bytes of a closure's arrays
    max_facts: int | None = None  # of a closure

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} is {getattr(self, name)!r}", fix=_either(allowed))
        for mode in self.modes:
            if mode not in MODES:
                raise InputError(f"mode is {mode!r}", fix=_either((*MODES, "both")))
        for name, least in (("batch", 1), ("beam", 1), ("steps", 0), ("height", 0)):
            given = getattr(self, name)
            if given is not None and given < least:
                raise InputError(f"{name} is {getattr(self, name)}", fix=f"give {least} or more")
        for name in ("memory", "max_facts"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                said = f"{name.replace('_', '-')} is {getattr(self, name)}"
                raise InputError(said, fix="give 1 or more")
        if self.memory is not None and self.backend == "python" and self.engine == "closure":
            raise InputError(
                "plain Python counts no bytes", fix="say --max-facts, or another --backend"
            )
        for name in ("limit", "sample"):
            if (getattr(self, name) or 0) < 0:
                raise InputError(f"{name} is {getattr(self, name)}", fix="give 0 or more")
        if self.engine == "closure" and self.score == "logprob":
            raise InputError("a closure has no log-probability", fix="say --engine rollout")
        if self.engine == "closure" and self.alone:
            raise InputError(
                "a closure is one for all queries, so none can be left out of its facts",
                fix="say --engine rollout",
            )

        self._check_used()

    def _check_used(self) -> None:
        """An error where something is asked for that the run would pay no heed to."""
        unused: dict[str, str] = {}
        if self.engine == "closure":
            kind, fix = "a closure", "say --engine rollout"
            unused = dict.fromkeys(
                ("policy", "weights", "search", "beam", "steps", "overflow"), fix
            )
        elif self.search == "exhaustive":
            kind, fix = "an exhaustive search", "leave it out, or say another --search"
            unused = dict.fromkeys(("policy", "weights", "beam", "steps"), fix)
        else:
            kind = f"a {self.search} search by the {self.policy} policy"
            if self.search != "beam":
                unused["beam"] = "say --search beam"
            if self.policy != "learned":
                unused["weights"] = "say --policy learned"
        if self.engine != "closure":
            unused |= dict.fromkeys(("memory", "max_facts"), "say --engine closure")
        defaults = {f.name: f.default for f in fields(self)}
        for name, fix in unused.items():
            if getattr(self, name) != defaults[name]:
                raise InputError(f"{name} is {getattr(self, name)}, which {kind} has not", fix=fix)
        if self.search == "exhaustive" and self.engine == "rollout" and self.score == "logprob":
            raise InputError(
                "an exhaustive search has no log-probability", fix="say --score height or binary"
            )

    def as_dict(self) -> dict[str, Any]:
        """The settings as plain data."""
        return asdict(self)


def _either(allowed: tuple[str, ...]) -> str:
    return f"say {' or '.join(allowed)}"
