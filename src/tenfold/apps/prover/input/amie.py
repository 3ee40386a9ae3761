"""AMIE's files: `?a  <r>  ?b   => ?a  <s>  ?b`, then confidences and counts between tabs.

What begins with `?` is a variable, all else a constant. The header says which column is which;
without one they stand as AMIE writes them. `head(?a,?b) <= body(?a,?b)` is read, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.lexer import read_calls, shown
from tenfold.apps.prover.input.measures import Measures
from tenfold.apps.prover.input.names import Names
from tenfold.apps.prover.input.terms import Atom, Rule, Term, Variable

USUAL = ("rule", "headcoverage", "std", "pca", "support", "body")
_CALLED = {
    "stdconfidence": "std",
    "standardconfidence": "std",
    "pcaconfidence": "pca",
    "positiveexamples": "support",
    "bodysize": "body",
}
_ATOM = re.compile(r"<[^<>]*>|\S+")


def is_header(line: str) -> bool:
    """Whether a line names columns.

    >>> is_header("Rule\\tHead Coverage\\tStd Confidence")
    True
    """
    return line.startswith("Rule\t")


def is_rule(line: str) -> bool:
    """Whether a line holds a rule, whole or cut short."""
    first = line.split("\t", 1)[0]
    return bool(re.search(r"(^|\s)=>(\s|$)", first)) or line.startswith("?") or "<=" in first


@dataclass(slots=True)
class Amie:
    """A file of AMIE's, read line by line."""

    names: Names
    confidence: str = "std"
    columns: list[str] = field(default_factory=lambda: list(USUAL))

    def header(self, line: str) -> None:
        """Take the columns from a header."""
        plain = (re.sub("[^a-z]", "", name.lower()) for name in line.split("\t"))
        self.columns = [_CALLED.get(name, name) for name in plain]

    def rule(self, line: str, where: str) -> Rule:
        """The rule of a line.

        >>> line = "?a  <p>  ?b  ?b  <q>  <c>   => ?a  <r>  ?b\\t0.1\\t0.5\\t0.8\\t10\\t20"
        >>> made = Amie(Names()).rule(line, "f:1")
        >>> print(made, made.weight)
        r(?a,?b) :- p(?a,?b), q(?b,c). 0.5
        """
        text, *numbers = line.split("\t")
        head, body = self._sides(text.strip(), where)
        if len(head) != 1:
            raise InputError(
                f"a rule with {len(head)} heads", where=where, fix="write one atom after =>"
            )
        said = dict(zip(self.columns[1:], numbers, strict=False))
        kept = {name: said.get(name) for name in ("std", "pca", "support", "body")}
        weight = Measures(where, **kept).weight(self.confidence)
        return Rule(head[0], tuple(body), f"r{where.rpartition(':')[2]}", weight, where)

    def _sides(self, text: str, where: str) -> tuple[list[Atom], list[Atom]]:
        sides = re.split(r"(?:^|\s)=>(?:\s|$)", text)
        if len(sides) == 2:
            return self._atoms(sides[1], where), self._atoms(sides[0], where)
        head, mark, body = text.partition("<=")
        if len(sides) > 2 or not mark:
            raise InputError(
                f"{len(sides) - 1} arrows in a rule: {shown(text)}",
                where=where,
                fix="write ?a  <body>  ?b   => ?a  <head>  ?b and its numbers between tabs",
            )
        return self._called(head, where), self._called(body, where)

    def _called(self, text: str, where: str) -> list[Atom]:
        return [
            Atom(call.predicate, *(self._term(n.text) for n in call.arguments))
            for call in read_calls(text, where)
        ]

    def _atoms(self, text: str, where: str) -> list[Atom]:
        if "!=" in text:
            raise InputError(
                f"a rule with !=, which the prover has not: {shown(text)}",
                where=where,
                fix="leave the rule out",
            )
        parts = re.split(r"\s{2,}", text.strip()) if text.strip() else []
        if len(parts) % 3:  # names without spaces, one space between them
            parts = _ATOM.findall(text)
        if len(parts) % 3:
            raise InputError(
                f"{len(parts)} names, not three for each atom: {shown(text)}",
                where=where,
                fix="write subject  <predicate>  object",
            )
        triples = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
        return [Atom(self._predicate(p), self._term(s), self._term(o)) for s, p, o in triples]

    def _predicate(self, name: str) -> str:
        return name if name in self.names.predicates else _bare(name)

    def _term(self, name: str) -> Term:
        if name.startswith("?"):
            return Variable(name)
        return name if name in self.names.entities else _bare(name)


def _bare(name: str) -> str:
    return name[1:-1] if len(name) > 2 and name[0] == "<" and name[-1] == ">" else name
