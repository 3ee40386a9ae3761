"""A = L Lᵀ, in the lower half of A: some columns at a time, in their block one after the other."""

import numpy as np

import tenfold as tn

BLOCK = 50


def cholesky(A):
    for k in range(0, A.shape[0], BLOCK):
        end = min(k + BLOCK, A.shape[0])
        block = A[k:, k:end].T - A[k:end, :k] @ A[k:, :k].T
        lower = np.tri(A.shape[0] - k, end - k, dtype=bool)
        A[k:, k:end] = np.where(lower, factor(block).T, A[k:, k:end])


def factor(block):
    """The columns of a block, which are its rows here."""
    places = np.arange(block.shape[0])

    def column(j, block):
        before = np.where(places < j, block[:, j], 0.0)
        entries = block[j] - before @ block
        block[j] = entries / np.sqrt(entries[j])
        return block

    return tn.fori_loop(0, block.shape[0], column, block)
