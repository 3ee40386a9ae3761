"""The entry point, native and plain alike: guards, outputs, captures, arenas, failure, Ctrl-C."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tenfold.backends.cpu.entry import ndarray
from tenfold.backends.cpu.entry.abi import Argument, CallSpec
from tenfold.backends.cpu.entry.bind import GATE_EXPORTS, BoundPlan, gate, make_entry
from tenfold.backends.cpu.entry.table import make_dispatch
from tenfold.backends.cpu.entry.text import GATE_TEXT
from tenfold.backends.cpu.link import loader
from tenfold.backends.cpu.link.loader import load
from tenfold.backends.cpu.run.host import HOST
from tenfold.backends.cpu.run.poll import POLL
from tenfold.backends.guard import HOLDS, ITEMS, Guard, kind_of
from tenfold.backends.llvm.text import Fragment, join
from tenfold.backends.program import ARGUMENT, NOTHING, OUTPUTS, decline
from tenfold.types import DTYPES, TensorType, parse_type

Assemble = Callable[[str], bytes]
Make = Callable[..., BoundPlan]


def the_gate(assemble: Assemble) -> loader.Image:
    return gate(lambda: assemble(GATE_TEXT))


LLVM = {1: "i8", 2: "i16", 4: "i32", 8: "i64", 16: "i128"}


def slow(*args: Any, **names: Any) -> Any:
    return ("slow", args, names)


def arguments(*types: str) -> tuple[Argument, ...]:
    return tuple(Argument(parse_type(text)) for text in types)


def outputs(*types: str) -> tuple[TensorType, ...]:
    return tuple(parse_type(text) for text in types)


def row(index: int, name: str) -> str:
    return (
        f"  %{name}.at = getelementptr ptr, ptr %table, i64 {index}\n"
        f"  %{name} = load ptr, ptr %{name}.at\n"
    )


def plan_of(body: str, *more: Fragment, imports: Sequence[str] = ()) -> list[Fragment]:
    text = f"define i32 @plan(ptr %table, ptr %arena, ptr %poll) {{\n{body}\n}}\n"
    return [*more, Fragment(tuple(imports), text)]


def copies(*moves: tuple[int, int, int]) -> list[Fragment]:
    """A plan that copies bytes from one row of the table to another: (from, to, bytes)."""
    lines = [
        f"{row(a, f'f{k}')}{row(b, f't{k}')}"
        f"  call void @llvm.memcpy.p0.p0.i64(ptr %t{k}, ptr %f{k}, i64 {size}, i1 false)\n"
        for k, (a, b, size) in enumerate(moves)
    ]
    declare = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
    return plan_of("".join(lines) + "  ret i32 0", imports=[declare])


# table[2][i] = table[0][i] + table[1][i] for eight floats
ADD = plan_of(
    row(0, "a") + row(1, "b") + row(2, "c") + "  %x = load <8 x float>, ptr %a, align 4\n"
    "  %y = load <8 x float>, ptr %b, align 4\n"
    "  %z = fadd <8 x float> %x, %y\n"
    "  store <8 x float> %z, ptr %c, align 4\n"
    "  ret i32 0"
)
ADD_ENTRY = CallSpec("add", "plan", arguments("f32[8]", "f32[8]"), outputs("f32[8]"))


@pytest.fixture(params=["native", "plain"])
def make(request: pytest.FixtureRequest, assemble: Assemble) -> Make:
    native = request.param == "native"
    if native and ndarray.supported():
        pytest.skip(str(ndarray.supported()))

    def build(
        entry: CallSpec,
        plan: Sequence[Fragment],
        answer: Callable[..., Any] = slow,
        captures: Sequence[Any] = (),
        guards: Sequence[Guard] = (),
        symbols: dict[str, int] | None = None,
    ) -> BoundPlan:
        image = load([assemble(join(plan))], [entry.plan], symbols)
        bound = make_entry(entry, image, the_gate(assemble), answer, captures, guards, native)
        assert (bound.reason is None) == native
        return bound

    return build


def test_native_is_supported_here() -> None:
    assert ndarray.supported() is None


def test_the_call_is_a_builtin(assemble: Assemble) -> None:
    image = load([assemble(join(ADD))], ["plan"])
    call = make_entry(ADD_ENTRY, image, the_gate(assemble), slow).call
    assert type(call) is type(len)
    assert (call.__name__, call.__module__) == ("add", "tenfold")


def test_results_and_plain_arguments(make: Make) -> None:
    call = make(ADD_ENTRY, ADD).call
    x, y = np.arange(8, dtype=np.float32), np.full(8, 0.5, np.float32)
    z = call(x, y)
    assert type(z) is np.ndarray
    assert z.flags.owndata
    assert z.flags.c_contiguous
    assert z.flags.writeable
    np.testing.assert_array_equal(z, x + y)
    y.flags.writeable = False
    np.testing.assert_array_equal(call(x, y), x + y)
    np.testing.assert_array_equal(call(x, np.arange(64, dtype=np.float32)[8:16]), 2 * x + 8)


class Sub(np.ndarray[Any, Any]):
    pass


def odd_arguments() -> list[Any]:
    x = np.arange(8, dtype=np.float32)
    raw = np.zeros(33, np.uint8)
    return [
        x.astype(np.float64),
        x.astype(np.int32),
        x.astype(">f4"),
        x[:7],
        np.zeros(9, np.float32),
        np.zeros((8, 1), np.float32),
        np.zeros((2, 4), np.float32),
        np.zeros((), np.float32),
        np.zeros(16, np.float32)[::2],
        x[::-1],
        raw[1:].view(np.float32),
        x.view(Sub),
        np.zeros(8, np.dtype(np.float32, metadata={"unit": "m"})),
        list(x),
        None,
        1.5,
        np.float32(1),
        Ellipsis,
        "text",
        np.ndarray,
        slow,
    ]


@pytest.mark.parametrize("place", [0, 1])
def test_guards_turn_other_arguments_away(make: Make, place: int) -> None:
    call = make(ADD_ENTRY, ADD).call
    x = np.arange(8, dtype=np.float32)
    for other in odd_arguments():
        args = (other, x) if place == 0 else (x, other)
        word, given, names = call(*args)
        assert word == "slow"
        assert given[0] is args[0]
        assert given[1] is args[1]
        assert names == {}


def test_counts_and_keywords_go_to_the_slow_path(make: Make) -> None:
    call = make(ADD_ENTRY, ADD).call
    x = np.arange(8, dtype=np.float32)
    for args, names in (
        ((), {}),
        ((x,), {}),
        ((x, x, x), {}),
        ((x,), {"b": x}),
        ((x, x), {"c": 1}),
    ):
        word, given, found = call(*args, **names)
        assert word == "slow"
        assert all(a is b for a, b in zip(args, given, strict=True))
        assert found == names


def test_the_slow_path_may_raise(make: Make) -> None:
    def refuse(*args: Any) -> Any:
        raise LookupError(len(args))

    call = make(ADD_ENTRY, ADD, refuse).call
    with pytest.raises(LookupError, match="1"):
        call(3)


def test_writeable_arguments(make: Make) -> None:
    entry = CallSpec(
        "swap", "plan", (Argument(parse_type("i64[4]"), True), *arguments("i64[4]")), ()
    )
    call = make(entry, copies((1, 0, 32))).call
    x, y = np.zeros(4, np.int64), np.arange(4)
    assert call(x, y) == ()
    np.testing.assert_array_equal(x, y)
    x.flags.writeable = False
    assert call(x, y)[0] == "slow"


def test_written_memory_is_apart_from_all_else(make: Make) -> None:
    kinds = (*arguments("i64[4]"), Argument(parse_type("i64[4]"), True), *arguments("i64[0]"))
    entry = CallSpec("own", "plan", kinds, (), captures=1)
    base, held, none = np.zeros(16, np.int64), np.zeros(4, np.int64), np.zeros(0, np.int64)
    call = make(entry, copies((0, 1, 32)), captures=[held]).call
    assert call(base[:4], base[4:8], none) == ()
    assert call(base[4:8], base[:4], base[2:2]) == ()
    assert call(held, base[:4], none) == ()
    for other in (base[:4], base[3:7], base[1:5]):
        assert call(other, base[:4].view(), none)[0] == "slow"
        assert call(base[:4], other, none)[0] == "slow"
    assert call(base[:4], held, none)[0] == "slow"


WRITTEN = Argument(parse_type("i64[4]"), True)
UPDATED = Argument(parse_type("i64[2000]"), True)  # more than lies on the stack


@pytest.mark.parametrize("arena_bytes", [0, 24, 1 << 16])
@pytest.mark.parametrize("release", [False, True])
def test_updates_are_written_in_the_end(make: Make, arena_bytes: int, release: bool) -> None:
    kinds = (WRITTEN, *arguments("i64[4]"), UPDATED, *arguments("i64[2000]"))
    made = outputs("i64[4]", "i64[2000]", "i64[4]")
    entry = CallSpec(
        "put", "plan", kinds, made, updates=(2, 0), arena_bytes=arena_bytes, release=release
    )
    # The last outputs are read again after they are written: the arguments are still as they were.
    plan = copies((3, 5, 16000), (1, 6, 32), (0, 4, 32))
    call = make(entry, plan).call
    a, b, c, d = np.full(4, 7), np.arange(4), np.full(2000, 8), np.arange(2000)
    for _ in range(3):
        a[:], c[:] = 7, 8
        assert call(a, b, c, d).tolist() == [7] * 4
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(c, d)
    for given in ((a, a, c, d), (a, b, c, c), (a, c[:4], c, d)):
        assert call(*given)[0] == "slow"
    a.flags.writeable = False
    assert call(a, b, c, d)[0] == "slow"


def test_updates_that_the_plan_writes_itself(make: Make) -> None:
    entry = CallSpec(
        "over", "plan", (WRITTEN, *arguments("i64[4]")), outputs("i64[4]"), updates=(0,), over=(0,)
    )
    call = make(
        entry, copies((1, 2, 32), (0, 1, 32))
    ).call  # what it wrote it finds in the argument
    a, b = np.full(4, 7), np.arange(4)
    assert call(a, b) == ()
    assert a.tolist() == b.tolist() == [0, 1, 2, 3]


def test_what_a_call_gives_that_updates(make: Make) -> None:
    given = (WRITTEN, *arguments("i64[4]"))
    a, b = np.full(4, 7), np.arange(4)
    for answer, wanted in ((NOTHING, None), (ARGUMENT, a), (ARGUMENT + 1, b), (OUTPUTS, ())):
        entry = CallSpec("f", "plan", given, outputs("i64[4]"), updates=(0,), answer=answer)
        call = make(entry, copies((1, 2, 32))).call
        references = sys.getrefcount(a), sys.getrefcount(None)
        for _ in range(3):
            a[:] = 7
            got = call(a, b)
            assert got is wanted or got == wanted == ()
            assert a.tolist() == [0, 1, 2, 3]
        del got
        assert abs(sys.getrefcount(a) - references[0]) <= 0
        assert sys.getrefcount(None) - references[1] > -3


@pytest.mark.parametrize("end", ["  ret i32 1", "  ret i32 2"])
def test_updates_are_not_written_where_the_plan_fails(make: Make, end: str) -> None:
    entry = CallSpec(
        "fails", "plan", (UPDATED, *arguments("i64[2000]")), outputs("i64[2000]"), updates=(0,)
    )
    body = row(2, "t") + "  store i64 77, ptr %t\n" + end
    call = make(entry, plan_of(body)).call
    a, b = np.full(2000, 7), np.arange(2000)
    for _ in range(10):  # the arena is given back each time
        if end.endswith("1"):
            with pytest.raises(SystemError):
                call(a, b)
        else:
            assert call(a, b)[0] == "slow"
    assert (a == 7).all()


@pytest.mark.parametrize("short", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 2, 1, 3), (0,), (4, 0, 2)])
def test_every_dtype_and_rank(make: Make, short: str, shape: tuple[int, ...]) -> None:
    type = TensorType(DTYPES[short], shape)
    call = make(
        CallSpec("copy", "plan", (Argument(type),), (type,)), copies((0, 1, type.nbytes))
    ).call
    x = (np.arange(type.size) % 2).astype(type.dtype).reshape(shape)
    y = call(x)
    assert y.dtype is type.dtype
    assert y.shape == shape
    assert y.tobytes() == x.tobytes()
    if shape == ():
        # Like NumPy: a result without axes is a scalar, and a scalar may be given for one.
        assert y.__class__ is type.dtype.type
        again = call(y)
        assert again.__class__ is type.dtype.type
        assert again == y
        assert call(1.5)[0] == "slow"


def test_several_outputs_come_as_a_tuple(make: Make) -> None:
    entry = CallSpec("many", "plan", arguments("f64[3]", "i8"), outputs("f64[3]", "i8", "f64[3]"))
    x, n = np.array([1.0, 2, 3]), np.int8(7)
    result = make(entry, copies((0, 2, 24), (1, 3, 1), (0, 4, 24))).call(x, n)
    assert type(result) is tuple
    np.testing.assert_array_equal(result[0], x)
    assert result[1] == 7
    assert type(result[1]) is np.int8
    assert not np.shares_memory(result[0], result[2])


def test_packed_and_empty(make: Make) -> None:
    one = CallSpec("one", "plan", arguments("f64[2]"), outputs("f64[2]"), answer=OUTPUTS)
    result = make(one, copies((0, 1, 16))).call(np.ones(2))
    assert type(result) is tuple
    assert len(result) == 1
    none = CallSpec("none", "plan", (), ())
    assert make(none, plan_of("  ret i32 0")).call() == ()


def test_many_arguments(make: Make) -> None:
    entry = CallSpec("last", "plan", arguments(*["f32[2,2]"] * 200), outputs("f32[2,2]"))
    args = [np.full((2, 2), k, np.float32) for k in range(200)]
    assert make(entry, copies((199, 200, 16))).call(*args)[0, 0] == 199


def test_captures_and_their_guards(make: Make) -> None:
    entry = CallSpec(
        "cap", "plan", arguments("f32[8]"), outputs("f32[8]"), captures=1, guards=("dict", "cell")
    )
    x, w = (np.full(8, k, np.float32) for k in (1, 2))
    v: Any = np.full(8, 3, np.float32)
    space: dict[str, Any] = {"w": w}

    def closure() -> Any:
        return v

    cell: Any = closure.__closure__[0]  # type: ignore[index]
    bound = make(entry, ADD, captures=[w], guards=[(space, "w", w), (cell, None, v)])
    call = bound.call
    assert call(x)[0] == 3
    space["w"] = w.copy()
    assert call(x)[0] == "slow"
    space["w"] = w
    kept, v = v, w
    assert call(x)[0] == "slow"
    v = kept
    assert call(x)[0] == 3
    del space["w"]
    assert call(x)[0] == "slow"
    space["w"] = w
    assert call(x)[0] == 3
    del cell.cell_contents
    assert call(x)[0] == "slow"


class Held:
    gain: Any = 2.5

    def method(self) -> None: ...


class Raises:
    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


def watching(make: Make, guard: Guard) -> Callable[[], bool]:
    """Whether a call goes past this guard."""
    entry = CallSpec("watch", "plan", arguments("i64"), outputs("i64"), guards=(kind_of(guard),))
    call = make(entry, copies((0, 1, 8)), guards=[guard]).call
    return lambda: call(np.array(7)) == 7


def test_attributes_are_watched(make: Make) -> None:
    held, other = Held(), object()
    held.own, held.bound = other, held.method  # type: ignore[attr-defined]
    own = watching(make, (held, "own", other))
    inherited = watching(make, (held, "gain", Held.gain))
    method = watching(make, (held, "method", Held.method))
    bound = watching(make, (held, "bound", held.bound))  # type: ignore[attr-defined]
    for _ in range(3):
        assert own()
        assert inherited()
        assert method()
        assert bound()
    held.gain = 3.5
    held.method = lambda: None  # type: ignore[method-assign]
    held.bound = lambda: None  # type: ignore[attr-defined]
    del held.own  # type: ignore[attr-defined]
    assert not own()
    assert not inherited()
    assert not method()
    assert not bound()
    del held.gain
    assert inherited()


def test_items_are_watched(make: Make) -> None:
    one, two = object(), object()
    line, table = [one, two], {"a": one, "b": two}
    listed = watching(make, (line, ITEMS, (one, two)))
    keyed = watching(make, (table, ITEMS, ("a", one, "b", two)))
    empty = watching(make, ([], ITEMS, ()))
    assert listed()
    assert keyed()
    assert empty()
    line.append(one)
    table["c"] = one
    assert not listed()
    assert not keyed()
    line.pop()
    del table["c"]
    assert listed()
    assert keyed()
    line.reverse()
    table["a"] = table.pop("a")
    assert not listed()
    assert not keyed()
    line.clear()
    table.clear()
    assert not listed()
    assert not keyed()


def test_a_function_is_asked(make: Make) -> None:
    answers = [True, False, 1, True]
    asked = watching(make, (lambda: answers.pop(0), HOLDS, True))
    assert [asked() for _ in range(4)] == [True, False, False, True]
    with pytest.raises(IndexError):
        asked()


def test_what_a_guard_raises_is_raised(make: Make) -> None:
    with pytest.raises(KeyError, match="gain"):
        watching(make, (Raises(), "gain", 1))()


def test_a_lookup_that_raises(make: Make) -> None:
    class Key:
        def __hash__(self) -> int:
            return hash("w")

        def __eq__(self, other: object) -> bool:
            raise LookupError("no")

    entry = CallSpec("cap", "plan", arguments("f32[8]"), outputs("f32[8]"), guards=("dict",))
    bound = make(entry, copies((0, 1, 32)), guards=[({Key(): 1}, "w", 1)])
    with pytest.raises(LookupError, match="no"):
        bound.call(np.zeros(8, np.float32))


def test_binding_checks_what_it_is_given(make: Make) -> None:
    entry = CallSpec("cap", "plan", arguments("f32[8]"), outputs("f32[8]"), captures=1)
    with pytest.raises(ValueError, match="0 captures"):
        make(entry, ADD)
    with pytest.raises(ValueError, match="not contiguous"):
        make(entry, ADD, captures=[np.zeros(16, np.float32)[::2]])


def test_captured_arrays_live_as_long_as_they_are_bound(make: Make) -> None:
    entry = CallSpec("cap", "plan", arguments("f32[8]"), outputs("f32[8]"), captures=1)
    w = np.full(8, 2, np.float32)
    gone = weakref.ref(w)
    bound = make(entry, ADD, captures=[w])
    del w
    call = bound.call
    del bound
    assert gone() is not None
    assert call(np.zeros(8, np.float32))[0] == 2
    del call
    gc.collect()
    assert gone() is None


# Writes this call's own number all over its arena, lets others run, and checks it is still there.
ARENA = """
  %own.at = getelementptr ptr, ptr %table, i64 0
  %own = load ptr, ptr %own.at
  %out.at = getelementptr ptr, ptr %table, i64 1
  %out = load ptr, ptr %out.at
  %number = load i64, ptr %own
  %address = ptrtoint ptr %arena to i64
  %low = and i64 %address, 63
  br label %write
write:
  %i = phi i64 [ 0, %0 ], [ %i1, %write ]
  %p = getelementptr i64, ptr %arena, i64 %i
  store i64 %number, ptr %p
  %i1 = add i64 %i, 1
  %m = icmp ult i64 %i1, WORDS
  br i1 %m, label %write, label %pause
pause:
  %raised = call i32 @tn_host(ptr @step, ptr %table, ptr %arena)
  %bad = icmp ne i32 %raised, 0
  br i1 %bad, label %failed, label %check
failed:
  ret i32 1
check:
  %j = phi i64 [ 0, %pause ], [ %j1, %check ]
  %sum = phi i64 [ %low, %pause ], [ %sum1, %check ]
  %q = getelementptr i64, ptr %arena, i64 %j
  %v = load volatile i64, ptr %q
  %d = sub i64 %v, %number
  %sum1 = or i64 %sum, %d
  %j1 = add i64 %j, 1
  %n = icmp ult i64 %j1, WORDS
  br i1 %n, label %check, label %end
end:
  store i64 %sum1, ptr %out
  ret i32 0
"""


def arena_case(size: int, release: bool) -> tuple[CallSpec, list[Fragment]]:
    entry = CallSpec(
        "own", "plan", arguments("i64"), outputs("i64"), arena_bytes=size, release=release
    )
    body = ARENA.replace("WORDS", str(size // 8))
    return entry, plan_of(body, HOST, imports=["@step = external global i8"])


@pytest.mark.parametrize("size", [64, 8192, 8200, 1 << 20])
@pytest.mark.parametrize("release", [False, True])
def test_arenas_belong_to_one_call(make: Make, size: int, release: bool) -> None:
    entered = threading.Barrier(12)

    def step(table: int, arena: int) -> None:
        entered.wait(30)  # all twelve calls are inside at once: more than the pool keeps

    call = make(*arena_case(size, release), symbols={"step": id(step)}).call
    for _ in range(3):
        with ThreadPoolExecutor(12) as pool:
            assert list(pool.map(call, map(np.int64, range(12)))) == [0] * 12


@pytest.mark.parametrize("size", [64, 100_000])
@pytest.mark.parametrize("release", [False, True])
def test_a_hook_may_call_its_own_plan(make: Make, size: int, release: bool) -> None:
    depth = 0

    def step(table: int, arena: int) -> None:
        nonlocal depth
        depth += 1
        if depth < 20:
            assert call(np.int64(depth)) == 0

    call = make(*arena_case(size, release), symbols={"step": id(step)}).call
    assert call(np.int64(99)) == 0
    assert depth == 20


@pytest.mark.parametrize("size", [64, 100_000])
@pytest.mark.parametrize("release", [False, True])
def test_a_hook_may_raise(make: Make, size: int, release: bool) -> None:
    def step(table: int, arena: int) -> None:
        if fail:
            raise LookupError("from within")

    call = make(*arena_case(size, release), symbols={"step": id(step)}).call
    for fail in (True, False, True, False):
        if fail:
            with pytest.raises(LookupError, match="from within"):
                call(np.int64(1))
        else:
            assert call(np.int64(1)) == 0


def test_a_plan_may_decline(make: Make) -> None:
    entry = CallSpec(
        "no", "plan", arguments("f32[8]"), outputs("f32[8]", "f32"), arena_bytes=1 << 16
    )
    x = np.zeros(8, np.float32)
    word, given, _ = make(entry, plan_of("  ret i32 2")).call(x)
    assert word == "slow"
    assert given[0] is x


def test_a_plan_that_fails_without_a_word(make: Make) -> None:
    entry = CallSpec("mute", "plan", (), outputs("f32[8]"))
    with pytest.raises(SystemError):
        make(entry, plan_of("  ret i32 1")).call()


@pytest.mark.parametrize("captures", [0, 1])
def test_memory_that_is_not_to_be_had(make: Make, captures: int) -> None:
    held = [np.zeros(8)] * captures
    huge = (1 << 60) // 8
    dtype = DTYPES["f64"]
    x = np.zeros(4)
    for entry in (
        CallSpec("big", "plan", arguments("f64[4]"), outputs("f64[4]", f"f64[{huge}]"), captures),
        CallSpec("big", "plan", arguments("f64[4]"), outputs("f64[4]"), captures, (), 1 << 60),
    ):
        call = make(entry, plan_of("  ret i32 0"), captures=held).call
        with pytest.raises(MemoryError):
            call(x)
        before = sys.getrefcount(dtype), sys.getrefcount(x)
        for _ in range(1000):
            with pytest.raises(MemoryError):
                call(x)
        assert abs(sys.getrefcount(dtype) - before[0]) < 10
        assert sys.getrefcount(x) == before[1]


def test_nothing_leaks(assemble: Assemble) -> None:
    """Counts and memory stay where they are over a hundred thousand calls, each way out."""
    entry = CallSpec(
        "leak",
        "plan",
        arguments("f32[8]", "i64"),
        outputs("f32[8]", "i64", "f32[8]"),
        captures=1,
        guards=("dict",),
        arena_bytes=1 << 16,
        release=True,
    )
    # Returns what its second argument says.
    plan = plan_of(row(1, "n") + "  %code = load i32, ptr %n\n  ret i32 %code")
    image = load([assemble(join(plan))], ["plan"])
    x, w = np.zeros(8, np.float32), np.zeros(8)
    done, failed, declined = (np.int64(k + (1 << 40)) for k in range(3))
    space = {"w": w}
    answer = object()
    bound = make_entry(
        entry, image, the_gate(assemble), lambda *args: answer, [w], [(space, "w", w)]
    )
    call = bound.call
    watched = [x, w, done, space, answer, call, bound.binding, DTYPES["f32"], DTYPES["i64"]]
    watched += [np.ndarray, np.int64, None, (), bound.binding.held, the_gate(assemble)]

    def turns(count: int) -> None:
        for _ in range(count):
            call(x, done)
            call(x, x)
            call(x, declined)
            with contextlib.suppress(SystemError):
                call(x, failed)

    turns(1000)
    gc.collect()
    tracemalloc.start()
    before = [sys.getrefcount(item) for item in watched]
    size = tracemalloc.get_traced_memory()[0]
    turns(30_000)
    grown = tracemalloc.get_traced_memory()[0] - size
    after = [sys.getrefcount(item) for item in watched]
    tracemalloc.stop()
    assert max(abs(a - b) for a, b in zip(after, before, strict=True)) <= 10
    assert grown < 20_000


def test_all_is_freed_with_the_last_reference(make: Make) -> None:
    entry = CallSpec("gone", "plan", arguments("f32[8]"), outputs("f32[8]"), arena_bytes=1 << 16)

    class Slow:
        def __call__(self, *args: Any) -> str:
            return "slow"

    answer = Slow()
    answer.again = None  # type: ignore[attr-defined]
    watch = weakref.ref(answer)
    bound = make(entry, copies((0, 1, 32)), answer)
    answer.again = bound.call  # type: ignore[attr-defined]  # a cycle through the function
    call = bound.call
    binding = weakref.ref(bound.binding)
    assert call(np.ones(8, np.float32))[0] == 1
    del bound, answer
    assert call(1) == "slow"
    del call
    gc.collect()
    assert watch() is None
    assert binding() is None


FRESH = """
import sys
from pathlib import Path
import numpy as np
from tenfold.backends.cpu.entry.bind import gate, make_entry
from tenfold.backends.cpu.entry.abi import Argument, CallSpec
from tenfold.backends.cpu.link.loader import load
from tenfold.types import parse_type

kind = parse_type("f32[8]")
entry = CallSpec("add", "plan", (Argument(kind), Argument(kind)), (kind,))
image = load([Path(sys.argv[1]).read_bytes()], ["plan"])
gated = gate(lambda: Path(sys.argv[2]).read_bytes())
x = np.arange(8, dtype=np.float32)
assert (make_entry(entry, image, gated, print).call(x, x) == 2 * x).all()
assert "tenfold.backends.llvm.library" not in sys.modules
"""


def test_an_object_serves_another_process(assemble: Assemble, tmp_path: Path) -> None:
    paths = [tmp_path / "add.o", tmp_path / "gate.o"]
    paths[0].write_bytes(assemble(join(ADD)))
    paths[1].write_bytes(assemble(GATE_TEXT))
    for _ in range(2):
        subprocess.run([sys.executable, "-c", FRESH, *map(str, paths)], check=True)


@pytest.mark.parametrize("native", [False, True])
def test_the_gate_through_llvms_loader(
    assemble: Assemble, monkeypatch: pytest.MonkeyPatch, native: bool
) -> None:
    monkeypatch.setattr(loader, "route", lambda: "llvmlite")
    gated = load([assemble(GATE_TEXT)], GATE_EXPORTS, ndarray.symbols())
    image = load([assemble(join(ADD))], ["plan"])
    call = make_entry(ADD_ENTRY, image, gated, slow, native=native).call
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(call(x, x), x + x)
    assert call(x, 1)[0] == "slow"


def test_calls_after_a_fork(make: Make) -> None:
    entry = CallSpec("f", "plan", arguments("f32[8]"), outputs("f32[8]"), arena_bytes=1 << 16)
    call = make(entry, copies((0, 1, 32))).call
    x = np.ones(8, np.float32)
    call(x)
    child = os.fork()
    if child == 0:
        os._exit(0 if all((call(x) == 1).all() for _ in range(100)) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert call(x)[0] == 1


# Turns until told to stop, by the argument's value reaching its own sign bit: never.
ENDLESS = """
  %flag.at = getelementptr ptr, ptr %table, i64 0
  %flag = load ptr, ptr %flag.at
  %go = load i64, ptr %flag
  %stop = icmp eq i64 %go, 0
  br i1 %stop, label %done, label %turn
turn:
  %seen = load volatile i64, ptr %flag
  %raised = call i32 @tn_poll(ptr %poll, i64 WEIGHT)
  %bad = icmp ne i32 %raised, 0
  br i1 %bad, label %failed, label %turn
failed:
  ret i32 1
done:
  ret i32 0
"""


@pytest.mark.parametrize("release", [False, True])
@pytest.mark.parametrize("weight", [1, 100_000])
def test_ctrl_c_stops_an_endless_loop(make: Make, release: bool, weight: int) -> None:
    entry = CallSpec("spin", "plan", arguments("i64"), (), arena_bytes=1 << 16, release=release)
    call = make(entry, plan_of(ENDLESS.replace("WEIGHT", str(weight)), POLL)).call
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for _ in range(2):
            killer = subprocess.Popen(["sh", "-c", f"sleep 0.1; kill -INT {os.getpid()}"])
            with pytest.raises(KeyboardInterrupt):
                call(np.int64(1))
            killer.wait()
            assert call(np.int64(0)) == ()
    finally:
        signal.signal(signal.SIGINT, before)


def test_signals_that_do_not_raise_let_the_loop_go_on(make: Make) -> None:
    entry = CallSpec("spin", "plan", arguments("i64"), (), release=True)
    call = make(entry, plan_of(ENDLESS.replace("WEIGHT", "1"), POLL)).call
    seen: list[int] = []
    flag = np.array(1, np.int64)

    def note(number: int, frame: object) -> None:
        seen.append(number)
        if len(seen) == 3:
            raise LookupError("enough")

    before = signal.signal(signal.SIGUSR1, note)
    try:
        script = f"for i in 1 2 3; do sleep 0.1; kill -USR1 {os.getpid()}; done"
        killer = subprocess.Popen(["sh", "-c", script])
        with pytest.raises(LookupError, match="enough"):
            call(flag)
        killer.wait()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(seen) == 3


def test_other_threads_run_while_a_plan_does(make: Make) -> None:
    entry = CallSpec("spin", "plan", arguments("i64"), (), release=True)
    body = ENDLESS.replace("WEIGHT", "1").replace(
        "  %raised",
        "  %over = icmp eq i64 %seen, 0\n  br i1 %over, label %done, label %ask\nask:\n  %raised",
    )
    call = make(entry, plan_of(body, POLL)).call
    flag = np.array(1, np.int64)
    thread = threading.Thread(target=call, args=(flag,))
    thread.start()
    total = sum(range(100_000))
    flag[()] = 0
    thread.join()
    assert total == 4999950000


@pytest.mark.parametrize("name", ["DATA", "DESCR", "FLAGS", "SCALAR_VALUE", "CELL_VALUE"])
def test_another_layout_is_noticed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(ndarray, name, getattr(ndarray, name) - 8)
    assert ndarray.supported.__wrapped__() is not None


def test_symbols_are_complete() -> None:
    for address in ndarray.symbols().values():
        assert ctypes.c_uint64.from_address(address).value


# Many plans behind one callable.


@pytest.fixture(params=["native", "plain"])
def dispatching(request: pytest.FixtureRequest, assemble: Assemble) -> Any:
    """A callable over no plan, what plans are added to, and what binds a plan of these arguments
    that fills its output with a number."""
    native = request.param == "native"
    call, table = make_dispatch(the_gate(assemble), slow, native)

    def bind(
        value: float, *types: str, guards: Sequence[Guard] = (), writes: bool = False
    ) -> BoundPlan:
        given = tuple(Argument(parse_type(text), writes) for text in types)
        kinds = tuple(map(kind_of, guards))
        out = CallSpec("fill", "plan", given, outputs("f64[1]"), captures=1, guards=kinds)
        image = load([assemble(join(copies((len(types), len(types) + 1, 8))))], ["plan"])
        captures = [np.full(1, float(value))]
        return make_entry(out, image, the_gate(assemble), decline, captures, guards, native)

    return call, table, bind


def test_a_plan_is_found_among_many(dispatching: Any) -> None:
    call, table, bind = dispatching
    assert call()[0] == "slow"
    kinds = [(f"f32[{n}]",) for n in range(20)] + [("f64[3]", "f32[2,3]"), ("f64", "i64"), ()]
    plans = [bind(k, *types) for k, types in enumerate(kinds)]
    arrays = [[np.zeros(t.shape, t.dtype) for t in outputs(*types)] for types in kinds]
    for k, plan in enumerate(plans):
        table.add(plan)
        table.add(plan)  # it is there
        assert len(table) == k + 1
        for j in range(k + 1):
            assert call(*arrays[j])[0] == j
        for other in arrays[k + 1 :]:
            assert call(*other)[0] == "slow"
    assert call(np.float64(2), np.int64(3))[0] == 21  # scalars are arrays without axes
    for k, plan in enumerate(plans):
        table.remove(plan)
        assert call(*arrays[k])[0] == "slow"
        for j in range(k + 1, len(plans)):
            assert call(*arrays[j])[0] == j
    assert len(table) == 0
    table.add(plans[3])
    table.clear()
    assert call(*arrays[3])[0] == "slow"


def test_no_hash_is_ever_two_records_arguments(dispatching: Any) -> None:
    """Plans of the same types: the first whose guards hold answers, whatever the order."""
    call, table, bind = dispatching
    space: dict[str, Any] = {}
    marks = [object() for _ in range(10)]
    plans = [bind(k, "f32[2]", guards=[(space, "w", mark)]) for k, mark in enumerate(marks)]
    x = np.zeros(2, np.float32)
    for plan in plans:
        table.add(plan)
    for k in (9, 0, 4, 4, 7):
        space["w"] = marks[k]
        assert call(x)[0] == k
    table.remove(plans[4])
    space["w"] = marks[4]
    assert call(x)[0] == "slow"
    del space["w"]
    assert call(x)[0] == "slow"


def test_a_guard_that_raises_is_heard(dispatching: Any) -> None:
    call, table, bind = dispatching
    for count in range(1, 4):  # found without a hash, and with one

        def asked() -> bool:
            raise LookupError("no")

        table.add(bind(count, f"f32[{count}]", guards=[(asked, HOLDS, True)]))
        with pytest.raises(LookupError, match="no"):
            call(np.zeros(count, np.float32))


def test_a_table_that_changes_in_a_guard_does_not_matter(dispatching: Any) -> None:
    call, table, bind = dispatching
    found: list[BoundPlan] = []

    def asked() -> bool:
        for plan in found:
            table.remove(plan)
        found.clear()
        gc.collect()
        return False

    found.append(bind(1, "f32[2]", guards=[(asked, HOLDS, True)]))
    found += [bind(k, "f32[2]", guards=[({}, "w", 1)]) for k in range(4)]
    found += [bind(k, f"f32[{k}]") for k in range(3, 9)]
    for plan in found:
        table.add(plan)
    del plan
    x = np.zeros(2, np.float32)
    assert call(x)[0] == "slow"
    assert len(table) == 0
    table.add(bind(5, "f32[2]"))
    assert call(x)[0] == 5


def test_what_is_not_packed_is_packed_on_the_way(dispatching: Any) -> None:
    call, table, bind = dispatching
    square = np.zeros((4, 4), np.float32)
    odd = np.zeros(65, np.uint8)[1:].view(np.float32).reshape(4, 4)
    wide = np.zeros((4, 8), np.float32)
    table.add(bind(1, "f32[4,4]", "f32[4,4]"))
    for _ in range(2):  # alone, then among others
        for x in (square.T, wide[:, ::2], square[::-1], odd, np.broadcast_to(square[0], (4, 4))):
            before = sys.getrefcount(x), sys.getrefcount(square)
            assert call(x, square)[0] == 1
            assert call(square, x)[0] == 1
            assert (sys.getrefcount(x), sys.getrefcount(square)) == before
        assert call(wide[:, 1::2], wide)[0] == "slow"
        table.add(bind(2, "f32[4]"))
    written = bind(3, "f32[2,2]", writes=True)
    table.add(written)
    assert call(np.zeros((2, 2), np.float32))[0] == 3
    assert call(np.zeros((2, 4), np.float32)[:, ::2])[0] == "slow"  # the copy would be given up


def test_other_objects_are_left_to_the_slow_path(dispatching: Any) -> None:
    call, table, bind = dispatching

    class Own(np.ndarray):
        pass

    x = np.zeros(2, np.float32)
    for count in range(2):
        table.add(bind(count, *["f32[2]"] * (count + 1)))
        for other in (x.view(Own), x.astype(">f4"), x.astype(object), 1.0, None, "x", [0, 0]):
            assert call(other)[0] == "slow"
        assert call(x, x, x)[0] == "slow"
        assert call(x, key=x) == ("slow", (x,), {"key": x})
        assert call(x)[0] == 0
    table.slow = lambda *args: "another"
    assert call() == "another"


def test_threads_call_while_plans_come_and_go(dispatching: Any) -> None:
    call, table, bind = dispatching
    plans = [bind(k, f"f32[{k}]") for k in range(1, 40)]
    arrays = [np.zeros(k, np.float32) for k in range(1, 40)]
    stop = threading.Event()

    def turns() -> int:
        count = 0
        while not stop.is_set():
            for k, x in enumerate(arrays, 1):
                assert call(x)[0] in (k, "slow")
                count += 1
        return count

    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(turns) for _ in range(3)]
        draw = np.random.default_rng(0)
        for _ in range(3000):
            plan = plans[int(draw.integers(len(plans)))]
            (table.add if draw.integers(2) else table.remove)(plan)
        table.clear()
        stop.set()
        assert all(thread.result() > 0 for thread in running)
    for plan in plans:
        table.add(plan)
    assert [call(x)[0] for x in arrays] == list(range(1, 40))


def test_a_plan_lives_as_long_as_a_call_is_in_it(assemble: Assemble) -> None:
    """It is removed, and all else let go of, while it asks Python."""
    call, table = make_dispatch(the_gate(assemble), slow)
    found: list[Any] = []

    def asked() -> bool:
        table.remove(found.pop())
        gc.collect()
        return True

    entry = CallSpec("f", "plan", arguments("f32[8]"), outputs("f32[8]"), guards=("asked",))
    image = load([assemble(join(copies((0, 1, 32))))], ["plan"])
    guard = (asked, HOLDS, True)
    found.append(make_entry(entry, image, the_gate(assemble), decline, (), [guard], kept=image))
    del image
    gone = weakref.ref(found[0].binding)
    table.add(found[0])
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(call(x), x)
    assert gone() is None
    assert call(x)[0] == "slow"


def test_two_thousand_plans_are_found(assemble: Assemble) -> None:
    call, table = make_dispatch(the_gate(assemble), slow)
    image = load([assemble(join(plan_of("  ret i32 0")))], ["plan"])
    for n in range(2000):
        entry = CallSpec("f", "plan", arguments(f"f32[{n}]", "i64[3]"), outputs(f"f32[{n}]"))
        table.add(make_entry(entry, image, the_gate(assemble), decline))
    three = np.zeros(3, np.int64)
    assert all(call(np.zeros(n, np.float32), three).shape == (n,) for n in range(2000))
    assert call(np.zeros(2000, np.float32), three)[0] == "slow"
