"""Code of kernels in one process: what is the same is there once."""

from __future__ import annotations

import pytest

from tenfold.backends.cpu.run.kernels import Request
from tenfold.kernel.ir.number import Facts
from tenfold.kernel.passes.generalise import generalise
from tests.backends.cpu.running import HOST, mapped


def test_codes_of_one_text_have_one_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where other facts came to the same text, say: a plan names code by its text."""
    call = generalise(mapped("sub", "f32", "f32", 2, (23, 5)))
    first = Request(HOST, False).finish([call])[call]
    assert Request(HOST, False).finish([call])[call] is first
    monkeypatch.setattr(Facts, "hold", lambda self, sizes: False)
    second = Request(HOST, False).finish([call])[call]
    assert second is not first
    assert second.place(call) == first.place(call)
