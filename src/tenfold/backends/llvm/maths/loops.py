"""Whole modules of maths for tests and benchmarks: each function in a loop over arrays."""

from __future__ import annotations

from tenfold.backends.llvm.maths import FUNCTIONS, KINDS, Target, define, requires, symbol


def loop_name(name: str, dtype: str) -> str:
    return f"loop.{name}.{dtype}"


def module(wanted: list[tuple[str, str]], lanes: int, target: Target) -> str:
    """IR in which `loop.name.dtype(inputs..., output, n)` maps a function over n elements.

    The wanted are pairs of name and dtype; n must be a multiple of lanes.
    """
    needs: set[str] = set()
    texts: list[str] = []
    for name, dtype in wanted:
        needs |= requires(name, dtype, lanes, target)
        texts += [define(name, dtype, lanes, target), _loop(name, dtype, lanes)]
    return "\n".join(sorted(needs) + texts) + "\n"


def _loop(name: str, dtype: str, lanes: int) -> str:
    kind = KINDS[dtype]
    vector = kind if lanes == 1 else f"<{lanes} x {kind}>"
    inputs = range(FUNCTIONS[name].arity)
    lines = [
        f"define void @{loop_name(name, dtype)}"
        f"({', '.join(f'ptr %in{i}' for i in inputs)}, ptr %out, i64 %n) {{",
        "entry:",
        "  br label %body",
        "body:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %body ]",
    ]
    for i in inputs:
        lines += [
            f"  %at{i} = getelementptr {kind}, ptr %in{i}, i64 %i",
            f"  %x{i} = load {vector}, ptr %at{i}, align {8 if kind == 'double' else 4}",
        ]
    lines += [
        f"  %y = call {vector} {symbol(name, dtype, lanes)}"
        f"({', '.join(f'{vector} %x{i}' for i in inputs)})",
        f"  %at = getelementptr {kind}, ptr %out, i64 %i",
        f"  store {vector} %y, ptr %at, align {8 if kind == 'double' else 4}",
        f"  %next = add i64 %i, {lanes}",
        "  %more = icmp ult i64 %next, %n",
        "  br i1 %more, label %body, label %done",
        "done:",
        "  ret void",
        "}",
    ]
    return "\n".join(lines)
