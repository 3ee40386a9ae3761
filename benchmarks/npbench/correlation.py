"""The correlation of columns, as one product."""

import numpy as np


def correlation(M, float_n, data):
    deviation = np.std(data, axis=0)
    deviation[deviation <= 0.1] = 1.0
    data -= np.mean(data, axis=0)
    data /= np.sqrt(float_n) * deviation
    return np.where(np.eye(M, dtype=bool), 1.0, data.T @ data)
