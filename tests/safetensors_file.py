"""Write safetensors files, for tests of what reads them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from tenfold.api.safetensors import _NAMES
from tenfold.types import SHORT

_SHORT = {short: name for name, short in _NAMES.items()}


def write_arrays(
    path: str | os.PathLike[str],
    arrays: Mapping[str, Any],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write arrays by name."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    parts: list[bytes] = []
    start = 0
    for name, given in arrays.items():
        array = np.asarray(given)
        raw = array.astype(array.dtype.newbyteorder("="), copy=False).tobytes()
        header[name] = {
            "dtype": _SHORT[SHORT[array.dtype.newbyteorder("=")]],
            "shape": list(array.shape),
            "data_offsets": [start, start + len(raw)],
        }
        parts.append(raw)
        start += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        file.writelines(parts)
