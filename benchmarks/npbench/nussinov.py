"""The most pairs of bases in a strand, for every stretch of it."""

import numpy as np

import tenfold as tn


def nussinov(N, seq):
    def row(back, table):
        i = N - 1 - back

        def column(j, table):
            # The last row has none below it, and columns to try only where i + 1 < N.
            below = np.minimum(i + 1, N - 1)
            pair = np.where(i < j - 1, (seq[i] + seq[j] == 3).astype(np.int32), np.int32(0))
            best = np.maximum(table[i, j - 1], table[below, j])
            best = np.maximum(best, table[below, j - 1] + pair)
            table[i, j] = tn.fori_loop(
                i + 1, j, lambda k, best: np.maximum(best, table[i, k] + table[k + 1, j]), best
            )
            return table

        return tn.fori_loop(i + 1, N, column, table)

    return tn.fori_loop(0, N, row, np.zeros((N, N), np.int32))
