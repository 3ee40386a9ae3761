"""Random programs agree with the reference; `make fuzz` draws many more."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draw import DEPTHS, draw_program
from fuzz import compare
from hypothesis import given, settings
from hypothesis import strategies as st
from values import depth

from tenfold.backends.cpu.target import VARIABLE, executable, machine
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.graph.check import check
from tenfold.graph.text import parse
from tenfold.ops import TABLE
from tenfold.types import DTYPES
from tests.backends.cpu.running import HOST, every_target


@every_target
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32))
def test_random_programs(target: LLVMTarget, seed: int) -> None:
    graph, arrays = draw_program(seed)
    wrong = compare(graph, arrays, seed, target)
    assert wrong is None, f"seed {seed}: {wrong}"


def test_what_is_drawn() -> None:
    """Programs of all dtypes and depths, with control flow, several outputs, empty arrays."""
    ops, dtypes, outputs, empty = set(), set(), set(), 0
    for seed in range(60):
        graph, _ = draw_program(seed)
        assert depth(graph) >= DEPTHS[seed % 4]
        outputs.add(len(graph.outputs))
        for one in (graph, *graph.scopes()):
            ops |= {node.op for node in one.nodes}
            dtypes |= {type.dtype for type in one.types}
            empty += sum(not type.size for type in one.types)
    assert dtypes == set(DTYPES.values())
    assert {"while", "scan", "switch", "reduce", "scatter", "gather", "sort", "contract"} <= ops
    assert len(ops) > 80
    assert {1, 2, 3} <= outputs
    assert empty


def once_wrong() -> Iterator[Any]:
    """Programs that once showed a fault, with their arguments."""
    text = (Path(__file__).parents[3] / "golden" / "once_wrong.txt").read_text("utf-8")
    for part in text.split("program ")[1:]:
        name, rest = part.split("\n", 1)
        lines = rest.splitlines()
        count = sum(line.startswith("argument ") for line in lines)
        yield pytest.param(lines[:count], "\n".join(lines[count:]), id=name)


@every_target
@pytest.mark.parametrize(("arguments", "text"), list(once_wrong()))
def test_programs_that_were_wrong(arguments: list[str], text: str, target: LLVMTarget) -> None:
    graph = parse(text, lambda graph: check(graph, TABLE))
    arrays = []
    for line, parameter in zip(arguments, graph.parameters, strict=True):
        raw = bytearray.fromhex(line.split(" 0x")[1])
        arrays.append(np.frombuffer(raw, parameter.type.dtype).reshape(parameter.type.shape))
    # What hangs on no level is tried for the machine's own: files, and strict mode.
    assert compare(graph, arrays, 0 if target == HOST else 2, target) is None


# Every process of the run runs this file again, and so has these in place of programs.
RUN = """
import os, time
import fuzz

def attempt(seed):
    if seed == 12:
        os.abort()
    if seed == 13:
        time.sleep(60)
    return "off by one" if seed == 11 else None

fuzz.attempt, fuzz.HANGS, fuzz.SLOW = attempt, 4, 3
if __name__ == "__main__":
    print("found", fuzz.main(6, 10, 1))
"""


def test_a_run_goes_on_after_crashes_and_hangs_and_names_them_at_the_end(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(RUN, "utf-8")
    tests = str(Path(__file__).parents[3])
    path = os.pathsep.join([tests, *sys.path])
    done = subprocess.run(
        [sys.executable, str(script)], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert "seed 11: off by one" in lines
    assert "  again: python tests/fuzz.py show 11" in lines
    assert any(line.startswith("seed 12: ended the process") for line in lines)
    assert "seed 13: takes too long" in lines
    assert any(line.startswith("6 programs from seed 10, 3 wrong") for line in lines)
    assert lines[-3].startswith("1 took more than 3 s: 13")
    assert lines[-2:] == ["wrong: 11 12 13", "found 3"]


def ran(*arguments: str) -> str:
    env = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=Path(__file__).parents[4], env=env,
        capture_output=True, text=True, timeout=240, check=True,
    )  # fmt: skip
    return done.stdout


def test_a_run_for_all_levels() -> None:
    lines = ran("tests/fuzz.py", "1", "7", "1", "--level", "all").splitlines()
    assert [line.partition(", code for ")[2] for line in lines] == list(executable(machine()))


def test_what_is_run_for_lesser_levels() -> None:
    script = "from tenfold.backends.cpu.target import host_target; print(host_target().cpu)"
    lesser = executable(machine())[-2::-1]
    want = [line for level in lesser for line in (f"── {level}", level)]
    assert ran("tests/levels.py", "-c", script).splitlines() == want
