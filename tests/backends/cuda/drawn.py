"""Graphs of functions, for tests that need no call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenfold as tn
from tenfold.graph import Graph


def graph_of(function: Callable[..., Any], *arrays: Any) -> Graph:
    """The graph of a function for arguments like these."""
    return tn.jit(function).trace(*arrays)
