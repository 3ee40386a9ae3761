"""AnyBURL's files: `predicted<TAB>right<TAB>confidence<TAB>head <= body, body`, as they are.

One capital letter is a variable, all else a constant. Names are written without quotes, whatever
they hold, so an atom is cut where the data knows the names. `me_myself_i` stands for the atom's
other argument.
"""

from __future__ import annotations

import re
from itertools import product

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.lexer import shown
from tenfold.apps.prover.input.measures import Measures
from tenfold.apps.prover.input.names import Names
from tenfold.apps.prover.input.terms import Atom, Rule, Term, Variable

LINE = re.compile(r"[^\t]*\t[^\t]*\t[^\t]*\t.*<=.*")
SELF = "me_myself_i"
VARIABLE = re.compile("[A-Z]")

# Nearly all atoms: names without commas and parentheses, so that there is one way to cut them.
_PLAIN_ATOM = re.compile(r"([^(),]+)\(([^(),]+),([^(),]+)\)(?:,\s*)?")
_PLAIN_ATOMS = re.compile(r"(?:[^(),]+\([^(),]+,[^(),]+\)(?:,\s*(?=.)|$))+")


def anyburl_rule(line: str, where: str, names: Names, confidence: str = "std") -> Rule:
    """The rule of a line.

    >>> made = anyburl_rule("20\\t10\\t0.5\\tp(X,c) <= q(X,A), r(A,d)", "f:1", Names())
    >>> print(made, made.weight)
    p(X,c) :- q(X,A), r(A,d). 0.5
    """
    fields = line.split("\t")
    if len(fields) != 4 or "<=" not in fields[3]:
        raise InputError(
            f"{len(fields)} fields between tabs, not three numbers and a rule: {shown(line)}",
            where=where,
            fix="write predicted<TAB>right<TAB>confidence<TAB>head <= body, body",
        )
    made, right, sure, text = fields
    weight = Measures(where, std=sure, support=right, body=made).weight(confidence)
    # a name may hold the mark, but hardly with spaces around it
    head, _, body = f"{text} ".partition(" <= " if " <= " in f"{text} " else "<=")
    heads, bodies = _atoms(head.strip(), where, names), _atoms(body.strip(), where, names)
    if len(heads) != 1:
        raise InputError(
            f"a rule with {len(heads)} heads", where=where, fix="write one atom before <="
        )
    return Rule(heads[0], tuple(bodies), f"r{where.rpartition(':')[2]}", weight, where)


def _atoms(text: str, where: str, names: Names) -> list[Atom]:
    """Atoms with commas between. Where a name holds `), ` the data decides where an atom ends."""
    if _PLAIN_ATOMS.fullmatch(text):
        return [_built(*match.groups()) for match in _PLAIN_ATOM.finditer(text)]
    made = []
    while text:
        ends = [match.end() for match in re.finditer(r"\)(?=,\s|$)", text)] or [len(text)]
        end = next((e for e in ends if _readings(text[:e], names, known=True)), ends[0])
        made.append(_atom(text[:end], where, names))
        text = text[end + 1 :].strip()
    return made


def _atom(text: str, where: str, names: Names) -> Atom:
    found = _readings(text, names, known=True) or _readings(text, names, known=False)
    if len(found) == 1:
        return found[0]
    if not found:
        raise InputError(
            f"{shown(text)} is no atom", where=where, fix="write predicate(subject,object)"
        )
    ways = " or ".join(" | ".join(map(str, atom)) for atom in found[:2])
    raise InputError(
        f"{shown(text)} can be read as {ways}",
        where=where,
        fix="write names of the data; new ones without commas and parentheses",
    )


def _readings(text: str, names: Names, *, known: bool) -> list[Atom]:
    """The ways to cut an atom; `known`: into names that the data has."""
    if not text.endswith(")"):
        return []
    opened = [at for at, letter in enumerate(text) if letter == "("]
    commas = [at for at, letter in enumerate(text) if letter == ","]
    made = []
    for left, comma in product(opened, commas):
        predicate, ends = text[:left], (text[left + 1 : comma], text[comma + 1 : -1])
        if not predicate or not all(ends):
            continue
        if not known or (predicate in names.predicates and all(_is_known(e, names) for e in ends)):
            made.append(_built(predicate, *ends))
    return made


def _is_known(name: str, names: Names) -> bool:
    return bool(VARIABLE.fullmatch(name)) or name == SELF or name in names.entities


def _built(predicate: str, first: str, second: str) -> Atom:
    if first == SELF != second:
        first = second
    elif second == SELF != first:
        second = first
    return Atom(predicate, _term(first), _term(second))


def _term(name: str) -> Term:
    return Variable(name) if VARIABLE.fullmatch(name) else name
