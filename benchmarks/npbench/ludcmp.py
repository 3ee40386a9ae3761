"""A x = b by elimination, then L y = b and U x = y."""

import numpy as np

import tenfold as tn


def ludcmp(A, b):
    n = A.shape[0]
    places = np.arange(n)

    def eliminate(k, A):
        factors = np.where(places > k, A[:, k] / A[k, k], 0.0)
        A -= np.outer(factors, np.where(places > k, A[k], 0.0))
        A[:, k] = np.where(places > k, factors, A[:, k])
        return A

    def forward(i, y):
        y[i] = b[i] - np.where(places < i, A[i], 0.0) @ y
        return y

    def backward(i, x):
        i = n - 1 - i
        x[i] = (y[i] - np.where(places > i, A[i], 0.0) @ x) / A[i, i]
        return x

    A[:] = tn.fori_loop(0, n, eliminate, A)
    y = tn.fori_loop(0, n, forward, np.zeros_like(b))
    x = tn.fori_loop(0, n, backward, np.zeros_like(b))
    return x, y
