"""A = Q R: each column is made of length 1, and taken out of those behind it."""

import numpy as np

import tenfold as tn


def gramschmidt(A):
    places = np.arange(A.shape[1])

    def column(k, state):
        A, Q, R = state
        length = np.sqrt(A[:, k] @ A[:, k])
        q = A[:, k] / length
        parts = np.where(places > k, q @ A, 0.0)
        Q[:, k] = q
        R[k] = np.where(places == k, length, parts)
        A -= np.outer(q, parts)
        return A, Q, R

    zeros = np.zeros((A.shape[1], A.shape[1]), A.dtype)
    A[:], Q, R = tn.fori_loop(0, A.shape[1], column, (A, np.zeros_like(A), zeros))
    return Q, R
