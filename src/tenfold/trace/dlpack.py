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

    Only a reader that knows DLPack 1.0 is told so; others are given a copy.
    """
    if host.dtype == BFLOAT16:
        raise BufferError("NumPy hands no bfloat16 arrays on by DLPack: cast to float32 first")
    told = max_version is not None and max_version[0] >= 1
    if copy is False and not told:
        host = np.asarray(_Writable(host))  # asked for by name: the reader must not write to it
    elif copy or not told:
        host, copy = host.copy(), None
    return host.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
