"""Rule source: where the rules of a run come from, a file or the facts themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.names import Names
from tenfold.apps.prover.input.notice import Notice
from tenfold.apps.prover.input.read_rules import read_rules
from tenfold.apps.prover.input.terms import Fact, Rule


@dataclass(frozen=True, slots=True)
class RuleSource:
    """A file, or how many rules to mine; `constants` and `confidence` say how a file is read."""

    path: Path | None = None
    constants: Collection[str] = ()
    confidence: str = "std"
    mine: int | None = None
    mine_to: Path | None = None

    def rules(
        self, train: Iterable[Fact], names: Names, usual: Path | None = None
    ) -> tuple[tuple[Rule, ...], tuple[Notice, ...]]:
        """The rules, and what is odd about them; `usual` is the file that comes with the data."""
        if self.mine is not None:
            from tenfold.apps.prover.mining.mine import mine, write_rules

            facts = tuple(train)
            if not facts:
                raise InputError(
                    "train has no facts to mine rules from", fix="leave --mine out, or add facts"
                )
            made = mine(facts, self.mine)
            if self.mine_to is not None:
                write_rules(self.mine_to, made)
            return made.rules, made.notices
        path = self.path or usual
        if path is None:
            return (), ()
        return read_rules(path, self.constants, names, self.confidence)
