"""The types of values: a dtype and a shape."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import index
from typing import Any

import ml_dtypes
import numpy as np

from tenfold.errors import ShapeError, TypeMismatch, UnknownDType
from tenfold.frozen import frozen

DType = np.dtype[Any]
Shape = tuple[int, ...]

BFLOAT16: DType = np.dtype(ml_dtypes.bfloat16)

# The names of dtypes in the text of graphs, and nowhere else: to NumPy "i8" is int64.
_NAMES: dict[str, Any] = {
    "bool": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
}

DTYPES: dict[str, DType] = {short: np.dtype(kind) for short, kind in _NAMES.items()}
SHORT: dict[DType, str] = {dtype: short for short, dtype in DTYPES.items()}
_OWN: dict[DType, DType] = {dtype: dtype for dtype in SHORT}  # each is one object here

BOOL, I32, I64, F32, F64 = (DTYPES[n] for n in ("bool", "i32", "i64", "f32", "f64"))
C64, C128 = DTYPES["c64"], DTYPES["c128"]

# The letter of each dtype: b(ool), i(nteger), u(nsigned), f(loat), c(omplex).
KIND: dict[DType, str] = {
    dtype: "b" if short == "bool" else "f" if short == "bf16" else short[0]
    for short, dtype in DTYPES.items()
}


_CONVERT = f"convert to one of {', '.join(dtype.name for dtype in SHORT)}"


def as_dtype(dtype: Any) -> DType:
    """The dtype that NumPy takes this for: a name, a code, a NumPy type or a Python type.

    >>> as_dtype("bfloat16"), as_dtype("i8"), as_dtype(int)
    (dtype(bfloat16), dtype('int64'), dtype('int64'))
    """
    if isinstance(dtype, np.dtype) and dtype in _OWN:
        return _OWN[dtype]
    try:
        found: DType = np.dtype(dtype).newbyteorder("=")
    except TypeError:
        short = DTYPES.get(dtype) if isinstance(dtype, str) else None
        raise UnknownDType(
            f"{dtype} is no dtype that Tenfold has",
            fix=_CONVERT
            if short is None
            else f"write {short.name!r}: {dtype} is how graphs print it, NumPy has no such name",
        ) from None
    if found not in _OWN:
        raise UnknownDType(f"{found} is no dtype that Tenfold has", fix=_CONVERT)
    return _OWN[found]


def short_name(dtype: DType | str) -> str:
    """The name of a dtype in the text of graphs, given as a dtype or as that name.

    >>> short_name(np.dtype("int64")), short_name("i8")
    ('i64', 'i8')
    """
    if not isinstance(dtype, str):
        return SHORT[as_dtype(dtype)]
    if dtype not in DTYPES:
        raise ShapeError(f"{dtype!r} names no dtype of a graph; write one of {', '.join(DTYPES)}")
    return dtype


# What a subclass of NumPy's arrays may define without its elements meaning something else.
_COMPARED = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
_HARMLESS = {
    *(set(dir(object)) - _COMPARED),
    *("__module__", "__dict__", "__class_getitem__", "__copy__", "__deepcopy__", "__setstate__"),
    *("__array_finalize__", "__array_wrap__", "__array_priority__"),
}


@lru_cache(256)
def means_more(kind: Any) -> str | None:
    """What an array of this class overrides that gives its elements another meaning."""
    if issubclass(kind, np.memmap):
        return None
    above = kind.__mro__[: kind.__mro__.index(np.ndarray)]
    names = [n for one in above for n in vars(one) if n not in _HARMLESS and hasattr(np.ndarray, n)]
    return min(names, default=None)


def base_array(array: Any) -> Any:
    """An array, or a list of arrays; one of a subclass that computes in its own way is refused.

    Masked arrays leave elements out and matrices multiply as such: of both a program would see the
    plain elements. An array in a file, or one with fields added, means what its elements do.
    """
    kind: Any = type(array)
    if kind is list or kind is tuple:
        for item in array:
            base_array(item)
    if kind is np.ndarray or not isinstance(array, np.ndarray) or means_more(kind) is None:
        return array
    if isinstance(array, np.ma.MaskedArray):
        fix = "pass x.filled(value), or x.data and x.mask apart and use np.where"
    elif isinstance(array, np.matrix):
        fix = "pass np.asarray(x), and write products as x @ y"
    else:
        fix = "pass np.asarray(x) if its plain elements are meant"
    raise TypeMismatch(
        f"a {kind.__name__} is no plain array: it has a {means_more(kind)} of its own", fix=fix
    )


@frozen
class TensorType:
    """The type of one value.

    >>> TensorType(as_dtype("float32"), (4, 3))
    f32[4,3]
    """

    dtype: DType
    shape: Shape

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def kind(self) -> str:
        return KIND[self.dtype]

    def __repr__(self) -> str:
        dims = ",".join(map(str, self.shape))
        return f"{SHORT[self.dtype]}[{dims}]" if dims else SHORT[self.dtype]


def spec(shape: int | Sequence[int], dtype: Any = "float64") -> TensorType:
    """The type of an array of this shape and dtype, to trace with or to declare a result.

    >>> spec((4, 3), "float32"), spec(2, int), spec((), bool)
    (f32[4,3], i64[2], bool)
    """
    extents = (shape,) if isinstance(shape, int) else tuple(index(n) for n in shape)
    if any(n < 0 for n in extents):
        raise ShapeError(
            f"spec: {extents} is not a shape: an extent is negative",
            fix="give a tuple of whole numbers, none negative",
        )
    return TensorType(as_dtype(dtype), extents)


@lru_cache(4096)
def parse_type(text: str) -> TensorType:
    """The type that prints as this text.

    >>> parse_type("bf16[2,0]")
    bf16[2,0]
    """
    short, bracket, dims = text.strip().partition("[")
    if short not in DTYPES or (bracket and not dims.endswith("]")):
        raise ShapeError(f"{text!r} is not a type; write one like f32[4,3]")
    try:
        shape = tuple(int(d) for d in dims[:-1].split(",")) if bracket else ()
    except ValueError as error:
        raise ShapeError(f"{text!r} is not a type; write one like f32[4,3]") from error
    if any(d < 0 for d in shape):
        raise ShapeError(f"{text!r} has a negative extent")
    return TensorType(DTYPES[short], shape)
