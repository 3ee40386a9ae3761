"""DLPack's tensors on a device: read from a capsule, and put into one.

The structures are those of its version 0.8, which every library takes and gives unless asked for
more.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_int, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import Any

import numpy as np

from tenfold.errors import TypeMismatch
from tenfold.frozen import frozen
from tenfold.types import DTYPES, SHORT, DType

CUDA, PINNED, MANAGED = 2, 3, 13  # kinds of devices
_TENSOR, _VERSIONED = b"dltensor", b"dltensor_versioned"
# The codes of dtypes: integers, unsigned, floats, opaque, bfloat16, complex, bool.
_CODES = {"i": 0, "u": 1, "f": 2, "b": 4, "c": 5}
_BOOL = 6


class _Device(Structure):
    _fields_ = (("kind", c_int), ("number", c_int))


class _DataType(Structure):
    _fields_ = (("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16))


class _Tensor(Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device", _Device),
        ("ndim", c_int),
        ("dtype", _DataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("offset", c_uint64),
    )


class _Managed(Structure):
    _fields_ = (("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p))


class _Version(Structure):
    _fields_ = (("major", ctypes.c_uint32), ("minor", ctypes.c_uint32))


class _ManagedVersioned(Structure):
    _fields_ = (
        ("version", _Version),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", _Tensor),
    )


_api = ctypes.pythonapi
_name = _api.PyCapsule_GetName
_name.argtypes, _name.restype = (ctypes.py_object,), ctypes.c_char_p
_pointer = _api.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (ctypes.py_object, ctypes.c_char_p), c_void_p


@frozen(eq=False)
class Tensor:
    """A tensor as a capsule describes it."""

    address: int
    kind: int  # of its device
    number: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in elements; None where it is packed
    dtype: DType


def read_capsule(capsule: Any) -> Tensor:
    """The tensor in a capsule. Its memory lives as long as the capsule."""
    name = _name(capsule)
    if name == _VERSIONED:
        found = _ManagedVersioned.from_address(_pointer(capsule, name)).tensor
    elif name == _TENSOR:
        found = _Managed.from_address(_pointer(capsule, name)).tensor
    else:
        raise TypeMismatch(f"a capsule {name!r} holds no tensor", fix="call __dlpack__ anew")
    shape = tuple(found.shape[n] for n in range(found.ndim))
    strides = tuple(found.strides[n] for n in range(found.ndim)) if found.strides else None
    return Tensor(
        (found.data or 0) + found.offset,
        found.device.kind,
        found.device.number,
        shape,
        strides,
        _dtype(found.dtype.code, found.dtype.bits, found.dtype.lanes),
    )


def _dtype(code: int, bits: int, lanes: int) -> DType:
    names = {value: letter for letter, value in _CODES.items()}
    short = "bool" if code == _BOOL else f"{names.get(code, '?')}{bits}"
    short = "bf16" if short == "b16" else short
    if short not in DTYPES or lanes != 1:
        raise TypeMismatch(
            f"a tensor of DLPack's dtype {code}, {bits} bits, is none that Tenfold has",
            fix="convert it first",
        )
    return DTYPES[short]


class _Holder:
    """What stands for a tensor on the host: an array without memory to speak of, which keeps the
    owner of the tensor's."""

    def __init__(self, shape: tuple[int, ...], owner: Any) -> None:
        self.owner, self.byte = owner, np.zeros(1, np.uint8)
        self.__array_interface__ = {
            "shape": shape,
            "typestr": "|u1",
            "data": (self.byte.__array_interface__["data"][0], False),
            "strides": (0,) * len(shape),
            "version": 3,
        }


def make_capsule(
    address: int, number: int, shape: tuple[int, ...], dtype: DType, owner: Any
) -> Any:
    """A capsule of a packed tensor on a GPU; the owner lives until it is given back.

    It is NumPy's capsule of an array of this shape, with another address, device and dtype filled
    in: so what frees it is native code, which may run while an error is on its way.
    """
    capsule = np.asarray(_Holder(shape, owner)).__dlpack__()
    made = _Managed.from_address(_pointer(capsule, _TENSOR)).tensor
    short = SHORT[dtype]
    made.data, made.offset = address, 0
    made.device.kind, made.device.number = CUDA, number
    made.dtype.code = _BOOL if short == "bool" else _CODES[short[0]]
    made.dtype.bits, made.dtype.lanes = 8 * dtype.itemsize, 1
    made.strides = POINTER(c_int64)()  # packed
    return capsule
