"""Arrays full of one byte, through the native entry, and what is said of their memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tenfold as tn
from tenfold.backends.cpu.entry.abi import Argument, CallSpec
from tenfold.backends.cpu.entry.bind import gate, make_entry
from tenfold.backends.cpu.entry.text import GATE_TEXT
from tenfold.backends.cpu.link.loader import load
from tenfold.backends.llvm.text import Fragment, join
from tenfold.types import parse_type

Fill = Callable[..., Callable[..., Any]]  # of a type, how the plan ends, bytes of its arena

MIB = 1 << 20

_TEXT = """
define i32 @plan(ptr %table, ptr %arena, ptr %poll) {{
  %from = load ptr, ptr %table
  %to.at = getelementptr ptr, ptr %table, i64 1
  %to = load ptr, ptr %to.at
  %byte = load i8, ptr %from
  call void @llvm.memset.p0.i64(ptr %to, i8 %byte, i64 {bytes}, i1 false)
  ret i32 {code}
}}
"""


def filling(assemble: Callable[[str], bytes]) -> Fill:
    """What makes functions of a byte."""

    def make(shape: str, code: int = 0, arena: int = 0) -> Callable[..., Any]:
        type = parse_type(shape)
        text = Fragment(
            ("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",),
            _TEXT.format(bytes=type.nbytes, code=code),
        )
        image = load([assemble(join([text]))], ["plan"])
        given = (Argument(parse_type("u8")),)
        entry = CallSpec("fill", "plan", given, (type,), arena_bytes=arena)
        bound = make_entry(entry, image, gate(lambda: assemble(GATE_TEXT)), lambda *_: "slow")
        assert bound.reason is None
        return bound.call

    return make


def byte(number: int) -> np.uint8:
    return np.uint8(number)


def address(array: Any) -> int:
    return int(array.ctypes.data)


def counts() -> tuple[int, int, int]:
    """How often memory was reused and mapped, and the bytes at rest."""
    found: dict[str, Any] = tn.stats()
    return found["memory_reused"], found["memory_mapped"], found["memory_kept"]
