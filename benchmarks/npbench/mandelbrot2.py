"""z = z² + c for every point: when it leaves the circle, and where it is then."""

import numpy as np

import tenfold as tn


def mandelbrot2(xmin, xmax, ymin, ymax, xn, yn, itermax, horizon=2.0):
    x = np.linspace(xmin, xmax, xn)
    y = np.linspace(ymin, ymax, yn)
    c = x + y[:, None] * 1j

    def step(i, state):
        z, left, count = state
        z = np.where(count == 0, z * z + c, z)
        out = (count == 0) & (np.abs(z) > horizon)
        return z, np.where(out, z, left), np.where(out, i + 1, count)

    zeros = np.zeros(c.shape, np.complex128)
    _, left, count = tn.fori_loop(0, itermax, step, (zeros, zeros, np.zeros(c.shape, np.int64)))
    return left, count
