"""API: the prover from Python. `tenfold.prover` gives these names out."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from tenfold.apps.prover import evaluation
from tenfold.apps.prover.closure.engine import close_program
from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.evaluation import Run
from tenfold.apps.prover.input.dataset import Dataset
from tenfold.apps.prover.input.lexer import read_calls
from tenfold.apps.prover.input.program import program_of, rules_of
from tenfold.apps.prover.input.terms import Fact
from tenfold.apps.prover.output.answers import COLUMNS, Answer, Answering
from tenfold.apps.prover.output.asked import outputs_of
from tenfold.apps.prover.output.frames import frame
from tenfold.apps.prover.output.provenance import Provenance
from tenfold.apps.prover.progress import Progress
from tenfold.apps.prover.proofs.explanation import Explanation, explained, number_of
from tenfold.apps.prover.proofs.index import FactIndex
from tenfold.apps.prover.proofs.proof import Explainer
from tenfold.apps.prover.report.summary import by_mode, by_relation
from tenfold.apps.prover.settings import Settings


@dataclass(frozen=True, slots=True)
class Metrics:
    """What the ranks of some queries come to. MRR and Hits are by kind of rank: optimistic,
    realistic, pessimistic and expected; without queries they are None."""

    queries: int
    candidates: int
    proved: int
    mrr: dict[str, float | None]
    hits: dict[int, dict[str, float | None]]
    figures: dict[str, Any] = field(repr=False)  # all that `--json` has of them

    @staticmethod
    def of(figures: dict[str, Any]) -> Metrics:
        """The metrics in some figures."""
        hits = {int(level): by_kind for level, by_kind in figures["hits"].items()}
        queries, candidates, proved = (figures[n] for n in ("queries", "candidates", "proved"))
        return Metrics(queries, candidates, proved, figures["mrr"], hits, figures)


@dataclass(frozen=True)
class Evaluation:
    """A finished evaluation: metrics at once, answers and proofs when they are asked for."""

    run: Run = field(repr=False)
    metrics: dict[str, Metrics]  # by mode, and of both
    relations: dict[str, dict[str, Metrics]] = field(repr=False)  # by relation and mode

    @property
    def provenance(self) -> Provenance:
        """Hashes of data and rules, the call, versions, target and date."""
        return self.run.provenance

    @property
    def notices(self) -> tuple[str, ...]:
        """What is odd in the data."""
        return tuple(map(str, self.run.data.notices))

    @cached_property
    def _answering(self) -> Answering:
        return Answering(self.run)

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """The answer of each ranking: ranks, height, proving rules, and what beats the query."""
        return tuple(self._answering.answers())

    def explain(self, fact: str | tuple[str, str, str]) -> Explanation:
        """Why a fact holds in the closure of this run, or which subgoal fails."""
        run = self.run
        if run.closed is None:
            raise InputError("a rollout has no closure to explain from", fix="say engine='closure'")
        return explained(
            self._answering.explainer,
            self._answering.rules,
            number_of(run.program, fact_of(fact)),
            run.settings.height,
            run.closed.complete,
        )

    def to_pandas(self) -> Any:
        """A DataFrame with a row for each ranking, where pandas is installed."""
        return frame([answer.as_dict() for answer in self.answers], COLUMNS)

    def write(self, path: str | Path, relations: int | None = None) -> None:
        """Write to a file what its ending says: all figures (`.json`), the page (`.html`), a table
        (`.tex`), or every ranking (`.jsonl`, `.csv`, `.parquet`)."""
        outputs = outputs_of(Path(path), relations)
        outputs.check()
        outputs.write(self.run, self._answering)


def load(
    data: str | Path,
    rules: str | Path | None = None,
    constants: Any = (),
    *,
    confidence: str = "std",
    mine: int | None = None,
) -> Dataset:
    """A data set: a folder, `family:…` or `pykeen:NAME`; `rules` is a file that stands for the
    rules it comes with, `constants` are the arguments of arrow rules that are no variables,
    `confidence` says which number of a rule miner's file is the weight; `mine` has so many rules
    mined from train instead.

    >>> made = load("family:families=2")
    >>> made.name, len(made.rules), made.test[0]
    ('family', 44, Fact(predicate='aunt', subject='person12', object='person28'))
    """
    file = None if rules is None else str(rules)
    return evaluation.load_for(
        Settings(str(data), file, tuple(constants), confidence=confidence, mine=mine)
    )


def evaluate(
    data: str | Path | Dataset,
    *,
    progress: Progress | None = None,
    journal: str | Path | None = None,
    **settings: Any,
) -> Evaluation:
    """Rank every query of a data set among its corruptions.

    Settings are those of the command, by the names of `tenfold.prover.Settings`. `progress` is
    called with an event now and then; with a `journal` a run that was interrupted goes on.

    >>> made = evaluate("family:families=2", modes=("tail",))
    >>> made.metrics["tail"].queries, made.metrics["tail"].mrr["optimistic"]
    (78, 1.0)
    >>> print(made.answers[0].relation, made.answers[0].realistic, made.answers[0].rules)
    aunt 1.0 ('aunt2', 'aunt4')
    """
    shown = data.name if isinstance(data, Dataset) else str(data)
    words = [repr(shown), *(f"{name}={value!r}" for name, value in settings.items())]
    run = evaluation.evaluate(
        _settings(data, settings),
        progress,
        None if journal is None else Path(journal),
        data=data if isinstance(data, Dataset) else None,
        command=f"tenfold.prover.evaluate({', '.join(words)})",
    )
    return evaluated(run)


def evaluated(run: Run) -> Evaluation:
    """A run with its metrics."""
    return Evaluation(
        run,
        {mode: Metrics.of(made) for mode, made in by_mode(run).items()},
        {
            name: {mode: Metrics.of(made) for mode, made in modes.items()}
            for name, modes in by_relation(run).items()
        },
    )


def explain(
    data: str | Path | Dataset, fact: str | tuple[str, str, str], **settings: Any
) -> Explanation:
    """Why a fact holds, by which other rules it holds too, or which subgoal fails.

    >>> made = explain("family:families=2", "aunt(person12,person28)")
    >>> made.height, made.alternatives, made.proofs[0].steps[0].rule.name
    (1, 1, 'aunt2')
    >>> print(made)  # doctest: +ELLIPSIS
    aunt(person12,person28): proved, height 1, weight 1
    aunt(person12,person28)  by aunt2 (1): aunt(x,y) :- sister(x,z), mother(z,y).
    ├─ sister(person12,person13)  known
    └─ mother(person13,person28)  known
    ...
    """
    return explain_for(_settings(data, settings), fact, data if isinstance(data, Dataset) else None)


def explain_for(
    settings: Settings, fact: str | tuple[str, str, str], data: Dataset | None = None
) -> Explanation:
    """The explanation of a fact by the closure that the settings name."""
    if settings.engine != "closure":
        raise InputError("a fact is explained by its closure", fix="leave --engine out")
    data = data or evaluation.load_for(settings)
    program = program_of(data)
    asked = number_of(program, fact_of(fact))
    closed = close_program(settings, program)
    explainer = Explainer(program, FactIndex(closed))
    return explained(explainer, rules_of(data, program), asked, settings.height, closed.complete)


def fact_of(text: str | tuple[str, str, str]) -> Fact:
    """A fact as it is written, `predicate(subject,object)`, or as three names.

    >>> fact_of("p(a, 'new york').")
    Fact(predicate='p', subject='a', object='new york')
    """
    if not isinstance(text, str):
        return Fact(*text)
    calls = read_calls(text.strip().removesuffix("."), repr(text))
    if len(calls) != 1:
        raise InputError(f"{len(calls)} facts in {text!r}", fix="write predicate(subject,object)")
    return Fact(calls[0].predicate, *(name.text for name in calls[0].arguments))


def _settings(data: str | Path | Dataset, given: dict[str, Any]) -> Settings:
    names = [f.name for f in fields(Settings) if f.name != "data"]
    for name in given:
        if name not in names:
            raise TypeError(f"no setting is called {name!r}; there are {', '.join(names)}")
    if not isinstance(data, Dataset):
        return Settings(str(data), **given)
    for name in ("rules", "constants", "confidence", "mine", "mine_to"):
        if given.get(name):
            raise InputError(
                f"the data set was read before, with its rules: {name} comes too late",
                fix="give it to load, or the name of the data set to evaluate",
            )
    return Settings(data.name, **given)


__all__ = [
    "Answer",
    "Dataset",
    "Evaluation",
    "Explanation",
    "Metrics",
    "Provenance",
    "Settings",
    "evaluate",
    "explain",
    "load",
]
