"""wgpu-native as a process finds it that has not loaded it yet."""

from __future__ import annotations

from typing import Any

import pytest

from tenfold.backends.webgpu.native import find, library


def load_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the library be looked for and loaded by whoever asks next, for one test."""
    lookup: Any = find.library_path
    monkeypatch.setattr(find, "library_path", lookup.__wrapped__)
    monkeypatch.setattr(library, "library_path", lookup.__wrapped__)
    loading: Any = library._loaded
    monkeypatch.setattr(library, "_loaded", loading.__wrapped__)
