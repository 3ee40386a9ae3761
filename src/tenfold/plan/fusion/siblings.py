"""Siblings: groups of one time that read the same value become one, and read it once."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.plan.capabilities import STREAMS
from tenfold.plan.fusion.groups import Axes, Group, comparable, find
from tenfold.plan.fusion.union import LENGTH


def merge_siblings(groups: Sequence[Group], axes: Axes, most: int) -> None:
    """Merge groups of one time and one space that read a value in common, and so many at most."""
    seen: dict[tuple[float, int, tuple[int, ...]], Group] = {}
    extents = axes.extents
    for group in groups:
        if group.into is not None:
            continue
        space = tuple(extents[a] for a in group.space)
        for value in sorted(group.streams):
            key = (group.time, value, space)
            other = seen.get(key)
            if other is not None:
                other = find(other)[0]
            if other is None:
                seen[key] = group
            elif other is not group and _merge(axes, other, group, most):
                break


def _merge(axes: Axes, one: Group, two: Group, most: int) -> bool:
    """Make one group of two whose spaces run along the same axes, if that is wise."""
    if one.length + two.length > LENGTH or len(one.streams | two.streams) > most:
        return False
    if one.exits + two.exits > STREAMS:  # what is written is memory's, too
        return False
    if one.inner != two.inner:  # they would go through a matrix in two ways
        return False
    if one.transposed != two.transposed or one.whole != two.whole:
        return False
    if one.ordered or two.ordered or one.over or two.over:
        return False
    a, b = ([axes.find(x) for x in g.space] for g in (one, two))
    rename = dict(zip(b, a, strict=True))
    sets = [tuple(axes.find(x) for x in s) for s in one.reductions]
    more = [tuple(rename.get(axes.find(x), x) for x in s) for s in two.reductions]
    prefixes = [set(a[:n]) for n in range(len(a) + 1)]
    if any(set(s) not in prefixes for s in (*sets, *more)) and set(sets) != set(more):
        return False
    if not comparable([*sets, *more]):
        return False
    for mine, other in rename.items():
        axes.join(other, mine)
    two.into = one
    one.members += two.members
    one.writes += two.writes
    one.streams |= two.streams
    one.reductions = list({*sets, *more})
    one.weight += two.weight
    one.length += two.length
    one.folds += two.folds
    one.exits += two.exits
    one.costly = one.costly or two.costly
    one.consumer = min(one.consumer, two.consumer)
    return True
