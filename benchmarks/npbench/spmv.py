"""A sparse matrix by a vector: the rows of the matrix lie behind one another."""

import numpy as np

import tenfold as tn


def spmv(A_row, A_col, A_val, x):
    def row(i, y):
        y[i] = tn.fori_loop(
            A_row[i], A_row[i + 1], lambda k, total: total + A_val[k] * x[A_col[k]], 0.0
        )
        return y

    return tn.fori_loop(0, A_row.size - 1, row, np.empty(A_row.size - 1, A_val.dtype))
