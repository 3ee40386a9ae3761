"""Calls whose arrays lie on the device: nothing is copied to the host and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.backends.cuda.array import ALIGNED, DeviceArray, DeviceInput, device_input, on_gpu, put
from tenfold.backends.cuda.run.memory import DeviceFrame
from tenfold.backends.program import NoMatch
from tenfold.backends.python_dispatch import PythonDispatch
from tenfold.frames import hide
from tenfold.types import TensorType

if TYPE_CHECKING:
    from tenfold.backends.cuda.driver.device import Device
    from tenfold.backends.cuda.run.program import CudaProgram


def run_kept(program: CudaProgram, arrays: Sequence[Any], keep: bool = True) -> list[Any]:
    """The outputs of a program, left on its device or brought to the host. Arguments are NumPy's,
    or `DeviceInput`s."""
    device, count = program.device, len(program.parameters)
    made: list[Any]
    if keep:
        made = [DeviceArray(device, t.shape, t.dtype) for t in program.outputs]
    else:
        made = [np.empty(t.shape, t.dtype) for t in program.outputs]
    with program.room() as room, program.running.using(program.callbacks):
        inputs = []
        for place, given, type in zip(room.places, arrays, program.parameters, strict=False):
            address = place
            if not isinstance(given, DeviceInput):
                device.upload(place, _packed(given, type), room.stream)
            elif given.address % ALIGNED:
                device.copy(place, given.address, given.nbytes, room.stream)
            elif given.nbytes:
                address = given.address
            inputs.append(address)
        outputs = [one.address for one in made] if keep else room.places[count:]
        constants = program.constants[id(program.plan)]
        frame = DeviceFrame(program.plan, inputs, outputs, room.arena, constants)
        program.execution(room).run(frame)
        for array, place in zip(made, outputs, strict=True) if not keep else ():
            device.download(array, place, room.stream)
        device.wait(room.stream)  # results are whole when somebody has them
    return made


def _packed(given: Any, type: TensorType) -> Any:
    packed = np.ascontiguousarray(np.asarray(given).astype(type.dtype, copy=False))
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


class HeldCaptures:
    """Captured arrays, brought to the device by the first call: nobody writes to them, and where
    the function closes over others the call is bound anew."""

    def __init__(self, captures: Sequence[Any], device: Device) -> None:
        self._captures, self._device = captures, device
        self._held: list[DeviceInput] | None = None

    def __call__(self) -> list[DeviceInput]:
        if self._held is None:
            found = [device_input(put(a, self._device), self._device) for a in self._captures]
            self._held = [one for one in found if one is not None]
        return self._held


class DeviceDispatch(PythonDispatch):
    """Finds programs for arrays on the device as for NumPy's."""

    def __init__(self, slow: Callable[..., Any], device: Device) -> None:
        super().__init__(slow)
        self.device = device

    def __call__(self, *args: Any, **names: Any) -> Any:
        if names or not any(map(on_gpu, args)):
            return super().__call__(*args, **names)
        try:
            taken = [device_input(a, self.device) or a for a in args]
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
