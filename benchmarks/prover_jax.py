"""The rollout in JAX: the same algorithm, one jitted `lax.while_loop`.

Greedy, learned policy. It reads the same tables and the same queue as `tenfold.apps.prover`, and
gives the same ends.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.rollout.loop import NEAR, RUNNING, Asked, Ends
from tenfold.apps.prover.rollout.successors import FAR, Without
from tenfold.apps.prover.rollout.tables import ANY, LOOP, OBJECT, SUBJECT, Tables
from tenfold.apps.prover.rollout.words import HEIGHT

jax.config.update("jax_enable_x64", True)

A = Any
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))


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


def take(column: A, at: A) -> A:
    return jnp.take(column, at, mode="clip")


def parted(word: A, bits: A) -> tuple[A, A, A, A]:
    half, mask = 1 << (bits - 1), (1 << bits) - 1
    high = word >> HEIGHT
    return (
        (high >> 2 * bits) - 1,
        ((high >> bits) & mask) - half,
        (high & mask) - half,
        word & ((1 << HEIGHT) - 1),
    )


def joined(p: A, s: A, o: A, left: A, bits: A) -> A:
    half = 1 << (bits - 1)
    return ((((((p + 1) << bits) | (s + half)) << bits) | (o + half)) << HEIGHT) | left


def bind(a: A, b: A) -> tuple[A, A, A]:
    return jnp.where(b < 0, b, a), jnp.where(b < 0, a, b), (a == b) | (a < 0) | (b < 0)


def unify(s: A, o: A, x: A, y: A) -> tuple[A, A, A, A, A]:
    one, to_one, fit = bind(s, x)
    two, to_two, fits = bind(jnp.where(o == one, to_one, o), jnp.where(y == one, to_one, y))
    return fit & fits, one, to_one, two, to_two


def places(keys: A, shift: A) -> tuple[A, A]:
    bits = keys.astype(jnp.uint64)
    one, two = ((bits * factor) >> shift for factor in FACTORS)
    return one.astype(jnp.int64), two.astype(jnp.int64)


def match(words: A, live: A, without: Without, t: Tables) -> tuple[A, ...]:
    p, s, o, left = parted(words[0], t.bits)
    p = jnp.maximum(p, 0)
    known, other = s >= 0, o >= 0
    kind = jnp.where(known, SUBJECT, jnp.where(other, OBJECT, jnp.where(s == o, LOOP, ANY)))
    term = jnp.where(known, s, jnp.where(other, o, 0))
    key = ((kind * t.predicates + p) << t.bits) | term
    one, two = places(key, t.ranges.shift)
    at_one, at_two = take(t.ranges.keys[0], one) == key, take(t.ranges.keys[1], two) == key
    first, facts = (
        jnp.where(at_one, take(v[0], one), jnp.where(at_two, take(v[1], two), 0))
        for v in (t.firsts, t.counts)
    )
    skip = jnp.where(kind == OBJECT, without.object, without.subject)
    skip = jnp.where(kind == LOOP, without.loop, skip)
    skipped = (skip >= first) & (skip < first + facts)
    start = take(t.starts, p)
    each = t.each[:, None]
    clause = jnp.minimum(start + each, t.heads.shape[1] - 1)
    there = each < take(t.starts, p + 1) - start
    fits = unify(s, o, take(t.heads[0], clause), take(t.heads[1], clause))[0]
    ranks = jnp.cumsum(fits & there & live & (left > 0), axis=0, dtype=jnp.int32)
    nth = (ranks[None] <= t.each[:, None, None]).sum(axis=1, dtype=jnp.int32)
    which = jnp.minimum(start + nth, t.heads.shape[1] - 1).astype(jnp.int32)
    facts = jnp.where(live & ~(known & other), facts - skipped, 0).astype(jnp.int32)
    return (s, o, left), first, jnp.where(skipped, skip, FAR), facts, which, ranks[-1]


def successors(words: A, found: A, without: A, t: Tables, row: A, k: A, names: int) -> A:
    goal, first, skip, facts, which, _ = found
    mine = take(facts, row)
    by_fact = k < mine
    entry = take(first, row) + k
    entry = jnp.where(entry >= take(skip, row), entry + 1, entry)
    nth = jnp.where(by_fact, 0, k - mine)
    clause = take(which.reshape(-1), nth * words.shape[1] + row)
    x = jnp.where(by_fact, take(t.subjects, entry), take(t.heads[0], clause))
    y = jnp.where(by_fact, take(t.objects, entry), take(t.heads[1], clause))
    s, o = (take(term.astype(jnp.int32), row) for term in goal[:2])
    left = take(goal[2], row)
    _, one, to_one, two, to_two = unify(s, o, x, y)
    rest = jnp.take(words[1:], row, axis=1, mode="clip")
    parts = parted(rest, t.bits)
    body = [jnp.take(column, clause, axis=1, mode="clip") for column in t.bodies]
    there = jnp.concatenate([(body[0] >= 0) & ~by_fact, rest != 0])
    before = [jnp.concatenate([a.astype(jnp.int64), b]) for a, b in zip(body, parts, strict=False)]

    def bound(term: A) -> A:
        term = jnp.where(term == one, to_one, term)
        return jnp.where(term == two, to_two, term)

    after = [bound(term) for term in before[1:]]
    height = jnp.concatenate([jnp.broadcast_to(left - 1, body[0].shape), parts[3]])
    word = joined(before[0], after[0], after[1], height, t.bits)
    key = word >> HEIGHT
    new = (jnp.arange(word.shape[0]) < body[0].shape[0])[:, None]
    new = new | (after[0] != before[1]) | (after[1] != before[2])
    look = there & new & (after[0] >= 0) & (after[1] >= 0)
    asked = jnp.where(look, key, 0)
    a, b = places(asked, t.facts.shift)
    known = (take(t.facts.keys[0], a) == asked) | (take(t.facts.keys[1], b) == asked)
    used = there & ~(look & known & (key != take(without, row)))
    at = jnp.arange(word.shape[0])[:, None]
    key = jnp.where(used, key, -1 - at)
    same = key[:, None] == key[None]
    again = (same & (at[:, None] > at)).any(axis=1)
    least = jnp.where(same, word[None], jnp.iinfo(jnp.int64).max).min(axis=1)
    made = renamed(jnp.where(used & ~again, least, 0), t, names)
    return *made, jnp.where(by_fact, left, left - 1)


def renamed(word: A, t: Tables, names: int) -> tuple[A, ...]:
    most = names + t.fresh.shape[0]
    width = most.bit_length()
    each = 63 // width
    count = -(-most // each)

    def number(maps: tuple[A, ...], given: A, term: A, used: A) -> tuple[tuple[A, ...], A, A]:
        old = -1 - term
        place = jnp.where(used & (term < 0), (old % each if count > 1 else old) * width, 0)
        part = old // each if count > 1 else 0
        map_ = maps[0]
        for i in range(1, count):
            map_ = jnp.where(part == i, maps[i], map_)
        had = (map_ >> place) & ((1 << width) - 1)
        new = used & (term < 0) & (had == 0)
        given = given + new
        mark = jnp.where(new, given << place, 0)
        maps = tuple(m | jnp.where(part == i, mark, 0) for i, m in enumerate(maps))
        return maps, given, jnp.where(term < 0, -jnp.where(new, given, had), term)

    def step(carry: tuple[A, ...], word: A) -> tuple[tuple[A, ...], A]:
        given, counts, hashes, *maps = carry
        used = word != 0
        p, s, o, left = parted(word, t.bits)
        now, given, s = number(tuple(maps), given, s, used)
        now, given, o = number(now, given, o, used)
        made = jnp.where(used, joined(p, s, o, left, t.bits), 0)
        mixed = (hashes ^ made.astype(jnp.uint64)) * GOLDEN
        mixed = mixed ^ (mixed >> np.uint64(29))
        s, o = (
            jnp.where(used, jnp.where(v < 0, t.constants - 1 - v, v), 0).astype(jnp.int32)
            for v in (s, o)
        )
        p = jnp.where(used, p, t.predicates).astype(jnp.int32)
        return (given, counts + used, jnp.where(used, mixed, hashes), *now), (made, p, s, o)

    nothing = jnp.zeros(word.shape[1], jnp.int64)
    start = (nothing, nothing, nothing.astype(jnp.uint64), *(nothing,) * count)
    (given, counts, hashes, *_), (made, *parts) = lax.scan(step, start, word)
    return made, parts, counts, given, hashes


def summed(parts: A, weights: A) -> A:
    p, s, o = parts
    low = jnp.full_like(weights.predicates[:1], -jnp.inf)
    goal = jnp.take(jnp.concatenate([weights.predicates, low]), p, axis=0, mode="clip")
    goal = goal + jnp.take(weights.subjects, s, axis=0, mode="clip")
    goal = goal + jnp.take(weights.objects, o, axis=0, mode="clip")
    return jnp.maximum(goal, np.float32(0)).sum(axis=0)


def judged(here: A, sums: A, row: A, w: A) -> A:
    hidden = jnp.maximum(here @ w.inner + w.bias, np.float32(0))
    view = (here + hidden @ w.outer) * np.float32(1 / np.sqrt(here.shape[-1]))
    inner = view @ w.outer.T
    hidden = jnp.maximum(sums @ w.inner + w.bias, np.float32(0))
    plain = (sums * jnp.take(view, row, axis=0, mode="clip")).sum(axis=1)
    return plain + (hidden * jnp.take(inner, row, axis=0, mode="clip")).sum(axis=1)


def packed(words: A, size: int) -> A:
    there = words != 0
    rank = jnp.cumsum(there, axis=0, dtype=jnp.int32) - 1
    at = jnp.where(there, jnp.minimum(rank, size), size)
    made = jnp.zeros((size + 1, words.shape[1]), words.dtype)
    return made.at[at, jnp.arange(words.shape[1])].set(words)[:size]


def been(words: A, hashes: A, lane: A, valid: A, search: Search, used: A) -> A:
    at = jnp.arange(search.past.shape[0], dtype=jnp.int32)[:, None]
    old = jnp.take(search.past, lane, axis=1, mode="clip")
    alike = (old == hashes) & (at < take(used, lane)) & valid
    hit = alike.any(axis=0)

    def look(carry: A) -> A:
        open_, last, found = carry
        next_ = alike & (at > last) & open_
        there = next_.any(axis=0)
        place = next_.argmax(axis=0).astype(jnp.int32)
        other = search.past_words[lane, place].T
        same = there & (packed(words, other.shape[0]) == other).all(axis=0)
        same = same & ((words != 0).sum(axis=0) <= other.shape[0])
        return there & ~same, place, found | same

    start = (hit, jnp.full(lane.shape, -1, jnp.int32), hit & ~hit)
    return lax.while_loop(lambda carry: carry[0].any(), look, start)[2]


def repeated(words: A, hashes: A, lane: A, valid: A) -> A:
    slots = jnp.arange(lane.shape[0], dtype=jnp.int32)
    room = 1 << (8 * lane.shape[0] - 1).bit_length()
    shift = np.uint64(64 - (room.bit_length() - 1))
    x = hashes ^ (lane.astype(jnp.uint64) * GOLDEN)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = x ^ (x >> np.uint64(31))

    def look(carry: A) -> A:
        turn, open_, found = carry
        place = ((mixed * (turn * np.uint64(2) + GOLDEN)) >> shift).astype(jnp.int64)
        place = jnp.where(open_, place, room)
        table = jnp.full(room + 1, lane.shape[0], jnp.int32).at[place].min(slots)
        holder = jnp.minimum(take(table, place), lane.shape[0] - 1)
        mine = holder == slots
        alike = open_ & ~mine & (take(mixed, holder) == mixed) & (take(lane, holder) == lane)
        size = words.shape[0]
        same = lax.cond(
            alike.any(),
            lambda: (
                alike
                & (
                    packed(words, size)
                    == packed(jnp.take(words, holder, axis=1, mode="clip"), size)
                ).all(axis=0)
            ),
            lambda: alike,
        )
        return turn + np.uint64(1), open_ & ~mine & ~same, found | same

    return lax.while_loop(lambda c: c[1].any(), look, (np.uint64(0), valid, valid & ~valid))[2]


def refilled(search: Search, asked: Asked, weights: A) -> Search:
    lanes, queue = search.number.shape[0], asked.words.shape[0] - 1
    free = search.number >= queue
    next_ = search.next.astype(jnp.int32) + jnp.cumsum(free, dtype=jnp.int32) - 1
    takes = free & (next_ < asked.count)
    fresh = jnp.where(takes, next_, queue)
    begins = takes & (take(asked.outcome, fresh) == RUNNING)
    first = jnp.where(jnp.arange(search.words.shape[0])[:, None] == 0, take(asked.words, fresh), 0)
    words = jnp.where(begins, first, search.words)
    live = begins | (search.live & ~free)
    hashes = jnp.where(begins, take(asked.hashes, fresh), search.hashes)
    alone = summed([take(part, fresh)[None] for part in asked.parts], weights)
    number = jnp.where(free, jnp.where(begins, fresh, queue), search.number)
    step = jnp.where(begins, 0, search.step)
    rows = jnp.where(number < queue, jnp.arange(lanes, dtype=jnp.int32), lanes)
    return search._replace(
        words=words,
        live=live,
        scores=jnp.where(begins, 0.0, search.scores),
        lowest=jnp.where(begins, asked.height.astype(jnp.int32), search.lowest),
        hashes=hashes,
        sums=jnp.where(begins[:, None], alone, search.sums),
        past=search.past.at[step, rows].set(hashes),
        past_words=search.past_words.at[rows, step].set(jnp.where(live, words, -1).T),
        number=number,
        step=step,
        near=jnp.where(begins, 0, search.near),
        next=search.next + takes.sum(),
    )


def fitting(wants: A, slots: int) -> A:
    first = jnp.cumsum(wants, dtype=jnp.int32) <= slots
    left = slots - jnp.where(first, wants, 0).sum(dtype=jnp.int32)
    small = ~first & (wants <= left)
    return first | (small & (jnp.cumsum(jnp.where(small, wants, 0), dtype=jnp.int32) <= left))


def one_round(search: Search, asked: Asked, t: Tables, w: A, slots: int, names: int) -> Search:
    search = refilled(search, asked, w)
    lanes, queue, size = search.number.shape[0], asked.words.shape[0] - 1, search.words.shape[0]
    without = Without(*(take(column, search.number) for column in asked.without))
    found = match(search.words, search.live, without, t)
    need = found[3] + found[5]
    running = search.number < queue
    over = running & (need > slots)
    goes = running & (over | fitting(jnp.where(over, 0, need), slots))
    takes = goes & ~over & search.live
    ends = jnp.cumsum(jnp.where(takes, need, 0), dtype=jnp.int32)
    slot = jnp.arange(slots, dtype=jnp.int32)
    starts = jnp.where(takes & (need > 0), ends - need, slots)
    marks = jnp.zeros(slots + 1, jnp.int32).at[starts].set(jnp.arange(lanes, dtype=jnp.int32))
    row = lax.cummax(marks[:slots])
    valid = slot < ends[-1]
    lane = jnp.where(valid, row, lanes)
    k = jnp.where(valid, slot - (take(ends, row) - take(need, row)), 0)
    made = successors(search.words, found, without.key, t, row, k, names)
    words, parts, counts, variables, hashes, lowest = made
    hashes = hashes & asked.mask
    usable = valid & ~repeated(words, hashes, lane, valid)
    used = jnp.concatenate([search.step + 1, jnp.zeros(1, jnp.int32)])
    usable = usable & ~been(words, hashes, lane, usable, search, used)
    home = jnp.where(usable, row, lanes)
    sums = summed(parts, w)
    scores = judged(search.sums, sums, row, w)
    top = jnp.full(lanes + 1, -jnp.inf, jnp.float32).at[home].max(scores)
    above = scores - take(jnp.where(jnp.isfinite(top), top, np.float32(0)), home)
    chance = jnp.where(usable, jnp.exp(above), np.float32(0))
    total = jnp.zeros(lanes + 1, jnp.float32).at[home].add(chance)
    chances = above - jnp.log(jnp.maximum(take(total, home), np.float32(1e-38)))
    reached = take(search.scores, row) + chances.astype(jnp.float64)
    proof = usable & (counts == 0)
    wish = jnp.where(usable, jnp.where(proof, jnp.inf, reached), -jnp.inf)
    grave = jnp.where(usable, jnp.where(proof, 2, 1), 0)
    grave = jnp.where(valid & (variables > names), 3, grave)
    grave = jnp.where(valid & (counts > size), 4, grave).astype(jnp.int32)
    most = jnp.zeros(lanes + 1, jnp.int32).at[lane].max(grave)
    kinds = (
        Outcome.GAVE_UP, RUNNING, Outcome.PROVED, Outcome.OVERFLOW_VARS, Outcome.OVERFLOW_ATOMS,
        Outcome.OVERFLOW_STATES,
    )  # fmt: skip
    outcome = take(jnp.array([int(x) for x in kinds], jnp.int32), jnp.where(over, 5, most[:lanes]))
    best = jnp.full(lanes + 1, -jnp.inf, jnp.float64).at[home].max(wish)
    at_best = jnp.where(usable & (wish == take(best, lane)), lane, lanes)
    at = jnp.full(lanes + 1, slots, jnp.int32).at[at_best].min(slot)
    at = jnp.minimum(at, slots - 1)
    others = jnp.where(usable & (slot != take(at, lane)), lane, lanes)
    second = jnp.full(lanes + 1, -jnp.inf, jnp.float64).at[others].max(wish)
    last, next_ = best[:lanes], second[:lanes]
    near = (next_ > -jnp.inf) & (last < jnp.inf) & (last - next_ < NEAR)
    at = at[:lanes]
    onward = goes & ((outcome == RUNNING) | (outcome == int(Outcome.PROVED)))
    steps = jnp.where(onward, search.step + 1, search.step)
    deep = (outcome == RUNNING) & (steps >= asked.steps)
    outcome = jnp.where(deep, int(Outcome.DEPTH), outcome).astype(jnp.int32)
    done = goes & (outcome != RUNNING)
    nears = search.near + (onward & (outcome != int(Outcome.PROVED)) & near)
    low = jnp.minimum(take(search.lowest, take(row, at)), take(lowest, at).astype(jnp.int32))
    low = jnp.where(onward, low, search.lowest)
    score = jnp.where(onward, take(reached, at), search.scores)
    chosen = packed(jnp.take(words, at, axis=1, mode="clip"), size)
    ended = jnp.where(done, search.number, queue)
    going = jnp.where(onward, search.number, queue)
    here = jnp.minimum(search.step, search.ends.choices.shape[1] - 1)
    return search._replace(
        words=jnp.where(onward, chosen, search.words),
        scores=score,
        lowest=low,
        hashes=jnp.where(onward, take(hashes, at), search.hashes),
        sums=jnp.where(onward[:, None], jnp.take(sums, at, axis=0, mode="clip"), search.sums),
        number=jnp.where(done, queue, search.number),
        step=steps,
        near=nears,
        ends=Ends(
            search.ends.scores.at[ended].set(score),
            search.ends.rest.at[ended].set(jnp.stack([outcome, low, steps, nears], axis=1)),
            search.ends.choices.at[going, here, 0].set(take(k, at)),
        ),
    )


@partial(jax.jit, static_argnames=("slots", "lanes", "size", "names", "most"))
def roll(
    asked: Asked, t: Tables, w: A, slots: int, lanes: int, size: int, names: int, most: int
) -> Ends:
    """The ends of a queue."""

    def moved(terms: A) -> A:
        return jnp.where(terms < 0, terms - names, terms)

    t = t._replace(
        heads=moved(t.heads), bodies=jnp.concatenate([t.bodies[:1], moved(t.bodies[1:])])
    )
    queue = asked.words.shape[0] - 1
    height = jnp.zeros(queue + 1, jnp.int32) + asked.height.astype(jnp.int32)
    first = Search(
        jnp.zeros((size, lanes), jnp.int64),
        jnp.zeros(lanes, bool),
        jnp.zeros(lanes, jnp.float64),
        jnp.zeros(lanes, jnp.int32),
        jnp.zeros(lanes, jnp.uint64),
        jnp.zeros((lanes, w.inner.shape[0]), jnp.float32),
        jnp.zeros((most + 1, lanes + 1), jnp.uint64),
        jnp.zeros((lanes + 1, most + 1, size), jnp.int64),
        jnp.full(lanes, queue, jnp.int32),
        jnp.zeros(lanes, jnp.int32),
        jnp.zeros(lanes, jnp.int32),
        Ends(
            jnp.zeros(queue + 1, jnp.float64),
            jnp.stack([asked.outcome, height, height * 0, height * 0], axis=1),
            jnp.zeros((queue + 1, most, 1), jnp.int32),
        ),
        jnp.zeros((), jnp.int64),
    )

    def going(search: Search) -> A:
        return (search.next < asked.count) | (search.number < queue).any()

    def step(search: Search) -> Search:
        return one_round(search, asked, t, w, slots, names)

    return lax.while_loop(going, step, first).ends
