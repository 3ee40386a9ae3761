"""What one call costs: eight floats, one to five inputs, a new output; beside its peers. Then
calls that the entry leaves to a Python function made for them, containers and keywords, updates in
place, and calls of functions with many signatures, beside jax.jit.

    python benchmarks/call.py [--rounds 30] [--signatures 1,5,100,2000] [--compile]

Nanoseconds a call, the least of many rounds. The peers take turns within each round, so that a busy
moment of the machine strikes all alike. Each peer gets the arrays it likes best. `--compile` adds
torch.compile, which takes long to warm up.
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import tenfold as tn
from tenfold.backends.cpu.entry.abi import Argument, CallSpec
from tenfold.backends.cpu.entry.bind import gate, make_entry
from tenfold.backends.cpu.link.loader import load
from tenfold.backends.cpu.run.fixed import GATE, fixed
from tenfold.backends.cpu.target import host_target
from tenfold.backends.llvm.target import target_machine
from tenfold.types import parse_type

Call = tuple[Callable[..., Any], list[Any]]
INPUTS = range(1, 6)

SOURCES = {
    1: "lambda a: a * a",
    2: "lambda a, b: a * a + b",
    3: "lambda a, b, c: a * a + b * c",
    4: "lambda a, b, c, d: a * a + b * c + d",
    5: "lambda a, b, c, d, e: a * a + b * c + d * e",
}


def assemble(text: str) -> bytes:
    import llvmlite.binding as llvm

    data: bytes = target_machine(host_target()).emit_object(llvm.parse_assembly(text))
    return data


def plan_text(inputs: int) -> str:
    """The same program as a plan, written by hand: this measures the call, not the compiler."""
    vector = "<8 x float>"
    lines = ["define i32 @plan(ptr %table, ptr %arena, ptr %poll) {"]
    for k in range(inputs + 1):
        lines.append(f"  %r{k} = getelementptr ptr, ptr %table, i64 {k}")
        lines.append(f"  %p{k} = load ptr, ptr %r{k}")
        if k < inputs:
            lines.append(f"  %x{k} = load {vector}, ptr %p{k}, align 4")
    lines.append(f"  %s0 = fmul {vector} %x0, %x0")
    last = "%s0"
    for k in range(1, inputs, 2):
        term = f"%x{k}"
        if k + 1 < inputs:
            lines.append(f"  %m{k} = fmul {vector} %x{k}, %x{k + 1}")
            term = f"%m{k}"
        lines.append(f"  %s{k} = fadd {vector} {last}, {term}")
        last = f"%s{k}"
    lines.append(f"  store {vector} {last}, ptr %p{inputs}, align 4")
    return "\n".join([*lines, "  ret i32 0", "}"])


def tenfold_call(inputs: int, arrays: list[Any]) -> dict[str, Call]:
    kind = parse_type("f32[8]")
    image = load([assemble(plan_text(inputs))], ["plan"])
    # What a user calls, and below it the entry alone over a plan written by hand.
    found: dict[str, Call] = {"tenfold": (tn.jit(eval(SOURCES[inputs])), arrays)}
    for label, release in (("entry alone", False), ("entry, GIL released", True)):
        entry = CallSpec("plan", "plan", (Argument(kind),) * inputs, (kind,), release=release)
        bound = make_entry(
            entry, image, gate(lambda: fixed(GATE, host_target())), eval(SOURCES[inputs])
        )
        if bound.reason is not None:
            label += ", not native"
        found[label] = (bound.call, arrays)
    return found


def peers(inputs: int, arrays: list[Any], compiled: bool) -> dict[str, Call]:
    function = eval(SOURCES[inputs])
    found: dict[str, Call] = {"numpy": (function, arrays)}
    try:
        import numba

        found["numba"] = (numba.njit(function), arrays)
    except ImportError:
        pass
    try:
        import jax

        given = [jax.numpy.asarray(array) for array in arrays]
        found["jax.jit"] = (jax.jit(function), given)
        found["jax.jit, NumPy arrays"] = (jax.jit(function), arrays)
    except ImportError:
        pass
    try:
        import torch

        torch.set_num_threads(1)
        tensors = [torch.from_numpy(array) for array in arrays]
        found["torch"] = (function, tensors)
        if compiled:
            found["torch.compile"] = (torch.compile(function), tensors)
    except ImportError:
        pass
    return found


def measure(calls: dict[str, Call], rounds: int) -> dict[str, float]:
    timers = {}
    for label, (function, given) in calls.items():
        names = {f"x{k}": value for k, value in enumerate(given)} | {"f": function}
        timer = timeit.Timer(f"f({', '.join(f'x{k}' for k in range(len(given)))})", globals=names)
        count = 100
        timer.timeit(count)
        while timer.timeit(count) < 0.002:
            count *= 2
        timers[label] = (timer, count)
    least = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for label, (timer, count) in timers.items():
            least[label] = min(least[label], timer.timeit(count) / count * 1e9)
    return least


def others() -> dict[str, Call]:
    """Calls that are not arrays by position."""
    x = [np.full(8, k, np.float32) for k in range(10)]
    tree = {"a": (x[0], x[1]), "b": [x[2], {"c": x[3], "d": x[4]}], "e": (x[5], (x[6], *x[7:]))}

    def total(t: Any) -> Any:
        (a, b), (c, d), (e, f) = t["a"], t["b"], t["e"]
        return a * b + c * d["c"] - d["d"] * e + f[0] * f[1] - f[2] * f[3]

    def parted(t: Any) -> Any:
        return {"sum": total(t), "parts": (t["a"][0] + t["a"][1], t["b"][0] * 2)}

    def named(a: Any, b: Any = None, c: Any = None) -> Any:
        return a + b * c

    def updated(a: Any, b: Any) -> None:
        a[1:-1] = 0.5 * (b[:-2] + b[2:])

    held = np.full(8, 2, np.float32)

    def accumulated(a: Any) -> Any:
        a += held
        return a

    by_name = tn.jit(named)
    found: dict[str, Call] = {
        "ten leaves in containers": (tn.jit(total), [tree]),
        "the same, three results": (tn.jit(parted), [tree]),
        "three arrays by name": (lambda a, b, c: by_name(a, b=b, c=c), x[1:4]),
        "an update in place": (tn.jit(updated), [x[0].copy(), x[1]]),
        "the same, NumPy": (updated, [x[0].copy(), x[1]]),
        "an update by a captured array": (tn.jit(accumulated), [x[0].copy()]),
        "the same in steps of two": (tn.jit(accumulated), [np.ones(16, np.float32)[::2]]),
        "ten arrays, *args": (tn.jit(lambda *a: sum(a[1:], a[0])), x),
    }
    try:
        import jax

        given = jax.tree.map(jax.numpy.asarray, tree)
        found["jax.jit, ten leaves in containers"] = (jax.jit(total), [given])
    except ImportError:
        pass
    return found


def found_by_type(jit: Callable[..., Any], array: Callable[..., Any]) -> dict[str, Call]:
    """Calls of functions with many signatures, captures, arguments in other orders of memory."""
    x = array(np.ones(8, np.float32))
    many = jit(lambda a: a * 2 + 1)
    for size in (8, 9, 10, 11, 12, 13):  # the first of six signatures is called
        many(array(np.ones(size, np.float32)))
    tree = jit(lambda t: t["a"] * t["b"][0])
    leaves = [[array(np.ones(n, np.float32)) for n in (size, size)] for size in range(8, 14)]
    trees = [{"a": a, "b": [b]} for a, b in leaves]
    for one in trees:
        tree(one)
    fresh = jit(lambda a: a * 2 + 1)
    fresh(x)
    if isinstance(fresh, tn.Jitted):
        fresh.refresh()
    weights = [array(np.full(8, k, np.float32)) for k in range(4)]
    square = np.asfortranarray(np.ones((8, 8), np.float32))
    return {
        "the first of six signatures": (many, [x]),
        "the same, in containers": (tree, [trees[0]]),
        "after refresh()": (fresh, [x]),
        "four captured arrays in a list": (
            jit(lambda a: a * weights[0] + weights[1] * weights[2] - weights[3]),
            [x],
        ),
        "a Fortran-ordered argument": (jit(lambda a: a * 2 + 1), [square]),
        "a strided argument": (jit(lambda a: a * 2 + 1), [np.ones((8, 16), np.float32)[:, ::2]]),
    }


def signatures(number: int) -> Callable[..., Any]:
    """A function that was called with so many signatures, the first of which is x's."""
    many = tn.jit(lambda a, b: a * b + 1, verify="off")
    for size in range(8, 8 + number):
        x = np.ones(size, np.float32)
        many(x, x)
    return many


def main() -> None:
    parser = argparse.ArgumentParser(description="What one call costs.")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--signatures", default="1,5,100", help="how many; 2000 takes a minute")
    parser.add_argument("--compile", action="store_true", help="torch.compile too")
    options = parser.parse_args()
    draw = np.random.default_rng(0)
    table: dict[str, list[float]] = {}
    for inputs in INPUTS:
        arrays = [draw.standard_normal(8).astype(np.float32) for _ in range(inputs)]
        calls = tenfold_call(inputs, arrays) | peers(inputs, arrays, options.compile)
        expected = eval(SOURCES[inputs])(*arrays)
        for label, (function, given) in calls.items():
            np.testing.assert_allclose(
                np.asarray(function(*given)), expected, rtol=1e-5, atol=1e-6, err_msg=label
            )
        for label, least in measure(calls, options.rounds).items():
            table.setdefault(label, []).append(least)
    print(f"{'ns a call, inputs:':24}" + "".join(f"{n:>10}" for n in INPUTS))
    for label, row in table.items():
        print(f"{label:24}" + "".join(f"{value:10.0f}" for value in row))
    for label in ("numpy", "numba", "jax.jit", "torch"):
        if label in table:
            ratios = [a / b for a, b in zip(table[label], table["tenfold"], strict=True)]
            print(f"{label + ' / tenfold':24}" + "".join(f"{ratio:10.1f}" for ratio in ratios))
    for label, least in measure(others(), options.rounds).items():
        print(f"{label:36}{least:8.0f}")
    x = np.ones(8, np.float32)
    numbers = [int(n) for n in options.signatures.split(",")]
    many: dict[str, Call] = {f"{n} signatures": (signatures(n), [x, x]) for n in numbers}
    for label, least in measure(many, options.rounds).items():
        print(f"{label:36}{least:8.0f}")
    own = measure(found_by_type(tn.jit, np.asarray), options.rounds)
    theirs: dict[str, float] = {}
    try:
        import jax

        theirs = measure(found_by_type(jax.jit, jax.numpy.asarray), options.rounds)
    except ImportError:
        pass
    for label, least in own.items():
        beside = (
            f"{theirs[label]:10.0f} jax.jit, {theirs[label] / least:.1f} times" if theirs else ""
        )
        print(f"{label:36}{least:8.0f}{beside}")


if __name__ == "__main__":
    main()
