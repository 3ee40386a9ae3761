"""Products that are kernels: how they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenfold.ops.algebra.products import SIDES, sides
from tenfold.plan.fusion.access import Access
from tenfold.types import TensorType


def product_access(
    types: Sequence[TensorType], given: Mapping[str, Any], once: int | None = None
) -> Access:
    """From memory, since each element is read many times: but for the operand `once`, a matrix
    that multiplies a vector."""
    reduced = tuple(types[0].shape[a] for a in given["lhs_contract"])
    last = tuple(t.rank - 1 in given[f"{s}_contract"] for t, s in zip(types, SIDES, strict=True))
    if once is None:
        return Access(((), ()), (0, 0), (1, 1), reduced, weight=2, inner=frozenset([last]))
    free = [
        sides(t.rank, (), given[f"{side}_contract"]) for t, side in zip(types, SIDES, strict=True)
    ]
    rank = len(free[0]) + len(free[1])
    first = once * len(free[0])
    along = {a: rank + i for i, a in enumerate(given[f"{SIDES[once]}_contract"])}
    along |= {a: first + i for i, a in enumerate(free[once])}
    shape = types[once].shape
    pattern = tuple(None if n == 1 else along[a] for a, n in enumerate(shape))
    patterns = ((pattern,), ()) if once == 0 else ((), (pattern,))
    return Access(
        patterns, (0, 0), (int(once == 1), int(once == 0)), reduced, 2, inner=frozenset([last])
    )


def reads_once(types: Sequence[TensorType], given: Mapping[str, Any], operand: int) -> bool:
    """Whether this operand of a product is a matrix that multiplies one vector."""
    other = types[1 - operand]
    over = given[f"{SIDES[1 - operand]}_contract"]
    if (
        given["lhs_batch"]
        or not over
        or any(other.shape[a] != 1 for a in sides(other.rank, (), over))
    ):
        return False
    return types[operand].size > other.size
