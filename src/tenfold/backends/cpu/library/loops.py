"""Loops, branches and polls in LLVM IR that is written as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tenfold.backends.cpu.entry.abi import STOPPED
from tenfold.backends.llvm.writer import Writer


@contextmanager
def each(w: Writer, low: str, high: str, by: int | str = 1) -> Iterator[str]:
    """A loop over i64 from `low` up to `high`."""
    with carried(w, low, high, by) as (i, _, _):
        yield i


@contextmanager
def when(w: Writer, condition: str) -> Iterator[None]:
    """Code for where a condition holds."""
    name = w.fresh("if")
    w.put(f"br i1 {condition}, label %{name}, label %{name}.end")
    w.label(name)
    yield
    w.put(f"br label %{name}.end")
    w.label(f"{name}.end")


@contextmanager
def carried(
    w: Writer, low: str, high: str, by: int | str, *values: tuple[str, str]
) -> Iterator[tuple[str, list[str], Callable[..., None]]]:
    """A loop with values, each of a type and with a first one, that go from round to round; the
    body says what they are next."""
    name, before = w.fresh("loop"), w.block
    w.put(f"br label %{name}")
    w.label(name)
    at = len(w.lines)
    for _ in range(len(values) + 1):
        w.put("")  # phis, when the last block of the body is known
    w.put(f"%{name}.on = icmp slt i64 %{name}.i, {high}")
    w.put(f"br i1 %{name}.on, label %{name}.body, label %{name}.end")
    w.label(f"{name}.body")
    onward: list[str] = []
    names = [f"%{name}.value{n}" for n in range(len(values))]
    yield f"%{name}.i", names, lambda *made: onward.extend(made)
    w.put(f"%{name}.more = add i64 %{name}.i, {by}")
    every = [("i64", low), *values]
    for n, (value, (type, first), made) in enumerate(
        zip([f"%{name}.i", *names], every, [f"%{name}.more", *onward], strict=True)
    ):
        w.lines[at + n] = f"  {value} = phi {type} [ {first}, %{before} ], [ {made}, %{w.block} ]"
    w.put(f"br label %{name}")
    w.label(f"{name}.end")


def poll(w: Writer) -> None:
    """Return where somebody wants the routine to stop; in a module that has `look_text`."""
    answer = w.op("call i32 @tn_look(ptr %buffers)")
    with when(w, w.op(f"icmp ne i32 {answer}, 0")):
        w.put(f"ret i32 {STOPPED}")
        w.label(w.fresh("never"))


def look_text(rows: int) -> str:
    """The function that polls by the addresses behind so many buffers."""
    return f"""
define internal i32 @tn_look(ptr %buffers) noinline cold nounwind {{
  %run.at = getelementptr ptr, ptr %buffers, i64 {rows}
  %run = load ptr, ptr %run.at, align 8
  %nobody = icmp eq ptr %run, null
  br i1 %nobody, label %on, label %ask
ask:
  %given.at = getelementptr ptr, ptr %buffers, i64 {rows + 1}
  %given = load ptr, ptr %given.at, align 8
  %answer = call i32 %run(ptr %given)
  ret i32 %answer
on:
  ret i32 0
}}
"""
