"""The errors of the prover: what is wrong, in which file and line, and what to do."""

from __future__ import annotations

from tenfold import TenfoldError


class InputError(TenfoldError, ValueError):
    """Facts, rules, domains or names that can't be read or used."""


class ScoreError(TenfoldError, ValueError):
    """Scores that can't be ranked: one of them is not a number."""


class CapacityError(TenfoldError, OverflowError):
    """More than a fixed capacity holds, where the policy is to stop."""


class ProofError(TenfoldError, ValueError):
    """A trace that does not prove what it is said to prove."""
