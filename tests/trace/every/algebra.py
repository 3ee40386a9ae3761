"""Products, linear algebra and Fourier transforms."""

from __future__ import annotations

import numpy as np

from .case import (
    DTYPES,
    MATRICES,
    REAL,
    SHAPES,
    SOLVED,
    SQUARE,
    VECTORS,
    Case,
    definite,
    plain,
    transform,
    transforms,
)

CASES: dict[str, Case] = {
    # products
    "dot": Case(
        lambda x, y: np.dot(x, y.T), lambda x: np.dot(x, 2), shapes=SHAPES[:1] + SHAPES[2:]
    ),
    "vdot": plain(lambda x, y: np.vdot(x, y)),
    "inner": plain(lambda x, y: np.inner(x, y)),
    "outer": plain(lambda x, y: np.outer(x, y)),
    "tensordot": Case(lambda x, y: np.tensordot(x, y), lambda x, y: np.tensordot(x, y, ([0], [0]))),
    "kron": plain(lambda x, y: np.kron(x, y), shapes=((2, 3), (3,), ())),
    "cross": plain(lambda x, y: np.cross(x, y), shapes=((4, 3), (3,)), dtypes=DTYPES[1:]),
    "einsum": Case(
        lambda x, y: np.einsum("ij,kj->ik", x, y),
        lambda x: np.einsum("ij->j", x),
        shapes=((3, 4), (0, 3)),
        compiled=True,
    ),
    "einsum_path": plain(
        lambda x, y: np.array(np.einsum_path("ij,kj->ik", x, y)[0][1]), shapes=((3, 4),)
    ),
    "convolve": Case(
        lambda x, y: np.convolve(x, y),
        lambda x, y: np.convolve(x, y[:2], "same"),
        lambda x, y: np.convolve(x, y[:2], "valid"),
        shapes=((5,), (2,)),
    ),
    "correlate": Case(
        lambda x, y: np.correlate(x, y),
        lambda x, y: np.correlate(x, y, "full"),
        shapes=((5,), (2,)),
    ),
    "apply_along_axis": Case(
        lambda x: np.apply_along_axis(np.sum, 0, x),
        lambda x: np.apply_along_axis(lambda v: v[:2] * 2, -1, x),
        lambda x: np.apply_along_axis(lambda v: np.outer(v, v), 1, x),
        shapes=((3, 4), (2, 3, 4), (4,)),
    ),
    "apply_over_axes": Case(
        lambda x: np.apply_over_axes(np.sum, x, (0, -1)),
        lambda x: np.apply_over_axes(np.max, x, 0),
        shapes=SHAPES[:3],
        dtypes=REAL,
    ),
    "lib.stride_tricks.as_strided": Case(
        lambda x: np.lib.stride_tricks.as_strided(x, (2, 2), (2 * x.itemsize, x.itemsize)),
        lambda x: np.lib.stride_tricks.as_strided(x[1:], strides=x.strides),
        shapes=((3, 4), (2, 3, 4), (4,)),
    ),
    "lib.stride_tricks.sliding_window_view": Case(
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=0),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 3)),
    ),
    # linear algebra
    "linalg.matrix_transpose": plain(np.linalg.matrix_transpose),
    "linalg.diagonal": plain(np.linalg.diagonal, lambda x: np.linalg.diagonal(x, offset=1)),
    "linalg.trace": plain(np.linalg.trace),
    "linalg.outer": plain(lambda x, y: np.linalg.outer(x, y), shapes=VECTORS),
    "linalg.tensordot": plain(lambda x, y: np.linalg.tensordot(x, y, axes=1), shapes=SQUARE),
    "linalg.matmul": plain(lambda x, y: np.linalg.matmul(x, y), shapes=SQUARE),
    "linalg.vecdot": plain(lambda x, y: np.linalg.vecdot(x, y)),
    "linalg.cross": plain(lambda x, y: np.linalg.cross(x, y), shapes=SQUARE, dtypes=DTYPES[1:]),
    "linalg.norm": Case(
        lambda x: np.linalg.norm(x),
        lambda x: np.linalg.norm(x, axis=0, keepdims=True),
        lambda x: np.linalg.norm(x, np.inf, axis=-1),
        lambda x: np.linalg.norm(x, "nuc"),
        lambda x: np.linalg.norm(x, 2),
    ),
    "linalg.vector_norm": plain(
        np.linalg.vector_norm, lambda x: np.linalg.vector_norm(x, axis=0, ord=1, keepdims=True)
    ),
    "linalg.matrix_norm": plain(
        np.linalg.matrix_norm, lambda x: np.linalg.matrix_norm(x, ord=1, keepdims=True)
    ),
    "linalg.qr": Case(
        lambda x: np.matmul(*np.linalg.qr(x)),
        lambda x: np.abs(np.linalg.qr(x, "r")),
        shapes=MATRICES,
        dtypes=SOLVED,
        fuzz=512,
    ),
    "linalg.svd": Case(
        lambda x: np.linalg.svd(x, compute_uv=False),
        lambda x: np.linalg.svd(x)[1],
        shapes=MATRICES,
        dtypes=SOLVED,
        fuzz=512,
    ),
    "linalg.svdvals": plain(np.linalg.svdvals, shapes=MATRICES, dtypes=SOLVED, fuzz=512),
    "linalg.cholesky": Case(
        lambda x: np.linalg.cholesky(definite(x)),
        lambda x: np.linalg.cholesky(definite(x), upper=True),
        shapes=SQUARE,
        dtypes=SOLVED,
        fuzz=512,
    ),
    "linalg.eigh": Case(
        lambda x: np.linalg.eigh(definite(x))[0],
        lambda x: np.abs(np.linalg.eigh(definite(x))[1]),
        shapes=SQUARE,
        dtypes=SOLVED,
        fuzz=1 << 12,
    ),
    "linalg.eigvalsh": plain(
        lambda x: np.linalg.eigvalsh(definite(x)), shapes=SQUARE, dtypes=SOLVED, fuzz=1 << 10
    ),
    "linalg.eig": plain(
        lambda x: np.sort(np.abs(np.linalg.eig(x)[0]), -1),
        shapes=SQUARE,
        dtypes=SOLVED,
        fuzz=1 << 12,
    ),
    "linalg.eigvals": plain(
        lambda x: np.sort(np.abs(np.linalg.eigvals(x)), -1),
        shapes=SQUARE,
        dtypes=SOLVED,
        fuzz=1 << 12,
    ),
    "linalg.solve": Case(
        lambda x, y: np.linalg.solve(definite(x), y),
        lambda x: np.linalg.solve(definite(x), np.ones(3)),
        shapes=SQUARE,
        dtypes=SOLVED,
        fuzz=1 << 12,
    ),
    "linalg.inv": plain(
        lambda x: np.linalg.inv(definite(x)), shapes=SQUARE, dtypes=SOLVED, fuzz=1 << 12
    ),
    "linalg.pinv": plain(np.linalg.pinv, shapes=MATRICES, dtypes=SOLVED, fuzz=1 << 14),
    "linalg.det": plain(np.linalg.det, shapes=SQUARE, dtypes=SOLVED, fuzz=1 << 12),
    "linalg.slogdet": plain(
        lambda x: np.linalg.slogdet(definite(x)), shapes=SQUARE, dtypes=SOLVED, fuzz=1 << 12
    ),
    "linalg.matrix_rank": plain(np.linalg.matrix_rank, shapes=MATRICES, dtypes=SOLVED),
    "linalg.matrix_power": Case(
        lambda x: np.linalg.matrix_power(x, 3),
        lambda x: np.linalg.matrix_power(x, 0),
        lambda x: np.linalg.matrix_power(definite(x), -2),
        shapes=SQUARE,
        dtypes=SOLVED,
        fuzz=1 << 14,
    ),
    "linalg.lstsq": plain(
        lambda x: np.linalg.lstsq(x, np.ones(4)), shapes=((4, 3),), dtypes=SOLVED, fuzz=1 << 14
    ),
    "linalg.cond": Case(
        lambda x: np.linalg.cond(x),
        lambda x: np.linalg.cond(definite(x), 1),
        shapes=SQUARE,
        dtypes=SOLVED,
        fuzz=1 << 14,
    ),
    "linalg.multi_dot": plain(
        lambda x, y: np.linalg.multi_dot([x, y, x]), shapes=((3, 3),), dtypes=DTYPES[1:]
    ),
    "linalg.tensorsolve": plain(
        lambda x: np.linalg.tensorsolve(np.eye(6).reshape(6, 2, 3) * 2 + x[0, 0] * 0, np.ones(6)),
        shapes=((2, 3),),
        dtypes=("f32", "f64"),
        fuzz=1 << 12,
    ),
    "linalg.tensorinv": plain(
        lambda x: np.linalg.tensorinv(np.eye(6).reshape(6, 2, 3) * 2 + x[0, 0] * 0, ind=1),
        shapes=((2, 3),),
        dtypes=("f32", "f64"),
        fuzz=1 << 12,
    ),
    # Fourier transforms
    **{f"fft.{n}": transform(n) for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{f"fft.{n}": transforms(n) for n in ("fftn", "ifftn", "rfftn", "irfftn")},
    **{f"fft.{n}": transforms(n) for n in ("fft2", "ifft2", "rfft2", "irfft2")},
    "fft.fftshift": plain(np.fft.fftshift, lambda x: np.fft.fftshift(x, 0)),
    "fft.ifftshift": plain(np.fft.ifftshift, lambda x: np.fft.ifftshift(x, 0)),
}
