"""Loops and branches in LLVM IR that is written as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tenfold.backends.llvm.writer import Writer


@contextmanager
def each(w: Writer, low: str, high: str, by: int = 1) -> Iterator[str]:
    """A loop over i64 from `low` up to `high`."""
    name, before = w.fresh("loop"), w.block
    w.put(f"br label %{name}")
    w.label(name)
    at = len(w.lines)
    w.put("")  # the phi, when the last block of the body is known
    w.put(f"%{name}.on = icmp slt i64 %{name}.i, {high}")
    w.put(f"br i1 %{name}.on, label %{name}.body, label %{name}.end")
    w.label(f"{name}.body")
    yield f"%{name}.i"
    w.put(f"%{name}.more = add i64 %{name}.i, {by}")
    w.lines[at] = f"  %{name}.i = phi i64 [ {low}, %{before} ], [ %{name}.more, %{w.block} ]"
    w.put(f"br label %{name}")
    w.label(f"{name}.end")


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
    w: Writer, low: str, high: str, by: int, type: str, first: str
) -> Iterator[tuple[str, str, Callable[[str], None]]]:
    """A loop with a value that goes from round to round; the body says what it is next."""
    name, before = w.fresh("loop"), w.block
    w.put(f"br label %{name}")
    w.label(name)
    at = len(w.lines)
    w.put("")
    w.put("")
    w.put(f"%{name}.on = icmp slt i64 %{name}.i, {high}")
    w.put(f"br i1 %{name}.on, label %{name}.body, label %{name}.end")
    w.label(f"{name}.body")
    onward: list[str] = []
    yield f"%{name}.i", f"%{name}.value", onward.append
    w.put(f"%{name}.more = add i64 %{name}.i, {by}")
    w.lines[at : at + 2] = [
        f"  %{name}.i = phi i64 [ {low}, %{before} ], [ %{name}.more, %{w.block} ]",
        f"  %{name}.value = phi {type} [ {first}, %{before} ], [ {onward[0]}, %{w.block} ]",
    ]
    w.put(f"br label %{name}")
    w.label(f"{name}.end")
