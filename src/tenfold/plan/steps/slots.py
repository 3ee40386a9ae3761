"""Slots: where in the arena each value lies while it lives."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence

from tenfold.frozen import frozen

ALIGN = 64
PAGE = 4096
STAGGER = 192  # added to large slots, so that arrays of a power of two do not share cache sets
GOOD = 1.03  # times the least there can be: good enough to look no further
REPAIRS = 40  # rounds of placing anew
LIMITS = 1.05, 1.09  # times the least there can be: what a search tries to stay within
TRIES = 6000  # places that a search tries
SPANS = 300_000  # steps lived through by all; beyond this no further packing is tried


@frozen
class Request:
    """Bytes wanted from one step to another, both included."""

    bytes: int
    first: int
    last: int

    @property
    def room(self) -> int:
        room = (self.bytes + ALIGN - 1) // ALIGN * ALIGN
        return room + STAGGER if room >= 4 * PAGE and room % PAGE < STAGGER else room


def greatest_live(requests: Sequence[Request]) -> int:
    """The most bytes wanted at one step."""
    changes: dict[int, int] = {}
    for r in requests:
        changes[r.first] = changes.get(r.first, 0) + r.bytes
        changes[r.last + 1] = changes.get(r.last + 1, 0) - r.bytes
    most = live = 0
    for step in sorted(changes):
        live += changes[step]
        most = max(most, live)
    return most


def lay_out(requests: Sequence[Request]) -> tuple[list[int], int]:
    """An offset for each request, and the bytes of the arena. Those that overlap in time do not
    overlap in memory."""
    least = greatest_live([Request(r.room, r.first, r.last) for r in requests])
    best = _in_order(requests)
    spans = sum(r.last - r.first + 1 for r in requests)
    for key in _ORDERS:
        if spans > SPANS or best[1] <= GOOD * least:
            break
        keys = [key(r) for r in requests]
        other = _one_by_one(requests, sorted(range(len(requests)), key=keys.__getitem__))
        if other[1] < best[1]:
            best = other
    for times in LIMITS:
        if spans <= SPANS and best[1] > times * least:
            best = _searched(requests, int(times * least)) or best
    if spans <= SPANS and best[1] > LIMITS[-1] * least:
        best = min(best, _repaired(requests, least), key=lambda found: found[1])
    return best


def _searched(requests: Sequence[Request], limit: int) -> tuple[list[int], int] | None:
    """In the order of time, each at one end of a hole; where one finds no room, those before it
    are moved to the next of their places, the latest first. None if that takes too long."""
    order = sorted(
        (n for n, r in enumerate(requests) if r.room),
        key=lambda n: (requests[n].first, -requests[n].room),
    )
    offsets = [0] * len(requests)
    taken: list[list[tuple[int, int, int]]] = [[]]  # before each: offset, end, last step of others
    places: list[Iterator[int]] = []  # that are left for each
    for _ in range(2 * len(order) + TRIES):
        depth = len(places)
        if depth == len(order):
            return offsets, max((offsets[n] + requests[n].room for n in order), default=0)
        r = requests[order[depth]]
        taken[depth] = [one for one in taken[depth] if one[2] >= r.first]
        places.append(_ends(taken[depth], r.room, limit))
        while (at := next(places[-1], None)) is None:
            places.pop()
            taken.pop()
            if not places:
                return None
        n = order[len(places) - 1]
        offsets[n] = at
        taken.append(sorted([*taken[-1], (at, at + requests[n].room, requests[n].last)]))
    return None


def _ends(taken: Sequence[tuple[int, int, int]], room: int, limit: int) -> Iterator[int]:
    """The first and the last offset in each hole that has the room."""
    start = 0
    for offset, end, _ in (*taken, (limit, limit, 0)):
        if offset - start >= room:
            yield start
            if offset - room > start:
                yield (offset - room) // ALIGN * ALIGN
        start = max(start, end)


def _repaired(requests: Sequence[Request], least: int) -> tuple[list[int], int]:
    """The largest first; then, again and again, what reaches highest is placed before the rest."""
    order = sorted(range(len(requests)), key=lambda n: (-requests[n].room, requests[n].first))
    best = _one_by_one(requests, order)
    offsets, most = best
    for _ in range(REPAIRS):
        if best[1] <= GOOD * least:
            break
        high = {n for n in order if requests[n].room and offsets[n] + requests[n].room == most}
        order = [n for n in order if n in high] + [n for n in order if n not in high]
        offsets, most = _one_by_one(requests, order)
        if most < best[1]:
            best = offsets, most
    return best


_ORDERS: tuple[Callable[[Request], tuple[int, ...]], ...] = (
    lambda r: (-r.room, r.first),
    lambda r: (r.first - r.last, -r.room, r.first),
    lambda r: ((r.first - r.last - 1) * r.room, r.first),
    lambda r: (r.first, -r.room),
    lambda r: (-r.last, -r.room),
)


def _one_by_one(requests: Sequence[Request], order: Sequence[int]) -> tuple[list[int], int]:
    """In this order, each at the lowest offset that is free all its life."""
    offsets = [0] * len(requests)
    alive: dict[int, list[int]] = {}  # step: who lives then, of those that have their place
    most = 0
    for n in order:
        r = requests[n]
        if not r.room:
            continue
        met: set[int] = set()
        for step in range(r.first, r.last + 1):
            met.update(alive.setdefault(step, []))
        at = 0
        for offset, end in sorted((offsets[m], offsets[m] + requests[m].room) for m in met):
            if offset >= at + r.room:
                break
            at = max(at, end)
        offsets[n] = at
        for step in range(r.first, r.last + 1):
            alive[step].append(n)
        most = max(most, at + r.room)
    return offsets, most


def _in_order(requests: Sequence[Request]) -> tuple[list[int], int]:
    """In the order of time, each in the smallest hole that fits."""
    offsets = [0] * len(requests)
    order = sorted(range(len(requests)), key=lambda n: (requests[n].first, -requests[n].room))
    ends: dict[int, list[int]] = {}
    for n in order:
        ends.setdefault(requests[n].last, []).append(n)
    deaths = sorted(ends)
    dead = 0
    starts: dict[int, int] = {}  # hole: start -> size
    stops: dict[int, int] = {}  # hole: end -> start
    sizes: list[tuple[int, int]] = []  # holes by size
    top = 0

    def take(start: int) -> int:
        size = starts.pop(start)
        del stops[start + size]
        sizes.pop(bisect_left(sizes, (size, start)))
        return size

    def give(start: int, size: int) -> None:
        nonlocal top
        if start in stops:
            before = stops[start]
            size += take(before)
            start = before
        if start + size in starts:
            size += take(start + size)
        starts[start] = size
        stops[start + size] = start
        insort(sizes, (size, start))

    for n in order:
        r = requests[n]
        while dead < len(deaths) and deaths[dead] < r.first:
            for gone in ends[deaths[dead]]:
                if requests[gone].room:
                    give(offsets[gone], requests[gone].room)
            dead += 1
        if not r.room:
            continue
        at = bisect_left(sizes, (r.room, -1))
        if at < len(sizes):
            _, start = sizes[at]
            size = take(start)
            offsets[n] = start
            if size > r.room:
                give(start + r.room, size - r.room)
        elif top in stops:  # a hole at the end grows
            start = stops[top]
            take(start)
            offsets[n] = start
            top = start + r.room
        else:
            offsets[n] = top
            top += r.room
    return offsets, top
