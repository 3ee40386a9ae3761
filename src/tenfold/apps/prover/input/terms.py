"""Terms: facts, atoms and rules as they are written, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Fact(NamedTuple):
    """A ground atom: what a line of a split says, and what a query asks."""

    predicate: str
    subject: str
    object: str

    def __str__(self) -> str:
        return f"{self.predicate}({self.subject},{self.object})"


class Variable(NamedTuple):
    """A variable of a rule. Equal names in one rule are one variable."""

    name: str

    def __str__(self) -> str:
        return self.name


Term = str | Variable  # a string is a constant


class Atom(NamedTuple):
    """A predicate of two terms."""

    predicate: str
    subject: Term
    object: Term

    @property
    def variables(self) -> frozenset[Variable]:
        """The variables among its terms.

        >>> sorted(Atom("p", Variable("X"), "a").variables)
        [Variable(name='X')]
        """
        return frozenset(t for t in (self.subject, self.object) if isinstance(t, Variable))

    def __str__(self) -> str:
        return f"{self.predicate}({self.subject},{self.object})"


@dataclass(frozen=True, slots=True)
class Rule:
    """A head that holds wherever its whole body does."""

    head: Atom
    body: tuple[Atom, ...]
    name: str = ""
    weight: float = 1.0
    where: str | None = None  # file:line, for messages

    @property
    def clause(self) -> tuple[Atom, tuple[Atom, ...]]:
        """What it says, without its name, weight and place."""
        return self.head, self.body

    def __str__(self) -> str:
        body = ", ".join(str(atom) for atom in self.body)
        return f"{self.head} :- {body}." if body else f"{self.head}."
