"""Beyond: what a proof can weigh at most that a closure does not have, since a limit stopped it.

It is at least one rule higher than what was reached: a chain of so many rules, each of which leads
to the predicate of an atom in the body of the one before, has at least its weight. The other atoms
of a body only make it less.
"""

from __future__ import annotations

from tenfold.apps.prover.input.program import Program

ROUNDING = 1e-9  # products of weights in another order differ by far less


def beyond(program: Program, height: int) -> list[float]:
    """For each predicate the most that a proof of more than this height can weigh; 0 for none.

    >>> from tenfold.apps.prover.input.program import Clause
    >>> rules = Clause((0, -1, -2), ((1, -1, -2),)), Clause((1, -1, -2), ((1, -2, -1),))
    >>> made = Program(("p", "q"), ("a",), ((1, 0, 0),), rules, (0.5, 0.9))
    >>> [round(weight, 4) for weight in beyond(made, 0)], [round(w, 4) for w in beyond(made, 1)]
    ([0.5, 0.9], [0.45, 0.81])
    """
    most = [1.0] * len(program.predicates)
    for level in range(height + 1):
        next_ = [0.0] * len(most)
        for clause, weight in program.weighed:
            # a rule without a body ends a chain: it proves something at height 1 alone
            below = [most[atom[0]] for atom in clause.body] or [float(level == 0)]
            next_[clause.head[0]] = max(next_[clause.head[0]], weight * max(below))
        most = next_
    return [weight * (1 + ROUNDING) for weight in most]
