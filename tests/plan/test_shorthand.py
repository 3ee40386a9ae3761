"""A form that is found by its shorthand is the one that would be made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.plan.lowering.general import GeneralForms, SizedForm, written
from tenfold.plan.lowering.shorthand import Said
from tenfold.types import TensorType


def triangular(x: Any) -> Any:
    x = x.copy()
    for i in range(1, x.shape[0]):
        x[i, :i] -= x[:i, 0] * x[i, i - 1]
        x[i:, i] = np.flip(x[i, i:]) + x[i - 1, i:].sum()
    return x


def shifted(x: Any) -> Any:
    return [np.concatenate([x[i:], x[:i]]) * x.max(axis=0) for i in range(12)]


def reduced(x: Any) -> Any:
    return [(x[i:] @ x[:, :i]).sum(axis=i % 2) for i in range(1, 10)]


def scattered(x: Any) -> Any:
    x = x.copy()
    for i in range(1, 6):
        np.add.at(x, np.arange(i), x[i])
    return x


@pytest.mark.parametrize("function", [triangular, shifted, reduced, scattered])
def test_shorthand_finds_the_form(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = GeneralForms.said
    met: dict[int, SizedForm] = {}

    def compared(self: GeneralForms, one: Said, types: Sequence[TensorType]) -> SizedForm:
        found, made = said(self, one, types), self.general(written(one, types))
        assert found.general.form == made.general.form
        assert found.numbers == made.numbers
        met[len(met)] = found
        return found

    monkeypatch.setattr(GeneralForms, "said", compared)
    for size in (16, 23):
        BACKEND.plan(tn.trace(function, np.ones((size, size))))
    assert len({id(one.general) for one in met.values()}) < len(met)
