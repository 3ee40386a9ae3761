"""The option `verify`: how plans are checked against the reference."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from tenfold.errors import ValueProblem


def verify_option(given: Any) -> str | float:
    """How plans are checked: "first", "always", "off", or a limit in seconds."""
    if given is None:
        given = os.environ.get("TENFOLD_VERIFY", "first")
        if given not in ("first", "always", "off"):
            with suppress(ValueError):
                given = float(given)
    if given in ("first", "always", "off"):
        return str(given)
    if isinstance(given, (int, float)) and not isinstance(given, bool) and given >= 0:
        return float(given)
    raise ValueProblem(
        f"jit: verify={given!r} is no way to check",
        fix="give 'first', 'always', 'off' or a limit in seconds",
    )
