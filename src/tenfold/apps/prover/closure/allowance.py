"""Allowance: how many facts and bytes a closure may come to."""

from __future__ import annotations

from dataclasses import dataclass

from tenfold.apps.prover.errors import InputError

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
MEMORY, FACTS = "memory", "max-facts"
MOST = (1 << 31) - 1  # facts of a table


class Stopped(Exception):
    """A limit would be passed; it is named by the first argument."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of a closure; None is none. Bytes are those of its own arrays: of facts, of what
    is made to join them, and of what is found."""

    memory: int | None = None
    facts: int | None = None

    def check(self, facts: int, nbytes: int) -> None:
        """Stop where so many would pass a limit."""
        if facts > (MOST if self.facts is None else min(self.facts, MOST)):
            raise Stopped(FACTS)
        if self.memory is not None and nbytes > self.memory:
            raise Stopped(MEMORY)


def bytes_of(text: str) -> int:
    """A number of bytes as it is written.

    >>> bytes_of("4G"), bytes_of("1.5k"), bytes_of("500MiB"), bytes_of("123")
    (4294967296, 1536, 524288000, 123)
    """
    bare = text.strip().upper().removesuffix("IB").removesuffix("B")
    unit = bare[-1:] if bare[-1:] in _UNITS else ""
    digits = bare.removesuffix(unit) if unit else bare
    whole, _, part = digits.partition(".")
    if not digits.isascii() or not whole.isdecimal() or not (part or "0").isdecimal():
        raise InputError(
            f"memory is {text!r}", fix="give a number of bytes, or one with K, M, G or T: 4G"
        )
    made = int(float(digits) * _UNITS[unit])
    if made < 1:
        raise InputError(f"memory is {text!r}", fix="give 1 or more")
    return made
