"""Results in memory that is kept: to NumPy arrays like its own, in any process, to its end."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.types import DTYPES
from tests.backends.cpu.filling import MIB, Fill, address, byte, counts
from tests.fresh import settle

pytestmark = pytest.mark.usefixtures("alone")


@pytest.mark.parametrize("short", DTYPES)
@pytest.mark.parametrize("shape", [(1 << 18,), (1 << 9, 1 << 9), (1, 1 << 18, 1), (1 << 18, 1)])
def test_to_numpy_it_is_an_array_like_any_other(
    fill: Fill, short: str, shape: tuple[int, ...]
) -> None:
    made = fill(f"{short}[{','.join(map(str, shape))}]")(byte(0))
    own = np.zeros(shape, DTYPES[short])
    assert made.base is None
    assert (made.flags.num, made.strides, made.dtype) == (own.flags.num, own.strides, own.dtype)
    assert sys.getsizeof(made) == sys.getsizeof(own)
    ways: list[Callable[[Any], Any]] = [np.copy, copy.copy, copy.deepcopy, np.asarray, np.ravel]
    ways += [lambda a, p=p: pickle.loads(pickle.dumps(a, p)) for p in range(6)]  # type: ignore[misc]
    for way in ways:
        mine, wanted = way(made), way(own)
        np.testing.assert_array_equal(mine, wanted)
        assert mine.flags.num == wanted.flags.num
    made.fill(1)
    assert (made == 1).all()


def resized(array: Any, shapes: list[tuple[int, ...]]) -> list[Any]:
    found = []
    for shape in shapes:
        array.resize(shape, refcheck=False)
        found.append((array.shape, array.copy(), array.flags.num, array.base))
    return found


def test_it_is_resized_as_numpys_own(fill: Fill) -> None:
    shapes = [(MIB // 2 + 5,), (64, 64), (0,), (3,), (4 * MIB,), (8 * MIB, 1), (100,)]
    own = np.full(MIB, 6, np.uint8)
    made = fill(f"u8[{MIB}]")(byte(6))
    for mine, wanted in zip(resized(made, shapes), resized(own, shapes), strict=True):
        assert (mine[0], mine[2], mine[3]) == (wanted[0], wanted[2], wanted[3])
        np.testing.assert_array_equal(mine[1], wanted[1])


def test_its_state_is_set_as_numpys_own(fill: Fill) -> None:
    made = fill(f"u8[{MIB}]")(byte(6))
    made.__setstate__(np.arange(10.0).__reduce__()[2])
    np.testing.assert_array_equal(made, np.arange(10.0))
    assert counts()[2] == MIB
    del made
    assert counts()[2] == MIB


def test_tracemalloc_knows_of_it_as_of_numpys_own(fill: Fill) -> None:
    call = fill(f"u8[{MIB}]")
    call(byte(1))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        made = call(byte(2))
        assert 0 <= tracemalloc.get_traced_memory()[0] - before - MIB < 10_000
        del made
        assert abs(tracemalloc.get_traced_memory()[0] - before) < 10_000
    finally:
        tracemalloc.stop()


def test_updates_and_donated_arguments_stay_where_they_are() -> None:
    def step(x: Any, y: Any) -> Any:
        x += y
        return x * 2

    x, y = np.ones(MIB), np.full(MIB, 2.0)
    place = address(x)
    run = tn.jit(step)
    for turn in range(1, 6):
        result = run(x, y)
        assert address(x) == place
        np.testing.assert_array_equal(x, 1 + 2.0 * turn)
        np.testing.assert_array_equal(result, 2 * x)
    donated = tn.jit(lambda x: np.sqrt(x) + 1, donate=0)
    for turn in range(5):
        np.testing.assert_array_equal(donated(np.full(MIB, 4.0 * turn)), np.sqrt(4.0 * turn) + 1)


def test_results_that_become_arguments_are_not_overwritten() -> None:
    run = tn.jit(lambda x: x + 1)
    x = run(np.zeros(MIB))
    for turn in range(2, 40):
        x = run(x)
        assert (x == turn).all()


PROGRAMS = {
    "ranges": lambda x: np.concatenate([x[:-1], x[1:], x[:1] * 2]),
    "updated": lambda x: _updated(x),
    "padded": lambda x: np.pad(x, (3, 70_000)),
    "masked": lambda x: np.where(x > 0, x, -x)[::-1],
    "sorted": lambda x: np.sort(x),
    "sums": lambda x: np.cumsum(x),
    "rows": lambda x: x.reshape(-1, 16) / np.abs(x).reshape(-1, 16).sum(1, keepdims=True),
    "scan": lambda x: tn.scan(lambda c, row: (c + row, c), np.zeros(16), x.reshape(-1, 16))[1],
}


def _updated(x: Any) -> Any:
    out = np.zeros(x.shape[0] + 40_000)
    out[7 : 7 + x.shape[0]] = x
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_byte_of_a_result_is_written(name: str, fill: Fill) -> None:
    """What rests is full of NaN before each call."""
    program = PROGRAMS[name]
    run = tn.jit(program)
    x = np.random.default_rng(3).normal(size=1 << 17)
    wanted = program(x) if name != "scan" else np.cumsum(x.reshape(-1, 16), 0) - x.reshape(-1, 16)
    for _ in range(3):
        made = run(x)
        np.testing.assert_allclose(made, wanted, 1e-12, 1e-9)
        made.view(np.uint8).fill(255)
        del made
    settle()
    assert counts()[0] > 0


def run_fresh(program: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "rror" not in done.stderr, done.stderr
    return done.stdout


FIRST = """
import gc, sys, numpy as np, tenfold as tn
f = tn.jit(lambda x: x * 2 + 1, verify="off")
x = np.ones(1 << 22)  # 32 MiB
def count():
    found = tn.stats()
    return found["memory_reused"], found["memory_mapped"], found["memory_kept"]
"""


@pytest.mark.parametrize("where", ["sys.kept", "builtins.kept", "cycle", "np.kept"])
def test_results_may_outlive_every_module(where: str) -> None:
    hold = "import builtins\n" + (
        f"{where} = [f(x) for _ in range(3)]\n"
        if where != "cycle"
        else "class C: pass\nc = C(); c.c = c; c.kept = [f(x) for _ in range(3)]\ngc.disable()\n"
    )
    assert run_fresh(FIRST + hold + "print('held')") == "held\n"


@pytest.mark.parametrize(
    ("variable", "expected"), [("0", "0 0 0"), ("1000000", "0 4 0"), ("", "3 1 33554432")]
)
def test_the_environment_sets_the_limit(variable: str, expected: str) -> None:
    program = FIRST + "f(x); tn.release_memory(); tn.stats.reset()\n"
    program += "for _ in range(4): f(x)\nprint(*count())"
    assert run_fresh(program, TENFOLD_KEPT_BYTES=variable).strip() == expected


def test_no_number_of_bytes_is_said() -> None:
    for value in (-1, 2.0, "1", True, 1 << 62):
        with pytest.raises(tn.errors.ValueProblem, match="kept_bytes is"):
            tn.config.kept_bytes = value  # type: ignore[assignment]
    done = subprocess.run(
        [sys.executable, "-c", "import tenfold as tn; tn.config"],
        env={**os.environ, "TENFOLD_KEPT_BYTES": "some"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "TENFOLD_KEPT_BYTES='some' is no number of bytes" in done.stderr


SHORT = (
    FIRST
    + """
import resource
r = [f(x) for _ in range(4)]
r.clear()
assert count()[2] == 4 << 25, count()
large = np.ones(13 << 20)  # 104 MiB
g = tn.jit(lambda x: x * 2 + 1, verify="off")
g.plan(large)
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
made = g(large)  # there is room for it once nothing rests
assert made[0] == made[-1] == 3 and count()[2] == 0, count()
held = [made]
del made
try:
    while True:
        held.append(g(large))
except MemoryError as error:
    print(error)
held.clear()
print(g(large)[5])
"""
)


def test_what_rests_is_given_back_before_memory_is_short() -> None:
    said, value = run_fresh(SHORT).strip().splitlines()
    assert said.startswith("Unable to allocate 104. MiB for an array with shape (13631488,)")
    assert value == "3.0"


def test_resident_memory_goes_down_when_it_is_given_back() -> None:
    program = FIRST + (
        "def resident(): return int(open('/proc/self/statm').read().split()[1]) * 4096\n"
        "r = [f(x) for _ in range(4)]\nr.clear()\nbefore = resident()\n"
        "print(tn.release_memory() == 4 << 25, before - resident() > 3 << 25)"
    )
    assert run_fresh(program) == "True True\n"
