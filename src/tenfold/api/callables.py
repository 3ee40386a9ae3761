"""Callables: what `tn.jit` takes, and why it does not take the rest."""

from __future__ import annotations

import functools
import inspect
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from tenfold.errors import TypeMismatch


def check_function(function: Any) -> None:
    """TypeMismatch unless this can be traced: called once, it gives arrays."""
    why, fix = _refusal(function)
    if why:
        name = getattr(function, "__qualname__", None) or _short(function)
        raise TypeMismatch(f"jit: {name} {why}", fix=fix)


def _refusal(function: Any) -> tuple[str, str]:
    """Why a function is not taken, and what to do; empty where it is."""
    if not callable(function):
        return (
            "is not callable",
            "pass a function: tn.jit(f), or use @tn.jit above one; call it afterwards: f(x)",
        )
    if isinstance(function, type):
        if _is_container(function):
            return "", ""
        return (
            "is a class",
            "put @tn.jit above its methods, or jit a function that makes one and returns arrays",
        )
    if isinstance(function, functools._lru_cache_wrapper):
        return (
            "keeps results by its arguments, which traced arrays can't be",
            "jit the function itself, tn.jit(f.__wrapped__): it keeps a plan for each signature",
        )
    if isinstance(function, np.vectorize):
        return (
            "calls Python for each element",
            "jit the function itself if it works on arrays, or map it: tn.jit(tn.vmap(f))",
        )
    calls = (function, type(function).__call__)
    if any(map(inspect.isgeneratorfunction, calls)):
        return (
            "is a generator: it would be run once, while it is traced",
            "return a list or np.stack of what it yields; write a long loop with tn.scan",
        )
    if any(map(inspect.iscoroutinefunction, calls)) or any(map(inspect.isasyncgenfunction, calls)):
        return (
            "is asynchronous: nothing awaits it while it is traced",
            "make what computes a plain function, jit that, and call it from the asynchronous one",
        )
    return "", ""


def _is_container(cls: type) -> bool:
    """Whether what the class makes is taken apart as a container."""
    return is_dataclass(cls) or issubclass(cls, (tuple, list, dict))


def _short(given: Any) -> str:
    """Something in the words of a message, in one line."""
    text = repr(given)
    return text if len(text) <= 60 and "\n" not in text else f"a {type(given).__name__}"
