"""What native code is given to launch a simulated graph: a driver whose functions call Python."""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.backends.cuda.entry.launch import COPY, KERNEL, Launch, Patch
from tenfold.backends.cuda.recording import CopyNode, KernelNode, LibraryNode, place_of

FAILED = 999  # a status of the driver
_KINDS = {
    "current": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p),
    "kernel": ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3),
    "copy": ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4),
    "launch": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p),
    "wait": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p),
    "fill": ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_uint64, ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p
    ),
}


def native_launch(graph: Any, rows: Sequence[int | None], stream: int) -> Launch | None:
    """A launch of a simulated graph. Its GPU writes down what the driver is asked for, and fails
    where its `fails` says so."""
    gpu, patches, held = graph.gpu, list[Patch](), dict[int, list[tuple[int, int, Any]]]()
    for node in graph.recording.every():
        given: list[Any] = []
        match node:
            case KernelNode():
                given = [word for word in node.words if isinstance(word, int)]
            case CopyNode():
                given = [node.source, node.target]
            case LibraryNode():
                given = list(node.places)
        found = [place for place in map(place_of, given) if place is not None]
        words = [(p, offset, ctypes.c_uint64(graph.places[p] + offset)) for p, offset in found]
        moved = [(p, offset, word) for p, offset, word in words if rows[p] is not None]
        if moved and isinstance(node, LibraryNode):
            return None
        if moved:
            number = len(patches) + 1
            held[number] = moved
            addresses = tuple((rows[p], o, ctypes.addressof(word)) for p, o, word in moved)
            kind = COPY if isinstance(node, CopyNode) else KERNEL
            patches.append(Patch(number, 0x77, kind, addresses))  # type: ignore[arg-type]

    def current(context: int) -> None:
        assert context == 0xC0DE

    def point(handle: int, number: int, params: int, context: int = 0xC0DE) -> None:
        assert (handle, params, context) == (0xF00, 0x77, 0xC0DE)
        places = list(graph.places)
        for place, offset, word in held[number]:
            places[place] = word.value - offset
        graph.places = places

    def launch(handle: int, where: int | None) -> None:
        assert (handle, where or 0) == (0xF00, stream)
        blocks = [found for one in gpu.blocks if (found := one()) is not None]
        for block in blocks:
            block.send()
        graph.launch(stream)

    def wait(where: int | None) -> None:
        gpu.wait(where or 0)
        for one in gpu.blocks:
            if (block := one()) is not None:
                block.bring()

    def fill(address: int, value: int, count: int, where: int | None) -> None:
        assert (count, where or 0) == (1, stream)
        gpu.upload(address, np.array([value], np.uint32), stream)

    def counted(name: str, work: Callable[..., None]) -> Any:
        def call(*args: Any) -> int:
            gpu.native.append(name)
            if name in getattr(gpu, "fails", ()):
                return FAILED
            try:
                work(*args)
            except BaseException:
                traceback.print_exc()
                return FAILED
            return 0

        return _KINDS[name](call)

    ways = {
        "current": current, "kernel": point, "copy": point, "launch": launch, "wait": wait,
        "fill": fill,
    }  # fmt: skip
    functions = [counted(name, work) for name, work in ways.items()]
    addresses = [ctypes.cast(one, ctypes.c_void_p).value or 0 for one in functions]
    return Launch(addresses, 0xC0DE, 0xF00, stream, patches, functions, held, graph)
