"""Arrays in the memory of a device: what those of every backend have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from tenfold.errors import DeviceProblem, PickleProblem, TypeMismatch
from tenfold.types import DType, TensorType, as_dtype, base_array

HostArray = np.ndarray[Any, Any]
HOST = 1  # DLPack's number of the host's memory
AN_ARGUMENT = "an argument"  # whose name is not known


class ArrayOnDevice(ABC):
    """A packed array in a device's memory. NumPy's functions take it by a copy to the host."""

    __slots__ = ()
    shape: tuple[int, ...]
    dtype: DType

    @property
    @abstractmethod
    def place(self) -> str:
        """The device, as users call it: 'cuda:0'."""

    @property
    def type(self) -> TensorType:
        return TensorType(self.dtype, self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self.nbytes // self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.type.nbytes

    def __len__(self) -> int:
        if not self.shape:
            raise TypeMismatch("len() of an array without axes", fix="look at its size")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray({self.type!r} on {self.place})"

    # To the host.

    @abstractmethod
    def numpy(self) -> HostArray:
        """A copy on the host."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> HostArray:
        if copy is False:
            raise ValueError("an array on a GPU is copied when NumPy takes it")
        made = self.numpy()
        return made if dtype is None else made.astype(dtype, copy=False)

    def item(self) -> Any:
        """The one element, as a Python number."""
        return self.numpy().item()

    def tolist(self) -> Any:
        return self.numpy().tolist()

    def __float__(self) -> float:
        return float(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def __bool__(self) -> bool:
        return bool(self.numpy())

    # On the device.

    @abstractmethod
    def copy(self) -> Any:
        """Another array with the same elements."""

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __reduce__(self) -> Any:
        raise PickleProblem(
            "an array on a GPU can't be pickled", fix="pickle a copy on the host: x.numpy()"
        )

    @abstractmethod
    def _given_back(self, made: Any) -> Any:
        """A result of a call that was given this array."""


def _operator(name: str) -> Any:
    def operate(self: ArrayOnDevice, other: Any) -> Any:
        if isinstance(other, (np.ndarray, np.generic)):
            return NotImplemented  # NumPy takes a copy
        raise TypeMismatch(
            f"an array on a GPU has no {name}: it is computed with by jitted functions",
            fix="pass it to one as an argument; or take a copy to the host, x.numpy()",
        )

    return operate


for _name in ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or",
              "xor", "lshift", "rshift"):  # fmt: skip
    for _way in (f"__{_name}__", f"__r{_name}__"):
        setattr(ArrayOnDevice, _way, _operator(_way))


def host_array(given: Any) -> HostArray:
    """What is brought to a device: a packed array of a type that is known."""
    host = np.ascontiguousarray(np.asarray(base_array(given)))
    host = host.reshape(np.shape(given)) if host.ndim != np.ndim(given) else host
    return host.astype(as_dtype(host.dtype), copy=False)


def elsewhere(name: str, place: str, wanted: str) -> DeviceProblem:
    """The error for an argument that lies where a program does not run."""
    return DeviceProblem(
        f"{name} lies on {place}, and the program runs on {wanted}",
        fix=f"bring it there, tn.device_put(x, {wanted!r}), or jit the function for "
        f"backend={place!r}",
    )
