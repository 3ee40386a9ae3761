"""All cases, in groups."""

from __future__ import annotations

import pointwise
import products
import programs
import rows
from case import Case

GROUPS = {
    "pointwise": pointwise.cases,
    "rows": rows.cases,
    "products": products.cases,
    "programs": programs.cases,
}


def cases() -> list[Case]:
    return [case for group in GROUPS.values() for case in group()]


def find(title: str) -> Case:
    return next(case for case in cases() if case.title == title)
