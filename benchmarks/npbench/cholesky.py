"""A = L Lᵀ, row by row, in the lower half of A."""

import numpy as np

import tenfold as tn


def cholesky(A):
    def row(i, A):
        def entry(j, A):
            A[i, j] = (A[i, j] - dot(A, i, j, j)) / A[j, j]
            return A

        A = tn.fori_loop(0, i, entry, A)
        A[i, i] = np.sqrt(A[i, i] - dot(A, i, i, i))
        return A

    A[:] = tn.fori_loop(0, A.shape[0], row, A)


def dot(A, i, j, n):
    """The first n terms of row i times row j."""
    return tn.fori_loop(0, n, lambda k, total: total + A[i, k] * A[j, k], 0.0)
