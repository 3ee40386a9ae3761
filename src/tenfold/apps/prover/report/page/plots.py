"""Plots: bars of counts, and the share of queries up to each rank."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape

# The realistic rank is a half where ties are odd, so that bins have halves, too.
_EDGES = (1, 1.5, 2, 2.5, 3, 10, 30, 100, 1000)
BINS = ("1", "1.5", "2", "2.5", "3", "3.5–10", "10.5–30", "30.5–100", "100.5–1000", "more")


def bin_of(rank: float) -> str:
    """The bin of a rank by its true value.

    >>> bin_of(1), bin_of(1.5), bin_of(3.5), bin_of(10), bin_of(10.5), bin_of(2000.5)
    ('1', '1.5', '3.5–10', '3.5–10', '10.5–30', 'more')
    """
    return next((name for name, edge in zip(BINS, _EDGES, strict=False) if rank <= edge), BINS[-1])


def bars(parts: Mapping[str, Sequence[int]]) -> str:
    """A bar for each name, of one part or of a good and a bad one."""
    most = max((sum(counts) for counts in parts.values()), default=0) or 1
    lines = []
    for name, counts in parts.items():
        pieces = "".join(
            f'<i{" class=bad" if number else ""} style="width:{100 * count / most:.2f}%"></i>'
            for number, count in enumerate(counts)
            if count
        )
        said = f"{sum(counts):,}"
        if len(counts) > 1 and counts[1]:
            said += f" ({counts[1]:,} unproved)" if counts[0] else " unproved"
        lines.append(
            f"<span class=name>{escape(name)}</span><span class=bar>{pieces}</span>"
            f"<span>{said}</span>"
        )
    return f"<div class=bars>{''.join(lines)}</div>"


def shares(ranks: Mapping[str, Sequence[float]]) -> str:
    """The share of queries up to each rank, on a logarithmic axis: a line for each kind of rank."""
    most = max((max(some) for some in ranks.values() if some), default=1)
    decades = max(1, math.ceil(math.log10(most)))
    kinds = dict(zip(ranks, ("third", "good", "bad"), strict=False))
    lines = [
        f'<polyline class={kinds[name]} points="{_points(some, decades)}"/>'
        for name, some in ranks.items()
    ]
    grid = [
        f'<line x1="{1000 * d / decades:g}" x2="{1000 * d / decades:g}" y1="0" y2="1000"/>'
        for d in range(1, decades + 1)
    ]
    ticks = [
        f'<span class=x style="left:{100 * d / decades:g}%">{10**d:,}</span>'
        for d in range(decades + 1)
    ]
    ticks += [
        f'<span class=y style="bottom:{percent}%">{percent / 100:g}</span>'
        for percent in (0, 25, 50, 75, 100)
    ]
    keys = "".join(f'<span class="key {kinds[name]}"></span>{escape(name)}' for name in ranks)
    return (
        f"<p class=soft>Rank, and the share of queries that have it or a lower one: Hits@k for "
        f"every k. {keys}</p><div class=plot>"
        f'<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" role="img" '
        f'aria-label="share of queries up to each rank">{"".join(grid + lines)}</svg>'
        f"{''.join(ticks)}</div>"
    )


def _points(ranks: Iterable[float], decades: int) -> str:
    """Steps up at each rank; those nearer than a point of the screen are one."""
    counts = Counter(ranks)
    total = sum(counts.values()) or 1
    points, done, last = [(0.0, 0)], 0, -1.0
    for rank in sorted(counts):
        x = 1000 * math.log10(rank) / decades
        before = done
        done += counts[rank]
        if points and x - last < 0.5:
            points[-1] = (points[-1][0], done)
        else:
            points += [(x, before), (x, done)]
            last = x
    points.append((1000.0, done))
    return " ".join(f"{x:.1f},{1000 - 1000 * count / total:.1f}" for x, count in points)
