"""Plans as plain data: what is written is read back, what does not hold is refused."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import msgpack
import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.capabilities import capabilities
from tenfold.backends.cpu.target import host_target
from tenfold.errors import PlanError
from tenfold.plan.file.file import read_plan, write_plan

HOST = capabilities(host_target())

_spec = importlib.util.spec_from_file_location("programs", Path(__file__).with_name("programs.py"))
programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)


def planned(function):
    graph = tn.trace(function, *programs.inputs())
    return graph, BACKEND.plan(graph)


@pytest.mark.parametrize("function", programs.EVERY, ids=lambda f: f.__name__)
def test_what_is_written_is_read(function):
    graph, plan = planned(function)
    data = write_plan(plan, graph)
    again, read = read_plan(data, HOST)
    assert again == graph
    assert str(read) == str(plan)
    assert read.explain() == plan.explain()
    assert [p.slots for p in read.every] == [p.slots for p in plan.every]
    assert [p.steps for p in read.every] == [p.steps for p in plan.every]
    assert read.kernels == plan.kernels
    assert write_plan(read, again) == data


def fused(x):
    for i in range(200):
        x = (x * 0.5 + i) - np.maximum(x, 2.5) * x
    return x


def stepwise(x):
    for i in range(120):
        x = np.tanh(x * 0.5 + i) - x.max(axis=1, keepdims=True)
        x = (x * 1.25) @ x
    return x


@pytest.mark.parametrize("function", [fused, stepwise])
def test_a_thousand_ops_take_little_room(function):
    plan = tn.jit(function).plan(np.ones((16, 16), "float32"))
    assert len(plan.graph.nodes) >= 1000
    assert len(plan.to_bytes()) < 100_000
    assert len(plan.to_bytes(code=False)) < 50_000


def _leaves(data, path=()):
    """Where the numbers, texts and rows of plain data are."""
    waiting = [(data, path)]
    while waiting:
        item, path = waiting.pop()
        if isinstance(item, list):
            for number, part in enumerate(item):
                waiting.append((part, (*path, number)))
        yield path


def _at(data, path):
    for step in path:
        data = data[step]
    return data


WRONG = (0, 1, -1, 7, 1 << 40, -(1 << 40), None, True, "x", b"", b"\0" * 9, [], [1], 2.5, {})


@pytest.mark.parametrize("function", programs.EVERY, ids=lambda f: f.__name__)
def test_what_does_not_hold_is_refused(function):
    """One wrong number, text or row somewhere: PlanError, or a plan that is still sound."""
    graph, plan = planned(function)
    data = write_plan(plan, graph)
    refused = 0
    draw = random.Random(function.__name__)
    paths = [p for p in _leaves(msgpack.unpackb(data)) if p]
    for _ in range(150):
        changed = msgpack.unpackb(data)
        path = draw.choice(paths)
        _at(changed, path[:-1])[path[-1]] = draw.choice(WRONG)
        try:
            read_plan(msgpack.packb(changed), HOST)
        except PlanError:
            refused += 1
    assert refused > 75


def test_malformed_data_is_refused():
    for data in (b"", b"\xc1", msgpack.packb(3), msgpack.packb([]), msgpack.packb([[]] * 8)):
        with pytest.raises(PlanError):
            read_plan(data, HOST)


def test_a_slot_beyond_the_arena_is_refused():
    graph, plan = planned(programs.product)
    data = msgpack.unpackb(write_plan(plan, graph))
    rows = data[-1]
    slots = rows[-1][1]
    arenas = [n for n in range(0, len(slots), 5) if slots[n + 1] == 3]
    assert arenas
    for n in arenas:
        slots[n + 3] = 1 << 30
    with pytest.raises(PlanError):
        read_plan(msgpack.packb(data), HOST)


def test_a_kernel_that_reads_outside_its_buffers_is_refused():
    graph, plan = planned(programs.elementwise)
    data = msgpack.unpackb(write_plan(plan, graph))
    kernel = data[-2][0]
    loads = [i for i in kernel[3] if i[0] == "load"]
    loads[0][3] = [len(kernel[1])]
    with pytest.raises(PlanError):
        read_plan(msgpack.packb(data), HOST)
