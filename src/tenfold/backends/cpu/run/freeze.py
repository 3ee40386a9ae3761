"""Freeze: from a plan and its code to the native form, with every address left open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tenfold.backends.cpu.link.compile import Module, compile_kernels
from tenfold.backends.cpu.link.prelink import prelink, written
from tenfold.backends.cpu.loop.compile import LoopFunction, loop_functions
from tenfold.backends.cpu.loop.compile import names as loop_names
from tenfold.backends.cpu.run.bytecode import Bytecode, routines_of
from tenfold.backends.cpu.run.code import NativeCode
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.backends.cpu.run.fixed import TEXTS, fixed, interface
from tenfold.backends.cpu.run.kernels import KernelCode, polling
from tenfold.backends.cpu.run.restored import RestoredProgram
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.errors import ParityError
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.plan import Plan
from tenfold.plan.steps.loops import Which
from tenfold.seam import passed

Array = np.ndarray[Any, Any]

# Addresses that are left open: the kind, which one, and an offset.
_KIND, _WHICH = 60, 36
_KERNEL, _CALL, _KEPT = 1, 2, 3
_ALIGN = 64


class _RelocatableBytecode(Bytecode):
    """The bytecode of a plan with its addresses left open."""

    def keep(self, array: Array) -> int:
        self.kept.append(array)
        return _KEPT << _KIND | (len(self.kept) - 1) << _WHICH


def code_of(program: CompiledProgram | RestoredProgram, whole: bool) -> NativeCode:
    """The native form of a program."""
    if isinstance(program, RestoredProgram):
        native = program.native
        if whole and not native.fixed:
            native = replace(native, fixed=_fixed(native.target))
        return native
    native = make_native(
        program.plan, program.code, program.functions, program.target, program.strict, whole=whole
    )
    wrong = unlike(native, program)
    if wrong is not None:  # what is kept has to be what was judged
        raise ParityError(f"the plan can't be written down: {wrong}", fix="report this fault")
    return native


def code_for(plan: Plan, target: LLVMTarget, strict: bool) -> NativeCode:
    """The native form of a plan for another target than this machine's."""
    module = compile_kernels(plan.calls, target, strict)
    code = {
        call: KernelCode(made, None, module)  # type: ignore[arg-type]  # never in memory
        for call, made in zip(plan.calls, module.kernels, strict=True)
    }
    functions = loop_functions(plan, target, strict)
    return make_native(plan, code, functions, target, strict, whole=True)


def _fixed(target: LLVMTarget) -> tuple[tuple[str, bytes], ...]:
    return tuple((part, fixed(part, target)) for part in TEXTS)


def make_native(
    plan: Plan,
    code: Mapping[SizedKernel, KernelCode],
    functions: Mapping[Which, LoopFunction],
    target: LLVMTarget,
    strict: bool,
    *,
    whole: bool,
) -> NativeCode:
    """The native form of a plan whose kernels and loops have this code. `whole`: it needs no
    compiler even where there is no cache, and its bytes depend on the plan alone."""
    modules, kernels = _modules(plan, code, target, strict, whole)
    asks: list[tuple[int, int]] = []

    def ask(which: int, step: int) -> int:
        asks.append((which, step))
        return _CALL << _KIND | (len(asks) - 1) << _WHICH

    named = {name: n for n, (_, name, *_) in enumerate(kernels)}
    codes = tuple(named[code[call].compiled.name] for call in plan.calls)
    numbers = {
        call: code[call].place(_KERNEL << _KIND | n << _WHICH)
        for n, call in zip(codes, plan.calls, strict=True)
    }
    objects = {name: fixed(name, target) for name in routines_of(plan, target)}
    objects |= {function.name: function.data for function in functions.values()}
    routines = {
        name: _KERNEL << _KIND | n << _WHICH for n, name in enumerate(objects, len(kernels))
    }
    loops = tuple((*which, routines[f.name] >> _WHICH & (1 << _KIND - _WHICH) - 1)
                  for which, f in functions.items())  # fmt: skip
    kernels += tuple((n, name, -1, 1, True) for n, name in enumerate(objects, len(modules)))
    modules += tuple(objects.values())
    bytecode = _RelocatableBytecode(plan, target, numbers, ask, routines, loop_names(functions))
    offsets, size = [], 0
    for array in bytecode.kept:
        offsets.append(size)
        size += _room(array)
    memory = np.zeros(size, np.uint8)
    own: list[Array] = []
    calls: list[Array] = []
    asked: list[Array] = []
    tags = {value: n for n, value in enumerate(bytecode.addresses.values())}
    for number, (array, offset) in enumerate(zip(bytecode.kept, offsets, strict=True)):
        raw = array.view(np.uint8).reshape(-1)
        if _KEPT << _KIND | number << _WHICH in tags:
            row = array.copy()
            kinds = np.where(row > 0, row >> _KIND, 0)
            which = row >> _WHICH & (1 << _KIND - _WHICH) - 1
            for kind, found in ((_KEPT, own), (_KERNEL, calls), (_CALL, asked)):
                at = np.nonzero(kinds == kind)[0]
                where = at + offset // 8
                if kind == _KEPT:
                    row[at] = np.array(offsets)[which[at]] + (row[at] & (1 << _WHICH) - 1)
                    found.append(where[:, None])
                else:
                    row[at] = 0
                    more = which[at][:, None]
                    if kind == _CALL:
                        more = np.array(asks, np.int64).reshape(-1, 2)[which[at]]
                    found.append(np.hstack([where[:, None], more]))
            raw = row.view(np.uint8)
        memory[offset : offset + raw.size] = raw
    root = bytecode.address >> _WHICH & (1 << _KIND - _WHICH) - 1
    return NativeCode(
        target,
        interface(target),
        strict,
        modules,
        kernels,
        codes,
        passed("memory", memory.tobytes()),
        offsets[root],
        _packed(own),
        _packed(calls),
        _packed(asked),
        tuple(p.type for p in plan.graph.parameters),
        plan.graph.output_types,
        plan.donated,
        bytecode.order(polling(code)),
        plan.arena_bytes,
        bytecode.weights[id(plan)],
        _fixed(target) if whole else (),
        loops,
    )


def _room(array: Array) -> int:
    """The bytes that an array takes. One without elements takes some, too: by its place it is told
    from the next."""
    return max(1, -(-array.nbytes // _ALIGN)) * _ALIGN


def unlike(native: NativeCode, program: CompiledProgram) -> str | None:
    """Where the native form of a program is not what runs in this process, or None.

    It is filled in as another process would, with the addresses of this one: then its memory has to
    be that of the program, byte for byte."""
    kept = program.bytecode.kept
    ends = np.cumsum([0, *map(_room, kept)])
    if ends[-1] != len(native.memory):
        return f"it has {len(native.memory)} bytes of memory, the plan that runs {ends[-1]}"
    memory = np.frombuffer(native.memory, np.int64).copy()
    own, calls, asks = native.places()
    offsets = memory[own[:, 0]]
    which = np.searchsorted(ends, offsets, "right") - 1
    bases = np.array([array.__array_interface__["data"][0] for array in kept], np.int64)
    memory[own[:, 0]] = bases[which] + offsets - ends[which]
    kernels, routines = program.places(), program.routines()
    addresses = np.zeros(len(native.kernels), np.int64)
    for number, call in zip(native.codes, program.plan.calls, strict=True):
        addresses[number] = kernels[call].address
    for number, (_, name, *_) in enumerate(native.kernels):
        if name in routines:
            addresses[number] = routines[name]
    memory[calls[:, 0]] = addresses[calls[:, 1]]
    memory[asks[:, 0]] = [program.asked(int(plan), int(step)) for _, plan, step in asks]
    raw = memory.view(np.uint8)
    for array, start in zip(kept, ends, strict=False):
        if not np.array_equal(raw[start : start + array.nbytes], array.view(np.uint8).reshape(-1)):
            return f"its memory from byte {start} on is not that of the plan that runs"
    return None


def _packed(rows: Sequence[Array]) -> bytes:
    return np.concatenate(rows).astype("<i4").tobytes() if rows else b""


def _modules(
    plan: Plan,
    code: Mapping[SizedKernel, KernelCode],
    target: LLVMTarget,
    strict: bool,
    whole: bool,
) -> tuple[tuple[bytes, ...], tuple[tuple[int, str, int, int, bool], ...]]:
    """Object code that has every kernel of the plan, and little else; kernels by module."""
    calls: dict[str, SizedKernel] = {}  # one for each code
    for call in plan.calls:
        calls.setdefault(code[call].compiled.name, call)
    held: dict[int, tuple[Module, list[str]]] = {}
    alone: list[str] = []
    for name, call in calls.items():
        module = code[call].module
        if module is None:
            alone.append(name)
        else:
            held.setdefault(id(module), (module, []))[1].append(name)
    made: list[tuple[Module, list[str]]] = []
    for module, names in held.values():
        # Kernels that were compiled beside many others are compiled again by themselves.
        most = 1 if whole else 4
        if len({kernel.name for kernel in module.kernels}) <= most * len(names):
            made.append((module, names))
        else:
            alone += names
    if whole and (alone or len(made) > 1):
        made, alone = [], list(calls)
    if alone:
        again = compile_kernels([calls[name] for name in alone], target, strict)
        made.append((again, alone))
    where, modules = {}, []
    for number, (module, names) in enumerate(made):
        where.update(dict.fromkeys(names, number))
        first = code[calls[names[0]]]
        here = first.image if first.module is module else None  # linked before, to be run
        linked = None if here is None else written(here, names)
        modules.append(prelink(module.data, names) if linked is None else linked)
    return tuple(modules), tuple((where[name], name, *_outer(code[calls[name]])) for name in calls)


def _outer(code: KernelCode) -> tuple[int, int, bool]:
    schedule, polls = code.compiled.schedule, code.compiled.polls
    return -1 if schedule.cuttable is None else schedule.cuttable, schedule.grain, polls
