"""The short way into a group leads where the long way leads."""

from __future__ import annotations

import pytest
from draw import draw_program

from tenfold.backends.cpu.backend import BACKEND
from tenfold.plan.file.file import write_plan
from tenfold.plan.fusion import attach


@pytest.mark.parametrize("first", range(0, 120, 30))
def test_plans_are_the_same(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = [draw_program(seed)[0] for seed in range(first, first + 30)]
    calls = []
    short = attach.join

    def counted(*given: object) -> object:
        found = short(*given)
        calls.append(found is not None)
        return found

    monkeypatch.setattr(attach, "join", counted)
    quick = [write_plan(BACKEND.plan(graph)) for graph in graphs]
    assert sum(calls) > 100  # it is taken, and not always
    assert not all(calls)
    monkeypatch.setattr(attach, "join", lambda *given: None)
    assert [write_plan(BACKEND.plan(graph)) for graph in graphs] == quick
