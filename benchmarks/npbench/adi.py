"""Alternating directions: tridiagonal systems along columns, then along rows, in each time step."""

import numpy as np

import tenfold as tn


def adi(TSTEPS, N, u):
    across, along = (weight / TSTEPS * N * N for weight in (2.0, 1.0))
    a, b, d = -across / 2.0, 1.0 + along, -along / 2.0

    def step(_, u):
        v = solve(u[1:-1], a, b, d)
        edge = np.ones((1, N - 2))
        w = solve(np.concatenate((edge, v, edge)).T, d, b, a)
        edge = np.ones((N - 2, 1))
        u[1:-1] = np.concatenate((edge, w.T, edge), axis=1)
        return u

    u[:] = tn.fori_loop(0, TSTEPS, step, u)
    return u


def solve(rows, a, b, d):
    """A system for each column between the outer ones: a off the diagonal, b on it. The right side
    are rows with weights d, 1 + 2 d, d; solutions begin and end with 1."""
    ones = np.ones(rows.shape[1] - 2)

    def down(state, row):
        p, q = state
        pivot = a * p + b
        right = (1.0 + 2.0 * d) * row[1:-1] - d * row[:-2] - d * row[2:]
        state = -a / pivot, (right - a * q) / pivot
        return state, state

    def up(x, state):
        p, q = state
        x = p * x + q
        return x, x

    _, states = tn.scan(down, (np.zeros_like(ones), ones), rows)
    return tn.scan(up, ones, states, reverse=True)[1]
