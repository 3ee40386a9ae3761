"""B = alpha Aᵀ B, of A the strict lower half and ones on the diagonal, as one product."""

import numpy as np


def trmm(alpha, A, B):
    B[:] = alpha * (B + np.tril(A, -1).T @ B)
