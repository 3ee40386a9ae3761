"""A first call does each thing once: it traces, plans, schedules, compiles, links and writes."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fresh import forget_code

import tenfold as tn
from tenfold.backends.cpu.link.loader import route
from tenfold.cache import plans
from tenfold.cache.disk import CERTIFICATE, OBJECT, PLAN, RECORD, Disk


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Counter[str]:
    """What is done from now on, in a process that has run something before."""
    tn.jit(lambda x: x - 1)(np.ones(3))
    forget_code(monkeypatch)
    monkeypatch.setattr(tn.config, "cache", tmp_path)
    found: Counter[str] = Counter()
    write = Disk.write

    def written(self: Disk, kind: str, *given: Any, **more: Any) -> Any:
        found[kind] += 1
        return write(self, kind, *given, **more)

    monkeypatch.setattr(Disk, "write", written)
    module = import_module("tenfold.backends.cpu.link.link")
    link = module.link

    def linked(*given: Any) -> Any:
        found["link"] += 1
        return link(*given)

    monkeypatch.setattr(module, "link", linked)
    tn.stats.reset()
    return found


@pytest.mark.skipif(route() != "elf", reason="code is not kept where LLVM loads it")
@pytest.mark.parametrize(("verify", "rows"), [(60.0, 6), ("off", 7)])
def test_a_first_call_does_everything_once(counts: Counter[str], verify: Any, rows: int) -> None:
    f = tn.jit(lambda x: np.exp(x) * 2 + x.sum(axis=1, keepdims=True), verify=verify)
    x = np.linspace(0, 1, 10 * rows).reshape(rows, 10)
    f(x)
    stats = tn.stats()
    assert (stats["traces"], stats["plans"], stats["kernels_compiled"]) == (1, 1, 1)
    judged = {CERTIFICATE: 1} if verify != "off" else {}
    assert counts == {"link": 1, PLAN: 1, RECORD: 1, OBJECT: 1} | judged
    f(x)
    assert counts["link"] == 1


@pytest.mark.skipif(route() != "elf", reason="code is not kept where LLVM loads it")
def test_what_is_written_is_what_was_linked(counts: Counter[str]) -> None:
    f = tn.jit(lambda x: np.tanh(x) @ x.T, verify="off")
    x = np.linspace(0, 1, 60).reshape(6, 10)
    made = f(x)
    before = counts["link"]
    plans.clear()
    again = tn.jit(lambda x: np.tanh(x) @ x.T, verify="off")
    np.testing.assert_array_equal(again(x), made)
    assert tn.stats()["plans"] == 1
    assert counts["link"] == before  # it was found on disk, and put in place
    assert counts[PLAN] == 1
