"""Random numbers from keys: the same key gives the same numbers, on every machine.

A key is two words, an array like any other. Nothing is drawn from a hidden state: a function
takes a key and gives the numbers that belong to it, and a new key is split off for each draw.

>>> import numpy as np, tenfold as tn
>>> first, second = tn.random.split(tn.random.key(7))
>>> tn.random.integers(first, 0, 10, (5,))
array([5, 8, 2, 9, 7])
>>> x = tn.jit(lambda k: tn.random.normal(k, (1000,)))(second)
>>> bool(abs(x.mean()) < 0.1), bool(abs(x.std() - 1) < 0.1)
(True, True)

Bits, integers and uniform numbers from 0 to 1 are the same bit for bit on every backend. The
distributions built on them are the same within the bounds of the functions that they use.
"""

from tenfold.api.random.choosing import categorical, choice, permutation
from tenfold.api.random.draws import bits, integers, normal, uniform
from tenfold.api.random.keys import fold_in, key, split
from tenfold.api.random.rejection import beta, chisquare, dirichlet, gamma, poisson, student_t
from tenfold.api.random.transforms import (
    bernoulli,
    cauchy,
    exponential,
    geometric,
    gumbel,
    laplace,
    logistic,
    lognormal,
    multivariate_normal,
    pareto,
    rayleigh,
    truncated_normal,
    weibull,
)

__all__ = [
    "bernoulli",
    "beta",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "dirichlet",
    "exponential",
    "fold_in",
    "gamma",
    "geometric",
    "gumbel",
    "integers",
    "key",
    "laplace",
    "logistic",
    "lognormal",
    "multivariate_normal",
    "normal",
    "pareto",
    "permutation",
    "poisson",
    "rayleigh",
    "split",
    "student_t",
    "truncated_normal",
    "uniform",
    "weibull",
]
