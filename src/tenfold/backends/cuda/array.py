"""Arrays that lie on a GPU: our own, and those of other libraries.

A `DeviceArray` is a result that stayed, or what `tn.device_put` gives. It may be under way: what is
done with it is done in the device's main stream, behind what makes it, and so is what is done with
its memory when it is gone. Who takes it elsewhere waits for that stream, or has his own follow it;
from then on it is `shared`: a call that reads it waits, since others may write over it, and its
memory is not given again before all that runs was waited for. Other libraries' arrays are
taken by `__cuda_array_interface__` or DLPack, once their own stream has come to where they were
made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from tenfold.backends.array import (
    AN_ARGUMENT,
    HOST,
    ArrayOnDevice,
    HostArray,
    elsewhere,
    host_array,
)
from tenfold.backends.cuda.blocks import Kind, kind_of
from tenfold.backends.cuda.dlpack import CUDA, MANAGED, make_capsule, read_capsule
from tenfold.errors import DeviceProblem, TenfoldError, TypeMismatch
from tenfold.frozen import frozen
from tenfold.types import BFLOAT16, DType, TensorType, as_dtype

if TYPE_CHECKING:
    from tenfold.backends.cuda.driver.device import Device

SMALL = 1 << 16  # bytes of plain memory that the driver has read when it is told to send them
ALIGNED = 16  # bytes: what kernels' buffers begin at multiples of


class DeviceArray(ArrayOnDevice):
    """A packed array in a GPU's memory. Other libraries take it on the device as it is."""

    __slots__ = ("__weakref__", "address", "kind")  # where `entry/gate` finds and puts them
    address: int
    kind: Kind

    def __init__(self, device: Device, shape: tuple[int, ...], dtype: DType) -> None:
        """Memory for an array; whatever is in it."""
        self.kind = kind_of(device, dtype, shape)
        self.address = self.kind.take()

    def __del__(self) -> None:
        try:
            kind, address = self.kind, self.address
        except AttributeError:  # there was no memory for it
            return
        kind.give(address)

    @property
    def device(self) -> Device:
        return self.kind.device

    @property
    def type(self) -> TensorType:
        return self.kind.type

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.kind.type.shape

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.kind.type.dtype

    @property
    def shared(self) -> bool:
        """Whether others have it."""
        return self.kind.shared

    def share(self) -> None:
        """Let others have it: they are waited for when it is gone, or read, from now on."""
        if not self.shared:
            self.kind = kind_of(self.device, self.dtype, self.shape, shared=True)

    @property
    def place(self) -> str:
        return f"cuda:{self.device.number}"

    def numpy(self) -> HostArray:
        made: HostArray = np.empty(self.shape, self.dtype)
        device = self.device
        device.download(made, self.address, device.main)
        device.wait(device.main)
        return made

    # To other libraries.

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.dtype == BFLOAT16:
            raise AttributeError("this protocol has no bfloat16: take the array by DLPack")
        self.share()
        self.device.wait(self.device.main)  # not all who take it look at its stream
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address if self.nbytes else 0, False),
            "strides": None,
            "version": 3,
            "stream": None,  # nothing is left to wait for
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.device.number

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if dl_device is not None and dl_device[0] == HOST:
            if copy is False:
                raise BufferError("an array on a GPU is copied when it is taken to the host")
            return self.numpy().__dlpack__(max_version=max_version)
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"the array lies on cuda:{self.device.number}, not where it is asked")
        given = self.copy() if copy else self
        given.share()
        given._hand_on(stream)
        return make_capsule(given.address, self.device.number, self.shape, self.dtype, given)

    def _hand_on(self, stream: Any) -> None:
        """Have a stream that DLPack names follow what is done with the array; where it names none,
        or one that is captured, wait for it."""
        device = self.device
        if stream == _NOT_AT_ALL:
            return
        if stream is None or device.captured(stream):
            device.wait(device.main)
        else:
            device.follow(stream, device.main)

    def to_torch(self) -> Any:
        """The same memory as a tensor of torch's."""
        import torch

        return torch.from_dlpack(self)

    def to_cupy(self) -> Any:
        """The same memory as an array of CuPy's."""
        import cupy

        return cupy.from_dlpack(self)

    # On the device.

    def copy(self) -> DeviceArray:
        return copied(_own_input(self), self.device)

    def _given_back(self, made: Any) -> DeviceArray:
        return put(made, self.device)


_streams: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _waiting_stream(device: Device) -> Any:
    """A stream in which nothing is done but to wait for others' streams: the main one never waits
    for what is not ours."""
    found = _streams.get(device)
    if found is None:
        found = _streams.setdefault(device, device.stream())
    return found


@frozen(eq=False)
class DeviceInput:
    """Packed memory on a device, whoever's it is: what a program reads."""

    address: int
    shape: tuple[int, ...]
    dtype: DType
    owner: Any  # keeps the memory
    give: Callable[[DeviceArray], Any] | None = None  # makes a result an array of its library
    shared: bool = True  # whether others may write over it, or give its memory away

    @property
    def nbytes(self) -> int:
        return TensorType(self.dtype, self.shape).nbytes


def put(given: Any, device: Device) -> DeviceArray:
    """An array on a device: itself where it lies there, else a copy."""
    if isinstance(given, DeviceArray):
        if given.device is device:
            return given
        given = given.numpy()
    elif on_gpu(given):
        found = device_input(given, device)
        assert found is not None
        return copied(found, device)
    host = host_array(given)
    made = DeviceArray(device, host.shape, host.dtype)
    small = host.nbytes <= SMALL
    device.upload(made.address, np.array(host) if small else host, device.main)
    if not small:
        device.wait(device.main)
    return made


def copied(given: DeviceInput, device: Device) -> DeviceArray:
    """A copy on the device."""
    made = DeviceArray(device, given.shape, given.dtype)
    device.copy(made.address, given.address, given.nbytes, device.main)
    if given.shared:
        device.wait(device.main)
    return made


def _own_input(given: DeviceArray) -> DeviceInput:
    return DeviceInput(given.address, given.shape, given.dtype, given, shared=given.shared)


# Arrays of other libraries.


def on_gpu(given: Any) -> bool:
    """Whether this is an array on a GPU."""
    if isinstance(given, (np.ndarray, np.generic, int, float, complex)):
        return False
    if hasattr(given, "__dlpack_device__"):
        return given.__dlpack_device__()[0] in (CUDA, MANAGED)
    return hasattr(given, "__cuda_array_interface__")


def check_place(given: Any, device: Device, name: str = AN_ARGUMENT) -> None:
    """Raise where an array lies on another GPU, or in the memory of another backend's device."""
    if isinstance(given, DeviceArray):
        number = given.device.number
    elif isinstance(given, ArrayOnDevice):
        raise elsewhere(name, given.place, f"cuda:{device.number}")
    elif not on_gpu(given):
        return
    elif hasattr(given, "__dlpack_device__"):
        kind, number = given.__dlpack_device__()
        if kind != CUDA:
            return
    else:
        number = device.home(given.__cuda_array_interface__["data"][0])
    if number != device.number:
        raise _elsewhere(number, device, name)


def as_device_input(given: Any, type: TensorType, device: Device) -> DeviceInput | None:
    """What a program of this device reads for an argument of this type: None where it is no array
    on a GPU, or one of another type."""
    found = device_input(given, device)
    return (
        None if found is None or (found.dtype, found.shape) != (type.dtype, type.shape) else found
    )


def device_input(given: Any, device: Device, copies: bool = True) -> DeviceInput | None:
    """An array on this device as a program reads it, once its stream has come to where it was made;
    None for what is no array on a GPU. One on another GPU is an error, and so is one that would
    have to be copied first, unless `copies`."""
    if isinstance(given, DeviceArray):
        if given.device is not device:
            raise _elsewhere(given.device.number, device)
        return _own_input(given)
    if not on_gpu(given):
        return None
    if hasattr(given, "detach"):  # torch hands on nothing that it takes gradients of
        given = given.detach()
    if type(given) in _silent:
        return _by_dlpack(given, device, copies)
    interface = getattr(given, "__cuda_array_interface__", None)
    if interface is not None and interface.get("version", 0) >= 3:  # which says the stream
        return _by_interface(given, interface, device, copies)
    if hasattr(given, "__dlpack__"):
        _silent.add(type(given))
        return _by_dlpack(given, device, copies)
    assert interface is not None
    device.wait(_LEGACY)  # nothing is said, so it is the stream that others wait for
    return _by_interface(given, interface, device, copies)


_silent = set[type]()  # of arrays whose interface says no stream, and that have DLPack
_LEGACY = 1  # the number of the stream that all that say nothing use
_NOT_AT_ALL = -1  # what DLPack calls the stream of whoever sees to the order himself


def _by_interface(
    given: Any, interface: dict[str, Any], device: Device, copies: bool
) -> DeviceInput:
    if interface.get("mask") is not None:
        raise TypeMismatch("an array with a mask can't be taken", fix="fill in what is masked")
    stored = np.dtype(interface["typestr"])
    if not stored.isnative:
        raise TypeMismatch(
            f"an array on a GPU whose bytes are in another order, {stored.str}, can't be taken",
            fix="bring its bytes into this machine's order",
        )
    try:
        dtype = as_dtype(stored)
    except TenfoldError as error:
        raise TypeMismatch(f"an array on a GPU: {error.message}", fix=error.fix) from error
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    if strides is not None and not _packed(shape, [s / dtype.itemsize for s in strides]):
        return _made_packed(given, device, copies)
    address = interface["data"][0]
    if 0 not in shape:
        number = device.home(address)
        if number != device.number:
            raise _elsewhere(number, device)
        if interface.get("stream") is not None:
            device.wait(interface["stream"])
    return DeviceInput(address, shape, dtype, given, _giver(given))


def _by_dlpack(given: Any, device: Device, copies: bool) -> DeviceInput:
    kind, number = given.__dlpack_device__()
    if kind == CUDA and number != device.number:
        raise _elsewhere(number, device)
    stream = _waiting_stream(device)
    capsule = given.__dlpack__(stream=_handle(stream))  # has our stream wait for theirs
    device.wait(stream)
    found = read_capsule(capsule)
    if found.strides is not None and not _packed(found.shape, found.strides):
        return _made_packed(given, device, copies)
    owner = (given, capsule)
    return DeviceInput(found.address, found.shape, found.dtype, owner, _giver(given))


def _handle(stream: Any) -> int:
    """A stream as a number."""
    found = getattr(stream, "value", stream)
    return int(found or _LEGACY)


def _packed(shape: tuple[int, ...], strides: Any) -> bool:
    """Whether elements lie one after another, the last axis first; strides in elements."""
    wanted = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != wanted and 0 not in shape:
            return False
        wanted *= extent
    return True


def _made_packed(given: Any, device: Device, copies: bool) -> DeviceInput:
    """A copy by its own library, which knows how."""
    module = _library(given)
    if copies and hasattr(given, "contiguous"):
        made = given.contiguous()
    elif copies and hasattr(module, "ascontiguousarray"):
        made = module.ascontiguousarray(given)
    else:
        raise TypeMismatch(
            f"a {type(given).__module__}.{type(given).__name__} whose elements do not lie one "
            "after another can't be taken from the GPU",
            fix="make a packed copy of it first",
        )
    found = device_input(made, device)
    assert found is not None
    return found


def _library(given: Any) -> Any:
    """The namespace of an array's functions."""
    if hasattr(given, "__array_namespace__"):
        return given.__array_namespace__()
    return sys.modules.get(type(given).__module__.partition(".")[0])


def _giver(given: Any) -> Callable[[DeviceArray], Any] | None:
    make = getattr(_library(given), "from_dlpack", None)
    return make if callable(make) else None


def _elsewhere(number: int, device: Device, name: str = AN_ARGUMENT) -> DeviceProblem:
    return elsewhere(name, f"cuda:{number}", f"cuda:{device.number}")
