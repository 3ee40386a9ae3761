"""The rollout in PyTorch: the same algorithm, a Python loop around one round.

Greedy, learned policy. It reads the same tables and the same queue as `tenfold.apps.prover`, and
gives the same ends. PyTorch has no unsigned products: hashes are signed here, with the same bits.
What a round does before it looks for repetitions, and what it does after, are a function each, so
that `torch.compile` has them whole; the search for repetitions ends as the data say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from prover_peers import DEPTH, GRAVE, PROVED, Search, Sizes
from prover_torch_successors import (
    GOLDEN,
    I64,
    down,
    fillings,
    match,
    mix,
    patterns,
    successors,
    take,
    written,
)

from tenfold.apps.prover.resolution.layout import Layout
from tenfold.apps.prover.resolution.matching import Without
from tenfold.apps.prover.resolution.patterns import Indices, Patterns
from tenfold.apps.prover.resolution.successors import Filling, Successors
from tenfold.apps.prover.resolution.tables import Tables
from tenfold.apps.prover.rollout.choice import NEAR
from tenfold.apps.prover.rollout.loop import RUNNING, Ends, Requests
from tenfold.apps.prover.rollout.policy import Weights

torch.set_num_threads(1)  # arrays are too short for more: two threads took longer

A = Any


class Expanded(NamedTuple):
    """What a round knows of its successors before it looks for repetitions."""

    search: Search
    over: A
    goes: A
    common: Patterns
    made: Successors
    hashes: A
    slot: Layout
    lane: A
    mixed: A
    alike: A


def as_torch(value: Any) -> Any:
    """Arrays in nested tuples as tensors, integers all of one width; unsigned ones keep their bits.
    Scalars as numbers."""
    if isinstance(value, tuple):
        made = [as_torch(part) for part in value]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    array = np.asarray(value)
    if array.dtype == np.uint64:
        array = array.view(np.int64)
    if not array.ndim:
        return array.item()
    return torch.from_numpy(array.astype(np.int64) if array.dtype == np.int32 else array.copy())


# The policy.


def summed(parts: Indices, w: Weights) -> A:
    # states beyond the room hold variables that have no place
    p, s, o = parts
    s, o = s.clamp(max=len(w.subjects) - 1), o.clamp(max=len(w.objects) - 1)
    made = torch.zeros((p.shape[1], w.inner.shape[0]))
    for i in range(len(p)):
        goal = take(w.predicates, p[i]) + take(w.subjects, s[i]) + take(w.objects, o[i])
        made += goal.clamp(min=0)
    return made


def judged(here: A, sums: A, row: A, w: Weights) -> A:
    hidden = (here @ w.inner + w.bias).clamp(min=0)
    view = (here + hidden @ w.outer) * float(np.float32(1 / np.sqrt(here.shape[-1])))
    inner = view @ w.outer.T
    hidden = (sums @ w.inner + w.bias).clamp(min=0)
    return (sums * take(view, row)).sum(1) + (hidden * take(inner, row)).sum(1)


# What has been seen.


def packed(words: A, size: int) -> A:
    there = words != 0
    rank = there.cumsum(0) - 1
    at = torch.where(there, rank.clamp(max=size), size)
    return torch.zeros((size + 1, words.shape[1]), dtype=I64).scatter(0, at, words)[:size]


def been(words: Callable[[A], A], lane: A, alike: A, past_words: A) -> A:
    """Only the slots that are alike by their hashes are looked at."""
    found = torch.zeros_like(lane, dtype=torch.bool)
    slot, at = alike.T.nonzero(as_tuple=True)
    if len(slot):
        other, mine = past_words[lane[slot], at].T, words(slot)
        same = (packed(mine, other.shape[0]) == other).all(0)
        found[slot[same & ((mine != 0).sum(0) <= other.shape[0])]] = True
    return found


def repeated(mixed: A, words: Callable[[A], A], lane: A, valid: A, room: int) -> A:
    count = lane.shape[0]
    shift = 64 - (room.bit_length() - 1)
    found, open_, turn = torch.zeros_like(valid), valid.nonzero()[:, 0], 0
    while len(open_):
        hashes = mixed[open_]
        place = down(hashes * (2 * turn + GOLDEN), shift)
        table = torch.full((room,), count).scatter_reduce(0, place, open_, "amin")
        holder = table[place]
        other = holder != open_
        open_, holder, hashes = open_[other], holder[other], hashes[other]
        if not len(open_):
            break
        alike = (mixed[holder] == hashes) & (lane[holder] == lane[open_])
        one, two = words(open_), words(holder)
        alike &= (packed(one, one.shape[0]) == packed(two, two.shape[0])).all(0)
        found[open_[alike]] = True
        open_, turn = open_[~alike], turn + 1
    return found


# A round.


def refilled(search: Search, asked: Requests, w: Weights) -> Search:
    lanes, queue = search.number.shape[0], asked.words.shape[0] - 1
    free = search.number >= queue
    next_ = search.next + free.cumsum(0) - 1
    takes = free & (next_ < asked.count)
    fresh = torch.where(takes, next_, queue)
    begins = takes & (asked.outcome[fresh] == RUNNING)
    top = torch.arange(search.words.shape[0])[:, None] == 0
    words = torch.where(begins, torch.where(top, asked.words[fresh], 0), search.words)
    live = begins | (search.live & ~free)
    hashes = torch.where(begins, asked.hashes[fresh], search.hashes)
    alone = summed(Indices(*(part[fresh][None] for part in asked.parts)), w)
    number = torch.where(free, torch.where(begins, fresh, queue), search.number)
    step = torch.where(begins, 0, search.step)
    rows = torch.where(number < queue, torch.arange(lanes), lanes)
    search.past[step, rows] = hashes
    search.past_words[rows, step] = torch.where(live, words, -1).T
    return search._replace(
        words=words,
        live=live,
        scores=torch.where(begins, 0.0, search.scores),
        lowest=torch.where(begins, asked.height, search.lowest),
        hashes=hashes,
        sums=torch.where(begins[:, None], alone, search.sums),
        number=number,
        step=step,
        near=torch.where(begins, 0, search.near),
        next=search.next + takes.sum(),
    )


def fitting(wants: tuple[A, A], rooms: tuple[int, int]) -> A:
    want, room = torch.stack(wants), torch.tensor(rooms)[:, None]
    first = (want.cumsum(1) <= room).all(0)
    left = room - torch.where(first, want, 0).sum(1, keepdim=True)
    small = ~first & (want <= left).all(0)
    return first | (small & (torch.where(small, want, 0).cumsum(1) <= left).all(0))


def laid_out(counts: A, room: int) -> Layout:
    ends = counts.cumsum(0)
    at = torch.arange(room)
    # the first state whose end lies beyond a place
    row = torch.searchsorted(ends, at, right=True)
    valid = at < ends[-1]
    row = torch.where(valid, row, 0)
    starts = ends - counts
    return Layout(row, torch.where(valid, at - take(starts, row), 0), valid, starts)


def expanded(search: Search, asked: Requests, t: Tables, w: Weights, sizes: Sizes) -> Expanded:
    """The successors of as many lanes as there are slots for."""
    search = refilled(search, asked, w)
    slots, lanes = sizes.slots, sizes.lanes
    without = Without(*(take(column, search.number) for column in asked.without))
    found = match(search.words, search.live, without, t)
    need, kinds = found.facts + found.rules, (found.facts > 0) + found.rules
    running = search.number < asked.words.shape[0] - 1
    over = running & (need > slots)
    room = sizes.patterns(t.each.shape[0])
    wants = torch.where(over, 0, need), torch.where(over, 0, kinds)
    goes = running & (over | fitting(wants, (slots, room)))
    takes = goes & ~over & search.live
    kind = laid_out(torch.where(takes, kinds, 0), room)
    nth = kind.k - take((found.facts > 0).long(), kind.row)
    common = patterns(search.words, found, without.key, t, kind.row, nth, sizes.names)
    slot = laid_out(torch.where(takes, need, 0), slots)
    row, k, valid, _ = slot
    lane = torch.where(valid, row, lanes)
    facts = take(found.facts, row)
    pattern = take(kind.starts, row) + torch.where(k < facts, 0, k - facts + (facts > 0))
    pattern = pattern.clamp(max=room - 1)
    made = successors(common, fillings(found, without.key, t, row, k, pattern), t)
    hashes = made.hashes & asked.mask
    step = torch.where(valid, take(search.step, row), -1)
    alike = (take(search.past, lane, 1) == hashes) & (torch.arange(sizes.most + 1)[:, None] <= step)
    mixed = mix(hashes ^ (lane * GOLDEN))
    return Expanded(search, over, goes, common, made, hashes, slot, lane, mixed, alike)


def greatest(lanes: int, home: A, values: A) -> A:
    low = torch.full((lanes + 1,), -torch.inf, dtype=values.dtype)
    return low.scatter_reduce(0, home, values, "amax")


def moved(e: Expanded, usable: A, asked: Requests, t: Tables, w: Weights, sizes: Sizes) -> Search:
    """The lanes with the chosen successors for states, and what became of their candidates."""
    slots, lanes, size, names, _ = sizes
    search, made, lane = e.search, e.made, e.lane
    row, k, valid, _ = e.slot
    queue = asked.words.shape[0] - 1
    slot = torch.arange(slots)
    home = torch.where(usable, row, lanes)
    sums = take(summed(e.common.parts, w), made.filling.pattern) + summed(made.parts, w)
    scores = judged(search.sums, sums, row, w)
    top = greatest(lanes, home, scores)
    above = scores - take(torch.where(top.isfinite(), top, 0.0), home)
    chance = torch.where(usable, above.exp(), 0.0)
    total = torch.zeros(lanes + 1).scatter_add(0, home, chance)
    reached = take(search.scores, row) + (above - take(total, home).clamp(min=1e-38).log()).double()
    proof = usable & (made.counts == 0)
    wish = torch.where(usable, torch.where(proof, torch.inf, reached), -torch.inf)
    grave = torch.where(usable, torch.where(proof, 2, 1), 0)
    grave = torch.where(valid & (made.variables > names), 3, grave)
    grave = torch.where(valid & (made.counts > size), 4, grave)
    most = torch.zeros(lanes + 1, dtype=I64).scatter_reduce(0, lane, grave, "amax")
    outcome = torch.tensor(GRAVE)[torch.where(e.over, 5, most[:lanes])]
    best = greatest(lanes, home, wish)
    first = torch.where(usable & (wish == take(best, lane)), lane, lanes)
    at = torch.full((lanes + 1,), slots).scatter_reduce(0, first, slot, "amin")
    at = at.clamp(max=slots - 1)
    others = torch.where(usable & (slot != take(at, lane)), lane, lanes)
    last, next_ = best[:lanes], greatest(lanes, others, wish)[:lanes]
    near = (next_ > -torch.inf) & (last < torch.inf) & (last - next_ < NEAR)
    at = at[:lanes]
    onward = e.goes & ((outcome == RUNNING) | (outcome == PROVED))
    steps = torch.where(onward, search.step + 1, search.step)
    outcome = torch.where((outcome == RUNNING) & (steps >= asked.steps), DEPTH, outcome)
    done = e.goes & (outcome != RUNNING)
    nears = search.near + (onward & (outcome != PROVED) & near)
    low = torch.minimum(take(search.lowest, take(row, at)), take(made.lowest, at))
    low = torch.where(onward, low, search.lowest)
    score = torch.where(onward, take(reached, at), search.scores)
    chosen = written(e.common, Filling(*(take(part, at) for part in made.filling)), t)
    ended = torch.where(done, search.number, queue)
    going = torch.where(onward, search.number, queue)
    here = search.step.clamp(max=search.ends.choices.shape[1] - 1)
    search.ends.scores[ended] = score
    search.ends.rest[ended] = torch.stack([outcome, low, steps, nears], 1)
    search.ends.choices[going, here, 0] = take(k, at)
    return search._replace(
        words=torch.where(onward, packed(chosen, size), search.words),
        scores=score,
        lowest=low,
        hashes=torch.where(onward, take(e.hashes, at), search.hashes),
        sums=torch.where(onward[:, None], take(sums, at), search.sums),
        number=torch.where(done, queue, search.number),
        step=steps,
        near=nears,
    )


class Parts(NamedTuple):
    """The two halves of a round, compiled or not."""

    expanded: Callable[..., Expanded] = expanded
    moved: Callable[..., Search] = moved


@torch.inference_mode()
def roll(asked: Requests, t: Tables, w: Weights, sizes: Sizes, parts: Parts) -> Ends:
    """The ends of a queue; arguments as from `as_torch`."""
    _, lanes, size, names, most = sizes

    def apart(terms: A) -> A:
        return torch.where(terms < 0, terms - names, terms)

    t = t._replace(heads=apart(t.heads), bodies=torch.cat([t.bodies[:1], apart(t.bodies[1:])]))
    # a goal that is not there has a predicate that no rectifier lets through
    low = torch.full_like(w.predicates[:1], -torch.inf)
    w = w._replace(predicates=torch.cat([w.predicates, low]))
    asked = asked._replace(count=torch.tensor(asked.count))  # another count is no other program
    queue = asked.words.shape[0] - 1
    height = torch.full((queue + 1,), asked.height)

    def zeros(*shape: int, dtype: A = I64) -> A:
        return torch.zeros(shape, dtype=dtype)

    search = Search(
        zeros(size, lanes),
        zeros(lanes, dtype=torch.bool),
        zeros(lanes, dtype=torch.float64),
        zeros(lanes),
        zeros(lanes),
        zeros(lanes, w.inner.shape[0], dtype=torch.float32),
        zeros(most + 1, lanes + 1),
        zeros(lanes + 1, most + 1, size),
        torch.full((lanes,), queue),
        zeros(lanes),
        zeros(lanes),
        Ends(
            zeros(queue + 1, dtype=torch.float64),
            torch.stack([asked.outcome, height, 0 * height, 0 * height], 1),
            zeros(queue + 1, most, 1),
        ),
        torch.tensor(0),
    )
    while bool(((search.number < queue).any()) | (search.next < asked.count)):
        now = parts.expanded(search, asked, t, w, sizes)

        def words(at: A, now: Expanded = now) -> A:
            return written(now.common, Filling(*(take(part, at) for part in now.made.filling)), t)

        valid = now.slot.valid
        usable = valid & ~repeated(now.mixed, words, now.lane, valid, sizes.places())
        usable &= ~been(words, now.lane, now.alike, search.past_words)
        search = parts.moved(now, usable, asked, t, w, sizes)
    return search.ends


def ready(
    tables: Tables, weights: Weights, compiled: bool = False
) -> Callable[[Requests, Sizes], Ends]:
    """The rollout of a queue, with tables and weights in place; its halves compiled or not."""
    fixed = as_torch((tables, weights))
    parts = Parts(*(torch.compile(f, dynamic=False) for f in Parts())) if compiled else Parts()

    def rolled(asked: Requests, sizes: Sizes) -> Ends:
        made = roll(as_torch(asked), *fixed, sizes, parts)
        return Ends(*(column.numpy() for column in made))

    return rolled
