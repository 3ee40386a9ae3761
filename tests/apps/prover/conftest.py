"""Where the data sets are, and programs written as text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tenfold.apps.prover.closure.fixpoint import prepare, run
from tenfold.apps.prover.closure.lookups import rank_batch
from tenfold.apps.prover.closure.weights import groundings
from tenfold.apps.prover.closure.weights.chains import compose
from tenfold.apps.prover.input.program import Program, program
from tenfold.apps.prover.input.read_facts import parse_facts
from tenfold.apps.prover.input.read_rules import parse_rules
from tenfold.apps.prover.input.terms import Fact
from tenfold.apps.prover.rollout.exhaustive import exhaust
from tenfold.apps.prover.rollout.loop import roll
from tenfold.apps.prover.rollout.weighted import step
from tenfold.apps.prover.scores.embedding import products


def data_folder() -> Path | None:
    """The folder `shared/data` beside this repository or above it."""
    given = os.environ.get("TENFOLD_DATA")
    above = [p / "shared" / "data" for p in Path(__file__).resolve().parents]
    return next((p for p in ([Path(given)] if given else above) if p.is_dir()), None)


# What takes a minute or more is run where it is asked for.
slow = pytest.mark.skipif("TENFOLD_SLOW" not in os.environ, reason="set TENFOLD_SLOW to run it")


@pytest.fixture(scope="session")
def data() -> Path:
    folder = data_folder()
    if folder is None:
        pytest.skip("no folder shared/data beside the repository or above it")
    return folder


@pytest.fixture(autouse=True)
def _no_count_of_compilations() -> None:
    """Tests bring programs of many shapes: that is no reason to warn of recompilation."""
    for function in (
        run,
        prepare,
        rank_batch,
        roll,
        exhaust,
        groundings.run,
        compose,
        step,
        products,
    ):
        for jitted in function._jitted.values():
            jitted._watch = None


def write(text: str, asked: str = "") -> Program:
    """A program from Prolog text: facts are the ground lines, rules the others.

    A ground line with ':-' and no body is a rule with an empty body.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    facts = [line for line in lines if ":-" not in line]
    rules = [line for line in lines if ":-" in line]
    return program(
        parse_facts("\n".join(facts), "facts")[0],
        parse_rules("\n".join(rules), "rules")[0],
        parse_facts(asked, "asked")[0],
    )


def fact(text: str) -> Fact:
    return next(iter(parse_facts(text, "fact")[0]))
