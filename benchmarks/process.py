"""A measurement in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any


def in_process(
    script: str, *arguments: str, limit: float, settings: Mapping[str, str]
) -> dict[str, Any]:
    """What `script --one ARGUMENTS` prints last, as JSON; else {"failed": why}. `limit` is in
    seconds, `settings` are variables of its environment."""
    try:
        ended = subprocess.run(
            [sys.executable, script, "--one", *arguments],
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
            env=os.environ | settings,
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {limit:g} s"}
    if ended.returncode:
        return {"failed": (ended.stderr.strip().splitlines() or ["no reason given"])[-1][:150]}
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found
