"""C = alpha A B + beta C, of a symmetric A only the lower half is read."""

import numpy as np

import tenfold as tn


def symm(alpha, beta, C, A, B):
    places = np.arange(A.shape[0])

    def row(i, C):
        left = np.where(places < i, A[i], 0.0)
        C += alpha * np.outer(left, B[i])
        C[i] += alpha * (B[i] * A[i, i] + left @ B)
        return C

    C[:] = tn.fori_loop(0, C.shape[0], row, C * beta)
