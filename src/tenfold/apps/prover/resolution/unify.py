"""Unify: most general unifiers of pairs of terms, for many pairs at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tenfold.apps.prover.columns import Traced


class Binding(NamedTuple):
    """Two bindings of a variable to a term, one after the other: the most general unifier of two
    pairs of terms. A binding of a term to itself does nothing."""

    one: Traced
    to_one: Traced
    two: Traced
    to_two: Traced

    def __call__(self, term: Traced) -> Traced:
        term = np.where(term == self.one, self.to_one, term)
        return np.where(term == self.two, self.to_two, term)


def unify(s: Traced, o: Traced, x: Traced, y: Traced) -> tuple[Traced, Binding]:
    """Whether (s, o) and (x, y) unify, and how.

    >>> ok, binding = unify(np.array([-1]), np.array([-1]), np.array([4]), np.array([-9]))
    >>> ok, binding(np.array([-9])), binding(np.array([-1]))
    (array([ True]), array([4]), array([4]))
    """
    one, to_one, fit = _bind(s, x)
    second, other = np.where(o == one, to_one, o), np.where(y == one, to_one, y)
    two, to_two, fits = _bind(second, other)
    return fit & fits, Binding(one, to_one, two, to_two)


def _bind(a: Traced, b: Traced) -> tuple[Traced, Traced, Traced]:
    """The variable bound, what to, and whether a and b unify; b's variable is bound first."""
    return np.where(b < 0, b, a), np.where(b < 0, a, b), (a == b) | (a < 0) | (b < 0)
