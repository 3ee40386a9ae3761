"""Sorting, searching, indexing and choosing."""

from __future__ import annotations

import numpy as np

from .case import DTYPES, REAL, SHAPES, VECTORS, Case, along, changed, plain

CASES: dict[str, Case] = {
    # sorting and searching
    "sort": along(np.sort, lambda x: np.sort(x, None)),
    "argsort": plain(
        lambda x: np.argsort(x, kind="stable"), lambda x: np.argsort(x, 0, kind="stable")
    ),
    "sort_complex": plain(np.sort_complex),
    "lexsort": plain(lambda x, y: np.lexsort((x, y))),
    "partition": plain(lambda x: np.partition(x, 1)[..., 1]),
    "argpartition": plain(
        lambda x: np.take_along_axis(x, np.argpartition(x, 1), -1)[..., 1], shapes=SHAPES[:3]
    ),
    "searchsorted": Case(
        lambda x, y: np.searchsorted(np.sort(x), y),
        lambda x, y: np.searchsorted(np.sort(x), y, side="right"),
        shapes=VECTORS,
        dtypes=REAL,
    ),
    "digitize": plain(lambda x: np.digitize(x, [-1, 0, 2]), dtypes=REAL),
    "isin": Case(
        lambda x: np.isin(x, [1, 2]), lambda x, y: np.isin(x, y, invert=True), dtypes=REAL
    ),
    "interp": Case(
        lambda x: np.interp(x, [-1.0, 0, 3], [2.0, 1, 5]),
        lambda x: np.interp(x, [0.0, 1, 2], [2.0, 1, 5], period=3),
        dtypes=REAL,
        compiled=True,
    ),
    "histogram": Case(
        lambda x: np.histogram(x, 4),
        lambda x: np.histogram(x, np.array(4)),
        lambda x: np.histogram(x, [-1, 0, 2, 3], density=True),
        lambda x: np.histogram(x, 3, range=(-2, 5)),
        dtypes=REAL[1:],
    ),
    "histogram_bin_edges": plain(lambda x: np.histogram_bin_edges(x, 4), dtypes=REAL[1:]),
    "histogram2d": Case(
        lambda x, y: np.histogram2d(x, y, 3),
        lambda x, y: np.histogram2d(x, y, [2, 4], density=True),
        lambda x, y: np.histogram2d(x, y, 3, range=[[-2, 2], [0, 4]], weights=x),
        shapes=((8,), (1,), (0,)),
        dtypes=("i64", "f32", "f64"),
    ),
    "histogramdd": Case(
        lambda x: np.histogramdd(x, 2),
        lambda x: np.histogramdd(x, [np.array([-3.0, 0, 3])] * 3),
        shapes=((6, 3), (0, 3)),
        dtypes=("i64", "f32", "f64"),
    ),
    # places
    "take": Case(
        lambda x: np.take(x, [0, 2, 1]),
        lambda x: np.take(x, 1, 0),
        lambda x: np.take(x, [9], 0),
        compiled=True,
    ),
    "take_along_axis": Case(
        lambda x: np.take_along_axis(x, np.array([[0, 1], [2, 3], [-1, 0]]), 1),
        lambda x: np.take_along_axis(x, np.array([0, 1]), None),
        shapes=((3, 4), (3, 5)),
    ),
    "put": Case(changed(lambda x, y: np.put(x, [0, 2], 1)), shapes=((3, 4), (4,))),
    "put_along_axis": Case(
        changed(lambda x, y: np.put_along_axis(x, np.array([[0], [2], [1]]), 1, 1)),
        shapes=((3, 4),),
    ),
    "putmask": Case(
        changed(lambda x, y: np.putmask(x, y != 0, 1)),
        changed(lambda x, y: np.putmask(x, x != 0, y)),
    ),
    "place": Case(changed(lambda x, y: np.place(x, y != 0, [1, 0, 1]))),
    "copyto": Case(
        changed(lambda x, y: np.copyto(x, y)), changed(lambda x, y: np.copyto(x, 1, where=y != 0))
    ),
    "fill_diagonal": Case(
        changed(lambda x, y: np.fill_diagonal(x, 1)), shapes=((3, 4), (4, 3), (3, 3))
    ),
    "ix_": Case(
        lambda x: np.ix_(x, [0, 2], x),
        shapes=VECTORS,
        dtypes=DTYPES[1:],
    ),
    "unravel_index": Case(
        lambda x: np.unravel_index(np.abs(x), (4, 5)),
        lambda x: np.unravel_index(np.abs(x), (2, 3, 2), order="F"),
        dtypes=("i64", "u32", "i8", "f64"),
    ),
    "ravel_multi_index": Case(
        lambda x, y: np.ravel_multi_index((abs(x), abs(y)), (10, 11)),
        lambda x, y: np.ravel_multi_index((x, y), (4, 3), mode=("clip", "wrap"), order="F"),
        dtypes=("i64", "u32", "i8"),
    ),
    "tril_indices_from": plain(np.tril_indices_from, lambda x: x[np.tril_indices_from(x, 1)]),
    "triu_indices_from": plain(np.triu_indices_from, lambda x: x[np.triu_indices_from(x, 1)]),
    "diag_indices_from": plain(np.diag_indices_from, shapes=((3, 3), (2, 2, 2), (3, 4), (3,))),
    "diagonal": Case(lambda x: np.diagonal(x), lambda x: np.diagonal(x, 1), compiled=True),
    "diag": Case(lambda x: np.diag(x), lambda x: np.diag(x, -1)),
    "diagflat": Case(lambda x: np.diagflat(x), shapes=((2, 2), (), (3,), (0,))),
    "trace": Case(lambda x: np.trace(x), lambda x: np.trace(x, 1), compiled=True),
    "tril": Case(lambda x: np.tril(x), lambda x: np.tril(x, 1), compiled=True),
    "triu": Case(lambda x: np.triu(x), lambda x: np.triu(x, -1)),
    # choosing
    "nonzero": Case(
        lambda x: tuple(places.sum() for places in np.nonzero(x)),
        lambda x: x[np.nonzero(x)].sum(),
        lambda x: x.nonzero()[0].size,
    ),
    "flatnonzero": Case(lambda x: (np.flatnonzero(x).sum(), np.flatnonzero(x).size)),
    "argwhere": Case(
        lambda x: np.argwhere(x).sum(axis=0), lambda x: np.argwhere(x).sum(axis=1).sum()
    ),
    "unique": Case(
        lambda x: np.unique(x, True, True, True),
        lambda x: np.unique(x, True, True, True, axis=0),
        lambda x: np.unique(x, axis=-1),
        dtypes=(*DTYPES, "f32 nan"),
        compiled=True,
    ),
    "unique_values": Case(lambda x: np.unique_values(x).size, lambda x: np.unique_values(x).sum()),
    "unique_counts": plain(np.unique_counts),
    "unique_inverse": plain(np.unique_inverse),
    "unique_all": plain(np.unique_all, dtypes=(*DTYPES, "f32 nan")),
    "union1d": plain(lambda x, y: np.union1d(x, y)),
    "intersect1d": Case(
        lambda x, y: np.intersect1d(x, y),
        lambda x, y: np.intersect1d(x, y, return_indices=True),
        dtypes=REAL,
    ),
    "setdiff1d": plain(lambda x, y: np.setdiff1d(x, y), dtypes=REAL),
    "setxor1d": plain(lambda x, y: np.setxor1d(x, y), dtypes=(*REAL, "f32 nan")),
    "bincount": Case(
        lambda x: np.bincount(abs(x), minlength=9),
        lambda x: np.bincount(abs(x), abs(x) / 2, minlength=9),
        shapes=VECTORS,
        dtypes=("i8", "u32", "i64"),
    ),
    "compress": Case(
        lambda x, y: np.compress((x != 0).ravel(), y).sum(),
        lambda x, y: np.compress((x != 0).ravel()[:2], y, axis=0).sum(axis=0),
        lambda x: np.compress([True, False, True], x, axis=-1),
        fuzz=512,
    ),
    "extract": Case(
        lambda x, y: np.extract(x != 0, y).sum(),
        lambda x: np.extract(x, x).size,
        fuzz=512,
    ),
    "where": Case(
        lambda x, y: np.where(x != 0, x, y), lambda x: np.where(x != 0, x, 1), compiled=True
    ),
    "select": plain(lambda x, y: np.select([x == 1, x != 0], [x, y], 1), compiled=True),
    "choose": Case(
        lambda x, y: np.choose(np.array([0, 1, 1, 0]), [x, y]), shapes=((3, 4), (2, 3, 4), (4,))
    ),
    "clip": Case(
        lambda x: np.clip(x, 0, 2),
        lambda x: np.clip(x, None, 1),
        lambda x, y: np.clip(x, y, 3),
        compiled=True,
    ),
    "piecewise": Case(
        lambda x: np.piecewise(x, [x < 0, x > 1], [-1, 1]),
        lambda x: np.piecewise(x, [x == 0], [lambda v: v, lambda v: v * v]),
        lambda x: np.piecewise(x, x > 0, [2]),
        dtypes=("i64", "f16", "f32", "f64"),
    ),
}
