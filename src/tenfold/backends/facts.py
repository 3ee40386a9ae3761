"""Facts as plain data, for plan files: how numbers are computed from sizes, and what was found out
about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from math import isfinite
from typing import Any

from tenfold.kernel.ir.number import _OPERATIONS, Computed, Facts
from tenfold.plan.file.sections import bad


def facts_data(facts: Facts) -> list[Any]:
    made = [astuple(one) if isinstance(one, Computed) else one for one in facts.made]
    asked = [[at, answer] for at, answer in facts.asked.items()]
    return [len(facts.sizes), made, asked, sorted(facts.preferred), list(facts.keys.values())]


def read_facts(data: Any) -> Facts:
    """Facts that answer for other sizes; nothing can be asked any more."""
    count, rows, asked, preferred, keys = data
    facts = Facts([0] * int(count))
    made: list[Computed | int | float | None] = []
    for at, row in enumerate(rows):
        if isinstance(row, tuple):
            operation, first, second = row
            if operation not in _OPERATIONS:
                bad("malformed code: no such operation")
            row = Computed(operation, within(first, rows[:at]), within(second, rows[:at]))
        elif row is None:
            if at >= int(count):
                bad("malformed code: a number of which nothing is known")
        elif type(row) not in (int, float) or not isfinite(row):
            bad("malformed code: no number")
        made.append(row)
    facts.made = made
    facts.values = [0] * len(made)
    facts.asked = {within(at, made): bool(answer) for at, answer in asked}
    facts.preferred = {within(at, made) for at in preferred}
    facts.keys = {n: within(at, made) for n, at in enumerate(keys)}
    return facts


def within(number: int, rows: Sequence[Any]) -> int:
    """A number that leads to one of these rows; an error where it leads nowhere."""
    if type(number) is not int or not 0 <= number < len(rows):
        bad("malformed code: a number that leads nowhere")
    return number
