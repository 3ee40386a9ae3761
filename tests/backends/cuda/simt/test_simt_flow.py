"""Random control flow: the interpreter against the same function compiled for the host."""

from __future__ import annotations

import ctypes
from random import Random

import numpy as np
import pytest
from simt.fma import host_engine
from simt_kernels import THREAD, Device

COUNT = 192


class Writer:
    """A function of two integers, with nested branches and loops of different lengths."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []
        self.block = "entry"
        self.count = 0
        made = self.sequence(["%i", "%j"], 3)
        result = made[-1]
        for value in made[-4:-1]:
            result = self.op(f"xor i32 {result}, {value}")
        body = "\n".join(self.lines)
        self.text = (
            f"define internal i32 @f(i32 %i, i32 %j) {{\nentry:\n{body}\n  ret i32 {result}\n}}\n"
        )

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def op(self, text: str) -> str:
        name = f"%{self.fresh()}"
        self.lines.append(f"  {name} = {text}")
        return name

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name

    def value(self, known: list[str]) -> str:
        constant = str(self.random.choice([0, 1, 2, 5, -1, 7, 65535]))
        return self.random.choice(known) if self.random.random() < 0.8 else constant

    def condition(self, known: list[str]) -> str:
        predicate = self.random.choice(["eq", "ne", "ult", "ugt", "slt", "sge"])
        return self.op(f"icmp {predicate} i32 {self.value(known)}, {self.value(known)}")

    def arithmetic(self, known: list[str]) -> str:
        a, b = self.value(known), self.value(known)
        kind = self.random.randrange(8)
        if kind < 5:
            op = self.random.choice(["add", "sub", "mul", "xor", "and", "or"])
            return self.op(f"{op} i32 {a}, {b}")
        if kind == 5:
            by = self.op(f"and i32 {b}, 31")
            return self.op(f"{self.random.choice(['shl', 'lshr', 'ashr'])} i32 {a}, {by}")
        if kind == 6:
            by = self.op(f"or i32 {b}, 1")
            return self.op(f"{self.random.choice(['udiv', 'urem'])} i32 {a}, {by}")
        return self.op(f"select i1 {self.condition(known)}, i32 {a}, i32 {b}")

    def sequence(self, known: list[str], depth: int) -> list[str]:
        known = list(known)
        for _ in range(self.random.randrange(1, 5)):
            kind = self.random.randrange(4) if depth else 0
            if kind < 2:
                known.append(self.arithmetic(known))
            elif kind == 2:
                known += self.branch(known, depth)
            else:
                known += self.loop(known, depth)
        return known

    def branch(self, known: list[str], depth: int) -> list[str]:
        yes, no, join = (self.fresh() for _ in range(3))
        self.lines.append(f"  br i1 {self.condition(known)}, label %{yes}, label %{no}")
        ends = []
        for label in (yes, no):
            self.label(label)
            made = self.sequence(known, depth - 1)
            ends.append((made, self.block))
            self.lines.append(f"  br label %{join}")
        self.label(join)
        phis = []
        for _ in range(2):
            parts = (f"[ {self.random.choice(made)}, %{block} ]" for made, block in ends)
            phis.append(self.op(f"phi i32 {', '.join(parts)}"))
        return phis

    def loop(self, known: list[str], depth: int) -> list[str]:
        head, body, end, step, held, next_step, next_held = (self.fresh() for _ in range(7))
        before, first = self.block, self.value(known)
        self.lines.append(f"  br label %{head}")
        self.label(head)
        phis = len(self.lines)
        limit = self.op(f"and i32 {self.value(known)}, 7")
        more = self.op(f"icmp ult i32 %{step}, {limit}")
        self.lines.append(f"  br i1 {more}, label %{body}, label %{end}")
        self.label(body)
        made = self.sequence([*known, f"%{step}", f"%{held}"], depth - 1)
        a, b = self.random.choice(made), self.random.choice(made)
        self.lines += [
            f"  %{next_held} = add i32 {a}, {b}",
            f"  %{next_step} = add i32 %{step}, 1",
            f"  br label %{head}",
        ]
        self.lines[phis:phis] = [
            f"  %{step} = phi i32 [ 0, %{before} ], [ %{next_step}, %{self.block} ]",
            f"  %{held} = phi i32 [ {first}, %{before} ], [ %{next_held}, %{self.block} ]",
        ]
        self.label(end)
        return [f"%{step}", f"%{held}"]


KERNEL = f"""
define ptx_kernel void @k(ptr addrspace(1) %out, i32 %c) {{
entry:
{THREAD}
  %r = call i32 @f(i32 %i, i32 %c)
  %q = call i32 @f(i32 %r, i32 %i)
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %q, ptr addrspace(1) %po, align 4
  ret void
}}
"""
LOOP = """
define void @loop(ptr %out, i32 %c, i32 %n) {
entry:
  br label %body
body:
  %i = phi i32 [ 0, %entry ], [ %next, %body ]
  %r = call i32 @f(i32 %i, i32 %c)
  %q = call i32 @f(i32 %r, i32 %i)
  %po = getelementptr i32, ptr %out, i32 %i
  store i32 %q, ptr %po, align 4
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %body, label %end
end:
  ret void
}
"""


@pytest.mark.parametrize("seed", range(40))
def test_random_control_flow(seed: int) -> None:
    text = Writer(seed).text
    engine = host_engine(text + LOOP)
    word = ctypes.c_int32
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, word, word)(engine.get_function_address("loop"))
    expected = np.empty(COUNT, np.uint32)
    call(expected.ctypes.data, 12, COUNT)
    device = Device()
    out = device.room(4 * COUNT)
    device.run(text + KERNEL, 3, COUNT // 3, out, 12)
    np.testing.assert_array_equal(device.memory.read(out, np.uint32, COUNT), expected)
