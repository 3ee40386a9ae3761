"""Recordings as CUDA graphs: built node by node, instantiated once, launched at once.

The structures are the driver's own, as `cuda.h` lays them out.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from ctypes import (
    Structure,
    addressof,
    byref,
    c_int,
    c_size_t,
    c_ubyte,
    c_uint,
    c_uint64,
    c_void_p,
)
from itertools import repeat
from typing import TYPE_CHECKING, Any

from tenfold.backends.cuda.entry.launch import COPY, FUNCTIONS, KERNEL, Launch, Patch
from tenfold.backends.cuda.recording import (
    REPEATED,
    Address,
    ConditionalNode,
    CopyNode,
    Handle,
    KernelNode,
    LibraryNode,
    Node,
    Recording,
    Word,
    place_of,
)

if TYPE_CHECKING:
    from tenfold.backends.cuda.driver.device import Gpu

_KERNEL, _COPY, _CHILD, _CONDITIONAL = 0, 1, 4, 13
_WHILE, _SWITCH = 1, 2
_UNIFIED = 4  # memory of the device or of the host, as the address tells
_ASSIGN = 1  # a condition has its default at each launch
_EDGES = 12030  # the version of CUDA whose drivers know of programmatic edges
_RELAXED = 2  # of captures: other threads may do as they like meanwhile


class _Kernel(Structure):
    _fields_ = (
        ("function", c_void_p),
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("params", c_void_p),
        ("extra", c_void_p),
        ("kernel", c_void_p),
        ("context", c_void_p),
    )


class _End(Structure):
    """One end of a copy."""

    _fields_ = (
        ("x", c_size_t),
        ("y", c_size_t),
        ("z", c_size_t),
        ("level", c_size_t),
        ("kind", c_uint),
        ("host", c_void_p),
        ("device", c_uint64),
        ("array", c_void_p),
        ("reserved", c_void_p),
        ("pitch", c_size_t),
        ("height", c_size_t),
    )


class _Copy(Structure):
    _fields_ = (
        ("flags", c_int),
        ("reserved", c_int),
        ("context", c_void_p),
        ("source", _End),
        ("target", _End),
        ("width", c_size_t),
        ("height", c_size_t),
        ("depth", c_size_t),
    )


class _Conditional(Structure):
    _fields_ = (
        ("handle", c_uint64),
        ("kind", c_int),
        ("size", c_uint),
        ("bodies", ctypes.POINTER(c_void_p)),
        ("context", c_void_p),
    )


class _Child(Structure):
    _fields_ = (("graph", c_void_p), ("ownership", c_int))


class _Edge(Structure):
    """CUgraphEdgeData: from the port and of the type 1 it is programmatic, of 0 a usual one."""

    _fields_ = (
        ("from_port", c_ubyte),
        ("to_port", c_ubyte),
        ("type", c_ubyte),
        ("reserved", c_ubyte * 5),
    )


class _Union(ctypes.Union):
    _fields_ = (
        ("kernel", _Kernel),
        ("copy", _Copy),
        ("conditional", _Conditional),
        ("child", _Child),
        ("room", c_ubyte * 232),
    )


class NodeParams(Structure):
    """CUgraphNodeParams."""

    _fields_ = (
        ("type", c_int),
        ("reserved0", c_int * 3),
        ("of", _Union),
        ("reserved2", ctypes.c_longlong),
    )


class _Patch:
    """A node that touches places: its parameters, and the words of them that are addresses in
    these; or what a library does in its stead."""

    __slots__ = ("library", "node", "params", "words")

    def __init__(self, node: c_void_p, params: NodeParams) -> None:
        self.node, self.params = node, params
        self.words: list[tuple[int, int, Any]] = []  # place, offset, the word
        self.library: LibraryNode | None = None

    @property
    def given(self) -> int:
        """Where the driver finds what is new of it."""
        if self.params.type == _KERNEL:
            return addressof(self.params.of.kernel)
        return addressof(self.params.of.copy) + _Copy.source.offset


class Executable:
    """A graph that can be launched, one launch at a time. Places are arrays that callers bring."""

    def __init__(self, gpu: Gpu, recording: Recording, places: Sequence[Address]) -> None:
        self._gpu, self._kept = gpu, list[Any]()
        self.places = list(places)
        self._patches: dict[int, list[_Patch]] = {n: [] for n in range(len(places))}
        cuda = gpu.enter()
        graph = c_void_p()
        cuda.cuGraphCreate(byref(graph), 0)
        self._handles: list[int] = []
        self._children: list[c_void_p] = []  # which are copied into the graph
        for _ in range(recording.handles):
            handle = c_uint64()
            cuda.cuGraphConditionalHandleCreate(byref(handle), graph, gpu.context, 0, _ASSIGN)
            self._handles.append(handle.value)
        work = [(graph, recording)]
        while work:
            where, what = work.pop()
            work += self._build(where, what)
        for child in self._children:
            cuda.cuGraphDestroy(child)
        self.handle = c_void_p()
        cuda.cuGraphInstantiateWithFlags(byref(self.handle), graph, 0)
        ended = weakref.finalize(self, gpu.release_graph, self.handle, graph)  # which has the nodes
        ended.atexit = False  # the driver ends all when the process does

    def _build(self, graph: c_void_p, recording: Recording) -> list[tuple[c_void_p, Recording]]:
        """Add all nodes; the graphs inside that are still to be built."""
        made: list[c_void_p] = []
        inside: list[tuple[c_void_p, Recording]] = []
        cuda = self._gpu.enter()
        for one in recording.nodes:
            params, patched = self._params(one)
            node = c_void_p()
            before = (c_void_p * max(1, len(one.after)))(*[made[n].value for n in one.after])
            edges = self._edges(recording, one)
            cuda.cuGraphAddNode_v2(
                byref(node), graph, before, edges, len(one.after), addressof(params)
            )
            made.append(node)
            if isinstance(one, ConditionalNode):
                bodies = params.of.conditional.bodies
                inside += [(c_void_p(bodies[n]), body) for n, body in enumerate(one.bodies)]
            if patched:
                patch = _Patch(node, params)
                patch.words = patched
                patch.library = one if isinstance(one, LibraryNode) else None
                for place in {place for place, _, _ in patched}:
                    self._patches[place].append(patch)
        return inside

    def _edges(self, recording: Recording, node: Node) -> Any:
        """Programmatic edges from kernels to a kernel: it begins before they have ended."""
        if not recording.overlap or self._gpu.version < _EDGES or not isinstance(node, KernelNode):
            return None
        kernels = [isinstance(recording.nodes[n], KernelNode) for n in node.after]
        return (_Edge * len(kernels))(*map(_Edge, kernels, repeat(0), kernels)) if kernels else None

    def _params(self, node: Node) -> tuple[NodeParams, list[tuple[int, int, Any]]]:
        params, patched = NodeParams(), list[tuple[int, int, Any]]()
        match node:
            case KernelNode():
                params.type = _KERNEL
                own = params.of.kernel
                own.function = node.function.value
                own.grid[:], own.block[:] = (node.blocks, 1, 1), (node.threads, 1, 1)
                own.params = self._words(node.words, patched)
            case CopyNode():
                params.type = _COPY
                params.of.copy.context = self._gpu.context.value
                for end, address in (
                    (params.of.copy.source, node.source),
                    (params.of.copy.target, node.target),
                ):
                    end.kind = _UNIFIED
                    where = c_uint64.from_buffer(end, _End.device.offset)
                    where.value = self._address(address, where, patched)
                params.of.copy.width = node.nbytes
                params.of.copy.height = params.of.copy.depth = 1
            case ConditionalNode():
                params.type = _CONDITIONAL
                own = params.of.conditional
                own.handle = self._handles[node.handle]
                own.kind = _WHILE if node.kind == REPEATED else _SWITCH
                own.size = len(node.bodies)
                own.context = self._gpu.context.value
            case LibraryNode():
                params.type = _CHILD
                for address in node.places:
                    self._address(address, None, patched)
                child = self._captured(node)
                self._children.append(child)
                params.of.child.graph = child.value
        self._kept.append(params)
        return params, patched

    def _words(self, words: Sequence[Word], patched: list[tuple[int, int, Any]]) -> int:
        """The arguments of a kernel in memory of their own: where their addresses lie."""
        room = (c_uint64 * max(1, 2 * len(words)))()
        pointers = (c_void_p * max(1, len(words)))()
        base = addressof(room)
        for n, word in enumerate(words):
            pointers[n] = base + 16 * n
            if isinstance(word, bytes):
                ctypes.memmove(base + 16 * n, word, len(word))
            elif isinstance(word, Handle):
                room[2 * n] = self._handles[word.number]
            else:
                where = c_uint64.from_buffer(room, 16 * n)
                where.value = self._address(word, where, patched)
        self._kept += (room, pointers)
        return addressof(pointers)

    def _address(
        self, address: Address, where: Any, patched: list[tuple[int, int, Any]]
    ) -> Address:
        found = place_of(address)
        if found is None:
            return address
        place, offset = found
        patched.append((place, offset, where))
        return self.places[place] + offset

    def _captured(self, node: LibraryNode) -> c_void_p:
        """What a library does, as a graph of its own."""
        cuda, made = self._gpu.enter(), c_void_p()
        places = [self._address(a, None, []) for a in node.places]
        stream = self._gpu.capturing()
        cuda.cuStreamBeginCapture_v2(stream, _RELAXED)
        try:
            node.call(self._gpu, stream, places)
        finally:
            cuda.cuStreamEndCapture(stream, byref(made))
        return made

    def point(self, places: Sequence[Address]) -> None:
        """Have places lie elsewhere from the next launch on."""
        changed = [n for n, at in enumerate(places) if at != self.places[n]]
        if not changed:
            return
        cuda = self._gpu.enter()
        patches = {id(p): p for n in changed for p in self._patches[n]}
        self.places = list(places)
        for patch in patches.values():
            if patch.library is not None:
                graph = self._captured(patch.library)
                cuda.cuGraphExecChildGraphNodeSetParams(self.handle, patch.node, graph)
                cuda.cuGraphDestroy(graph)
                continue
            for place, offset, where in patch.words:
                where.value = places[place] + offset
            given = patch.given
            if patch.params.type == _KERNEL:
                cuda.cuGraphExecKernelNodeSetParams_v2(self.handle, patch.node, given)
            else:
                context = self._gpu.context
                cuda.cuGraphExecMemcpyNodeSetParams(self.handle, patch.node, given, context)

    def launch(self, stream: Any) -> None:
        self._gpu.enter().cuGraphLaunch(self.handle, stream)

    def native(self, rows: Sequence[int | None], stream: Any) -> Launch | None:
        """The graph's launch by native code, for which each place is a row of a table, or stays
        where it is; None where a library would have to be asked."""
        cuda, patches = self._gpu.enter(), list[Patch]()
        for patch in {id(p): p for those in self._patches.values() for p in those}.values():
            given = [(rows[place], offset, where) for place, offset, where in patch.words]
            moved = [(row, offset, where) for row, offset, where in given if row is not None]
            if moved and patch.library is not None:
                return None
            kind = KERNEL if patch.params.type == _KERNEL else COPY
            addresses = tuple((row, offset, addressof(where)) for row, offset, where in moved)
            if addresses:
                patches.append(Patch(patch.node.value or 0, patch.given, kind, addresses))
        functions = [cuda.address(name) for name in FUNCTIONS]
        context, graph = self._gpu.context.value or 0, self.handle.value or 0
        return Launch(functions, context, graph, stream.value or 0, patches, self)
