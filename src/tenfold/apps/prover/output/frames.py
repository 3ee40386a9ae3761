"""Frames: rows as a DataFrame, where pandas is installed."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any


def frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Any:
    """A DataFrame with these columns, whether there are rows or not."""
    try:
        pandas: Any = importlib.import_module("pandas")
    except ImportError:
        raise ImportError(
            "to_pandas needs pandas, which is not installed: pip install pandas"
        ) from None
    return pandas.DataFrame([dict(row) for row in rows], columns=list(columns))
