"""Write docs/numpy-functions.md: every function of NumPy's namespaces, traced or not and why.

python tools/numpy_table.py          writes the page
python tools/numpy_table.py --check  fails where the page is not what would be written
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tenfold  # noqa: F401  fills the tables
from tenfold.trace.surface import selecting
from tenfold.trace.surface.numbers.scipy_special import TRACED
from tenfold.trace.surface.ufuncs.methods import AT
from tenfold.trace.surface.unsupported import DIFFERENCES, UNDISPATCHED
from tenfold.trace.tables import FUNCTIONS, REASONS, UFUNCS

PAGE = Path(__file__).parent.parent / "docs" / "numpy-functions.md"
NAMESPACES = {"": np, "linalg.": np.linalg, "fft.": np.fft}
_DISPATCHER = type(np.sum)  # what NumPy makes of a function that asks its arguments


def _public(prefix: str) -> Iterator[tuple[str, Any]]:
    """The functions of a namespace under each of their names."""
    module = NAMESPACES[prefix]
    for name in sorted(dir(module)):
        value = getattr(module, name)
        if name.startswith("_") or isinstance(value, (type, types.ModuleType)):
            continue
        if callable(value):
            yield prefix + name, value


def ufuncs() -> dict[np.ufunc, list[str]]:
    """Every ufunc, and its names."""
    found: dict[np.ufunc, list[str]] = {}
    for name, value in _public(""):
        if isinstance(value, np.ufunc):
            found.setdefault(value, []).append(name)
    return found


def dispatched(prefix: str) -> dict[Any, list[str]]:
    """The functions of a namespace that ask traced arrays what to do, and their names."""
    found: dict[Any, list[str]] = {}
    for name, value in _public(prefix):
        if isinstance(value, _DISPATCHER):
            found.setdefault(value, []).append(name)
    return found


def undispatched() -> list[str]:
    """The functions that do not ask."""
    return [
        name
        for prefix in NAMESPACES
        for name, value in _public(prefix)
        if not isinstance(value, (np.ufunc, _DISPATCHER))
    ]


def traced(function: Any) -> bool:
    """Whether a function is traced, rather than refused."""
    return function in FUNCTIONS and function not in REASONS


def count() -> tuple[int, int]:
    """How many ufuncs and how many array functions are traced; a function of two names is one."""
    functions = {f for prefix in NAMESPACES for f in dispatched(prefix)}
    return sum(u in UFUNCS for u in ufuncs()), sum(map(traced, functions))


def _missing_arguments(function: Any) -> list[str]:
    """The arguments NumPy's function has by name, and ours has not."""
    try:
        theirs = inspect.signature(function).parameters
    except ValueError:  # of C, without a signature
        return []
    ours = inspect.signature(FUNCTIONS[function]).parameters
    if any(p.kind is p.VAR_KEYWORD for p in ours.values()):
        return []
    named = (p.name for p in theirs.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))
    return [n for n in named if n not in ours and n != "like"]


def _names(names: list[str]) -> str:
    return ", ".join(f"`np.{name}`" for name in names)


def _ufunc_row(ufunc: np.ufunc, names: list[str]) -> str:
    folds = ufunc.nin == 2 and ufunc.nout == 1 and ufunc.signature is None
    pairs = ufunc.nin == 2 and ufunc.signature is None
    marks = [
        "yes" if ufunc in UFUNCS else "no",
        "yes" if folds else "–",
        "yes" if folds else "–",
        "yes" if pairs else "–",
        "yes" if ufunc in AT else "no" if ufunc.signature is None and ufunc.nout == 1 else "–",
    ]
    return f"| {_names(names)} | {' | '.join(marks)} |"


def _function_row(function: Any, names: list[str]) -> str:
    if traced(function):
        notes = [DIFFERENCES[n] for n in names if n in DIFFERENCES][:1]
        missing = _missing_arguments(function)
        if missing:
            notes.append("without " + ", ".join(f"`{n}`" for n in missing))
        return f"| {_names(names)} | yes | {'; '.join(notes)} |"
    reason = REASONS.get(function)
    why = f"{reason.why}; {reason.instead}" if reason else ""
    return f"| {_names(names)} | no | {why} |"


def page() -> str:
    """The whole page."""
    version = ".".join(np.__version__.split(".")[:2])
    all_ufuncs = ufuncs()
    all_functions = {f for prefix in NAMESPACES for f in dispatched(prefix)}
    of_ufuncs, of_functions = count()
    lines = [
        "# NumPy's functions",
        "",
        "Made by `tools/numpy_table.py` from the code; a test keeps it true. It lists the",
        f"functions of NumPy {version}'s main, `linalg` and `fft` namespaces, and what they do on",
        "traced arrays.",
        "",
        "| | traced | of |",
        "|---|---|---|",
        f"| ufuncs | {of_ufuncs} | {len(all_ufuncs)} |",
        f"| functions that dispatch by `__array_function__` | {of_functions} "
        f"| {len(all_functions)} |",
        "",
        "## Ufuncs",
        "",
        "A dash: NumPy has none either.",
        "",
        "| ufunc | traced | reduce | accumulate | outer | at |",
        "|---|---|---|---|---|---|",
        *(_ufunc_row(u, names) for u, names in all_ufuncs.items()),
    ]
    for prefix in NAMESPACES:
        found = dispatched(prefix)
        title = f"np.{prefix[:-1]}" if prefix else "np"
        lines += [
            "",
            f"## Functions of {title}",
            "",
            f"{sum(map(traced, found))} of {len(found)} are traced.",
            "",
            "| function | traced | remarks |",
            "|---|---|---|",
            *(_function_row(f, names) for f, names in found.items()),
        ]
    lines += [
        "",
        "## Masks",
        "",
        inspect.cleandoc(selecting.__doc__ or "").split("\n\n", 1)[1],
    ]
    lines += [
        "",
        "## Ufuncs of scipy.special",
        "",
        "They ask traced arrays, too. These are traced; of others an error says that they are not.",
        "",
        ", ".join(f"`{name}`" for name in sorted(TRACED)),
    ]
    lines += [
        "",
        "## Functions that do not dispatch",
        "",
        "NumPy asks traced arrays about none of these. While a function is traced, Tenfold stands",
        "in the place of those that make arrays, and of `np.r_`, `np.c_`, `np.mgrid` and",
        "`np.ogrid`, for the thread that traces it.",
        "",
        "| function | remarks |",
        "|---|---|",
        *(f"| `np.{name}` | {UNDISPATCHED.get(name, '')} |" for name in undispatched()),
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    made = page()
    if "--check" in sys.argv[1:]:
        if PAGE.read_text() != made:
            print("docs/numpy-functions.md is not what the code says: python tools/numpy_table.py")
            return 1
        return 0
    PAGE.write_text(made)
    print(f"wrote {PAGE.name}: {count()[0]} ufuncs, {count()[1]} functions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
