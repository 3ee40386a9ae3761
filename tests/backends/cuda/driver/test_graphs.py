"""Recordings as graphs, with a driver that writes its calls down."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_void_p
from typing import Any

from tenfold.backends.cuda.driver.graphs import Executable
from tenfold.backends.cuda.recording import (
    CopyNode,
    KernelNode,
    LibraryNode,
    Recording,
    place_address,
)


class FakeDriver:
    """Gives a number to all that it makes."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.made = 100
        self.edges: list[list[bytes] | None] = []  # of each node that was added
        self.destroyed: list[int] = []

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> None:
            self.calls.append(name)
            if name == "cuGraphAddNode_v2":
                self.edges.append(None if args[3] is None else [*map(bytes, args[3])])
            if name in ("cuGraphCreate", "cuGraphAddNode_v2", "cuGraphInstantiateWithFlags"):
                self.made += 1
                args[0]._obj.value = self.made
            elif name == "cuStreamEndCapture":
                self.made += 1
                args[1]._obj.value = self.made
            elif name == "cuGraphDestroy":
                self.destroyed.append(getattr(args[0], "value", args[0]))

        return call


class FakeGpu:
    def __init__(self) -> None:
        self.driver = FakeDriver()
        self.context, self.version = c_void_p(1), 13000

    def enter(self) -> FakeDriver:
        return self.driver

    def capturing(self) -> int:
        return 7

    def release_graph(self, handle: Any, graph: Any) -> None:
        pass


def test_what_a_library_does_is_captured_and_captured_again_where_places_change() -> None:
    seen: list[tuple[int, list[int]]] = []

    def call(gpu: Any, stream: int, places: Sequence[int]) -> None:
        seen.append((stream, list(places)))

    first, second = place_address(0), place_address(1)
    nodes = (
        LibraryNode(call, (first + 32, 0x5000), ()),
        LibraryNode(call, (0x6000, 0x7000), ()),
        CopyNode(second, 0x5000, 16, (0,)),
    )
    gpu: Any = FakeGpu()
    made = Executable(gpu, Recording(nodes), [0x1000, 0x2000])
    assert seen == [(7, [0x1020, 0x5000]), (7, [0x6000, 0x7000])]
    calls = gpu.driver.calls
    assert calls.count("cuStreamBeginCapture_v2") == 2
    assert calls.count("cuGraphAddNode_v2") == 3
    assert calls.count("cuGraphDestroy") == 2  # of each that was captured: its nodes were copied

    made.point([0x1000, 0x3000])  # the copy's alone
    assert len(seen) == 2
    assert calls.count("cuGraphExecMemcpyNodeSetParams") == 1

    made.point([0x9000, 0x3000])  # the first library's
    assert seen[2:] == [(7, [0x9020, 0x5000])]
    assert calls.count("cuGraphExecChildGraphNodeSetParams") == 1
    assert calls.count("cuGraphExecMemcpyNodeSetParams") == 1
    assert len(gpu.driver.destroyed) == 3

    made.point([0x9000, 0x3000])
    assert len(seen) == 3


def test_kernels_begin_before_those_before_them_have_ended_where_they_wait() -> None:
    """By programmatic edges from kernels to kernels; copies and conditions wait for the end."""
    kernel = c_void_p(5)
    nodes = (
        KernelNode(kernel, 1, 32, (), ()),
        CopyNode(0x6000, 0x5000, 16, (0,)),
        KernelNode(kernel, 1, 32, (), (0, 1)),
        KernelNode(kernel, 1, 32, (), (2,)),
    )
    usual, early = bytes(8), bytes([1, 0, 1, 0, 0, 0, 0, 0])
    for overlap, version, wanted in (
        (True, 13000, [None, None, [early, usual], [early]]),
        (True, 12020, [None] * 4),
        (False, 13000, [None] * 4),
    ):
        gpu: Any = FakeGpu()
        gpu.version = version
        Executable(gpu, Recording(nodes, overlap=overlap), [])
        assert gpu.driver.edges == wanted
