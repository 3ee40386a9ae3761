"""The rollout in JAX: the same algorithm, one jitted `lax.while_loop`.

Greedy, learned policy. It reads the same tables and the same queue as `tenfold.apps.prover`, and
gives the same ends. What is written otherwise than there is so since XLA runs it faster.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from prover_jax_successors import fillings, match, patterns, successors, take, written
from prover_peers import DEPTH, GRAVE, PROVED, Search, Sizes

from tenfold.apps.prover.resolution.layout import Layout
from tenfold.apps.prover.resolution.matching import Without
from tenfold.apps.prover.resolution.patterns import Indices
from tenfold.apps.prover.resolution.successors import Filling
from tenfold.apps.prover.resolution.tables import Tables
from tenfold.apps.prover.rollout.choice import NEAR
from tenfold.apps.prover.rollout.draws import mix
from tenfold.apps.prover.rollout.loop import RUNNING, Ends, Requests
from tenfold.apps.prover.rollout.policy import Weights

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_cpu_enable_async_dispatch", False)  # or threads wait for one another

A = Any
SOME = 64  # states that are written out at a time
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


# The policy.


def summed(parts: Indices, w: Weights) -> A:
    # goal after goal, which is faster than a reduction of all
    goals = (
        take(w.predicates, p) + take(w.subjects, s) + take(w.objects, o)
        for p, s, o in zip(*parts, strict=True)
    )
    return sum(jnp.maximum(goal, np.float32(0)) for goal in goals)


def judged(here: A, sums: A, row: A, w: Weights) -> A:
    hidden = jnp.maximum(here @ w.inner + w.bias, np.float32(0))
    view = (here + hidden @ w.outer) * np.float32(1 / np.sqrt(here.shape[-1]))
    inner = view @ w.outer.T
    hidden = jnp.maximum(sums @ w.inner + w.bias, np.float32(0))
    return (sums * take(view, row)).sum(axis=1) + (hidden * take(inner, row)).sum(axis=1)


# What has been seen.


def packed(words: A, size: int) -> A:
    there = words != 0
    rank = jnp.cumsum(there, axis=0, dtype=jnp.int32)
    chosen = there & (rank == (jnp.arange(size, dtype=jnp.int32) + 1)[:, None, None])
    return jnp.where(chosen, words, 0).sum(axis=1)


def been(hashes: A, words: Callable[[A], A], lane: A, valid: A, search: Search, used: A) -> A:
    at = jnp.arange(search.past.shape[0], dtype=jnp.int32)[:, None]
    alike = (take(search.past, lane, axis=1) == hashes) & (at < take(used, lane)) & valid
    hit = alike.any(axis=0)

    def look(carry: A) -> A:
        open_, last, found = carry
        # some slots at a time: to write all out for a few takes longer than all the rest
        some = jnp.nonzero(open_, size=min(SOME, lane.shape[0]), fill_value=lane.shape[0])[0]
        next_ = take(alike, some, axis=1) & (at > take(last, some))
        there = next_.any(axis=0)
        place = next_.argmax(axis=0).astype(jnp.int32)
        other = search.past_words[take(lane, some), place].T
        mine = words(some)
        same = there & (packed(mine, other.shape[0]) == other).all(axis=0)
        same = same & ((mine != 0).sum(axis=0) <= other.shape[0])
        return (
            open_.at[some].set(there & ~same, mode="drop"),
            last.at[some].set(place, mode="drop"),
            found.at[some].set(same, mode="drop"),
        )

    start = (hit, jnp.full(lane.shape, -1, jnp.int32), hit & ~hit)
    return lax.while_loop(lambda carry: carry[0].any(), look, start)[2]


def repeated(hashes: A, words: Callable[[A], A], lane: A, valid: A, room: int) -> A:
    slots = jnp.arange(lane.shape[0], dtype=jnp.int32)
    shift = np.uint64(64 - (room.bit_length() - 1))
    mixed = mix(hashes ^ (lane.astype(jnp.uint64) * GOLDEN))

    def equal(one: A, two: A) -> A:
        return (packed(one, one.shape[0]) == packed(two, two.shape[0])).all(axis=0)

    def look(carry: A) -> A:
        turn, open_, found = carry
        place = ((mixed * (turn * np.uint64(2) + GOLDEN)) >> shift).astype(jnp.int64)
        place = jnp.where(open_, place, room)
        table = jnp.full(room + 1, lane.shape[0], jnp.int32).at[place].min(slots)
        holder = jnp.minimum(take(table, place), lane.shape[0] - 1)
        mine = holder == slots
        alike = open_ & ~mine & (take(mixed, holder) == mixed) & (take(lane, holder) == lane)
        same = lax.cond(
            alike.any(), lambda: alike & equal(words(slots), words(holder)), lambda: alike
        )
        return turn + np.uint64(1), open_ & ~mine & ~same, found | same

    return lax.while_loop(lambda c: c[1].any(), look, (np.uint64(0), valid, valid & ~valid))[2]


# A round.


def refilled(search: Search, asked: Requests, w: Weights) -> Search:
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
    alone = summed(Indices(*(take(part, fresh)[None] for part in asked.parts)), w)
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


def upto(wants: A, rooms: A) -> A:
    fit = jnp.ones(wants[0].shape, bool)
    for want, room in zip(wants, rooms, strict=True):
        fit = fit & (jnp.cumsum(want, dtype=jnp.int32) <= room)
    return fit


def fitting(wants: tuple[A, A], rooms: tuple[int, int]) -> A:
    first = upto(wants, rooms)
    left = [
        room - jnp.where(first, want, 0).sum(dtype=jnp.int32)
        for want, room in zip(wants, rooms, strict=True)
    ]
    small = ~first & (wants[0] <= left[0]) & (wants[1] <= left[1])
    return first | (small & upto([jnp.where(small, want, 0) for want in wants], left))


def laid_out(counts: A, room: int) -> Layout:
    ends = jnp.cumsum(counts, dtype=jnp.int32)
    starts = ends - counts
    at = jnp.arange(room, dtype=jnp.int32)
    marks = jnp.where(counts > 0, starts, room)
    rows = jnp.arange(counts.shape[0], dtype=jnp.int32)
    row = lax.cummax(jnp.zeros(room + 1, jnp.int32).at[marks].set(rows)[:room])
    valid = at < ends[-1]
    return Layout(row, jnp.where(valid, at - take(starts, row), 0), valid, starts)


def one_round(search: Search, asked: Requests, t: Tables, w: Weights, sizes: Sizes) -> Search:
    search = refilled(search, asked, w)
    slots, lanes, size, names, _ = sizes
    queue = asked.words.shape[0] - 1
    without = Without(*(take(column, search.number) for column in asked.without))
    found = match(search.words, search.live, without, t)
    need, kinds = found.facts + found.rules, (found.facts > 0) + found.rules
    running = search.number < queue
    over = running & (need > slots)
    room = sizes.patterns(t.each.shape[0])
    wants = jnp.where(over, 0, need), jnp.where(over, 0, kinds)
    goes = running & (over | fitting(wants, (slots, room)))
    takes = goes & ~over & search.live
    kind = laid_out(jnp.where(takes, kinds, 0), room)
    nth = kind.k - take(found.facts > 0, kind.row)
    common = patterns(search.words, found, without.key, t, kind.row, nth, names)
    row, k, valid, _ = laid_out(jnp.where(takes, need, 0), slots)
    slot = jnp.arange(slots, dtype=jnp.int32)
    lane = jnp.where(valid, row, lanes)
    facts = take(found.facts, row)
    pattern = take(kind.starts, row) + jnp.where(k < facts, 0, k - facts + (facts > 0))
    filling = fillings(found, without.key, t, row, k, pattern)
    made = successors(common, filling, t)
    hashes = made.hashes & asked.mask

    def words(at: A) -> A:
        return written(common, Filling(*(take(part, at) for part in filling)), t)

    usable = valid & ~repeated(hashes, words, lane, valid, sizes.places())
    used = jnp.concatenate([search.step + 1, jnp.zeros(1, jnp.int32)])
    usable = usable & ~been(hashes, words, lane, usable, search, used)
    home = jnp.where(usable, row, lanes)
    sums = take(summed(common.parts, w), pattern) + summed(made.parts, w)
    scores = judged(search.sums, sums, row, w)
    top = jnp.full(lanes + 1, -jnp.inf, jnp.float32).at[home].max(scores)
    above = scores - take(jnp.where(jnp.isfinite(top), top, np.float32(0)), home)
    chance = jnp.where(usable, jnp.exp(above), np.float32(0))
    total = jnp.zeros(lanes + 1, jnp.float32).at[home].add(chance)
    chances = above - jnp.log(jnp.maximum(take(total, home), np.float32(1e-38)))
    reached = take(search.scores, row) + chances.astype(jnp.float64)
    proof = usable & (made.counts == 0)
    wish = jnp.where(usable, jnp.where(proof, jnp.inf, reached), -jnp.inf)
    grave = jnp.where(usable, jnp.where(proof, 2, 1), 0)
    grave = jnp.where(valid & (made.variables > names), 3, grave)
    grave = jnp.where(valid & (made.counts > size), 4, grave).astype(jnp.int32)
    most = jnp.zeros(lanes + 1, jnp.int32).at[lane].max(grave)
    outcome = take(jnp.array(GRAVE, jnp.int32), jnp.where(over, 5, most[:lanes]))
    best = jnp.full(lanes + 1, -jnp.inf, jnp.float64).at[home].max(wish)
    at_best = jnp.where(usable & (wish == take(best, lane)), lane, lanes)
    at = jnp.full(lanes + 1, slots, jnp.int32).at[at_best].min(slot)
    at = jnp.minimum(at, slots - 1)
    others = jnp.where(usable & (slot != take(at, lane)), lane, lanes)
    second = jnp.full(lanes + 1, -jnp.inf, jnp.float64).at[others].max(wish)
    last, next_ = best[:lanes], second[:lanes]
    near = (next_ > -jnp.inf) & (last < jnp.inf) & (last - next_ < NEAR)
    at = at[:lanes]
    onward = goes & ((outcome == RUNNING) | (outcome == PROVED))
    steps = jnp.where(onward, search.step + 1, search.step)
    deep = (outcome == RUNNING) & (steps >= asked.steps)
    outcome = jnp.where(deep, DEPTH, outcome).astype(jnp.int32)
    done = goes & (outcome != RUNNING)
    nears = search.near + (onward & (outcome != PROVED) & near)
    low = jnp.minimum(take(search.lowest, take(row, at)), take(made.lowest, at).astype(jnp.int32))
    low = jnp.where(onward, low, search.lowest)
    score = jnp.where(onward, take(reached, at), search.scores)
    ended = jnp.where(done, search.number, queue)
    going = jnp.where(onward, search.number, queue)
    here = jnp.minimum(search.step, search.ends.choices.shape[1] - 1)
    return search._replace(
        words=jnp.where(onward, packed(words(at), size), search.words),
        scores=score,
        lowest=low,
        hashes=jnp.where(onward, take(hashes, at), search.hashes),
        sums=jnp.where(onward[:, None], take(sums, at), search.sums),
        number=jnp.where(done, queue, search.number),
        step=steps,
        near=nears,
        ends=Ends(
            search.ends.scores.at[ended].set(score),
            search.ends.rest.at[ended].set(jnp.stack([outcome, low, steps, nears], axis=1)),
            search.ends.choices.at[going, here, 0].set(take(k, at)),
        ),
    )


@partial(jax.jit, static_argnames="sizes")
def roll(asked: Requests, t: Tables, w: Weights, sizes: Sizes) -> Ends:
    """The ends of a queue."""
    _, lanes, size, names, most = sizes

    def moved(terms: A) -> A:
        return jnp.where(terms < 0, terms - names, terms)

    t = t._replace(
        heads=moved(t.heads), bodies=jnp.concatenate([t.bodies[:1], moved(t.bodies[1:])])
    )
    # a goal that is not there has a predicate that no rectifier lets through
    low = jnp.full_like(w.predicates[:1], -jnp.inf)
    w = w._replace(predicates=jnp.concatenate([w.predicates, low]))
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
        return one_round(search, asked, t, w, sizes)

    return lax.while_loop(going, step, first).ends


def ready(tables: Tables, weights: Weights) -> Callable[[Requests, Sizes], Ends]:
    """The rollout of a queue, with tables and weights in place."""
    fixed = jax.device_put((tables, weights))
    return lambda asked, sizes: Ends(*jax.device_get(roll(asked, *fixed, sizes)))
