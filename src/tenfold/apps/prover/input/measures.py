"""Measures: the numbers beside a mined rule, and which of them becomes its weight."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from tenfold.apps.prover.errors import InputError

CONFIDENCES = ("std", "pca", "smoothed")
UNSEEN = 5  # failures added by `smoothed`, as AnyBURL does when it applies its rules


@dataclass(frozen=True, slots=True)
class Measures:
    """What a rule miner says of a rule, as it is written; None where there is no such column."""

    where: str
    std: str | None = None
    pca: str | None = None
    support: str | None = None
    body: str | None = None

    def weight(self, confidence: str) -> float:
        """The confidence that is asked for, in (0, 1]."""
        self._check_counts()
        if confidence == "smoothed":
            if self.support is None or self.body is None:
                raise self._missing("no support and body size")
            right, made = self._count(self.support), self._count(self.body)
            return in_range(right / (made + UNSEEN), f"{right} of {made}", self.where)
        written = self.pca if confidence == "pca" else self.std
        if written is None:
            raise self._missing(f"no {'PCA' if confidence == 'pca' else 'standard'} confidence")
        return in_range(number(written, self.where), written, self.where)

    def _check_counts(self) -> None:
        right = None if self.support is None else self._count(self.support)
        made = None if self.body is None else self._count(self.body)
        if right is not None and made is not None and right > made:
            raise InputError(
                f"{right} right predictions of {made}",
                where=self.where,
                fix="see that no column is missing or in another's place",
            )

    def _count(self, written: str) -> int:
        value = number(written, self.where)
        if value < 0 or not value.is_integer():
            raise InputError(
                f"a count of {written}",
                where=self.where,
                fix="see that no column is missing or in another's place",
            )
        return int(value)

    def _missing(self, what: str) -> InputError:
        return InputError(
            f"{what} beside this rule", where=self.where, fix="say another --confidence"
        )


def number(written: str, where: str) -> float:
    """A finite number.

    >>> number(" 1e-3", "rules.txt:3")
    0.001
    """
    text = written.strip()
    if re.fullmatch(r"[+-]?\d*,\d+([eE][+-]?\d+)?", text):
        raise InputError(
            f"{text} has a decimal comma",
            where=where,
            fix=f"write {text.replace(',', '.')}; Java writes points with -Duser.language=en",
        )
    try:
        value = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        raise InputError(
            f"{text[:60]!r} where a number should be",
            where=where,
            fix="see that no column is missing or in another's place",
        ) from None
    if not math.isfinite(value):
        raise InputError(f"the number {text}", where=where, fix="give a finite number")
    return value


def in_range(weight: float, written: str, where: str) -> float:
    """A weight that is a confidence."""
    if not 0.0 < weight <= 1.0:
        raise InputError(
            f"the weight {written.strip()} is not in (0, 1]",
            where=where,
            fix="leave the rule out, or give a confidence above 0 and at most 1",
        )
    return weight
