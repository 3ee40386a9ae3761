"""Arrays in safetensors files: a JSON header and raw bytes, read without running anything."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from tenfold.errors import FileError
from tenfold.types import DTYPES

Array = np.ndarray[Any, Any]

_NAMES = {
    "BOOL": "bool", "I8": "i8", "I16": "i16", "I32": "i32", "I64": "i64", "U8": "u8", "U16": "u16",
    "U32": "u32", "U64": "u64", "F16": "f16", "BF16": "bf16", "F32": "f32", "F64": "f64",
    "C64": "c64", "C128": "c128",
}  # fmt: skip
_HEADER = 100_000_000  # bytes; the format's own limit


def load_safetensors(path: str | os.PathLike[str]) -> dict[str, Array]:
    """The arrays in a file, by name, read-only; one of a dtype that Tenfold lacks is left out.

    They are copies: the file may change afterwards. As captures of a plan, `tn.load` takes the
    file's name.

    >>> import tempfile, tenfold as tn
    >>> head = b'{"bias": {"dtype": "I16", "shape": [2], "data_offsets": [0, 4]}}'
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(len(head).to_bytes(8, "little") + head + bytes([1, 0, 2, 0]))
    ...     file.flush()
    ...     tn.load_safetensors(file.name)
    {'bias': array([1, 2], dtype=int16)}
    """
    data = np.memmap(path, np.uint8, "r") if os.path.getsize(path) else np.empty(0, np.uint8)
    try:
        length = int.from_bytes(data[:8].tobytes(), "little")
        if len(data) < 8 or length > min(_HEADER, len(data) - 8):
            raise ValueError("its header does not lie within it")
        header = json.loads(data[8 : 8 + length].tobytes(), object_pairs_hook=_named_once)
        body = data[8 + length :]
        found: dict[str, Array] = {}
        left = len(body)
        for name, given in header.items():
            if name == "__metadata__" or given["dtype"] not in _NAMES:
                continue
            found[name] = _array(body, given)
            left -= found[name].nbytes
            if left < 0:  # each is copied: a small file would take any amount of memory
                raise ValueError("its arrays overlap")
        return found
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileError(
            f"{os.fspath(path)}: no safetensors file: {error}", fix="fetch or write it again"
        ) from error


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands in it twice")
    return found


def _array(body: Array, given: Mapping[str, Any]) -> Array:
    dtype = DTYPES[_NAMES[given["dtype"]]]
    shape = tuple(given["shape"])
    start, end = given["data_offsets"]
    if not all(type(n) is int and n >= 0 for n in (*shape, start, end)):
        raise ValueError("a shape or an offset is no number")
    if end > len(body) or end - start != math.prod(shape) * dtype.itemsize:
        raise ValueError("an array does not lie within it")
    made = np.frombuffer(body[start:end].tobytes(), dtype).reshape(shape)
    if dtype.kind == "b" and made.view(np.uint8).max(initial=0) > 1:
        raise ValueError("a truth value is neither 0 nor 1")
    return made
