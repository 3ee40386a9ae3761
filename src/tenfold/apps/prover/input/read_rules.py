"""Read rules: `id:weight:body, body -> head`, or `head :- body, body.`

In an arrow rule every argument is a variable, in upper or lower case, unless it is quoted or
declared a constant. In a Prolog rule a variable begins with a capital letter or an underscore.
An underscore alone is a new variable wherever it stands.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from itertools import count
from pathlib import Path

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.lexer import Call, Name, read_calls
from tenfold.apps.prover.input.notice import Notice
from tenfold.apps.prover.input.read_facts import numbered, read_text
from tenfold.apps.prover.input.terms import Atom, Rule, Term, Variable

_NEGATIVE = re.compile(r"[^:'\"(]*:-[\d.]")  # an id and a weight below 0: no ':-' of a Prolog rule


def read_rules(
    path: Path, constants: Collection[str] = ()
) -> tuple[tuple[Rule, ...], tuple[Notice, ...]]:
    """The rules of a file, each once, and a notice for each that stood there twice."""
    return parse_rules(read_text(path), path.name, constants)


def parse_rules(
    text: str, file: str, constants: Collection[str] = ()
) -> tuple[tuple[Rule, ...], tuple[Notice, ...]]:
    """The rules of a text; `constants` are the arguments of arrow rules that are no variables.

    >>> rules, _ = parse_rules("r1:0.5:p(x,y), q(y,'a') -> r(x,a)", "rules.txt", ["a"])
    >>> print(rules[0], rules[0].weight)
    r(x,a) :- p(x,y), q(y,a). 0.5
    """
    known: dict[tuple[Atom, tuple[Atom, ...]], Rule] = {}
    notices: list[Notice] = []
    for where, line in numbered(text, file):
        if line.startswith("%"):
            continue
        rule = _rule(line, where, frozenset(constants), f"r{where.rpartition(':')[2]}")
        _check_safe(rule)
        first = known.setdefault(rule.clause, rule)
        if first is not rule:
            message = f"the rule {rule} stands twice, first at {first.where}"
            notices.append(Notice("duplicate", message, where))
    used = {t for rule in known.values() for atom in (rule.head, *rule.body) for t in atom[1:]}
    for constant in sorted(set(constants) - used):
        message = f"{constant} is declared a constant, and no rule names it"
        notices.append(Notice("unknown-constant", message, file))
    return tuple(known.values()), tuple(notices)


def _rule(line: str, where: str, constants: frozenset[str], default: str) -> Rule:
    arrow, prolog = _find(line, "->"), _find(line, ":-")
    if arrow >= 0 and prolog >= 0 and not _NEGATIVE.match(line):
        raise _unlike(line, where, "both '->' and ':-'")
    if arrow >= 0:
        name, weight, body = _label(line[:arrow], where)
        return _build(line[arrow + 2 :], body, where, lambda n: _lower(n, constants), name, weight)
    undotted = line[:-1] if line.endswith((").", ":-.", "- .")) else line
    if prolog >= 0:
        head, body = undotted[:prolog], undotted[prolog + 2 :]
    elif line.endswith(")."):
        head, body = undotted, ""
    else:
        raise _unlike(line, where, "neither '->' nor ':-'")
    return _build(head, body, where, _capital, default, 1.0)


def _build(
    head: str, body: str, where: str, named: Callable[[Name], Term], name: str, weight: float
) -> Rule:
    heads = read_calls(head.strip().removesuffix("."), where)
    if len(heads) != 1:
        raise InputError(
            f"a rule with {len(heads)} heads", where=where, fix="write one rule for each head"
        )
    fresh = count()

    def atom(call: Call) -> Atom:
        first, second = map(term, call.arguments)
        return Atom(call.predicate, first, second)

    def term(argument: Name) -> Term:
        if argument == Name("_", False):
            return Variable(f"_{next(fresh)}")
        return named(argument)

    return Rule(atom(heads[0]), tuple(map(atom, read_calls(body, where))), name, weight, where)


def _lower(name: Name, constants: frozenset[str]) -> Term:
    return name.text if name.quoted or name.text in constants else Variable(name.text)


def _capital(name: Name) -> Term:
    if name.quoted or not (name.text[0].isupper() or name.text[0] == "_"):
        return name.text
    return Variable(name.text)


def _label(text: str, where: str) -> tuple[str, float, str]:
    parts = text.split(":", 2)
    try:
        name, written, body = parts
        weight = float(written)
    except ValueError:
        raise InputError(
            f"no id and weight before the body: {text.strip()}",
            where=where,
            fix="write id:weight:body, body -> head",
        ) from None
    if not math.isfinite(weight):
        raise InputError(f"the weight {written.strip()}", where=where, fix="give a finite number")
    return name.strip(), weight, body


def _find(line: str, mark: str) -> int:
    """Where a mark stands outside quotes; -1 if nowhere."""
    quote = ""
    for at, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif line.startswith(mark, at):
            return at
    return -1


def _check_safe(rule: Rule) -> None:
    bound = {v for atom in rule.body for v in atom.variables}
    loose = sorted(v.name for v in rule.head.variables - bound)
    if loose:
        raise InputError(
            f"unsafe: {', '.join(loose)} of the head is not in the body of {rule}",
            where=rule.where,
            fix="bind every variable of the head in the body, or quote it to make it a constant",
        )


def _unlike(line: str, where: str, what: str) -> InputError:
    return InputError(
        f"{what} in a rule: {line}",
        where=where,
        fix="write id:weight:body, body -> head, or head :- body, body.",
    )
