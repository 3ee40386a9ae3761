"""Why a call was, or will be, compiled: what differs from the plans there are."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tenfold.api.call.arguments import Call
from tenfold.backends.registry import backend_named
from tenfold.cache.disk import PLAN
from tenfold.cache.memory import plans
from tenfold.cache.record import Caller
from tenfold.cache.stored import disk_for, options_of, plan_key, why_missing
from tenfold.trace.control.encoding import encode
from tenfold.trace.function import FunctionTrace

if TYPE_CHECKING:
    from tenfold.api.jit import Jitted


def caller_of(call: Call, traced: FunctionTrace, function: Callable[..., Any]) -> Caller:
    """Which function a plan is for, and what it is given, field by field."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    fields: dict[str, str] = {}
    parameters = traced.graph.parameters
    names = [*call.leaf_names(), *(f"{c.name} (captured)" for c in traced.captures)]
    for name, parameter in zip(names, parameters, strict=True):
        fields[f"shape of {name}"] = str(parameter.type.shape)
        fields[f"dtype of {name}"] = parameter.type.dtype.name
    for name, _, value in call.statics:
        fields[f"static {name}"] = repr(value)
    fields["containers"] = encode(call.structure)
    return Caller(
        getattr(function, "__qualname__", type(function).__name__),
        code.co_filename if code else "",
        fields,
    )


def explain_cache(function: Jitted, *args: Any, **kwargs: Any) -> str:
    """Whether a call with these arguments finds a compiled plan; if not, what is different.

    >>> import numpy as np, tenfold as tn
    >>> f = tn.jit(lambda x: x + 1)
    >>> print(tn.explain_cache(f, np.ones(3)))
    <lambda>: not compiled yet; there is no disk cache (tn.config.cache)
    """
    call = function._bind(args, kwargs)
    traced = function._specialisation(call).traced
    caller = caller_of(call, traced, function.__wrapped__)
    strict, donated = function.strict, function._donated(call)
    options = options_of(strict, donated)
    backend = backend_named(function.backend)
    if plans.holds(traced.graph, backend, strict=strict, donated=donated):
        return f"{caller.name}: compiled in this process"
    store = disk_for(backend)
    if store is None:
        return f"{caller.name}: not compiled yet; there is no disk cache (tn.config.cache)"
    if not store.usable():
        return f"{caller.name}: not compiled yet; the disk cache {store.folder} can't be used"
    key = plan_key(backend, traced.graph, options)
    path = os.path.join(store.folder, f"{key.name}.{PLAN}")
    fault = store.fault(PLAN, key)
    if fault:
        return f"{caller.name}: not compiled yet; {path} is not used and will be replaced: {fault}"
    if fault is not None:
        return f"{caller.name}: on disk, {path}"
    lines = why_missing(backend, traced.graph, options, caller)
    if lines is None:
        return f"{caller.name}: not compiled yet; the disk cache has no plan of this function"
    return "\n".join((f"{caller.name}: not compiled yet; different from the nearest plan:", *lines))
