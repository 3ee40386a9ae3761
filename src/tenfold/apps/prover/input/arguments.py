"""Arguments of arrow rules: which are constants, and what the data has to do with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tenfold.apps.prover.input.lexer import Name
from tenfold.apps.prover.input.names import Names
from tenfold.apps.prover.input.notice import Notice
from tenfold.apps.prover.input.terms import Term, Variable

_LETTER = re.compile(r"[^\W\d_]\d*")
_MAY_VARY = re.compile(r"[^\W\d]|\?")


@dataclass(slots=True)
class Arguments:
    """Which arguments of arrow rules are constants, and which are so because of the data."""

    declared: frozenset[str]
    names: Names
    found: dict[str, str] = field(default_factory=dict)  # constants, and where they stand first
    doubtful: dict[str, str] = field(default_factory=dict)  # variables that are entities as well

    def term(self, name: Name, where: str) -> Term:
        """A variable or a constant."""
        text = name.text
        if name.quoted or text in self.declared:
            return text
        if _LETTER.fullmatch(text) or text.startswith("?"):
            if text in self.names.entities:
                self.doubtful.setdefault(text, where)
            return Variable(text)
        if text in self.names.entities:
            self.found.setdefault(text, where)
            return text
        return Variable(text) if _MAY_VARY.match(text) else text

    def notices(self) -> Iterator[Notice]:
        """What was decided by a look at the data."""
        for name, where in self.found.items():
            message = f"{name} is an entity, so it is a constant in rules: ?{name} is a variable"
            yield Notice("constant", message, where)
        for name, where in self.doubtful.items():
            message = f"{name} is a variable in rules, and an entity, too: '{name}' is a constant"
            yield Notice("constant", message, where)
