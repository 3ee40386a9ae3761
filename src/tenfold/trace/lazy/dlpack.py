"""DLPack: arrays handed to other libraries, and taken from them, without going through files."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.types import BFLOAT16

Host = np.ndarray[Any, Any]


class _Writable:
    """The memory of an array, not marked as read-only."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.__array_interface__ = {
            **host.__array_interface__,
            "data": (host.__array_interface__["data"][0], False),
        }


def export(
    host: Host,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """The capsule of an array that nobody may write to.

    Readers are given a copy: not all of them heed that an array is read-only. One that asks for
    no copy is trusted.
    """
    if host.dtype == BFLOAT16:
        raise BufferError("NumPy hands no bfloat16 arrays on by DLPack: cast to float32 first")
    if copy is not False:
        host, copy = host.copy(), None
    elif max_version is None or max_version[0] < 1:
        host = np.asarray(_Writable(host))  # before DLPack 1.0 no array can be read-only
    return host.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
