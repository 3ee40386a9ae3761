"""Plans on arrays that stay where they are: a replay is one launch, and nothing else."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tenfold.backends.cuda.array import ALIGNED, DeviceArray, DeviceInput, put
from tenfold.backends.cuda.recording import (
    ConditionalNode,
    CopyNode,
    KernelNode,
    LibraryNode,
    Recording,
    place_of,
)
from tenfold.errors import DeviceProblem, PlanError, Unsupported, ValueProblem
from tenfold.locks import Lock

if TYPE_CHECKING:
    from tenfold.backends.cuda.driver.device import Device, Launchable
    from tenfold.backends.cuda.run.program import CudaProgram
    from tenfold.backends.program import Array


class BoundPlan:
    """A plan with its arguments' memory and its results', made by `plan.bind`.

    `outputs` are its results as the function gives them: the same arrays after every replay.
    """

    outputs: Any

    def __init__(
        self,
        program: CudaProgram,
        names: Sequence[str],
        inputs: Sequence[DeviceInput],
        captures: Sequence[Array],
    ) -> None:
        for name, one in zip(names, inputs, strict=True):
            if one.address % ALIGNED:
                raise ValueProblem(
                    f"bind: {name} begins at no multiple of {ALIGNED} bytes",
                    fix="bind a copy of it, which begins at one",
                )
        device = self._device = program.device
        self._program, self._lock = program, Lock()
        self.results = [DeviceArray(device, t.shape, t.dtype) for t in program.outputs]
        captured: list[DeviceArray] = [put(array, device) for array in captures]
        self._kept = (*inputs, *captured)  # whose memory is read
        for result in self.results:
            result.share()  # replays write over it
        device.wait(device.main)  # and wait for nobody
        # Nor does anybody wait for the last one, before memory that it reads is another's.
        weakref.finalize(self, _settle, device).atexit = False
        every: list[DeviceInput | DeviceArray] = [*inputs, *captured, *self.results]
        self._places = [one.address for one in every]
        self._room = program.new_room(())
        self._replay = program.replay_on(self._room, self._places)
        self._launches: list[Launchable] = []
        for item in self._replay.items:
            if isinstance(item, int):
                what = type(program.plan.steps[item]).__name__
                raise PlanError(
                    f"bind: step {item} of the plan ({what}) can't be a part of a graph",
                    fix="call the plan instead, or take that step out: plan.explain() names it",
                )
            self._launches.append(item)
        self._stream: Any = self._room.stream  # of the last replay that is no part of a capture

    def replay(self, stream: Any = None) -> None:
        """Begin a run on what the bound arrays hold by then, after all that was asked for in the
        stream: torch's, CuPy's, what has `__cuda_stream__`, or its number. Without one it is the
        bound plan's own, which waits for no other. In a stream that is captured the run becomes
        part of the capture. It does not wait: results are whole for what is asked for in the same
        stream later on, and for everybody after `wait`."""
        own = stream is None
        handle = self._room.stream if own else stream_handle(stream)
        with self._lock:
            if not own and self._device.captured(handle):  # nothing runs that could be waited for
                for recording in self._replay.recordings:
                    issue(recording, self._device, self._places, handle)
                return
            self._stream = handle
            for one in self._launches:
                one.launch(handle)

    def wait(self) -> None:
        """Wait for the last replay, and raise what a kernel found wrong since the last time, at the
        line of the function that was traced. A replay that is part of a capture runs when that is
        launched: who launches it waits for it, and then asks here."""
        program, room = self._program, self._room
        with self._lock:
            program.wait(room, self._replay, self._stream)
            if room.failed():
                self._replay.step_by_step(self._places)
                self._device.wait(room.stream)
                raise DeviceProblem(
                    "wait: a kernel of an earlier replay found an index or a number that it can't "
                    "take, and the bound arrays no longer hold it",
                    fix="wait after each replay: then the error names the line",
                )


def _settle(device: Device) -> None:
    with suppress(DeviceProblem):  # of a GPU that gave up, which calls have told
        device.settle()


def issue(recording: Recording, device: Device, places: Sequence[int], stream: Any) -> None:
    """Do what a graph does node by node in a stream, in the order in which nodes were recorded."""

    def at(address: Any) -> Any:
        found = None if isinstance(address, bytes) else place_of(address)
        return address if found is None else places[found[0]] + found[1]

    if any(isinstance(node, ConditionalNode) for node in recording.nodes):
        raise Unsupported(
            "replay: a plan with a loop or a branch on the GPU can't become part of a capture",
            fix="replay it outside of the capture",
        )
    for node in recording.nodes:
        match node:
            case KernelNode():
                words: list[Any] = [at(word) for word in node.words]
                device.launch(node.function, node.blocks, node.threads, words, stream)
            case CopyNode():
                device.copy(at(node.target), at(node.source), node.nbytes, stream)
            case LibraryNode():
                node.call(device, stream, [at(place) for place in node.places])


def stream_handle(stream: Any) -> Any:
    """The number of a stream, whoever's it is.

    >>> stream_handle(7)
    7
    """
    if isinstance(stream, int):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        _, handle = protocol() if callable(protocol) else protocol
        return handle
    for name in ("cuda_stream", "ptr"):  # torch's, CuPy's
        handle = getattr(stream, name, None)
        if isinstance(handle, int):
            return handle
    raise ValueProblem(
        f"replay: a {type(stream).__name__} is no stream",
        fix="give torch's or CuPy's, what has __cuda_stream__, or the number of one",
    )
