"""Lexer: the text of an atom list, cut into names and marks.

A bare name is any run of characters but white space, quotes, parentheses and commas, so dots and
slashes need no quotes. A quoted name may hold anything; a quote in it is doubled.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tenfold.apps.prover.errors import InputError


class Name(NamedTuple):
    """A name as it stood: quoted or bare."""

    text: str
    quoted: bool


class Call(NamedTuple):
    """A predicate and its arguments, before anyone says which are variables."""

    predicate: str
    arguments: tuple[Name, ...]


_TOKEN = re.compile(
    r"""\s*(?:
        (?P<mark>[(),])
      | '(?P<single>(?:[^']|'')*)'
      | "(?P<double>(?:[^"]|"")*)"
      | (?P<bare>[^\s(),'"]+)
    )""",
    re.VERBOSE,
)


def read_calls(text: str, where: str) -> tuple[Call, ...]:
    """A list of atoms, with commas between; no atom at all is an empty list.

    >>> read_calls("p(X, 'new york'), q(a.b,/m/01)", "f:1")[1].arguments
    (Name(text='a.b', quoted=False), Name(text='/m/01', quoted=False))
    """
    tokens = _tokens(text, where)
    calls: list[Call] = []
    at = 0
    while at < len(tokens):
        if calls:
            if tokens[at] != ",":
                raise _wrong(
                    text, where, f"{_shown(tokens[at])} where a comma or the end should be"
                )
            at += 1
        call, at = _call(tokens, at, text, where)
        calls.append(call)
    return tuple(calls)


def _call(tokens: list[str | Name], at: int, text: str, where: str) -> tuple[Call, int]:
    head = tokens[at] if at < len(tokens) else None
    if not isinstance(head, Name):
        raise _wrong(text, where, "no predicate where one should be")
    at += 1
    if at == len(tokens) or tokens[at] != "(":
        raise _wrong(text, where, f"no '(' after the predicate {_shown(head)}")
    arguments: list[Name] = []
    while True:
        at += 1
        name = tokens[at] if at < len(tokens) else None
        if not isinstance(name, Name):
            raise _wrong(text, where, f"an argument of {_shown(head)} is missing")
        arguments.append(name)
        at += 1
        mark = tokens[at] if at < len(tokens) else None
        if mark == ")":
            break
        if mark != ",":
            raise _wrong(text, where, f"no ',' or ')' after the argument {_shown(name)}")
    if len(arguments) != 2:
        raise InputError(
            f"{shown(head.text)} has {len(arguments)} arguments; a predicate has two",
            where=where,
            fix="write predicate(subject,object)",
        )
    return Call(head.text, tuple(arguments)), at + 1


def _tokens(text: str, where: str) -> list[str | Name]:
    tokens: list[str | Name] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise _wrong(text, where, "a quote that is not closed")
        at = match.end()
        kind = match.lastgroup
        found = match[kind] if kind else ""
        if kind == "mark":
            tokens.append(found)
        elif kind == "bare":
            tokens.append(Name(found, False))
        else:
            quote = "'" if kind == "single" else '"'
            tokens.append(Name(found.replace(quote * 2, quote), True))
    return tokens


def shown(text: str) -> str:
    """A text for a message: a long one is cut.

    >>> shown(" p(a,b) "), len(shown("x" * 10_000))
    ('p(a,b)', 101)
    """
    text = text.strip()
    return f"{text[:100]}…" if len(text) > 100 else text


def _shown(token: str | Name) -> str:
    return repr(shown(token.text if isinstance(token, Name) else token))


def _wrong(text: str, where: str, what: str) -> InputError:
    return InputError(
        f"{what}: {shown(text)}",
        where=where,
        fix="write predicate(subject,object); quote names with spaces, commas or parentheses",
    )
