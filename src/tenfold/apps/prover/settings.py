"""Settings: what a run of the prover is told, and nothing else."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from tenfold.apps.prover.backend import DEVICES, is_device
from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.measures import CONFIDENCES
from tenfold.apps.prover.input.queries import MODES

AGGREGATES = ("max", "noisy-or", "product", "count", "max-then-next")
ROOM = ("successors", "goals", "variables")  # that a rollout begins with
REPORTED = ("bootstrap", "confidence_level")  # what changes the report of a run, not its results
CHOICES = {
    "confidence": CONFIDENCES,
    "engine": ("closure", "rollout"),
    "policy": ("uniform", "learned"),
    "search": ("exhaustive", "greedy", "sampled", "beam"),
    "score": ("height", "logprob", "binary", "weight", "embedding"),
    "overflow": ("grow", "mark", "error"),
}
BACKENDS = ("compiled", "evaluator", "python")  # python: the engine's plain reference


@dataclass(frozen=True, slots=True)
class Settings:
    """A run. Two runs of equal settings give the same ranks, bit for bit."""

    data: str
    rules: str | None = None
    constants: tuple[str, ...] = ()
    confidence: str = "std"  # which number of a rule miner's file is the weight
    mine: int | None = None  # rules to mine from train, in place of any that are there
    mine_to: str | None = None  # the file for these
    modes: tuple[str, ...] = MODES
    engine: str = "closure"
    policy: str = "uniform"
    weights: str | None = None  # a safetensors file; drawn by the seed without one
    search: str = "greedy"
    beam: int = 4
    steps: int = 20
    score: str = "height"
    aggregate: str | None = None  # of the rules that prove a candidate, where weights are scores
    embedding: str | None = None  # a safetensors file: the score, or what breaks ties of another
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
    auc_pr: bool = False  # compare the scores of all queries with each other, too
    bootstrap: int = 0  # resamples of the queries, for intervals of the figures
    confidence_level: float = 0.95  # of these intervals
    memory: int | None = None  # bytes of arrays
    max_facts: int | None = None  # of a closure
    successors: int | None = None  # the room that a rollout begins with: of a step
    goals: int | None = None  # of a state
    variables: int | None = None  # of a state
    states: int | None = None  # of an exhaustive search

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} is {getattr(self, name)!r}", fix=_either(allowed))
        if self.backend not in BACKENDS and not is_device(self.backend):
            fix = _either((*BACKENDS, *DEVICES))
            raise InputError(f"backend is {self.backend!r}", fix=f"{fix}; cuda:1 is the next GPU")
        for mode in self.modes:
            if mode not in MODES:
                raise InputError(f"mode is {mode!r}", fix=_either((*MODES, "both")))
        for name, least in (("batch", 1), ("beam", 1), ("mine", 1), ("steps", 0), ("height", 0)):
            given = getattr(self, name)
            if given is not None and given < least:
                raise InputError(f"{name} is {getattr(self, name)}", fix=f"give {least} or more")
        for name in ("memory", "max_facts", *ROOM, "states"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                said = f"{name.replace('_', '-')} is {getattr(self, name)}"
                raise InputError(said, fix="give 1 or more")
        if self.memory is not None and self.backend == "python":
            other = "say --max-facts, or" if self.engine == "closure" else "say"
            raise InputError("plain Python counts no bytes", fix=f"{other} another --backend")
        for name in ("limit", "sample", "seed", "bootstrap"):
            if (getattr(self, name) or 0) < 0:
                raise InputError(f"{name} is {getattr(self, name)}", fix="give 0 or more")
        if not 0 < self.confidence_level < 1:
            raise InputError(
                f"confidence-level is {self.confidence_level}",
                fix="give one between 0 and 1, such as 0.95",
            )
        self._check_score()
        if self.engine == "closure" and self.score == "logprob":
            raise InputError(
                "score is logprob, which a closure has not", fix="say --engine rollout"
            )
        if self.engine == "closure" and self.alone:
            raise InputError(
                "alone, and a closure is one for all queries: none can be left out of its facts",
                fix="say --engine rollout",
            )

        self._check_used()
        self._check_rules()

    def _check_rules(self) -> None:
        if self.mine_to is not None and self.mine is None:
            raise InputError("mine-to without rules to mine", fix="say --mine N")
        if self.mine is None:
            return
        for name in ("rules", "constants"):
            if getattr(self, name):
                raise InputError(
                    f"{name} and mine at once: mined rules stand in place of others",
                    fix="leave one out; --mine-to writes rules that can be joined to others",
                )

    def _check_score(self) -> None:
        """An error where score, aggregate, embedding and search do not go together."""
        if self.score != "weight" and self.aggregate is not None:
            raise InputError(
                f"aggregate is {self.aggregate}, which a score by {self.score} has not",
                fix="say --score weight",
            )
        if self.score == "weight":
            if self.aggregate is None:
                object.__setattr__(self, "aggregate", "max")
            if self.aggregate not in AGGREGATES:
                raise InputError(f"aggregate is {self.aggregate!r}", fix=_either(AGGREGATES))
            if self.engine == "rollout" and self.search != "exhaustive":
                raise InputError(
                    f"a {self.search} search finds a proof, not the best of each rule",
                    fix="say --search exhaustive, or --engine closure",
                )
        if self.score == "embedding":
            if self.embedding is None:
                raise InputError(
                    "score is embedding, and none is given", fix="say --embedding FILE"
                )
            if self.engine != "closure" or self.check:
                raise InputError(
                    "an embedding scores without a search or a proof",
                    fix="leave --engine and --check-proofs out",
                )

    def heeded(self) -> dict[str, Any]:
        """What the run pays heed to, as plain data."""
        _, unused = self._unused()
        left = {name: value for name, value in self.as_dict().items() if name not in unused}
        drawn = (
            self.sample is not None
            or self.bootstrap > 0
            or (
                self.engine == "rollout"
                and (self.search == "sampled" or (self.policy == "learned" and not self.weights))
            )
        )
        if not drawn:
            del left["seed"]
        if not self.bootstrap:
            for name in REPORTED:
                del left[name]
        if self.score != "weight" and self.confidence == "std":
            del left["confidence"]
        # what is 0 was asked for, unlike what is False
        return {n: v for n, v in left.items() if v is not None and v is not False and v != ()}

    def _unused(self) -> tuple[str, dict[str, str]]:
        """What the run is, and what it pays no heed to, each with what would make it."""
        unused: dict[str, str] = {}
        if self.engine == "closure":
            kind, fix = "a closure", "say --engine rollout"
            unused = dict.fromkeys(
                ("policy", "weights", "search", "beam", "steps", "overflow", *ROOM, "states"), fix
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
            unused["states"] = "say --search exhaustive"
        if self.engine != "closure":
            unused["max_facts"] = "say --engine closure"
            if self.backend == "python":
                unused |= dict.fromkeys((*ROOM, "states"), "say another --backend")
        return kind, unused

    def _check_used(self) -> None:
        """An error where something is asked for that the run would pay no heed to."""
        kind, unused = self._unused()
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
