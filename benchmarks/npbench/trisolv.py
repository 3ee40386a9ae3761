"""L x = b: what is known of x is taken out of some rows at a time, then row after row."""

import numpy as np

import tenfold as tn

BLOCK = 250


def trisolv(L, x, b):
    for k in range(0, x.shape[0], BLOCK):
        end = min(k + BLOCK, x.shape[0])
        x[k:end] = substitute(L[k:end, k:end], b[k:end] - L[k:end, :k] @ x[:k])


def substitute(L, b):
    def row(i, x):
        x[i] = (b[i] - L[i] @ x) / L[i, i]
        return x

    return tn.fori_loop(0, b.shape[0], row, np.zeros_like(b))
