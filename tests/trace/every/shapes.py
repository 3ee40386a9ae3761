"""Functions that give the same elements in another shape or order."""

from __future__ import annotations

import numpy as np

from .case import VECTORS, Case, plain

CASES: dict[str, Case] = {
    "reshape": Case(lambda x: np.reshape(x, -1), lambda x: np.reshape(x, (2, 6)), compiled=True),
    "ravel": plain(np.ravel),
    "transpose": plain(np.transpose, lambda x: np.transpose(x, (1, 0)), compiled=True),
    "matrix_transpose": plain(np.matrix_transpose),
    "swapaxes": plain(lambda x: np.swapaxes(x, 0, -1)),
    "moveaxis": plain(lambda x: np.moveaxis(x, 0, -1)),
    "rollaxis": plain(lambda x: np.rollaxis(x, 1), lambda x: np.rollaxis(x, -1, 0)),
    "squeeze": plain(np.squeeze, shapes=((1, 3, 1), (3,), (), (1, 0))),
    "expand_dims": Case(lambda x: np.expand_dims(x, 0), lambda x: np.expand_dims(x, (0, -1))),
    "broadcast_to": plain(lambda x: np.broadcast_to(x, (2, 3, 4))),
    "broadcast_arrays": plain(lambda x: np.broadcast_arrays(x, x[..., :1])),
    "atleast_1d": plain(np.atleast_1d),
    "atleast_2d": plain(np.atleast_2d),
    "atleast_3d": plain(np.atleast_3d),
    "flip": plain(np.flip, lambda x: np.flip(x, 0), compiled=True),
    "flipud": plain(np.flipud),
    "fliplr": plain(np.fliplr),
    "rot90": Case(*(lambda x, k=k: np.rot90(x, k) for k in range(4))),
    "shape": plain(lambda x: np.zeros(np.shape(x))),
    "ndim": plain(np.ndim),
    "size": plain(np.size, lambda x: np.size(x, 0)),
    "roll": Case(
        lambda x: np.roll(x, 2),
        lambda x: np.roll(x, -1, 0),
        lambda x: np.roll(x, (1, 2), (0, 1)),
        compiled=True,
    ),
    "tile": Case(lambda x: np.tile(x, 2), lambda x: np.tile(x, (2, 1, 3))),
    "repeat": Case(lambda x: np.repeat(x, 2), lambda x: np.repeat(x, [1, 0, 2], axis=0)),
    "pad": Case(
        lambda x: np.pad(x, 1),
        lambda x: np.pad(x, (1, 2), constant_values=1),
        lambda x: np.pad(x, 1, "edge"),
        lambda x: np.pad(x, 1, "wrap"),
        compiled=True,
    ),
    "concatenate": Case(
        lambda x, y: np.concatenate([x, y]), lambda x, y: np.concatenate([x, y], -1), compiled=True
    ),
    "stack": Case(lambda x, y: np.stack([x, y]), lambda x, y: np.stack([x, y], -1), compiled=True),
    "vstack": plain(lambda x: np.vstack([x, x])),
    "hstack": plain(lambda x: np.hstack([x, x])),
    "dstack": plain(lambda x: np.dstack([x, x])),
    "column_stack": plain(lambda x: np.column_stack([x, x])),
    "append": Case(lambda x, y: np.append(x, y), lambda x, y: np.append(x, y, 0)),
    "block": plain(lambda x: np.block([[x, x], [x, x]])),
    "split": Case(lambda x: np.split(x, [1, 2]), lambda x: np.split(x, 2, -1)),
    "array_split": Case(lambda x: np.array_split(x, 3), lambda x: np.array_split(x, 3, -1)),
    "hsplit": plain(lambda x: np.hsplit(x, 2)),
    "vsplit": plain(lambda x: np.vsplit(x, [1])),
    "dsplit": plain(lambda x: np.dsplit(x, 2)),
    "unstack": plain(np.unstack, lambda x: np.unstack(x, axis=-1)),
    "meshgrid": Case(
        lambda x: np.meshgrid(x, x[:2]),
        lambda x: np.meshgrid(x, x, indexing="ij", sparse=True),
        shapes=VECTORS,
    ),
    "insert": Case(
        lambda x: np.insert(x, 1, 5),
        lambda x: np.insert(x, [0, 2, 2], 1, axis=0),
        lambda x: np.insert(x, 1, x[0], axis=0),
        lambda x: np.insert(x, slice(0, 2), 1),
        lambda x: np.insert(x, -1, [[1], [2], [3]], axis=1),
        lambda x: np.insert(x, 9, 1, axis=0),
        compiled=True,
    ),
    "delete": Case(
        lambda x: np.delete(x, 1),
        lambda x: np.delete(x, [0, -1], axis=0),
        lambda x: np.delete(x, slice(None, None, 2), axis=-1),
        lambda x: np.delete(x, np.array([True, False, True]), axis=0),
        lambda x: np.delete(x, 7, axis=0),
        compiled=True,
    ),
    "resize": Case(lambda x: np.resize(x, 7), lambda x: np.resize(x, (5, 4))),
}
