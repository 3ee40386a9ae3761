"""Transposed loads: a tile is copied the other way round, then read like any packed array."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.backends.cpu.memory import element_size, pointer
from tenfold.backends.cpu.positions import scalar
from tenfold.backends.cpu.schedule import TILE
from tenfold.backends.cpu.writer import Writer

if TYPE_CHECKING:
    from tenfold.backends.cpu.emit import Emitter


def fill_tiles(e: Emitter) -> None:
    """placeholder"""


def tile_routine(size: int, masked: bool, w: Writer) -> str:
    return ""


_ = (element_size, pointer, scalar, TILE)
