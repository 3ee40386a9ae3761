"""Load: a data set by what the command line calls it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from tenfold.apps.prover.input.dataset import Dataset, build
from tenfold.apps.prover.input.family import family, read_size
from tenfold.apps.prover.input.pykeen import read_pykeen
from tenfold.apps.prover.input.read_folder import read_folder
from tenfold.apps.prover.input.read_rules import read_rules


def load(name: str, rules: Path | None = None, constants: Collection[str] = ()) -> Dataset:
    """`family:…`, `pykeen:NAME` or a folder; `rules` stands for the rules that come with it.

    >>> load("family:families=1,generations=2").name
    'family'
    """
    if name == "family" or name.startswith("family:"):
        made = family(read_size(name))
        return _with_rules(made, rules, constants) if rules else made
    if name.startswith("pykeen:"):
        return read_pykeen(name.removeprefix("pykeen:"), rules, constants)
    return read_folder(Path(name), rules, constants)


def _with_rules(data: Dataset, path: Path, constants: Collection[str]) -> Dataset:
    rules, notices = read_rules(path, constants)
    return build(data.name, data.train, data.valid, data.test, rules, data.domains, notices)
