"""The launch of a graph by native code: as words in memory, and as LLVM IR.

`i32 @tn_launch(ptr launch, ptr table)` has the arrays of a graph lie where the rows of a table
say, and launches it; it answers with the driver's status, or with AWAY in the child of a fork,
where the driver does not work. The driver's functions are called by their addresses in the record,
`LaunchWord`; so this code is compiled once. A patch is a node that touches arrays: four words,
`PatchWord`, and for each of its addresses a row, how far into that array it lies, and where the
node has it. Who calls has the graph to himself.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from tenfold.backends.cpu.entry.record import load_field
from tenfold.backends.llvm.text import Fragment
from tenfold.frozen import frozen

AWAY = -1
KERNEL, COPY = 0, 1  # kinds of patches


class LaunchWord(IntEnum):
    SET_CURRENT = 0  # functions of the driver
    SET_KERNEL = 1
    SET_COPY = 2
    LAUNCH = 3
    WAIT = 4
    FILL = 5
    CONTEXT = 6
    GRAPH = 7
    STREAM = 8
    PATCHES = 9  # how many, and where
    PATCHES_AT = 10


class PatchWord(IntEnum):
    NODE = 0
    PARAMS = 1  # that the driver is given when they have changed
    KIND = 2
    ADDRESSES = 3  # how many


FUNCTIONS = (
    "cuCtxSetCurrent", "cuGraphExecKernelNodeSetParams_v2", "cuGraphExecMemcpyNodeSetParams",
    "cuGraphLaunch", "cuStreamSynchronize", "cuMemsetD32Async",
)  # fmt: skip


@frozen
class Patch:
    """A node of a graph that touches arrays."""

    node: int
    params: int
    kind: int
    addresses: tuple[tuple[int, int, int], ...]  # row, offset, where it stands


class Launch:
    """The record of a graph. It keeps what the graph is made of."""

    def __init__(
        self,
        functions: Sequence[int],
        context: int,
        graph: int,
        stream: int,
        patches: Sequence[Patch],
        *kept: object,
    ) -> None:
        """`functions` are the addresses of FUNCTIONS."""
        words = [*functions, context, graph, stream, len(patches), 0]
        for patch in patches:
            words += (patch.node, patch.params, patch.kind, len(patch.addresses))
            words += (word for address in patch.addresses for word in address)
        self._kept = kept
        self._words: Any = (ctypes.c_uint64 * len(words))(*words)
        self.address = ctypes.addressof(self._words)
        self._words[LaunchWord.PATCHES_AT] = self.address + 8 * len(LaunchWord)


def _word(name: str, kind: str, word: LaunchWord) -> str:
    return load_field(name, kind, "%launch", 8 * word)


LAUNCH = Fragment(
    (),
    f"""
@tn_at_home = dso_local global i64 1, align 8

define internal i32 @tn_launch(ptr %launch, ptr %table) nounwind {{
begin:
  %home = load i64, ptr @tn_at_home, align 8
  %is.home = icmp ne i64 %home, 0
  br i1 %is.home, label %enter, label %away
away:
  ret i32 {AWAY}
enter:
{_word("%set.current", "ptr", LaunchWord.SET_CURRENT)}
{_word("%context", "ptr", LaunchWord.CONTEXT)}
{_word("%graph", "ptr", LaunchWord.GRAPH)}
{_word("%count", "i64", LaunchWord.PATCHES)}
{_word("%first", "ptr", LaunchWord.PATCHES_AT)}
  %entered = call i32 %set.current(ptr %context)
  %is.entered = icmp eq i32 %entered, 0
  br i1 %is.entered, label %patch.test, label %failed
patch.test:
  %p = phi i64 [ 0, %enter ], [ %p.next, %patch.next ]
  %patch = phi ptr [ %first, %enter ], [ %patch.after, %patch.next ]
  %more = icmp ult i64 %p, %count
  br i1 %more, label %look, label %begin.it
look:
{load_field("%addresses", "i64", "%patch", 8 * PatchWord.ADDRESSES)}
  %address.first = getelementptr i8, ptr %patch, i64 {8 * len(PatchWord)}
  br label %address.test
address.test:
  %a = phi i64 [ 0, %look ], [ %a.next, %address ]
  %changed = phi i1 [ false, %look ], [ %changed.next, %address ]
  %more.addresses = icmp ult i64 %a, %addresses
  br i1 %more.addresses, label %address, label %looked
address:
  %one = getelementptr [24 x i8], ptr %address.first, i64 %a
  %row = load i64, ptr %one, align 8
{load_field("%offset", "i64", "%one", 8)}
{load_field("%where", "ptr", "%one", 16)}
  %array.at = getelementptr i64, ptr %table, i64 %row
  %array = load i64, ptr %array.at, align 8
  %wanted = add i64 %array, %offset
  %found = load i64, ptr %where, align 8
  %other = icmp ne i64 %wanted, %found
  store i64 %wanted, ptr %where, align 8
  %changed.next = or i1 %changed, %other
  %a.next = add i64 %a, 1
  br label %address.test
looked:
  %patch.after = getelementptr [24 x i8], ptr %address.first, i64 %addresses
  br i1 %changed, label %set, label %patch.next
set:
  %node = load ptr, ptr %patch, align 8
{load_field("%params", "ptr", "%patch", 8 * PatchWord.PARAMS)}
{load_field("%kind", "i64", "%patch", 8 * PatchWord.KIND)}
  %is.kernel = icmp eq i64 %kind, {KERNEL}
  br i1 %is.kernel, label %kernel, label %copy
kernel:
{_word("%set.kernel", "ptr", LaunchWord.SET_KERNEL)}
  %kernel.status = call i32 %set.kernel(ptr %graph, ptr %node, ptr %params)
  br label %was.set
copy:
{_word("%set.copy", "ptr", LaunchWord.SET_COPY)}
  %copy.status = call i32 %set.copy(ptr %graph, ptr %node, ptr %params, ptr %context)
  br label %was.set
was.set:
  %status = phi i32 [ %kernel.status, %kernel ], [ %copy.status, %copy ]
  %is.set = icmp eq i32 %status, 0
  br i1 %is.set, label %patch.next, label %failed
patch.next:
  %p.next = add i64 %p, 1
  br label %patch.test
begin.it:
{_word("%begin.graph", "ptr", LaunchWord.LAUNCH)}
{_word("%stream", "ptr", LaunchWord.STREAM)}
  %begun = call i32 %begin.graph(ptr %graph, ptr %stream)
  ret i32 %begun
failed:
  %why = phi i32 [ %entered, %enter ], [ %status, %was.set ]
  ret i32 %why
}}
""",
)
