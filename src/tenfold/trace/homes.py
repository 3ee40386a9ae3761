"""Homes: which module of the surface files what.

A module is imported when a program first asks for something that it files: to import all of them
takes longer than to load a plan. This is a list of where to look first, and no more: what it does
not name is found as well, by importing the rest.
"""

from __future__ import annotations

# The names of NumPy's functions and ufuncs by the module that files them. With a dot: names of
# Tenfold's own, and methods of ufuncs.
HOMES = {
    "surface.algebra.convolution": "convolve correlate",
    "surface.algebra.einsum": "einsum",
    "surface.algebra.fourier": (
        "fft fft2 fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft "
        "rfft2 rfftn"
    ),
    "surface.algebra.linalg": "matrix_norm norm qr svd svdvals vector_norm",
    "surface.algebra.polynomials": "poly polyadd polyder polyfit polyint polymul polysub vander",
    "surface.algebra.products": (
        "cross dot inner kron matmul matvec outer tensordot vdot vecdot vecmat"
    ),
    "surface.algebra.solving": (
        "cholesky cond det eig eigh eigvals eigvalsh inv lstsq matrix_power matrix_rank multi_dot "
        "pinv slogdet solve tensorinv tensorsolve"
    ),
    "surface.applying": "apply_along_axis apply_over_axes piecewise",
    "surface.asking": "array_equiv can_cast common_type einsum_path min_scalar_type real_if_close",
    "surface.indexing.at_hand": ".read .write",
    "surface.indexing.choosing": "choose clip select where",
    "surface.indexing.diagonals": "diag diagflat diagonal fill_diagonal trace tril triu",
    "surface.indexing.editing": "delete insert resize",
    "surface.indexing.indexing": ".getitem .setitem",
    "surface.indexing.places": (
        "diag_indices_from ix_ place ravel_multi_index tril_indices_from triu_indices_from "
        "unravel_index"
    ),
    "surface.indexing.taking": "put put_along_axis putmask take take_along_axis",
    "surface.into": ".as_dtype .into .same_kind copyto",
    "surface.methods": "argwhere astype copy flatnonzero imag nonzero real",
    "surface.numbers.bessel": "i0",
    "surface.numbers.bits": "packbits unpackbits",
    "surface.numbers.divisors": "gcd lcm",
    "surface.numbers.exponents": "frexp isnat",
    "surface.numbers.numeric": (
        "allclose angle around array_equal diff fix isclose iscomplex iscomplexobj isneginf "
        "isposinf isreal isrealobj nan_to_num polyval result_type round sinc trapezoid"
    ),
    "surface.numbers.scipy_special": ".scipy",
    "surface.reducing.counting": "bincount histogram histogram_bin_edges",
    "surface.reducing.covariance": "corrcoef cov",
    "surface.reducing.cumulative": (
        ".accumulate cumprod cumsum cumulative_prod cumulative_sum nancumprod nancumsum"
    ),
    "surface.reducing.differences": "ediff1d gradient unwrap",
    "surface.reducing.histograms": "histogram2d histogramdd",
    "surface.reducing.quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
    "surface.reducing.reductions": "all amax amin any argmax argmin max min prod sum",
    "surface.reducing.statistics": (
        "average count_nonzero mean nanargmax nanargmin nanmax nanmean nanmin nanprod nanstd "
        "nansum nanvar ptp std var"
    ),
    "surface.searching.lookup": "argpartition interp isin lexsort partition sort_complex",
    "surface.searching.searching": "digitize searchsorted",
    "surface.searching.sorting": "argsort sort",
    "surface.selecting.distinct": (
        "intersect1d setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse "
        "unique_values"
    ),
    "surface.selecting.places": "compress extract",
    "surface.shaping.conversion": (
        "CClass RClass array asanyarray asarray ascontiguousarray asfortranarray fromiter full "
        "require"
    ),
    "surface.shaping.creation": "empty_like full_like linspace ones_like zeros_like",
    "surface.shaping.joining": (
        "append array_split block column_stack concatenate dsplit dstack hsplit hstack meshgrid "
        "repeat roll split stack tile unstack vsplit vstack"
    ),
    "surface.shaping.padding": "pad",
    "surface.shaping.shapes": (
        "atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to expand_dims flip fliplr "
        "flipud matrix_transpose moveaxis ndim ravel reshape rollaxis rot90 shape size squeeze "
        "swapaxes transpose"
    ),
    "surface.shaping.spacing": "geomspace logspace",
    "surface.shaping.windows": "as_strided sliding_window_view",
    "operand": ".literal",
    "surface.ufuncs.comparisons": "equal greater greater_equal less less_equal not_equal",
    "surface.ufuncs.methods": ".at .outer .reduce .reduceat",
    "surface.ufuncs.ufuncs": (
        "absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and "
        "bitwise_count bitwise_or bitwise_xor cbrt ceil conjugate copysign cos cosh deg2rad "
        "degrees divide divmod exp exp2 expm1 fabs float_power floor floor_divide fmax fmin fmod "
        "heaviside hypot invert isfinite isinf isnan ldexp left_shift log log10 log1p log2 "
        "logaddexp logaddexp2 logical_and logical_not logical_or logical_xor maximum minimum modf "
        "multiply negative nextafter positive power rad2deg radians reciprocal remainder "
        "right_shift rint sign signbit sin sinh spacing sqrt square subtract tan tanh trunc"
    ),
    "surface.unsupported": "polydiv roots trim_zeros",
}
HOME = {name: module for module, names in HOMES.items() for name in names.split()}


def home_of(key: object) -> str | None:
    """The module that files a function, a ufunc or a name, as far as this list knows.

    >>> import numpy as np
    >>> home_of(np.pad), home_of(np.linalg.norm), home_of("getitem")
    ('surface.shaping.padding', 'surface.algebra.linalg', 'surface.indexing.indexing')
    """
    name = f".{key}" if isinstance(key, str) else getattr(key, "__name__", type(key).__name__)
    return HOME.get(name)
