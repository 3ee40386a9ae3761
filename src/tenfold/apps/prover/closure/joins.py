"""Joins: the rules of a program as tables, so that one traced program runs any rules.

A use is a clause with one of its body atoms put first: the atom that a fact of the last round has
to match. The others follow, each after one that shares a variable with it where there is such.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from tenfold.apps.prover.backend import padded
from tenfold.apps.prover.errors import CapacityError
from tenfold.apps.prover.input.program import Clause, Program, Triple

Ints = np.ndarray[Any, np.dtype[np.int64]]


class Uses(NamedTuple):
    """The uses of a program's clauses, ordered by the predicate of their first atom."""

    starts: Ints  # [predicates + 1 or more]: the uses of predicate p are those from starts[p]
    atoms: Ints  # [uses, longest body, 3]; predicate -1 where a body is shorter
    heads: Ints  # [uses, 3]
    slots: Ints  # [most variables of a clause or more]: 0, 1, 2, …


class Packing(NamedTuple):
    """How a triple is packed into one integer: predicate, subject, object, high to low.

    The same with subject and object exchanged, above all these, is the key by object.
    """

    bits: np.int64  # of a constant
    reverse: np.int64  # what lies between a key and those by object

    @staticmethod
    def of(program: Program) -> Packing:
        """The packing for a program's numbers of constants and predicates."""
        bits = max(1, (max(1, len(program.constants)) - 1).bit_length())
        count = max(1, len(program.predicates))
        if (2 * count << 2 * bits).bit_length() > 62:
            raise CapacityError(
                f"{count} predicates of {len(program.constants)} constants do not fit 62 bits",
                fix="split the data set",
            )
        return Packing(np.int64(bits), np.int64(count << 2 * bits))

    def keys(self, triples: Any) -> Ints:
        """Triples, one a row, as keys.

        >>> Packing(np.int64(2), np.int64(16)).keys([(0, 1, 2)])
        array([6])
        """
        if isinstance(triples, list | tuple):  # a third of the time that NumPy takes for tuples
            triples = np.fromiter(chain.from_iterable(triples), np.int64)
        p, s, o = np.asarray(triples, np.int64).reshape(-1, 3).T
        return np.asarray((p << 2 * self.bits) | (s << self.bits) | o, np.int64)

    def triples(self, keys: Ints) -> Ints:
        """Keys as triples, one a row."""
        mask = (np.int64(1) << self.bits) - 1
        return np.stack([keys >> 2 * self.bits, (keys >> self.bits) & mask, keys & mask], axis=1)

    def turned(self, keys: Ints) -> Ints:
        """The keys by object of keys, in no more memory than another two of these take.

        >>> Packing(np.int64(2), np.int64(16)).turned(np.array([6]))
        array([25])
        """
        mask = (np.int64(1) << self.bits) - 1
        made = keys & mask
        made <<= self.bits
        part = keys >> self.bits
        part &= mask
        made |= part
        np.right_shift(keys, 2 * self.bits, out=part)
        part <<= 2 * self.bits
        made |= part
        made += self.reverse
        return made


def uses_of(program: Program) -> Uses:
    """The tables of a program's clauses with a body."""
    found = sorted(
        (
            (_ordered(clause, at), clause)
            for clause in program.clauses
            for at in range(len(clause.body))
        ),
        key=lambda pair: pair[0][0][0],
    )
    # equal atoms of one body make equal uses: one of them is enough
    found = list(dict.fromkeys(found))
    longest = max((len(atoms) for atoms, _ in found), default=1)
    most = max((clause.variables for _, clause in found), default=0)
    atoms = np.full((padded(len(found), 16), longest, 3), -1, np.int64)
    heads = np.zeros((padded(len(found), 16), 3), np.int64)
    for i, (body, clause) in enumerate(found):
        atoms[i, : len(body)] = body
        heads[i] = clause.head
    firsts = [body[0][0] for body, _ in found]
    starts = np.searchsorted(firsts, np.arange(padded(len(program.predicates), 4) + 1))
    return Uses(starts.astype(np.int64), atoms, heads, np.arange(padded(most, 4)))


def _ordered(clause: Clause, at: int) -> tuple[Triple, ...]:
    """The body with atom `at` first, then always an atom with the most terms known."""
    order = [clause.body[at]]
    left = [atom for i, atom in enumerate(clause.body) if i != at]
    known = set(order[0][1:])
    while left:
        scores = [sum(t >= 0 or t in known for t in atom[1:]) for atom in left]
        order.append(left.pop(scores.index(max(scores))))
        known.update(order[-1][1:])
    return tuple(order)
