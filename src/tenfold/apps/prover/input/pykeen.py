"""PyKEEN: its data sets by name, where it is installed."""

from __future__ import annotations

import importlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.dataset import Dataset, build
from tenfold.apps.prover.input.read_rules import read_rules
from tenfold.apps.prover.input.terms import Fact


def read_pykeen(name: str, rules: Path | None, constants: Collection[str] = ()) -> Dataset:
    """A data set of PyKEEN, with rules from a file: it has none of its own."""
    try:
        datasets: Any = importlib.import_module("pykeen.datasets")
    except ImportError:
        raise InputError(
            f"pykeen:{name} needs PyKEEN, which is not installed", fix="pip install pykeen"
        ) from None
    try:
        found: Any = datasets.get_dataset(dataset=name)
    except (KeyError, ValueError) as error:
        raise InputError(f"PyKEEN has no data set {name!r}: {error}", fix="name another") from None
    splits = [
        [Fact(p, s, o) for s, p, o in part.label_triples(part.mapped_triples).tolist()]
        for part in (found.training, found.validation, found.testing)
    ]
    known, notices = read_rules(rules, constants) if rules else ((), ())
    return build(name, splits[0], splits[1], splits[2], known, None, notices)
