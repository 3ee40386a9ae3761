"""The covariance of columns, as one product."""

import numpy as np


def covariance(M, float_n, data):
    data -= np.mean(data, axis=0)
    return data.T @ data / (float_n - 1.0)
