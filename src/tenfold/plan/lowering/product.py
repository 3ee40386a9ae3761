"""Products that are kernels: how they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenfold.plan.fusion.access import Access
from tenfold.types import TensorType


def product_access(types: Sequence[TensorType], given: Mapping[str, Any]) -> Access:
    """Always from memory, since each element is read many times."""
    reduced = tuple(types[0].shape[a] for a in given["lhs_contract"])
    return Access(((), ()), (0, 0), (1, 1), reduced, weight=2)
