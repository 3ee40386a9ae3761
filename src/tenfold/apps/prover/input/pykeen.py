"""PyKEEN: its data sets by name, where it is installed."""

from __future__ import annotations

import importlib
from typing import Any

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.dataset import Dataset, build
from tenfold.apps.prover.input.names import names_of
from tenfold.apps.prover.input.notice import Notice
from tenfold.apps.prover.input.rule_source import RuleSource
from tenfold.apps.prover.input.terms import Fact


def read_pykeen(name: str, source: RuleSource) -> Dataset:
    """A data set of PyKEEN; it has no rules of its own."""
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
    except OSError as error:
        raise InputError(
            f"PyKEEN can't fetch {name!r}: {error}", fix="fetch it where there is a network"
        ) from None
    train, valid, test = map(_facts, (found.training, found.validation, found.testing))
    notices: list[Notice] = []
    if found.validation is None:
        message = f"{name} has no valid: nothing but train and test is filtered"
        notices.append(Notice("missing", message))
    rules, odd = source.rules(train, names_of(train, valid, test))
    if source.path is None and source.mine is None:
        message = f"{name} comes without rules: give --rules, or --mine N"
        notices.append(Notice("missing", message))
    return build(name, train, valid, test, rules, None, (*notices, *odd))


def _facts(part: Any) -> list[Fact]:
    if part is None:
        return []
    return [Fact(p, s, o) for s, p, o in part.label_triples(part.mapped_triples).tolist()]
