"""Code that many threads ask for at once, in a process that has none of it yet.

Each seed is a fresh process with no cache, in which 16 threads meet before every step: the gate,
the steps, kernels, and one of the sorts, 18 seeds together all of them. `make test` takes a few
seeds; TENFOLD_HAMMER=200 takes so many, which is about a quarter of an hour.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SEEDS = int(os.environ.get("TENFOLD_HAMMER", "2"))

SCRIPT = """
import sys, threading
import numpy as np
import tenfold as tn

seed = int(sys.argv[1])
kinds = ["i1", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
sorts = [(sort, kind) for sort in (np.sort, np.argsort) for kind in kinds]
chosen = [sorts[seed % len(sorts)]]
together = threading.Barrier(16, timeout=300)
wrong = []

def differ(made, expected):
    if not np.array_equal(made, expected):
        wrong.append((made, expected))

def work(n):
    steps = [
        (lambda x, sort=sort: sort(x, kind="stable") + x.dtype.type(n), np.arange(300).astype(kind))
        for sort, kind in chosen
    ]
    steps.append((lambda x: x * n + 1, np.arange(float(n + 1))))  # a plan for each thread
    steps.append((lambda x: (x + 1) @ x.T, np.ones((40, 40))))  # one for all
    for function, x in steps:
        compiled = tn.jit(function, verify="off")
        together.wait()
        for again in range(3):
            differ(compiled(x), function(x))
        del compiled
        tn.cache.plans.clear()  # whoever runs a plan keeps its code

def run(n):
    try:
        work(n)
    except BaseException as error:
        wrong.append(repr(error))
        together.abort()

import tenfold.cache
threads = [threading.Thread(target=run, args=(n,)) for n in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not wrong, wrong[0]
"""


@pytest.mark.parametrize("seed", range(SEEDS))
def test_threads_that_need_the_same_code_first_all_get_it(seed: int, tmp_path: Path) -> None:
    script = tmp_path / "hammer.py"
    script.write_text(SCRIPT)
    run = subprocess.run(
        [sys.executable, str(script), str(seed)],
        env={**os.environ, "TENFOLD_CACHE": "off"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, f"seed {seed} ended with {run.returncode}: {run.stderr[-2000:]}"
