"""Reductions, statistics and cumulative functions."""

from __future__ import annotations

import numpy as np

from .case import REAL, Case, along, reduction

CASES: dict[str, Case] = {
    "sum": reduction(np.sum, lambda x: np.sum(x, 0, np.float32), compiled=True),
    "prod": reduction(np.prod, compiled=True),
    "max": reduction(np.max, compiled=True),
    "min": reduction(np.min, compiled=True),
    "amax": reduction(np.amax),
    "amin": reduction(np.amin),
    "any": reduction(np.any, compiled=True),
    "all": reduction(np.all, compiled=True),
    "mean": reduction(np.mean, compiled=True),
    "var": reduction(np.var, lambda x: np.var(x, ddof=1), compiled=True),
    "std": reduction(np.std, lambda x: np.std(x, axis=0, correction=1), compiled=True),
    "ptp": reduction(np.ptp),
    "count_nonzero": reduction(np.count_nonzero),
    "average": reduction(np.average, lambda x, y: np.average(x, weights=y * y + 1), late=True),
    "nansum": reduction(np.nansum),
    "nanprod": reduction(np.nanprod),
    "nanmax": reduction(np.nanmax),
    "nanmin": reduction(np.nanmin),
    "nanmean": reduction(np.nanmean),
    "nanvar": reduction(np.nanvar),
    "nanstd": reduction(np.nanstd),
    "median": reduction(np.median, compiled=True),
    "nanmedian": reduction(np.nanmedian, dtypes=REAL),
    "quantile": reduction(
        lambda x, **k: np.quantile(x, 0.3, **k),
        lambda x: np.quantile(x, [0.1, 0.5, 1], axis=0),
        lambda x: np.quantile(x, 0.4, method="lower"),
        lambda x: np.quantile(x, 0.4, method="median_unbiased"),
    ),
    "percentile": reduction(lambda x, **k: np.percentile(x, 30, **k)),
    "nanquantile": reduction(lambda x, **k: np.nanquantile(x, [0.25, 0.5], **k), dtypes=REAL),
    "nanpercentile": reduction(lambda x, **k: np.nanpercentile(x, 60, **k), dtypes=REAL),
    "argmax": along(np.argmax, lambda x: np.argmax(x, 0, keepdims=True), dtypes=REAL),
    "argmin": along(np.argmin, lambda x: np.argmin(x, keepdims=True), dtypes=REAL),
    "nanargmax": along(np.nanargmax, dtypes=REAL),
    "nanargmin": along(np.nanargmin, dtypes=REAL),
    "cumsum": along(np.cumsum, compiled=True),
    "cumprod": along(np.cumprod),
    "nancumsum": along(np.nancumsum),
    "nancumprod": along(np.nancumprod),
    "cumulative_sum": along(
        np.cumulative_sum, lambda x: np.cumulative_sum(x, axis=0, include_initial=True)
    ),
    "cumulative_prod": along(np.cumulative_prod),
    "cov": Case(
        lambda x: np.cov(x),
        lambda x: np.cov(x, rowvar=False),
        lambda x, y: np.cov(x, y, bias=True),
        lambda x: np.cov(x, ddof=0, aweights=[1.0, 2, 3, 4]),
        lambda x: np.cov(x, fweights=[1, 2, 3, 4], aweights=[1.0, 2, 3, 4]),
        shapes=((3, 4), (4,), (1, 4)),
        fuzz=512,
        compiled=True,
    ),
    "corrcoef": Case(
        lambda x: np.corrcoef(x),
        lambda x, y: np.corrcoef(x, y, rowvar=False),
        shapes=((3, 4), (4,)),
        fuzz=512,
    ),
}
