"""The most pairs of bases in a strand, for every stretch of it: the best of two parts, of which one
may have no pairs, or of what lies between the first and the last base if these pair."""

import numpy as np

import tenfold as tn


def nussinov(N, seq):
    def row(back, tables):
        i = N - 2 - back

        def column(j, tables):
            table, mirror = tables  # mirror has the columns as rows
            parts = np.max(table[i, :-1] + mirror[j, 1:])
            pair = (seq[i] + seq[j] == 3) & (i < j - 1)
            best = np.maximum(parts, table[i + 1, j - 1] + pair)
            table[i, j] = mirror[j, i] = best
            return table, mirror

        return tn.fori_loop(i + 1, N, column, tables)

    zeros = np.zeros((N, N), np.int32)
    return tn.fori_loop(0, N - 1, row, (zeros, zeros))[0]
