"""Which nodes of a graph have to wait for which, by the bytes that they touch."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from tenfold.frozen import mutable

Range = tuple[int, int]  # the first byte, and the one behind the last


@mutable
class Span:
    """Bytes that were touched alike: who wrote them last, and who has read them since."""

    stop: int
    writer: int
    readers: list[int]


class Dependences:
    """The nodes so far, as spans of memory in order.

    >>> known = Dependences()
    >>> known.add(0, [], [(0, 64)]), known.add(1, [(0, 16)], [(64, 80)])
    ((), (0,))
    >>> known.add(2, [(16, 64)], [])
    (0,)
    >>> known.add(3, [], [(8, 24)])
    (0, 1, 2)
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._spans: list[Span] = []

    def add(self, node: int, reads: Iterable[Range], writes: Iterable[Range]) -> tuple[int, ...]:
        """The nodes that one has to follow: who wrote what it reads, and who touched what it
        writes."""
        found: set[int] = set()
        for start, stop in reads:
            for span in self._spans[self._part(start, stop)] if start < stop else ():
                found.add(span.writer)
                span.readers.append(node)
        for start, stop in writes:
            if start >= stop:
                continue
            part = self._part(start, stop)
            for span in self._spans[part]:
                found.add(span.writer)
                found.update(span.readers)
            self._starts[part] = [start]
            self._spans[part] = [Span(stop, node, [])]
        return tuple(sorted(found - {node, -1}))

    def _part(self, start: int, stop: int) -> slice:
        """The spans that make up a range, cut at its ends; what nobody touched becomes some."""
        self._cut(start)
        self._cut(stop)
        first = bisect_left(self._starts, start)
        at, where = start, first
        while at < stop:
            known = where < len(self._starts) and self._starts[where] == at
            if not known:
                end = min(stop, self._starts[where]) if where < len(self._starts) else stop
                self._starts.insert(where, at)
                self._spans.insert(where, Span(end, -1, []))
            at = self._spans[where].stop
            where += 1
        return slice(first, where)

    def _cut(self, at: int) -> None:
        """Have a span end where another begins."""
        n = bisect_right(self._starts, at) - 1
        if n < 0 or self._starts[n] == at or self._spans[n].stop <= at:
            return
        span = self._spans[n]
        self._starts.insert(n + 1, at)
        self._spans.insert(n + 1, Span(span.stop, span.writer, list(span.readers)))
        span.stop = at
