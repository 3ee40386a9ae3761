"""The kernel's data: hash-consing, free axes, stages, digest, file form."""

from __future__ import annotations

import msgpack
import numpy as np
import pytest

from tenfold.errors import GraphError
from tenfold.kernel import Builder, Instruction, Kernel, from_data, stages, to_data, verify


def softmax(rows: int, columns: int, scale: float) -> Kernel:
    b = Builder()
    x, y = b.buffer("f32", rows * columns), b.buffer("f32", rows * columns, "write")
    i, j = b.axis(rows), b.axis(columns)
    first, k = b.reduced(columns, 1)
    second, m = b.reduced(columns, 2)
    factor = b.literal("f32", scale)

    def scaled(at: object) -> int:
        return b.op("mul", "f32", b.load(x, i * columns + at), factor)  # type: ignore[operator]

    top = b.reduce("max", (first,), scaled(k))
    total = b.reduce("sum", (second,), b.op("exp", "f32", b.op("sub", "f32", scaled(m), top)))
    e = b.op("exp", "f32", b.op("sub", "f32", scaled(j), top))
    b.store(y, i * columns + j, b.op("div", "f32", e, total))
    return b.finish()


def test_free_axes_and_stages() -> None:
    kernel = softmax(4, 5, 2.5)
    verify(kernel)
    ops = [i.op for i in kernel.instructions]
    deep = stages(kernel)
    top, total = (n for n, op in enumerate(ops) if op == "reduce")
    assert kernel.free[top] == kernel.free[total] == {0}
    assert deep[top] == 1
    assert deep[total] == 2
    assert kernel.store_free(kernel.stores[0]) == {0, 1}


def test_literals_are_parameters() -> None:
    assert softmax(4, 5, 2.5) == softmax(4, 5, 3.5)
    assert softmax(4, 5, 2.5).digest == softmax(4, 5, 3.5).digest
    assert softmax(4, 5, 2.5) != softmax(4, 6, 2.5)
    b = Builder()
    assert b.instructions[b.literal("f32", -1)].op == "const"
    assert b.const("f32", 0.0) != b.const("f32", -0.0)
    assert b.literal("f32", 7.0) != b.literal("f32", 7.0)
    assert np.frombuffer(b.literals[0], np.float32)[0] == 7.0


def test_file_form() -> None:
    b = Builder()
    x, ids = b.buffer("f64", 30), b.buffer("i32", 7)
    y = b.buffer("f64", 21, "write")
    s = b.scratch("f64", 3, (0,))
    i, j = b.axis(7), b.axis(3)
    pick = b.load(ids, i)
    ok = b.op("lt", "bool", pick, b.const("i32", 10))
    b.check(ok, 3)
    v = b.load(x, b.as_index(pick, 10) * 3 + (j * 5) % 3, ok)
    b.store(s, j, v)
    b.store(y, i * 3 + j, b.load(s, j), b.inside(i * 3 + j, 2, 20))
    kernel = b.finish()
    verify(kernel)
    again = from_data(msgpack.unpackb(msgpack.packb(to_data(kernel))))
    assert again == kernel
    assert hash(again) == hash(kernel)
    assert again.free == kernel.free
    assert again.digest == kernel.digest
    assert str(again) == str(kernel)
    assert "check" in str(kernel)


def test_hash_consing_and_dead_code() -> None:
    b = Builder()
    x, y = b.buffer("f32", 8), b.buffer("f32", 8, "write")
    i = b.axis(8)
    a = b.op("add", "f32", b.load(x, i), b.load(x, i))
    b.op("exp", "f32", a)
    b.store(y, i, a)
    assert [n.op for n in b.finish().instructions] == ["load", "add"]


def test_conditions_fold() -> None:
    b = Builder()
    x = b.buffer("f32", 8)
    i = b.axis(8)
    yes, no = b.inside(i, 0, 8), b.inside(i, 8, 9)
    maybe = b.inside(i, 1, 8)
    v = b.load(x, i)
    assert b.load(x, i, yes) == v
    assert b.instructions[b.load(x, i, no)].op == "const"
    assert b.both(yes, maybe) == maybe
    assert b.both(no, maybe) == no
    assert b.op("or", "bool", maybe, no) == maybe
    assert b.select(no, v, maybe) == maybe
    assert b.both(None, maybe) == maybe


def test_scratch_loads_wait_for_their_stage() -> None:
    b = Builder()
    x, y = b.buffer("f32", 20), b.buffer("f32", 20, "write")
    i, j = b.axis(4), b.axis(5)
    n, k = b.reduced(5, 1)
    s = b.scratch("f32", 5, (0,))
    e = b.op("exp", "f32", b.load(x, i * 5 + k))
    b.store(s, k, e)
    total = b.reduce("sum", (n,), e)
    again = b.load(s, j)
    assert b.stage[again] == 1
    assert b.free[again] == {0, 1}
    b.store(y, i * 5 + j, b.op("div", "f32", again, total))
    kernel = b.finish()
    verify(kernel)
    assert max(stages(kernel)) == 1


def test_verify_names_the_fault() -> None:
    kernel = Kernel((), (), (), (Instruction("nonsense", "f32"),), ())
    with pytest.raises(GraphError, match="unknown op nonsense"):
        verify(kernel)
