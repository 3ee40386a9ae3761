"""Commands for a device: recorded one after the other, then submitted at once."""

from __future__ import annotations

from ctypes import c_void_p

from tenfold.backends.webgpu.native.buffer import Group, Memory, Range
from tenfold.backends.webgpu.native.device import Device
from tenfold.backends.webgpu.native.library import Handle

Groups = tuple[int, int, int]


class Commands:
    """A command encoder. Dispatches that follow each other share a pass; the library places
    barriers between those that touch the same memory."""

    def __init__(self, device: Device) -> None:
        device.enter()
        self.device, wgpu = device, device.wgpu
        self._encoder = Handle(
            wgpu.DeviceCreateCommandEncoder(device.address, None), wgpu.CommandEncoderRelease
        )
        self._pass: Handle | None = None
        self._pipeline = 0
        self._set_pipeline = wgpu.ComputePassEncoderSetPipeline
        self._set_group = wgpu.ComputePassEncoderSetBindGroup
        self._dispatch = wgpu.ComputePassEncoderDispatchWorkgroups
        self.count = 0  # of dispatches

    def _open(self) -> int:
        """The pass that dispatches go to."""
        if self._pass is None:
            wgpu = self.device.wgpu
            self._pass = Handle(
                wgpu.CommandEncoderBeginComputePass(self._encoder.address, None),
                wgpu.ComputePassEncoderRelease,
            )
            self._pipeline = 0
        return self._pass.address

    def _close(self) -> None:
        if self._pass is not None:
            self.device.wgpu.ComputePassEncoderEnd(self._pass.address)
            self._pass = None

    def dispatch(self, pipeline: Handle, group: Group, groups: Groups) -> None:
        """So many workgroups of a pipeline."""
        self._dispatch(self._bound(pipeline, group), *groups)

    def dispatch_found(self, pipeline: Handle, group: Group, where: Memory, offset: int) -> None:
        """As many workgroups as lie there when it is their turn, along each dimension."""
        self.device.wgpu.ComputePassEncoderDispatchWorkgroupsIndirect(
            self._bound(pipeline, group), where.address, offset
        )

    def _bound(self, pipeline: Handle, group: Group) -> int:
        """The pass, about to do one thing more."""
        opened = self._open()
        if pipeline.address != self._pipeline:
            self._set_pipeline(opened, pipeline.address)
            self._pipeline = pipeline.address
        self._set_group(opened, 0, group.address, 0, None)
        self.count += 1
        return opened

    def copy(self, source: Range, target: Memory, offset: int) -> None:
        """The bytes of a range to a place in another buffer, up to three more with them: both
        begin at multiples of 4."""
        size = -(-source.size // 4) * 4
        if size:
            self._close()
            self.device.wgpu.CommandEncoderCopyBufferToBuffer(
                self._encoder.address, source.buffer.address, source.offset, target.address,
                offset, size,
            )  # fmt: skip

    def clear(self, target: Range) -> None:
        """Zeros."""
        self._close()
        self.device.wgpu.CommandEncoderClearBuffer(
            self._encoder.address, target.buffer.address, target.offset, target.size
        )

    def submit(self) -> None:
        """Have all of it done, after what was submitted before."""
        self._close()
        wgpu, device = self.device.wgpu, self.device
        finished = Handle(
            wgpu.CommandEncoderFinish(self._encoder.address, None), wgpu.CommandBufferRelease
        )
        device.check("commands are not taken")
        one = (c_void_p * 1)(finished.address)
        wgpu.QueueSubmit(device.queue, 1, one)
        device.check("commands can't be submitted")
