"""The structures and constants of webgpu.h, as far as they are used, by ctypes."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

_WHOLE = c_size_t(-1).value  # the length of a text that ends with a zero


class Text(ctypes.Structure):
    """A string view."""

    _fields_ = [("data", c_char_p), ("length", c_size_t)]

    @property
    def text(self) -> str:
        if not self.data:
            return ""
        raw: bytes = self.data
        return (raw if self.length == _WHOLE else raw[: self.length]).decode(errors="replace")


class View(ctypes.Structure):
    """A string view that a callback or a query is given: it may not end with a zero."""

    _fields_ = [("data", c_void_p), ("length", c_size_t)]

    @property
    def text(self) -> str:
        if not self.data:
            return ""
        if self.length == _WHOLE:
            return ctypes.string_at(self.data).decode(errors="replace")
        return ctypes.string_at(self.data, self.length).decode(errors="replace")


def text_of(words: str) -> Text:
    """A string view that keeps its bytes."""
    raw = words.encode()
    return Text(raw, len(raw))


def _struct(name: str, *rows: tuple[str, Any]) -> Any:
    return type(name, (ctypes.Structure,), {"_fields_": list(rows), "__slots__": ()})


_NEXT = ("next", c_void_p)
_LABEL = ("label", Text)

Chain = _struct("Chain", _NEXT, ("type", c_uint32))
Future = _struct("Future", ("id", c_uint64))
InstanceDescriptor = _struct(
    "InstanceDescriptor", _NEXT, ("feature_count", c_size_t), ("features", c_void_p),
    ("limits", c_void_p),
)  # fmt: skip
InstanceExtras = _struct(
    "InstanceExtras", ("chain", Chain), ("backends", c_uint64), ("flags", c_uint64),
    ("compiler", c_uint32), ("gles", c_uint32), ("fences", c_uint32), ("dxc", Text),
    ("model", c_uint32), ("presentation", c_uint32), ("creation", c_void_p), ("loss", c_void_p),
    ("display", c_uint64 * 3),
)  # fmt: skip
AdapterInfo = _struct(
    "AdapterInfo", _NEXT, ("vendor", View), ("architecture", View), ("device", View),
    ("description", View), ("api", c_uint32), ("kind", c_uint32), ("vendor_id", c_uint32),
    ("device_id", c_uint32), ("least_lanes", c_uint32), ("most_lanes", c_uint32),
)  # fmt: skip
Features = _struct("Features", ("count", c_size_t), ("features", POINTER(c_uint32)))
Limits = _struct(
    "Limits", _NEXT,
    *((name, c_uint32) for name in (
        "texture_1d", "texture_2d", "texture_3d", "texture_layers", "bind_groups",
        "bind_groups_and_vertices", "bindings", "dynamic_uniforms", "dynamic_storage",
        "sampled_textures", "samplers", "storage_buffers", "storage_textures", "uniforms",
    )),
    ("uniform_bytes", c_uint64), ("storage_bytes", c_uint64), ("uniform_alignment", c_uint32),
    ("storage_alignment", c_uint32), ("vertex_buffers", c_uint32), ("buffer_bytes", c_uint64),
    *((name, c_uint32) for name in (
        "vertex_attributes", "vertex_stride", "stage_variables", "attachments",
        "attachment_bytes", "workgroup_bytes", "workgroup_invocations", "workgroup_x",
        "workgroup_y", "workgroup_z", "groups", "immediates",
    )),
)  # fmt: skip
EnumerateOptions = _struct("EnumerateOptions", _NEXT, ("backends", c_uint64))
CallbackInfo = _struct(
    "CallbackInfo", _NEXT, ("mode", c_uint32), ("callback", c_void_p), ("first", c_void_p),
    ("second", c_void_p),
)  # fmt: skip
ErrorCallbackInfo = _struct(
    "ErrorCallbackInfo", _NEXT, ("callback", c_void_p), ("first", c_void_p), ("second", c_void_p)
)
QueueDescriptor = _struct("QueueDescriptor", _NEXT, _LABEL)
DeviceDescriptor = _struct(
    "DeviceDescriptor", _NEXT, _LABEL, ("feature_count", c_size_t),
    ("features", POINTER(c_uint32)), ("limits", c_void_p), ("queue", QueueDescriptor),
    ("lost", CallbackInfo), ("error", ErrorCallbackInfo),
)  # fmt: skip
BufferDescriptor = _struct(
    "BufferDescriptor", _NEXT, _LABEL, ("usage", c_uint64), ("size", c_uint64),
    ("mapped", c_uint32),
)  # fmt: skip
ShaderDescriptor = _struct("ShaderDescriptor", _NEXT, _LABEL)
ShaderSource = _struct("ShaderSource", ("chain", Chain), ("code", Text))
BufferLayout = _struct(
    "BufferLayout", _NEXT, ("type", c_uint32), ("dynamic", c_uint32), ("least", c_uint64)
)
SamplerLayout = _struct("SamplerLayout", _NEXT, ("type", c_uint32))
TextureLayout = _struct(
    "TextureLayout", _NEXT, ("type", c_uint32), ("dimension", c_uint32), ("multi", c_uint32)
)
StorageTextureLayout = _struct(
    "StorageTextureLayout", _NEXT, ("access", c_uint32), ("format", c_uint32),
    ("dimension", c_uint32),
)  # fmt: skip
LayoutEntry = _struct(
    "LayoutEntry", _NEXT, ("binding", c_uint32), ("visibility", c_uint64), ("count", c_uint32),
    ("buffer", BufferLayout), ("sampler", SamplerLayout), ("texture", TextureLayout),
    ("storage_texture", StorageTextureLayout),
)  # fmt: skip
LayoutDescriptor = _struct(
    "LayoutDescriptor", _NEXT, _LABEL, ("count", c_size_t), ("entries", POINTER(LayoutEntry))
)
PipelineLayoutDescriptor = _struct(
    "PipelineLayoutDescriptor", _NEXT, _LABEL, ("count", c_size_t),
    ("layouts", POINTER(c_void_p)), ("immediates", c_uint32),
)  # fmt: skip
ComputeState = _struct(
    "ComputeState", _NEXT, ("module", c_void_p), ("entry", Text), ("constant_count", c_size_t),
    ("constants", c_void_p),
)  # fmt: skip
PipelineDescriptor = _struct(
    "PipelineDescriptor", _NEXT, _LABEL, ("layout", c_void_p), ("compute", ComputeState)
)
GroupEntry = _struct(
    "GroupEntry", _NEXT, ("binding", c_uint32), ("buffer", c_void_p), ("offset", c_uint64),
    ("size", c_uint64), ("sampler", c_void_p), ("texture", c_void_p),
)  # fmt: skip
GroupDescriptor = _struct(
    "GroupDescriptor", _NEXT, _LABEL, ("layout", c_void_p), ("count", c_size_t),
    ("entries", POINTER(GroupEntry)),
)  # fmt: skip

Told = _struct(
    "Told", ("status", c_uint32), ("message", View), ("first", c_void_p), ("second", c_void_p)
)

INSTANCE_EXTRAS = 0x00030004
WGSL_SOURCE = 2  # the type of a shader's source in a chain
SPONTANEOUS = 3  # a callback's mode: whenever there is something to tell
SUCCESS = 1
OUT_OF_MEMORY = 3  # the type of an error
DESTROYED, CANCELLED = 2, 3  # reasons of a device's loss that were our own doing
READ = 1  # a way to map
MAP_READ, COPY_SOURCE, COPY_TARGET, UNIFORM, STORAGE, INDIRECT = 1, 4, 8, 0x40, 0x80, 0x100
UNIFORM_BINDING, STORAGE_BINDING, READ_ONLY_BINDING = 2, 3, 4
COMPUTE = 4  # the stage
VULKAN, METAL, D3D12 = 6, 5, 4  # ways to an adapter
BACKENDS = 1 << 0 | 1 << 2 | 1 << 3  # those same as flags
DISCRETE, INTEGRATED, CPU = 1, 2, 3  # kinds of adapters
F16, SUBGROUPS, F64, I64 = 0x0000000B, 0x00030021, 0x0003001D, 0x00030026  # features

_callback = ctypes.CFUNCTYPE
DeviceFound = _callback(None, c_uint32, c_void_p, View, c_void_p, c_void_p)
Done = _callback(None, c_uint32, View, c_void_p, c_void_p)
Failed = _callback(None, c_void_p, c_uint32, View, c_void_p, c_void_p)  # and lost
