"""A = L U, in place: elimination column by column."""

import numpy as np

import tenfold as tn


def lu(A):
    below = np.arange(A.shape[0])

    def eliminate(k, A):
        factors = np.where(below > k, A[:, k] / A[k, k], 0.0)
        A -= np.outer(factors, np.where(below > k, A[k], 0.0))
        A[:, k] = np.where(below > k, factors, A[:, k])
        return A

    A[:] = tn.fori_loop(0, A.shape[0], eliminate, A)
