"""docs/numpy-functions.md says what the code does, of every function NumPy has."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tenfold.trace.surface.unsupported import DIFFERENCES, UNDISPATCHED
from tenfold.trace.tables import REASONS

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def table() -> Any:
    spec = importlib.util.spec_from_file_location("numpy_table", ROOT / "tools" / "numpy_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_counts(table: Any) -> None:
    ufuncs, functions = table.count()
    assert ufuncs == len(table.ufuncs())
    assert functions >= 200


def test_page_is_true(table: Any) -> None:
    text = (ROOT / "docs" / "numpy-functions.md").read_text()
    version = ".".join(np.__version__.split(".")[:2])
    if f"NumPy {version}'s" not in text:
        pytest.skip("the page is of another version of NumPy")
    assert table.page() == text, "write it anew: python tools/numpy_table.py"


def test_every_function_that_is_not_traced_has_a_reason(table: Any) -> None:
    for prefix in table.NAMESPACES:
        for function, names in table.dispatched(prefix).items():
            assert table.traced(function) or function in REASONS, names


def test_every_function_that_does_not_dispatch_has_a_remark(table: Any) -> None:
    assert set(table.undispatched()) == set(UNDISPATCHED)


def test_remarks_are_on_traced_functions(table: Any) -> None:
    known = {
        n
        for p in table.NAMESPACES
        for f, ns in table.dispatched(p).items()
        for n in ns
        if table.traced(f)
    }
    assert set(DIFFERENCES) <= known
