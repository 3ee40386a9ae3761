"""Load: a data set by what the command line calls it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from tenfold.apps.prover.input.dataset import Dataset, build
from tenfold.apps.prover.input.family import family, read_size
from tenfold.apps.prover.input.names import names_of
from tenfold.apps.prover.input.pykeen import read_pykeen
from tenfold.apps.prover.input.read_folder import read_folder
from tenfold.apps.prover.input.rule_source import RuleSource


def load(
    name: str,
    rules: Path | None = None,
    constants: Collection[str] = (),
    *,
    confidence: str = "std",
    mine: int | None = None,
    mine_to: Path | None = None,
) -> Dataset:
    """`family:…`, `pykeen:NAME` or a folder; `rules` stands for the rules that come with it, and
    `mine` for so many that are mined from train, and written to `mine_to`.

    >>> load("family:families=1,generations=2").name
    'family'
    """
    source = RuleSource(rules, constants, confidence, mine, mine_to)
    if name == "family" or name.startswith("family:"):
        made = family(read_size(name))
        return made if rules is None and mine is None else _with_rules(made, source)
    if name.startswith("pykeen:"):
        return read_pykeen(name.removeprefix("pykeen:"), source)
    return read_folder(Path(name), source)


def _with_rules(data: Dataset, source: RuleSource) -> Dataset:
    names = names_of(data.train, data.valid, data.test, domains=data.domains)
    rules, notices = source.rules(data.train, names)
    return build(data.name, data.train, data.valid, data.test, rules, data.domains, notices)
