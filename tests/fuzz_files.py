"""Mutated and truncated plan files through the loader: PlanError or a right result, nothing else.

    python tests/fuzz_files.py 200000

Half of the files have their checksum made right again, so that what is behind it is reached too.
A file whose signature was changed into another that holds may refuse the call itself, by TypeError.
Prints how many were refused, how many still gave right results, and how memory grew.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("TENFOLD_CACHE", "off")

import msgpack
import numpy as np

import tenfold as tn
from tenfold.errors import PlanError
from tenfold.plan.file.sections import Sections, pack


def elementwise(x, y):
    return {"a": np.tanh(x * 1.5 + y), "b": [x.sum()]}


def rows(x, y):
    h = np.exp(x - x.max(axis=1, keepdims=True))
    return h / h.sum(axis=1, keepdims=True), x @ y.T


def control(x, y):
    carry, stacked = tn.scan(lambda c, row: (c + row, c * 2), y[0], x)
    chosen = tn.cond(x.sum() > 0, lambda: x * 2, lambda: np.sort(y, axis=1))
    return carry, stacked, chosen


PROGRAMS = (elementwise, rows, control)
X = np.linspace(-2, 2, 12).reshape(3, 4).astype("float32")


@dataclass
class Result:
    refused: int = 0
    right: int = 0
    grown: int = 0  # bytes


@dataclass
class Case:
    data: bytes
    parts: dict[str, bytes]
    want: list[Any]
    signature: Any


def flat(results: Any) -> list[Any]:
    from tenfold.trace.containers import flatten

    return flatten(results)[1]


def cases() -> list[Case]:
    made = []
    for function in PROGRAMS:
        plan = tn.jit(function).plan(X, X)
        data = plan.to_bytes()
        read = Sections(data)
        parts = {name: bytes(read.raw(name)) for name in read.names}
        made.append(Case(data, parts, flat(plan(X, X)), plan.signature))
    return made


def mutate(raw: bytes, draw: random.Random) -> bytes:
    """Bits, bytes, runs; cut, doubled, swapped."""
    data = bytearray(raw)
    for _ in range(draw.choice((1, 1, 1, 2, 4, 16))):
        if not data:
            break
        at = draw.randrange(len(data))
        kind = draw.randrange(7)
        if kind == 0:
            data[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            data[at] = draw.choice((0, 1, 0x7F, 0x80, 0xC0, 0xFF, draw.randrange(256)))
        elif kind == 2:
            del data[at : at + draw.randrange(1, 64)]
        elif kind == 3:
            data[at:at] = data[at : at + draw.randrange(1, 64)]
        elif kind == 4:
            other = draw.randrange(len(data))
            data[at : at + 8] = data[other : other + 8]
        elif kind == 5:
            del data[at:]
        else:
            size = draw.choice((1, 2, 4, 8))
            data[at : at + size] = draw.choice((0, 1, 255, 1 << 62)).to_bytes(8, "big")[-size:]
    return bytes(data)


WRONG = (0, 1, 2, -1, 100, 1 << 31, 1 << 62, -(1 << 62), None, True, "x", "f32", b"", [], {}, 0.5)


def tamper(raw: bytes, draw: random.Random) -> bytes:
    """Plain data with some value in it replaced by another."""
    data = msgpack.unpackb(raw, strict_map_key=False)
    for _ in range(draw.choice((1, 1, 2))):
        holder, key = None, None
        item = data
        while isinstance(item, (list, dict)) and item and (holder is None or draw.random() < 0.9):
            holder = item
            key = draw.randrange(len(item)) if isinstance(item, list) else draw.choice(list(item))
            item = item[key]
        if holder is None:
            return raw
        if isinstance(item, bytes) and draw.random() < 0.8:
            holder[key] = mutate(item, draw)
        elif type(item) is int and draw.random() < 0.7:
            holder[key] = item + draw.choice((1, -1, 2, 64, -64))
        else:
            holder[key] = draw.choice(WRONG)
    return msgpack.packb(data)


def changed(case: Case, draw: random.Random) -> bytes:
    if draw.random() < 0.5:
        return mutate(case.data, draw)
    parts = dict(case.parts)
    name = draw.choice(("plan", "plan", "plan", "signature", "about", "certificate"))
    try:
        parts[name] = (tamper if draw.random() < 0.7 else mutate)(parts[name], draw)
    except (OverflowError, ValueError):
        parts[name] = mutate(parts[name], draw)
    return pack(parts, compress=draw.random() < 0.5)


def memory() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def right(plan: Any, got: list[Any], case: Case) -> bool:
    """Whether these are the results; where keys of the output's dicts were changed, their order
    may be another."""
    wanted = list(case.want)
    if len(got) != len(wanted):
        return False
    for value in got:
        at = 0
        if plan.signature.outputs != case.signature.outputs:
            at = next((n for n, want in enumerate(wanted) if close(value, want)), 0)
        if not close(value, wanted.pop(at)):
            return False
    return True


def close(a: Any, b: Any) -> bool:
    return np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-5, atol=1e-6)


def attempt(path: str, case: Case) -> bool:
    """Whether the file was refused; AssertionError unless it was, or gave the right result."""
    try:
        plan = tn.load(path)
    except PlanError:
        return True
    try:
        got = flat(plan(X, X))
    except PlanError:
        return True
    except TypeError:
        assert plan.signature != case.signature, "it can't be called"
        return True
    assert right(plan, got, case), "its result is wrong"
    return False


def run(count: int, seed: int = 0, report: int = 0) -> Result:
    draw = random.Random(seed)
    made = cases()
    result = Result()
    before = 0
    started = time.perf_counter()
    quick = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=quick) as folder:
        path = os.path.join(folder, "f.plan")
        for number in range(count):
            case = draw.choice(made)
            with open(path, "wb") as file:
                file.write(changed(case, draw))
            try:
                refused = attempt(path, case)
            except Exception as error:
                kept = os.path.join(tempfile.gettempdir(), f"fuzz-{seed}-{number}.plan")
                shutil.copy(path, kept)
                raise AssertionError(f"file {number}: {error!r}; kept as {kept}") from error
            result.refused += refused
            result.right += not refused
            if number == count // 10:
                before = memory()
            if report and number % report == report - 1:
                rate = (number + 1) / (time.perf_counter() - started)
                print(f"{number + 1} files, {result.refused} refused, {rate:.0f}/s", flush=True)
    result.grown = memory() - before
    return result


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    result = run(count, seed, report=5000)
    print(
        f"{count} files: {result.refused} refused with PlanError, {result.right} right, "
        f"memory grew by {result.grown / 1e6:.1f} MB since the first tenth"
    )
    if result.grown > 64 << 20:
        sys.exit("memory grew")
