"""Run Python once for each level below the machine's own that it can execute, best first.

    python tests/levels.py -m pytest tests/backends/cpu/run

ends with the first run that fails.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tenfold.backends.cpu.target import VARIABLE, executable, machine

if __name__ == "__main__":
    for level in executable(machine())[-2::-1]:
        print(f"── {level}", flush=True)
        env = {**os.environ, VARIABLE: level}
        done = subprocess.run([sys.executable, *sys.argv[1:]], env=env, check=False)
        if done.returncode:
            sys.exit(done.returncode)
