"""Bindings: rows of variables, each extended by the facts that match its next atom."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.closure.joins import Packing, Uses
from tenfold.apps.prover.columns import END, Traced, spread

if TYPE_CHECKING:
    from tenfold.apps.prover.closure.fixpoint import State


class Rows(NamedTuple):
    """Bindings of variables, a column each; `item` rises, and says which (fact, use) it is of."""

    bound: Traced  # [variables, rows], -1 while free
    use: Traced
    item: Traced
    live: Traced


def endpoints(keys: Traced, packing: Packing) -> tuple[Traced, Traced]:
    """The two constants of keys."""
    mask = (1 << packing.bits) - 1
    return (keys >> packing.bits) & mask, keys & mask


def first_rows(state: State, uses: Uses, packing: Packing, rows: int) -> Rows:
    """The next (fact, use) pairs, each use's first atom matched with its fact."""
    item = state.at + tn.arange(rows)
    live = item < state.work[-1]
    owner = np.minimum(np.searchsorted(state.work, item + 1), state.facts.shape[0] - 1)
    key = np.where(live, state.facts[owner], 0)
    p = key >> 2 * packing.bits
    own = uses.starts[p + 1] - uses.starts[p]
    use = np.where(live, uses.starts[p] + item - (state.work[owner] - own), 0)
    atom = uses.atoms[use, 0]
    s, o = endpoints(key, packing)
    bound = _bind(tn.full((uses.slots.shape[0], rows), -1, np.int64), uses.slots, atom, s, o)
    return Rows(bound, use, item, live & _matches(atom, s, o))


def extended_rows(
    rows: Rows,
    taken: Traced,
    size: int,
    atoms: Traced,
    place: Traced,
    state: State,
    slots: Traced,
    packing: Packing,
) -> tuple[Rows, Traced]:
    """Each row with each fact that matches its next atom, as far as there is room: `size` rows.

    `taken` comes down to the first item whose rows do not all fit: that one and those after it
    are left for the next piece.
    """
    atom = atoms[rows.use, place]
    absent = atom[:, 0] < 0
    first, last = _range(atom, rows.bound, state, packing)
    counts = np.where(rows.live, np.where(absent, 1, last - first), 0)
    ends = np.cumsum(counts)
    taken = np.minimum(taken, np.where(ends > size, rows.item, END).min())
    total = np.where(rows.item < taken, ends, 0).max()
    ends = np.minimum(ends, total)
    slot = tn.arange(size)
    row = spread(ends, size)
    inside = slot < total
    matched = state.index[np.where(inside, first[row] + slot - (ends[row] - counts[row]), 0)]
    one, two = endpoints(matched, packing)
    backward = matched >= packing.reverse
    s, o = np.where(backward, two, one), np.where(backward, one, two)
    atom, absent = atom[row], absent[row]
    before = rows.bound[:, row]
    bound = np.where(absent, before, _bind(before, slots, atom, s, o))
    live = inside & (absent | _matches(atom, s, o))
    return Rows(bound, rows.use[row], np.where(inside, rows.item[row], END), live), taken


def _range(atom: Traced, bound: Traced, state: State, packing: Packing) -> tuple[Traced, Traced]:
    """From where to where in the index the facts lie that an atom matches under its row."""
    p = np.maximum(atom[:, 0], 0)
    s, o = term_value(atom[:, 1], bound), term_value(atom[:, 2], bound)
    base = p << 2 * packing.bits
    by_both = base | (s << packing.bits) | o
    by_subject = base | (s << packing.bits)
    by_object = packing.reverse + (base | (o << packing.bits))
    step = 1 << packing.bits
    low = np.where(s >= 0, np.where(o >= 0, by_both, by_subject), np.where(o >= 0, by_object, base))
    width = np.where((s >= 0) & (o >= 0), 1, np.where((s >= 0) | (o >= 0), step, step * step))
    if state.below.shape[0]:
        first, last = (np.take(state.below, key, mode="clip") for key in (low, low + width))
        return first.astype(np.int64), last.astype(np.int64)
    return np.searchsorted(state.index, low), np.searchsorted(state.index, low + width)


def term_value(term: Traced, bound: Traced) -> Traced:
    """What a term stands for under each row: a constant, or -1 while it is free."""
    slot = np.maximum(-1 - term, 0)
    return np.where(term >= 0, term, bound[slot, tn.arange(bound.shape[1])])


def _bind(bound: Traced, slots: Traced, atom: Traced, s: Traced, o: Traced) -> Traced:
    """The rows with the variables of their atom bound; those bound before get what they have."""
    slot = slots[:, None]
    bound = np.where(-1 - atom[:, 1] == slot, s, bound)
    return np.where(-1 - atom[:, 2] == slot, o, bound)


def _matches(atom: Traced, s: Traced, o: Traced) -> Traced:
    """Whether a fact's constants are those of the atom, and equal where its variables are."""
    subject, object = atom[:, 1], atom[:, 2]
    same = (subject != object) | (s == o)
    return ((subject < 0) | (subject == s)) & ((object < 0) | (object == o)) & same
