"""Kinds: arrays of other libraries, taken by DLPack, and results given back as their kind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.errors import TypeMismatch
from tenfold.trace.array import Array
from tenfold.trace.lazy.host import fresh
from tenfold.trace.lazy.lazy import LAZY
from tenfold.trace.lazy.realise import realise
from tenfold.types import BFLOAT16

HOST = 1  # DLPack's number of the host's memory
Give = Callable[[Any], Any]
_OURS = (np.ndarray, np.generic, Array, bool, int, float, complex)


def taken_in(
    leaves: list[Any],
    check: Callable[[Any, str], None] | None = None,
    names: Callable[[], Sequence[str]] | None = None,
) -> Give | None:
    """Bring the arguments of a call to NumPy arrays and numbers, in place, and say how results
    are given back: as lazy arrays where one was given, as arrays of another library where one
    of its was; None: as NumPy gives them. `check` raises for an array, by its name, that lies
    where it can't be taken from."""
    give: Give | None = None
    lazy = []
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Array):
            if leaf._scope is LAZY:
                leaf._follow()
                lazy.append(i)
                give = give or fresh
        elif not isinstance(leaf, _OURS) and hasattr(leaf, "__dlpack__"):
            if check is not None:
                check(leaf, names()[i] if names is not None else "an argument")
            leaves[i] = from_library(leaf)
            if give is None or give is fresh:
                give = _giver(leaf)
    if lazy:
        realise([leaves[i]._value for i in lazy])  # all of them together
        for i in lazy:
            host = leaves[i]._host()
            leaves[i] = host if host.ndim else host[()]  # as NumPy's, it is a scalar
    return give


def off_host(leaf: Any) -> bool:
    """Whether this is an array of another library's in a device's memory."""
    if isinstance(leaf, _OURS) or not hasattr(leaf, "__dlpack_device__"):
        return False
    found: int = leaf.__dlpack_device__()[0]
    return found != HOST


def from_library(array: Any) -> np.ndarray[Any, Any]:
    """An array of another library as NumPy's: on the same memory where it lies in the host's, as
    a read-only copy where it lies in a device's or has a dtype that NumPy does not take by
    DLPack."""
    shared = not getattr(array, "requires_grad", False)  # torch keeps values for gradients
    if hasattr(array, "detach"):  # torch does not export what it takes gradients of
        array = array.detach()
    try:
        if _is_bfloat16(array):
            found = _from_bfloat16(array)
            shared = shared and array.__dlpack_device__()[0] == HOST
        else:
            if array.__dlpack_device__()[0] == HOST:
                try:
                    found = np.from_dlpack(array)
                except BufferError:
                    found, shared = np.from_dlpack(array, device="cpu"), False
            else:
                found, shared = _off_device(array), False
        if not shared:
            found.flags.writeable = False  # an update would not be seen
        return found
    except (BufferError, RuntimeError, TypeError) as error:
        raise TypeMismatch(
            f"a {type(array).__module__}.{type(array).__name__} can't be taken by DLPack: {error}",
            fix="move it to the CPU, or convert it to a NumPy array",
        ) from error


def _off_device(array: Any) -> np.ndarray[Any, Any]:
    """A copy on the host: by a method of its own (torch's, CuPy's, ours), or by DLPack."""
    if hasattr(array, "cpu"):
        return np.from_dlpack(array.cpu())
    for name in ("get", "numpy"):
        if hasattr(array, name):
            found: np.ndarray[Any, Any] = getattr(array, name)()
            return found
    return np.from_dlpack(array, device="cpu")


def _giver(array: Any) -> Give | None:
    """What makes an array of this one's library, where this one lies."""
    own: Give | None = getattr(array, "_given_back", None)
    if own is not None:
        return own
    module = _library(array)
    make = getattr(module, "from_dlpack", None)
    if make is None:
        return None
    device = getattr(array, "device", None)

    def give(made: Any) -> Any:
        host = np.asarray(made)
        if host.dtype == BFLOAT16:
            return _to_bfloat16(module, host, device)
        if array.__dlpack_device__()[0] == HOST:
            return make(host)
        try:
            return make(host, device=device)
        except (TypeError, NotImplementedError):  # CuPy takes none of the host's by DLPack
            with device:  # type: ignore[union-attr]
                return module.asarray(host)

    return give


def _library(array: Any) -> Any:
    """The namespace of an array's functions."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    return sys.modules.get(type(array).__module__.partition(".")[0])


# NumPy knows bfloat16 only by ml_dtypes, and DLPack's code for it not at all. JAX uses ml_dtypes
# too; torch's goes through its bits.


def _is_bfloat16(array: Any) -> bool:
    return str(getattr(array, "dtype", "")).endswith("bfloat16")


def _from_bfloat16(array: Any) -> np.ndarray[Any, Any]:
    if not hasattr(array, "detach"):
        return np.asarray(array)
    bits = array.cpu().view(_library(array).int16)
    return np.from_dlpack(bits).view(BFLOAT16)


def _to_bfloat16(module: Any, host: np.ndarray[Any, Any], device: Any) -> Any:
    if module.__name__ != "torch":
        return module.asarray(host, device=device)
    return module.from_dlpack(host.view(np.int16)).view(module.bfloat16).to(device)
