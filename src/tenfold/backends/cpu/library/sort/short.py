"""Positions in short lines, by counting for each element those that go before it."""

from __future__ import annotations

from tenfold.backends.cpu.library.sort.keys import SortForm, counted, key
from tenfold.backends.llvm.writer import LANES


def ranking(form: SortForm) -> str:
    """A short line: for each element the number of those that go before it, a vector at a time."""
    w = f"i{form.bits}"
    keys, numbers, truths = (f"<{LANES} x {t}>" for t in (w, "i32", "i1"))
    lanes = "<" + ", ".join(f"i32 {n}" for n in range(LANES)) + ">"
    zeros = f"<{LANES} x i32> zeroinitializer"
    ranks = f"""  %i.blocks = add i64 %n, {LANES - 1}
  %i.count = udiv i64 %i.blocks, {LANES}
  br label %i
i:
  %i.number = phi i64 [ 0, %ranks ], [ %i.more, %i.end ]
  %i.on = icmp ult i64 %i.number, %i.count
  br i1 %i.on, label %block, label %scatter
block:
  %i.first = mul i64 %i.number, {LANES}
  %i.past = add i64 %i.first, {LANES}
  %i.last = call i64 @llvm.umin.i64(i64 %i.past, i64 %n)
  %i.at = getelementptr {w}, ptr %a, i64 %i.first
  %mine = load {keys}, ptr %i.at, align 1
  br label %before
"""

    def loop(
        name: str, low: str, high: str, before: str, so_far: str, test: str, after: str
    ) -> str:
        return f"""{name}:
  %{name}.j = phi i64 [ {low}, %{before} ], [ %{name}.more, %{name}.body ]
  %{name}.sum = phi {numbers} [ {so_far}, %{before} ], [ %{name}.next, %{name}.body ]
  %{name}.on = icmp ult i64 %{name}.j, {high}
  br i1 %{name}.on, label %{name}.body, label %{after}
{name}.body:
  %{name}.at = getelementptr {w}, ptr %a, i64 %{name}.j
  %{name}.key = load {w}, ptr %{name}.at, align 1
  %{name}.one = insertelement {keys} poison, {w} %{name}.key, i64 0
  %{name}.all = shufflevector {keys} %{name}.one, {keys} poison, {zeros}
{test}  %{name}.bit = zext {truths} %{name}.true to {numbers}
  %{name}.next = add {numbers} %{name}.sum, %{name}.bit
  %{name}.more = add i64 %{name}.j, 1
  br label %{name}
"""

    among = f"""  %among.less = icmp ult {keys} %among.all, %mine
  %among.same = icmp eq {keys} %among.all, %mine
  %among.far = sub i64 %among.j, %i.first
  %among.lane = trunc i64 %among.far to i32
  %among.lane.one = insertelement {numbers} poison, i32 %among.lane, i64 0
  %among.lanes = shufflevector {numbers} %among.lane.one, {numbers} poison, {zeros}
  %among.early = icmp ult {numbers} %among.lanes, {lanes}
  %among.tie = and {truths} %among.same, %among.early
  %among.true = or {truths} %among.less, %among.tie
"""
    keyed = key(form, "t", "%x", "%key") + (
        f"  %t.to = getelementptr {w}, ptr %a, i64 %key\n  store {w} %t, ptr %t.to, align 1\n"
    )
    put = (
        "  %p.rank.at = getelementptr i32, ptr %b, i64 %put\n"
        "  %p.rank = load i32, ptr %p.rank.at, align 4\n"
        "  %p.far = zext i32 %p.rank to i64\n"
    )
    put += "  %p.to = getelementptr i64, ptr %y, i64 %p.far\n  store i64 %put, ptr %p.to, align 8\n"
    return (
        "short:\n  br label %key.head\n"
        + counted("key", "%n", "short", keyed, "ranks")
        + "ranks:\n"
        + ranks
        + loop(
            "before",
            "0",
            "%i.first",
            "block",
            "zeroinitializer",
            f"  %before.true = icmp ule {keys} %before.all, %mine\n",
            "among",
        )
        + loop("among", "%i.first", "%i.last", "before", "%before.sum", among, "behind")
        + loop(
            "behind",
            "%i.last",
            "%n",
            "among",
            "%among.sum",
            f"  %behind.true = icmp ult {keys} %behind.all, %mine\n",
            "i.end",
        )
        + f"""i.end:
  %i.to = getelementptr i32, ptr %b, i64 %i.first
  store {numbers} %behind.sum, ptr %i.to, align 4
  %i.more = add i64 %i.number, 1
  br label %i
scatter:
  br label %put.head
"""
        + counted("put", "%n", "scatter", put, "line.done")
    )
