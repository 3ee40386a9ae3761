"""Calls whose arrays lie on the device: nothing is copied to the host and back.

They are begun in the device's main stream, and not waited for, unless the plan may fail, is to be
interrupted or has steps of the host, or somebody else may write over an argument meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.backends.cuda.array import ALIGNED, SMALL, DeviceArray, DeviceInput, device_input
from tenfold.backends.device_program import Captures
from tenfold.backends.program import NoMatch
from tenfold.backends.python_dispatch import PythonDispatch
from tenfold.frames import hide
from tenfold.types import TensorType

if TYPE_CHECKING:
    from tenfold.backends.cuda.driver.device import Device
    from tenfold.backends.cuda.run.program import CudaProgram


def run_kept(
    program: CudaProgram, args: Sequence[Any], captures: Captures | None = None
) -> list[DeviceArray]:
    """The outputs of a program, left on its device. Arguments are NumPy's, or `DeviceInput`s."""
    device = program.device
    made = [DeviceArray(device, t.shape, t.dtype) for t in program.outputs]
    with program.room() as room, program.running.using(program.callbacks):
        replay, places, waits = program.replay(room), list(room.places), False
        program.capture(room, captures)
        if program.single:
            stream, room.under_way = device.main, True
        else:
            stream = room.stream
            room.follow()
        for n, (given, type) in enumerate(zip(args, program.parameters, strict=False)):
            if not isinstance(given, DeviceInput):
                device.upload(places[n], _packed(given, type), stream)
                waits |= type.nbytes > SMALL
            elif given.address % ALIGNED:
                device.copy(places[n], given.address, given.nbytes, stream)
            elif given.nbytes:
                places[n] = given.address
            waits |= isinstance(given, DeviceInput) and given.shared
        places[len(program.parameters) :] = [one.address for one in made]
        replay.run(places, stream)
        if waits and program.single:
            device.wait(stream)
        elif not program.single:
            program.wait(room)
            if room.failed():
                replay.step_by_step(places)  # that which failed says so
                device.wait(stream)
    return made


def _packed(given: Any, type: TensorType) -> Any:
    """A packed array; a small one is a copy, which nobody changes before it is sent."""
    packed = np.array(given, type.dtype, order="C", copy=type.nbytes <= SMALL or None)
    return packed.reshape(type.shape)


def giver(args: Sequence[Any], keep: bool) -> Callable[[DeviceArray], Any] | None:
    """How results are given: kept as they are, as arrays of the library that some argument is of,
    or, by None, as NumPy's."""
    kept = keep
    for one in args:
        if isinstance(one, DeviceInput):
            if not keep and one.give is not None:
                return one.give
            kept = True
    return _itself if kept else None


def _itself(made: DeviceArray) -> DeviceArray:
    return made


class DeviceDispatch(PythonDispatch):
    """Finds programs for arrays on the device as for NumPy's."""

    def __init__(self, slow: Callable[..., Any], device: Device) -> None:
        super().__init__(slow)
        self.device = device

    def __call__(self, *args: Any, **names: Any) -> Any:
        if names:
            return super().__call__(*args, **names)
        try:
            taken = [device_input(a, self.device) or a for a in args]
            if not any(isinstance(a, DeviceInput) for a in taken):
                return super().__call__(*args)
            kinds = tuple(
                (a.dtype.type, a.shape) if isinstance(a, _TYPED) else type(a) for a in taken
            )
            for plan in self._plans.get(kinds, ()):
                try:
                    return plan.call(*taken)
                except NoMatch:
                    continue
            return self.slow(*args)
        except BaseException as error:
            hide(error)
            raise


_TYPED = (np.ndarray, np.generic, DeviceInput)
