"""Safetensors: named tensors in a file, read without running anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tenfold.apps.prover.errors import InputError

Tensor = np.ndarray[Any, Any]
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file: eight bytes of length, a JSON header, then the data."""
    try:
        raw = path.read_bytes()
        size = int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8 : 8 + size])
        data = memoryview(raw)[8 + size :]
        return {
            name: _tensor(entry, data) for name, entry in header.items() if name != "__metadata__"
        }
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", fix="give a readable file") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path} is no safetensors file: {error}", fix="save the weights as safetensors"
        ) from None


def _tensor(entry: Mapping[str, Any], data: memoryview) -> Tensor:
    first, last = entry["data_offsets"]
    if not 0 <= first <= last <= len(data):
        raise ValueError(f"data from {first} to {last} of {len(data)} bytes")
    flat = np.frombuffer(data[first:last], np.dtype(_DTYPES[entry["dtype"]]))
    return flat.reshape(entry["shape"]).copy()
