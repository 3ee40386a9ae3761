"""Where an ndarray keeps its fields, and which functions of NumPy's C interface native code calls.

Nothing is taken on trust: the offsets and functions are tried on real arrays before use, and
`supported()` says why when they do not hold.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from functools import cache
from types import MethodType
from typing import Any

import numpy as np

from tenfold.types import DTYPES

# Offsets in bytes. An object begins with its reference count and its type.
TYPE, DATA, RANK, DIMS, STRIDES, DESCR, FLAGS = 8, 16, 24, 32, 40, 56, 64
HANDLER = 88  # a capsule: who allocated the data, and frees it
LONGEST = 16  # bytes of an element
SCALAR_TYPE = 16  # where a dtype says what its scalars are
SCALAR_VALUE = 16  # of a NumPy scalar
CAPSULE_POINTER = 16  # of a capsule
CELL_VALUE = 16  # of a closure cell
METHOD_FUNCTION = 16  # of a bound method
SIZE = 16  # of a list or a tuple
LIST_ITEMS = 24  # where a list says where its items lie
TUPLE_ITEMS = 24  # where those of a tuple begin

CONTIGUOUS, OWNDATA, ALIGNED, WRITEABLE = 0x1, 0x4, 0x100, 0x400

# Places in the table of NumPy's C interface, which never change.
_TYPE_INDEX, _SCALAR_INDEX, _COPY_INDEX, _NEW_INDEX, _HANDLER_INDEX = 2, 60, 85, 94, 305


@cache
def _table() -> int:
    # A prototype of our own: setting types on ctypes.pythonapi's functions would be seen by all.
    kind = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    get = kind(("PyCapsule_GetPointer", ctypes.pythonapi))
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    return int(get(capsule, None))


def _function(index: int) -> int:
    return ctypes.c_void_p.from_address(_table() + 8 * index).value or 0


@cache
def symbols() -> dict[str, int]:
    """What the gate imports beside Python's own functions, with its address here."""
    return {
        "tn_ndarray": id(np.ndarray),
        "tn_new_array": _function(_NEW_INDEX),
        "tn_new_scalar": _function(_SCALAR_INDEX),
        "tn_new_copy": _function(_COPY_INDEX),
        "tn_method": id(MethodType),
        "tn_attribute_error": id(AttributeError),
    }


@cache
def supported() -> str | None:
    """Why the native entry point can't be used in this process, or None when it can."""
    if sys.implementation.name != "cpython":
        return f"it is made for CPython, this is {sys.implementation.name}"
    if "t" in getattr(sys, "abiflags", ""):
        return "it is not made for Python without a GIL"
    if struct.calcsize("P") != 8 or sys.byteorder != "little":
        return "it is made for 64-bit little-endian machines"
    try:
        return _wrong_field() or _wrong_scalar() or _wrong_function()
    except Exception as error:  # whatever NumPy changed, there is a path that works without it
        return f"NumPy {np.__version__} is unlike those it is made for: {error!r}"


def _word(where: int) -> int:
    return ctypes.c_uint64.from_address(where).value


def _wrong_field() -> str | None:
    """Read every field of some arrays in the way native code does."""
    if np.ndarray.__basicsize__ < FLAGS + 4:
        return "an ndarray is smaller than it takes it to be"
    fixed = np.arange(6, dtype=np.float32)
    fixed.flags.writeable = False
    samples: list[Any] = [
        fixed,
        np.zeros((2, 3, 5))[:, ::-2],
        np.zeros((), np.int8),
        np.zeros((0, 4)),
    ]
    for array in samples:
        at = id(array)
        dims = tuple(_word(_word(at + DIMS) + 8 * axis) for axis in range(array.ndim))
        strides = tuple(
            ctypes.c_int64.from_address(_word(at + STRIDES) + 8 * axis).value
            for axis in range(array.ndim)
        )
        flags = ctypes.c_int32.from_address(at + FLAGS).value
        found = (
            _word(at + TYPE),
            _word(at + DATA),
            ctypes.c_int32.from_address(at + RANK).value,
            dims,
            strides,
            _word(at + DESCR),
            bool(flags & CONTIGUOUS),
            bool(flags & ALIGNED),
            bool(flags & WRITEABLE),
        )
        stated = (
            id(np.ndarray),
            array.__array_interface__["data"][0],
            array.ndim,
            array.shape,
            array.strides,
            id(array.dtype),
            array.flags.c_contiguous,
            array.flags.aligned,
            array.flags.writeable,
        )
        if found != stated:
            return f"the fields of an ndarray lie elsewhere in NumPy {np.__version__}"
    cell: Any = (lambda: fixed).__closure__[0]  # type: ignore[index]
    if _word(id(cell) + CELL_VALUE) != id(fixed):
        return "a closure cell keeps its value elsewhere"
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    if _word(id(capsule) + CAPSULE_POINTER) != _table():
        return "a capsule keeps its pointer elsewhere"
    method = MethodType(supported, fixed)
    if _word(id(method) + METHOD_FUNCTION) != id(supported):
        return "a bound method keeps its function elsewhere"
    for count in (1, 5):
        listed, row = [fixed] * count, (fixed,) * count
        first = (_word(id(listed) + LIST_ITEMS), id(row) + TUPLE_ITEMS)
        sizes = {_word(id(listed) + SIZE), _word(id(row) + SIZE), count}
        if len(sizes) > 1 or any(
            _word(at + 8 * k) != id(fixed) for at in first for k in range(count)
        ):
            return "a list or a tuple keeps its items elsewhere"
    return None


def _wrong_scalar() -> str | None:
    for dtype in DTYPES.values():
        array = np.ones((), dtype)
        scalar = array[()]
        if type(scalar) is not dtype.type:
            return f"a scalar of {dtype} is of another type"
        if ctypes.string_at(id(scalar) + SCALAR_VALUE, dtype.itemsize) != array.tobytes():
            return f"a scalar of {dtype} keeps its value elsewhere"
        if array.dtype is not dtype:
            return f"{dtype} is more than one object"
        if _word(id(dtype) + SCALAR_TYPE) != id(dtype.type):
            return f"{dtype} keeps the type of its scalars elsewhere"
    return None


def _new(shape: tuple[int, ...], dtype: Any, data: int | None = None, flags: int = 0) -> Any:
    """An array as native code makes it."""
    pointer, number = ctypes.c_void_p, ctypes.c_int
    kind = ctypes.PYFUNCTYPE(
        ctypes.py_object,
        pointer,
        ctypes.py_object,
        number,
        pointer,
        pointer,
        pointer,
        number,
        pointer,
    )
    dims = (ctypes.c_int64 * len(shape))(*shape)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(dtype))  # the call takes a reference
    new = kind(_function(_NEW_INDEX))
    return new(id(np.ndarray), dtype, len(shape), ctypes.addressof(dims), None, data, flags, None)


def _wrong_function() -> str | None:
    """Call what native code will call, as it will."""
    if _function(_TYPE_INDEX) != id(np.ndarray):
        return f"NumPy {np.__version__} has another C interface"
    scalar = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    )(_function(_SCALAR_INDEX))
    dtype = DTYPES["f32"]
    array = _new((2, 3), dtype)
    if type(array) is not np.ndarray or array.shape != (2, 3) or array.dtype is not dtype:
        return f"NumPy {np.__version__} makes arrays in another way"
    array[...] = 2.5
    value: Any = scalar(array.ctypes.data, dtype, None)
    if type(value) is not np.float32 or value != 2.5:
        return f"NumPy {np.__version__} makes scalars in another way"
    copy = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_int)
    packed: Any = copy(_function(_COPY_INDEX))(array.T, 0)
    if type(packed) is not np.ndarray or packed.shape != (3, 2) or not packed.flags.c_contiguous:
        return f"NumPy {np.__version__} copies arrays in another way"
    return None


@cache
def unkept() -> str | None:
    """Why memory of results can't be kept in this process, or None when it can."""
    try:
        return supported() or _wrong_handler()
    except Exception as error:  # NumPy's own allocator works without it
        return f"NumPy {np.__version__} is unlike those it is made for: {error!r}"


def _wrong_handler() -> str | None:
    """Look for the allocator of an array where native code will put one, and make arrays over
    memory as it will."""
    wrong = f"NumPy {np.__version__} names the allocator of an array in another way"
    if np.ndarray.__basicsize__ < HANDLER + 8:
        return wrong
    handler: Any = ctypes.PYFUNCTYPE(ctypes.py_object)(_function(_HANDLER_INDEX))()
    for shape in ((6,), (2, 3), (1, 6, 1)):
        own = np.empty(shape, np.float32)
        given = CONTIGUOUS | ALIGNED | WRITEABLE
        over = _new(shape, own.dtype, own.ctypes.data, given)
        if _word(id(own) + HANDLER) != id(handler) or _word(id(over) + HANDLER):
            return wrong
        flags = ctypes.c_int32.from_address(id(over) + FLAGS).value
        if flags | OWNDATA != ctypes.c_int32.from_address(id(own) + FLAGS).value:
            return f"NumPy {np.__version__} makes arrays over memory in another way"
        if over.strides != own.strides or over.base is not None:
            return f"NumPy {np.__version__} makes arrays over memory in another way"
    return None
