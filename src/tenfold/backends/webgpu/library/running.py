"""Running folds: each element joined with all before it along an axis.

They have the shape of the CPU's (`cpu/library/running`), so that both give the same bits. A line is
blocks of 16 elements, in which each is joined with those 1, 2, 4 and 8 before it; blocks are joined
one after the other in stretches of 4096, and stretches one after the other again. What is behind
the last whole block goes on from there, an element after the other. Where there are columns behind
the axis, each of them is folded one after the other.

An invocation has a block, a team of them a line or a stretch of one, which is read and written side
by side, and the first of a team goes along what its blocks come to. A line of several stretches
takes three functions: what stretches come to, what comes before each, and the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from tenfold.backends.webgpu.library.elements import Array, computed
from tenfold.backends.webgpu.library.routine import Launch, Routine
from tenfold.backends.webgpu.shader import (
    BUFFER,
    SCRATCH,
    WORDS,
    ZERO,
    Binding,
    Dispatch,
    Shader,
)
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.backends.webgpu.wgsl.instructions import instruction, is_nan
from tenfold.backends.webgpu.wgsl.prelude import helpers
from tenfold.backends.webgpu.wgsl.types import constant, floating
from tenfold.backends.webgpu.wgsl.writer import Writer
from tenfold.types import DTYPES, SHORT, TensorType

_STEPS = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min"}
_THREADS, _BLOCK = 256, 16
_STRETCH = _THREADS * _BLOCK
_FEW = 16  # members of a team, at least

_COLUMNS = """
@compute @workgroup_size(256)
fn columns(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>,
           @builtin(num_workgroups) grid: vec3<u32>) {
  let me = (group.x + group.y * grid.x) * 256u + lid;
  let count = N[0];
  let behind = N[1];
  if (me >= N[2]) { return; }
  let first = me / behind * count * behind + me % behind;
  var held = NOTHING;
  for (var i = 0u; i < count; i++) {
    let at = first + TURNED * behind;
    held = joined(held, get_x(at));
    set_y(at, held);
  }
}
"""

# In every function a team of TEAM invocations has a line, or a stretch of one.
_BEGIN = """
@compute @workgroup_size(256)
fn NAME(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) grid: vec3<u32>) {
  let count = N[0];
  let lines = N[1];
  let stretches = N[2];
  let team = (group.x + group.y * grid.x) * (256u / TEAMu) + lid / TEAMu;
  let member = lid % TEAMu;
  let line = team / stretches;
  let stretch = team % stretches;
  let live = line < lines;
  let start = stretch * 4096u + member * 16u;
  let begin = line * count;
  var x: array<T, 16>;
  READ
  var held = x;
  for (var far = 1u; far < 16u; far *= 2u) {
    for (var n = 15u; n >= far; n--) { held[n] = joined(held[n - far], held[n]); }
  }
  chain[lid] = held[15];
  workgroupBarrier();
  if (member == 0u) {
    var carry = NOTHING;
    for (var n = 0u; n < TEAMu; n++) {
      let own = chain[lid + n];
      chain[lid + n] = carry;
      carry = joined(carry, own);
    }
    TOTALS
  }
"""
_TOTALS = "if (live) { s[line * N[3] + stretch] = carry; }\n  }\n}\n"
_END = """  workgroupBarrier();
  let carry = chain[lid];
  var base = NOTHING;
  if (live) { base = BASE; }
  var last = joined(base, carry);
  for (var n = 0u; n < 16u; n++) {
    if (start + 16u <= count) {
      held[n] = joined(base, joined(carry, held[n]));
    } else {
      last = joined(last, x[n]);
      held[n] = last;
    }
  }
  WRITTEN
}
"""
# Each member reads its block and writes it.
_OWN = (
    """
  for (var n = 0u; n < 16u; n++) {
    let i = start + n;
    x[n] = NOTHING;
    if (live && i < count) { x[n] = get_x(begin + TURNED); }
  }""",
    """
  if (!live) { return; }
  for (var n = 0u; n < 16u; n++) {
    let i = start + n;
    if (i < count) { set_y(begin + TURNED, held[n]); }
  }""",
)
# Members read neighbours, and write them, by the memory of the workgroup; a block has a place more
# there than elements, against conflicts.
_SHARED = (
    """
  let mine = lid / TEAMu * TEAMu * 17u;
  for (var n = 0u; n < 16u; n++) {
    let place = n * TEAMu + member;
    let i = stretch * 4096u + place;
    var own = NOTHING;
    if (live && i < count) { own = get_x(begin + TURNED); }
    blocks[mine + place + place / 16u] = own;
  }
  workgroupBarrier();
  for (var n = 0u; n < 16u; n++) { x[n] = blocks[lid * 17u + n]; }""",
    """
  for (var n = 0u; n < 16u; n++) { blocks[lid * 17u + n] = held[n]; }
  workgroupBarrier();
  if (!live) { return; }
  for (var n = 0u; n < 16u; n++) {
    let place = n * TEAMu + member;
    let i = stretch * 4096u + place;
    if (i < count) { set_y(begin + TURNED, blocks[mine + place + place / 16u]); }
  }""",
)
_BASES = """
@compute @workgroup_size(256)
fn bases(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>,
         @builtin(num_workgroups) grid: vec3<u32>) {
  let line = (group.x + group.y * grid.x) * 256u + lid;
  if (line >= N[1]) { return; }
  var base = NOTHING;
  for (var n = 0u; n < N[3]; n++) {
    let own = s[line * N[3] + n];
    s[line * N[3] + n] = base;
    base = joined(base, own);
  }
}
"""


def running_routine(
    name: str, type: TensorType, given: Mapping[str, Any], target: WebGPUTarget
) -> Routine | None:
    """The routine of a running fold along `axis`; None where it is left to the host: of complex
    numbers, of what an adapter has no numbers for, and of very long columns on some."""
    dtype = SHORT[type.dtype]
    if not type.size or dtype[0] == "c" or not _has(dtype, target):
        return None
    axis, reverse = given["axis"], bool(given["reverse"])
    n, before, behind = type.shape[axis], prod(type.shape[:axis]), prod(type.shape[axis + 1 :])
    stretches = -(-n // _STRETCH)
    if target.loop_limit and (n if behind > 1 else stretches) >= target.loop_limit - 256:
        return None
    if behind > 1:
        shader = _shader(dtype, _STEPS[name], reverse, ["columns"], target)
        groups = -(-before * behind // _THREADS)
        words = n, behind, before * behind, 0
        return Routine(shader, (Launch("columns", groups, words),), type.nbytes)
    blocks = -(-n // _BLOCK)
    team = min(max(_FEW, 1 << (blocks - 1).bit_length()), _THREADS)
    if stretches == 1:
        shader = _shader(dtype, _STEPS[name], reverse, ["lines"], target, team)
        groups = -(-before * team // _THREADS)
        return Routine(shader, (Launch("lines", groups, (n, before, 1, 0)),), type.nbytes)
    shader = _shader(dtype, _STEPS[name], reverse, ["totals", "bases", "lines"], target)
    words = n, before, stretches, stretches
    launches = (
        Launch("totals", before * stretches, words),
        Launch("bases", -(-before // _THREADS), words),
        Launch("lines", before * stretches, words),
    )
    size = 8 if computed(dtype).endswith("64") else 4
    return Routine(shader, launches, type.nbytes, (before * stretches * size,))


def _has(dtype: str, target: WebGPUTarget) -> bool:
    """Whether an adapter has numbers of a dtype."""
    return {"f64": target.f64, "i64": target.i64, "u64": target.i64}.get(dtype, True)


def _shader(
    dtype: str,
    step: str,
    reverse: bool,
    names: list[str],
    target: WebGPUTarget,
    team: int = _THREADS,
) -> Shader:
    ty, own = computed(dtype), "f32" if dtype in ("f16", "bf16") else dtype
    if own == "bool":
        own = "u32"
    nothing, join = _nothing(dtype, own, step), _join(own, ty, step, target)
    parts = []
    for name in names:
        if name in ("columns", "bases"):
            parts.append(_COLUMNS if name == "columns" else _BASES)
            continue
        if name == "totals":
            parts.append(_BEGIN.replace("NAME", name).replace("TOTALS\n  }\n", _TOTALS))
        else:
            base = "s[line * N[3] + stretch]" if len(names) > 1 else "NOTHING"
            begin = _BEGIN.replace("NAME", name).replace("TOTALS", "")
            parts.append(begin + _END.replace("BASE", base))
    size = 8 if ty.endswith("64") else 4
    fits = _THREADS * (_BLOCK + 2) * size <= target.workgroup_bytes
    read, written = _SHARED if fits else _OWN
    parts = [
        part.replace("READ", read).replace("WRITTEN", written).replace("TEAM", str(team))
        for part in parts
    ]
    turned = "(count - 1u - i)" if reverse else "i"
    body = "\n".join(parts).replace("TURNED", turned)
    body = body.replace("NOTHING", nothing).replace("<T,", f"<{ty},")
    x, y = Array("x", dtype), Array("y", dtype, written=True)
    bindings = [(Binding(BUFFER, 0), f"storage, read_write> x: array<{x.held}>"),
                (Binding(BUFFER, 1), f"storage, read_write> y: array<{y.held}>")]  # fmt: skip
    if "s[line" in body:
        bindings.append((Binding(SCRATCH), f"storage, read_write> s: array<{ty}>"))
    bindings.append((Binding(WORDS), "storage, read> N: array<u32>"))
    functions = [x.text("N[4]"), y.text("N[5]"), join]
    prelude = helpers([*functions, body])
    if "Z." in "\n".join([*prelude, *functions, body]):
        bindings.append((Binding(ZERO), "uniform> Z: vec4<u32>"))
    declared = [f"@group(0) @binding({n}) var<{d};" for n, (_, d) in enumerate(bindings)]
    for memory, count in (("chain", _THREADS), ("blocks", _THREADS * (_BLOCK + 1))):
        if f"{memory}[" in body:
            declared.append(f"var<workgroup> {memory}: array<{ty}, {count}>;")
    text = "\n".join([*declared, *prelude, *functions, body])
    return Shader(
        text,
        "running folds",
        _THREADS,
        tuple(b for b, _ in bindings),
        (),
        tuple(Dispatch(name, -1) for name in names),
        (-1,) if len(names) > 1 else (),
    )


def _join(own: str, ty: str, step: str, target: WebGPUTarget) -> str:
    """What comes before, joined with what follows; of greatest and least the first NaN stays."""
    w = Writer(target)
    w.computed.update(("a", "b"))
    if floating(own) and step in ("max", "min"):
        farther = f"b {'>' if step == 'max' else '<'} a || {is_nan(own, 'b')}"
        found = f"select(a, b, ({farther}) && {is_nan(own, 'a', True)})"
    else:
        found = instruction(w, step, own, [own, own], ["a", "b"])
    return "\n".join(
        [f"fn joined(a: {ty}, b: {ty}) -> {ty} {{", *w.lines, f"  return {found};", "}"]
    )


def _nothing(dtype: str, own: str, step: str) -> str:
    """What changes nothing that it is joined with."""
    if floating(own):
        value = {"add": -0.0, "mul": 1.0, "max": -np.inf, "min": np.inf}[step]
        return constant(own, np.array(value, DTYPES[own]).tobytes())
    limits = np.iinfo(DTYPES["u8" if dtype == "bool" else dtype])
    found = {"add": 0, "mul": 1, "max": limits.min, "min": limits.max}[step]
    return constant(own, np.array(found, DTYPES[own]).tobytes())
