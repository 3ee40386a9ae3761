"""Read rules: `id:weight:body, body -> head`, `head :- body, body.`, AnyBURL's or AMIE's files.

An argument of an arrow rule is a constant if it is quoted, declared so, or an entity of the data;
or if it does not begin with a letter, `_` or `?`. A letter alone or with digits after it, and what
begins with `?`, is a variable even so. In a Prolog rule a variable begins with a capital letter or
an underscore. An underscore alone is a new variable wherever it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from itertools import count
from pathlib import Path

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.amie import Amie, is_header, is_rule
from tenfold.apps.prover.input.anyburl import LINE, VARIABLE, anyburl_rule
from tenfold.apps.prover.input.arguments import Arguments
from tenfold.apps.prover.input.lexer import Call, Name, read_calls, shown
from tenfold.apps.prover.input.measures import number
from tenfold.apps.prover.input.names import Names
from tenfold.apps.prover.input.notice import Notice
from tenfold.apps.prover.input.read_facts import numbered, read_text
from tenfold.apps.prover.input.terms import Atom, Rule, Term, Variable

Rules = tuple[tuple[Rule, ...], tuple[Notice, ...]]


def read_rules(
    path: Path,
    constants: Collection[str] = (),
    names: Names | None = None,
    confidence: str = "std",
) -> Rules:
    """The rules of a file, each once, and notices of what is odd about them."""
    return parse_rules(read_text(path), path.name, constants, names, confidence)


def parse_rules(
    text: str,
    file: str,
    constants: Collection[str] = (),
    names: Names | None = None,
    confidence: str = "std",
) -> Rules:
    """The rules of a text; `constants` are the arguments of arrow rules that are no variables.

    >>> rules, _ = parse_rules("r1:0.5:p(x,y), q(y,'a') -> r(x,a)", "rules.txt", ["a"])
    >>> print(rules[0], rules[0].weight)
    r(x,a) :- p(x,y), q(y,a). 0.5
    """
    arguments = Arguments(frozenset(constants), names or Names())
    notices: list[Notice] = []
    known: dict[tuple[Atom, tuple[Atom, ...]], Rule] = {}
    named: dict[str, str] = {}
    for rule in _checked(_read(text, file, arguments, confidence, notices), notices):
        first = known.setdefault(rule.clause, rule)
        if first is not rule:
            message = f"the rule {shown(str(rule))} stands twice, first at {first.where}"
            notices.append(Notice("duplicate", message, rule.where))
        elif named.setdefault(rule.name, rule.where or "") != rule.where:
            message = f"the id {rule.name} names another rule, too, first at {named[rule.name]}"
            notices.append(Notice("duplicate", message, rule.where))
    used = {t for rule in known.values() for atom in (rule.head, *rule.body) for t in atom[1:]}
    for constant in sorted(set(constants) - used):
        message = f"{constant} is declared a constant, and no rule names it"
        notices.append(Notice("unknown-constant", message, file))
    return tuple(known.values()), (*arguments.notices(), *notices)


def _read(
    text: str, file: str, arguments: Arguments, confidence: str, notices: list[Notice]
) -> Iterator[Rule]:
    """The rules of a text in their order: the first line that tells says whose they are."""
    lines = [(where, line) for where, line in numbered(text, file) if not line.startswith("%")]
    for _, line in lines:
        if LINE.fullmatch(line):
            yield from _read_anyburl(lines, arguments.names, confidence, notices)
            return
        if is_header(line) or (is_rule(line) and "->" not in line):
            yield from _read_amie(lines, Amie(arguments.names, confidence), notices)
            return
        if "->" in line or ":-" in line:
            break
    if confidence != "std" and lines:
        raise InputError(
            f"--confidence {confidence}, and the rules have one weight each",
            where=lines[0][0],
            fix="leave --confidence out, or give AnyBURL's or AMIE's file",
        )
    for where, line in lines:
        yield _rule(line, where, arguments, f"r{where.rpartition(':')[2]}")


def _read_anyburl(
    lines: list[tuple[str, str]], names: Names, confidence: str, notices: list[Notice]
) -> Iterator[Rule]:
    for letter in sorted(filter(VARIABLE.fullmatch, names.entities)):
        message = f"{letter} is a variable in AnyBURL's rules, and an entity, too"
        notices.append(Notice("constant", message, lines[0][0]))
    free = []
    for where, line in lines:
        rule = anyburl_rule(line, where, names, confidence)
        if not rule.body and rule.head.variables:
            free.append(rule)
        else:
            yield rule
    if free:
        message = (
            f"{len(free)} rules with an empty body hold of every entity, and are left out: "
            f"{shown(str(free[0]))}"
        )
        notices.append(Notice("left-out", message, free[0].where))


def _read_amie(lines: list[tuple[str, str]], reader: Amie, notices: list[Notice]) -> Iterator[Rule]:
    passed = []
    for where, line in lines:
        if is_header(line):
            reader.header(line)
        elif is_rule(line):
            yield reader.rule(line, where)
        else:
            passed.append((where, line))
    if passed:
        where, line = passed[0]
        message = f"{len(passed)} lines that are no rules are passed over: {shown(line)}"
        notices.append(Notice("left-out", message, where))


def _checked(rules: Iterator[Rule], notices: list[Notice]) -> Iterator[Rule]:
    """The rules, each safe; weights that are no confidences are said."""
    odd: list[Rule] = []
    for rule in rules:
        _check_safe(rule)
        if not 0.0 < rule.weight <= 1.0:
            odd.append(rule)
        yield rule
    if odd:
        message = (
            f"{len(odd)} weights are not in (0, 1], so they are no confidences: {odd[0].weight}"
        )
        notices.append(Notice("weight", message, odd[0].where))


def _rule(line: str, where: str, arguments: Arguments, default: str) -> Rule:
    arrow, prolog = _find(line, "->"), _find(line, ":-")
    if arrow >= 0 and re.match(r"[^:(]*:-[\d.]", line):  # a weight with a sign
        prolog = -1
    if arrow >= 0 and prolog >= 0:
        raise _unlike(line, where, "both '->' and ':-'")
    if arrow >= 0:
        name, weight, body = _label(line[:arrow], where)

        def term(name: Name) -> Term:
            return arguments.term(name, where)

        return _build(line[arrow + 2 :], body, where, term, name, weight)
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


def _capital(name: Name) -> Term:
    if name.quoted or not (name.text[0].isupper() or name.text[0] == "_"):
        return name.text
    return Variable(name.text)


def _label(text: str, where: str) -> tuple[str, float, str]:
    parts = text.split(":", 2)
    if len(parts) != 3 or "(" in parts[0] or "(" in parts[1]:
        raise InputError(
            f"no id and weight before the body: {shown(text)}",
            where=where,
            fix="write id:weight:body, body -> head",
        )
    name, written, body = parts
    return name.strip(), number(written, where), body


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
            f"unsafe: {', '.join(loose)} of the head is not in the body of {shown(str(rule))}",
            where=rule.where,
            fix="bind every variable of the head in the body, or quote it to make it a constant",
        )


def _unlike(line: str, where: str, what: str) -> InputError:
    fix = "write id:weight:body, body -> head, or head :- body, body."
    if "<=" in line:
        fix = "write predicted<TAB>right<TAB>confidence<TAB>head <= body, body, or head :- body."
    return InputError(f"{what} in a rule: {shown(line)}", where=where, fix=fix)
