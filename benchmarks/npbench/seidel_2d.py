"""Gauss-Seidel on a grid: each point becomes the mean of nine, those before it new already."""

import tenfold as tn


def seidel_2d(TSTEPS, N, A):
    def row(i, A):
        above, here, below = A[i - 1], A[i], A[i + 1]
        sums = above[:-2] + above[1:-1] + above[2:] + here[1:-1] + here[2:]
        sums = sums + (below[:-2] + below[1:-1] + below[2:])

        def point(left, others):
            mean = (left + others) / 9.0
            return mean, mean

        A[i, 1:-1] = tn.scan(point, here[0], sums)[1]
        return A

    A[:] = tn.fori_loop(0, TSTEPS - 1, lambda t, A: tn.fori_loop(1, N - 1, row, A), A)
