"""C = alpha A Aᵀ + beta C, in the lower half of C."""

import numpy as np

import tenfold as tn


def syrk(alpha, beta, C, A):
    places = np.arange(A.shape[0])

    def row(i, C):
        C[i] = np.where(places <= i, beta * C[i] + alpha * (A @ A[i]), C[i])
        return C

    C[:] = tn.fori_loop(0, A.shape[0], row, C)
