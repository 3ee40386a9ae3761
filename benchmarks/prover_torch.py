"""The rollout in PyTorch: the same algorithm, a Python loop around one round.

Greedy, learned policy. It reads the same tables and the same queue as `tenfold.apps.prover`, and
gives the same ends. PyTorch has no unsigned products: hashes are signed here, with the same bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.rollout.loop import NEAR, RUNNING, Asked, Ends
from tenfold.apps.prover.rollout.successors import FAR
from tenfold.apps.prover.rollout.tables import ANY, LOOP, OBJECT, SUBJECT, Tables
from tenfold.apps.prover.rollout.words import HEIGHT

A = Any
I32, I64 = torch.int32, torch.int64
GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15
FACTORS = (GOLDEN, -4417276706812531889)  # 0xC2B2AE3D27D4EB4F
MIXERS = (-4658895280553007687, -7723592293110705685)
KINDS = (
    Outcome.GAVE_UP, RUNNING, Outcome.PROVED, Outcome.OVERFLOW_VARS, Outcome.OVERFLOW_ATOMS,
    Outcome.OVERFLOW_STATES,
)  # fmt: skip


class Search(NamedTuple):
    """Where the search stands; the last row of what is by candidate is for none."""

    words: A
    live: A
    scores: A
    lowest: A
    hashes: A
    sums: A
    past: A
    past_words: A
    number: A
    step: A
    near: A
    ends: Ends
    next: A


def as_torch(value: Any) -> Any:
    """Arrays in nested tuples as tensors; unsigned ones keep their bits. Scalars as numbers."""
    if isinstance(value, tuple):
        made = [as_torch(part) for part in value]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    array = np.asarray(value)
    if array.dtype == np.uint64:
        array = array.view(np.int64)
    return torch.from_numpy(array.copy()) if array.ndim else array.item()


def down(x: A, by: int) -> A:
    """A shift that brings zeros."""
    return (x >> by) & ((1 << (64 - by)) - 1)


def take(column: A, at: A) -> A:
    """Entries of a column; places beyond it are brought inside, as the others do."""
    return column[at.clamp(0, column.shape[0] - 1)]


def parted(word: A, bits: int) -> tuple[A, A, A, A]:
    half, mask = 1 << (bits - 1), (1 << bits) - 1
    high = word >> HEIGHT
    return (
        (high >> 2 * bits) - 1,
        ((high >> bits) & mask) - half,
        (high & mask) - half,
        word & ((1 << HEIGHT) - 1),
    )


def joined(p: A, s: A, o: A, left: A, bits: int) -> A:
    half = 1 << (bits - 1)
    return ((((((p + 1) << bits) | (s + half)) << bits) | (o + half)) << HEIGHT) | left


def bind(a: A, b: A) -> tuple[A, A, A]:
    return torch.where(b < 0, b, a), torch.where(b < 0, a, b), (a == b) | (a < 0) | (b < 0)


def unify(s: A, o: A, x: A, y: A) -> tuple[A, A, A, A, A]:
    one, to_one, fit = bind(s, x)
    two, to_two, fits = bind(torch.where(o == one, to_one, o), torch.where(y == one, to_one, y))
    return fit & fits, one, to_one, two, to_two


def match(words: A, live: A, without: A, t: Tables) -> tuple[A, ...]:
    p, s, o, left = parted(words[0], t.bits)
    p = p.clamp(min=0)
    known, other = s >= 0, o >= 0
    kind = torch.where(s == o, LOOP, ANY)
    kind = torch.where(known, SUBJECT, torch.where(other, OBJECT, kind))
    key = ((kind * t.predicates + p) << t.bits) | torch.where(known, s, torch.where(other, o, 0))
    one, two = (down_by(key * factor, t.ranges.shift) for factor in FACTORS)
    at_one, at_two = t.ranges.keys[0][one] == key, t.ranges.keys[1][two] == key
    first, facts = (
        torch.where(at_one, v[0][one], torch.where(at_two, v[1][two], 0))
        for v in (t.firsts, t.counts)
    )
    skip = torch.where(kind == OBJECT, without.object, without.subject)
    skip = torch.where(kind == LOOP, without.loop, skip)
    skipped = (skip >= first) & (skip < first + facts)
    start = t.starts[p]
    each = t.each[:, None]
    clause = (start + each).clamp(max=t.heads.shape[1] - 1)
    there = each < t.starts[p + 1] - start
    fits = unify(s, o, t.heads[0][clause].long(), t.heads[1][clause].long())[0]
    ranks = (fits & there & live & (left > 0)).cumsum(0)
    nth = (ranks[None] <= t.each[:, None, None]).sum(1)
    which = (start + nth).clamp(max=t.heads.shape[1] - 1)
    facts = torch.where(live & ~(known & other), facts - skipped.int(), 0).long()
    return (s, o, left), first.long(), torch.where(skipped, skip, FAR), facts, which, ranks[-1]


def down_by(x: A, shift: int) -> A:
    return down(x, int(shift))


def successors(words: A, found: A, without: A, t: Tables, row: A, k: A, names: int) -> A:
    goal, first, skip, facts, which, _ = found
    mine = facts[row]
    by_fact = k < mine
    entry = first[row] + k
    entry = torch.where(entry >= skip[row], entry + 1, entry)
    nth = torch.where(by_fact, 0, k - mine)
    clause = take(which.reshape(-1), nth * words.shape[1] + row)
    x = torch.where(by_fact, take(t.subjects, entry), t.heads[0][clause]).long()
    y = torch.where(by_fact, take(t.objects, entry), t.heads[1][clause]).long()
    s, o, left = (part[row] for part in goal)
    _, one, to_one, two, to_two = unify(s, o, x, y)
    rest = words[1:][:, row]
    parts = parted(rest, t.bits)
    body = t.bodies[:, :, clause].long()
    there = torch.cat([(body[0] >= 0) & ~by_fact, rest != 0])
    before = [torch.cat([a, b]) for a, b in zip(body, parts, strict=False)]

    def bound(term: A) -> A:
        term = torch.where(term == one, to_one, term)
        return torch.where(term == two, to_two, term)

    after = [bound(term) for term in before[1:]]
    height = torch.cat([(left - 1).expand(body[0].shape), parts[3]])
    word = joined(before[0], after[0], after[1], height, t.bits)
    key = word >> HEIGHT
    new = (torch.arange(word.shape[0]) < body[0].shape[0])[:, None]
    new = new | (after[0] != before[1]) | (after[1] != before[2])
    look = there & new & (after[0] >= 0) & (after[1] >= 0)
    asked = torch.where(look, key, 0)
    a, b = (down_by(asked * factor, t.facts.shift) for factor in FACTORS)
    known = (t.facts.keys[0][a] == asked) | (t.facts.keys[1][b] == asked)
    used = there & ~(look & known & (key != without[row]))
    at = torch.arange(word.shape[0])[:, None]
    key = torch.where(used, key, -1 - at)
    same = key[:, None] == key[None]
    again = (same & (at[:, None] > at)).any(1)
    least = torch.where(same, word[None], torch.iinfo(I64).max).amin(1)
    made = renamed(torch.where(used & ~again, least, 0), t, names)
    return *made, torch.where(by_fact, left, left - 1)


def renamed(word: A, t: Tables, names: int) -> tuple[A, ...]:
    most = names + t.fresh.shape[0]
    width = most.bit_length()
    each = 63 // width
    maps = [torch.zeros_like(word[0]) for _ in range(-(-most // each))]
    given, counts, hashes = (torch.zeros_like(word[0]) for _ in range(3))
    rows: list[tuple[A, ...]] = []

    def number(term: A, used: A) -> A:
        nonlocal given
        old = -1 - term
        many = len(maps) > 1
        place = torch.where(used & (term < 0), (old % each if many else old) * width, 0)
        part = old // each if many else torch.zeros_like(old)
        map_ = maps[0]
        for i in range(1, len(maps)):
            map_ = torch.where(part == i, maps[i], map_)
        had = (map_ >> place) & ((1 << width) - 1)
        new = used & (term < 0) & (had == 0)
        given = given + new
        mark = torch.where(new, given << place, 0)
        for i in range(len(maps)):
            maps[i] = maps[i] | (torch.where(part == i, mark, 0) if many else mark)
        return torch.where(term < 0, -torch.where(new, given, had), term)

    for one in word:
        used = one != 0
        p, s, o, left = parted(one, t.bits)
        s, o = number(s, used), number(o, used)
        made = torch.where(used, joined(p, s, o, left, t.bits), 0)
        mixed = (hashes ^ made) * GOLDEN
        hashes = torch.where(used, mixed ^ down(mixed, 29), hashes)
        counts = counts + used
        s, o = (torch.where(used, torch.where(v < 0, t.constants - 1 - v, v), 0) for v in (s, o))
        rows.append((made, torch.where(used, p, t.predicates), s, o))
    made, *parts = (torch.stack(column) for column in zip(*rows, strict=True))
    return made, parts, counts, given, hashes


def summed(parts: A, w: A) -> A:
    p, s, o = parts
    predicates = torch.cat([w.predicates, torch.full_like(w.predicates[:1], -torch.inf)])
    made = torch.zeros((p.shape[1], w.inner.shape[0]))
    # states beyond the room hold variables that have no place
    s, o = s.clamp(max=len(w.subjects) - 1), o.clamp(max=len(w.objects) - 1)
    for i in range(p.shape[0]):
        made += (predicates[p[i]] + w.subjects[s[i]] + w.objects[o[i]]).clamp(min=0)
    return made


def judged(here: A, sums: A, row: A, w: A) -> A:
    hidden = (here @ w.inner + w.bias).clamp(min=0)
    view = (here + hidden @ w.outer) * float(np.float32(1 / np.sqrt(here.shape[-1])))
    inner = view @ w.outer.T
    hidden = (sums @ w.inner + w.bias).clamp(min=0)
    return (sums * view[row]).sum(1) + (hidden * inner[row]).sum(1)


def packed(words: A, size: int) -> A:
    there = words != 0
    rank = there.long().cumsum(0) - 1
    at = torch.where(there, rank.clamp(max=size), size)
    return torch.zeros((size + 1, words.shape[1]), dtype=I64).scatter(0, at, words)[:size]


def been(words: A, hashes: A, lane: A, valid: A, search: Search, used: A) -> A:
    at = torch.arange(search.past.shape[0])[:, None]
    alike = (search.past[:, lane] == hashes) & (at < used[lane]) & valid
    open_ = alike.any(0)
    found = open_ & ~open_
    last = torch.full(lane.shape, -1)
    while bool(open_.any()):
        next_ = alike & (at > last) & open_
        there, last = next_.any(0), next_.int().argmax(0)
        other = search.past_words[lane, last].T
        same = there & (packed(words, other.shape[0]) == other).all(0)
        same = same & ((words != 0).sum(0) <= other.shape[0])
        open_, found = there & ~same, found | same
    return found


def repeated(words: A, hashes: A, lane: A, valid: A) -> A:
    count = lane.shape[0]
    slots = torch.arange(count)
    room = 1 << (8 * count - 1).bit_length()
    shift = 64 - (room.bit_length() - 1)
    x = hashes ^ (lane * GOLDEN)
    x = (x ^ down(x, 30)) * MIXERS[0]
    x = (x ^ down(x, 27)) * MIXERS[1]
    mixed = x ^ down(x, 31)
    open_, found, turn = valid, valid & ~valid, 0
    while bool(open_.any()):
        place = torch.where(open_, down(mixed * (2 * turn + GOLDEN), shift), room)
        table = torch.full((room + 1,), count).scatter_reduce(0, place, slots, "amin")
        holder = table[place].clamp(max=count - 1)
        mine = holder == slots
        alike = open_ & ~mine & (mixed[holder] == mixed) & (lane[holder] == lane)
        if bool(alike.any()):
            size = words.shape[0]
            alike &= (packed(words, size) == packed(words[:, holder], size)).all(0)
        open_, found, turn = open_ & ~mine & ~alike, found | alike, turn + 1
    return found


def refilled(search: Search, asked: Asked, w: A) -> Search:
    lanes, queue = search.number.shape[0], asked.words.shape[0] - 1
    free = search.number >= queue
    next_ = search.next + free.long().cumsum(0) - 1
    takes = free & (next_ < asked.count)
    fresh = torch.where(takes, next_, queue)
    begins = takes & (asked.outcome[fresh] == RUNNING)
    top = torch.arange(search.words.shape[0])[:, None] == 0
    words = torch.where(begins, torch.where(top, asked.words[fresh], 0), search.words)
    live = begins | (search.live & ~free)
    hashes = torch.where(begins, asked.hashes[fresh], search.hashes)
    alone = summed([part[fresh][None] for part in asked.parts], w)
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


def fitting(wants: A, slots: int) -> A:
    first = wants.cumsum(0) <= slots
    left = slots - torch.where(first, wants, 0).sum()
    small = ~first & (wants <= left)
    return first | (small & (torch.where(small, wants, 0).cumsum(0) <= left))


def greatest(lanes: int, home: A, values: A) -> A:
    low = torch.full((lanes + 1,), -torch.inf, dtype=values.dtype)
    return low.scatter_reduce(0, home, values, "amax")


def one_round(search: Search, asked: Asked, t: Tables, w: A, slots: int, names: int) -> Search:
    search = refilled(search, asked, w)
    lanes, queue, size = search.number.shape[0], asked.words.shape[0] - 1, search.words.shape[0]
    without = type(asked.without)(*(column[search.number] for column in asked.without))
    found = match(search.words, search.live, without, t)
    need = found[3] + found[5]
    running = search.number < queue
    over = running & (need > slots)
    goes = running & (over | fitting(torch.where(over, 0, need), slots))
    takes = goes & ~over & search.live
    ends = torch.where(takes, need, 0).cumsum(0)
    slot = torch.arange(slots)
    marks = torch.zeros(slots + 1, dtype=I64)
    marks[torch.where(takes & (need > 0), ends - need, slots)] = torch.arange(lanes)
    row = marks[:slots].cummax(0).values
    valid = slot < ends[-1]
    row = torch.where(valid, row, 0)
    lane = torch.where(valid, row, lanes)
    k = torch.where(valid, slot - (ends[row] - need[row]), 0)
    made = successors(search.words, found, without.key, t, row, k, names)
    words, parts, counts, variables, hashes, lowest = made
    usable = valid & ~repeated(words, hashes, lane, valid)
    used = torch.cat([search.step + 1, torch.zeros(1, dtype=I64)])
    usable = usable & ~been(words, hashes, lane, usable, search, used)
    home = torch.where(usable, row, lanes)
    sums = summed(parts, w)
    scores = judged(search.sums, sums, row, w)
    top = greatest(lanes, home, scores)
    above = scores - torch.where(top.isfinite(), top, 0.0)[home]
    chance = torch.where(usable, above.exp(), 0.0)
    total = torch.zeros(lanes + 1).scatter_add(0, home, chance)
    reached = search.scores[row] + (above - total[home].clamp(min=1e-38).log()).double()
    proof = usable & (counts == 0)
    wish = torch.where(usable, torch.where(proof, torch.inf, reached), -torch.inf)
    grave = torch.where(usable, torch.where(proof, 2, 1), 0)
    grave = torch.where(valid & (variables > names), 3, grave)
    grave = torch.where(valid & (counts > size), 4, grave)
    most = torch.zeros(lanes + 1, dtype=I64).scatter_reduce(0, lane, grave, "amax")
    kinds = torch.tensor([int(kind) for kind in KINDS])
    outcome = kinds[torch.where(over, 5, most[:lanes])]
    best = greatest(lanes, home, wish)
    first = torch.where(usable & (wish == best[lane]), lane, lanes)
    at = torch.full((lanes + 1,), slots).scatter_reduce(0, first, slot, "amin")
    at = at.clamp(max=slots - 1)
    others = torch.where(usable & (slot != at[lane]), lane, lanes)
    last, next_ = best[:lanes], greatest(lanes, others, wish)[:lanes]
    near = (next_ > -torch.inf) & (last < torch.inf) & (last - next_ < NEAR)
    at = at[:lanes]
    onward = goes & ((outcome == RUNNING) | (outcome == int(Outcome.PROVED)))
    steps = torch.where(onward, search.step + 1, search.step)
    outcome = torch.where(
        (outcome == RUNNING) & (steps >= asked.steps), int(Outcome.DEPTH), outcome
    )
    done = goes & (outcome != RUNNING)
    nears = search.near + (onward & (outcome != int(Outcome.PROVED)) & near)
    low = torch.minimum(search.lowest[row[at]], lowest[at])
    low = torch.where(onward, low, search.lowest)
    score = torch.where(onward, reached[at], search.scores)
    chosen = packed(words[:, at], size)
    ended = torch.where(done, search.number, queue)
    going = torch.where(onward, search.number, queue)
    here = search.step.clamp(max=search.ends.choices.shape[1] - 1)
    search.ends.scores[ended] = score
    search.ends.rest[ended] = torch.stack([outcome, low, steps, nears], 1)
    search.ends.choices[going, here, 0] = k[at]
    return search._replace(
        words=torch.where(onward, chosen, search.words),
        scores=score,
        lowest=low,
        hashes=torch.where(onward, hashes[at], search.hashes),
        sums=torch.where(onward[:, None], sums[at], search.sums),
        number=torch.where(done, queue, search.number),
        step=steps,
        near=nears,
    )


@torch.inference_mode()
def roll(
    asked: Asked,
    tables: Tables,
    w: A,
    slots: int,
    lanes: int,
    size: int,
    names: int,
    most: int,
    step: A = one_round,
) -> Ends:
    """The ends of a queue; arguments as from `as_torch`. `step` is the round, compiled or not."""

    def moved(terms: A) -> A:
        return torch.where(terms < 0, terms - names, terms)

    bodies = tables.bodies
    t = tables._replace(
        heads=moved(tables.heads), bodies=torch.cat([bodies[:1], moved(bodies[1:])])
    )
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
            torch.stack([asked.outcome.long(), height, 0 * height, 0 * height], 1),
            zeros(queue + 1, most, 1),
        ),
        torch.tensor(0),
    )
    while bool(search.next < asked.count) or bool((search.number < queue).any()):
        search = step(search, asked, t, w, slots, names)
    return search.ends
