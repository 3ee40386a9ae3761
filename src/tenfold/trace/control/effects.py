"""Effects: hook, print, call_host.

They happen when the program runs, in program order, once each time they are reached: never
merged, never dropped. Outside a trace they happen at once. What they call is not in the graph:
the trace keeps the callables, and a graph names them by name and number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold.errors import TypeMismatch
from tenfold.trace.array import Array
from tenfold.trace.containers import flatten
from tenfold.trace.control.eager import at_once
from tenfold.trace.control.encoding import encode
from tenfold.trace.control.inner import called, kind_of
from tenfold.trace.control.plain import replaced
from tenfold.trace.operand import as_value
from tenfold.trace.scope import current, is_plain
from tenfold.trace.source import describe, here
from tenfold.types import TensorType, as_dtype


def hook(name: str, x: Any, fn: Callable[[Any], Any] | None = None) -> Any:
    """`x`, unchanged; when the program runs, `fn` is called with its value.

    A call may replace the function by the hook's name, add one where there is none, or silence
    it with None. The function gets NumPy arrays in the containers of `x`; they are copies.

    >>> import numpy as np, tenfold as tn
    >>> seen = []
    >>> f = tn.jit(lambda x: tn.hook("half", x / 2, seen.append) + 1)
    >>> f(np.array([2.0])), seen
    (array([2.]), [array([1.])])
    """
    _string("hook: the name", name, "write tn.hook('name', x, fn)")
    if fn is not None:
        called("hook", "fn", fn)
    scope = current()
    if scope is None:
        called_now = replaced(name, fn) if is_plain() else fn
        at_once(lambda y: hook(name, y, called_now), x)
        return x
    structure, leaves = flatten(x)
    default = -1 if fn is None else scope.trace.number(fn)
    attributes = {"name": name, "default": default, "structure": encode(structure)}
    scope.node("hook", [as_value(leaf, scope) for leaf in leaves], attributes)
    return x


def print(x: Any, label: str = "", map: Callable[[Any], Any] | None = None) -> Any:
    """`x`, unchanged; when the program runs, its value is printed after the label.

    `map` is applied first, in the program, to what is printed.

    >>> import numpy as np, tenfold as tn
    >>> f = tn.jit(lambda x: tn.print(x * 2, label="doubled", map=np.sum) + 1)
    >>> f(np.array([1.0, 2.0]))
    doubled: 6.0
    array([3., 5.])
    """
    _string("print: the label", label, "write tn.print(x, label='name')")
    if map is not None:
        called("print", "map", map)
    scope = current()
    if is_plain() and map is not None:
        print(map(x), label)
        return x
    if scope is None:
        at_once(lambda y: print(y, label, map), x)
        return x
    structure, leaves = flatten(x if map is None else map(x))
    attributes = {"label": label, "structure": encode(structure)}
    scope.node("print", [as_value(leaf, scope) for leaf in leaves], attributes)
    return x


def call_host(fn: Callable[..., Any], out_types: Any, *args: Any, name: str | None = None) -> Any:
    """What `fn(*args)` gives, called on the host with NumPy arrays when the program runs.

    `out_types` says what it returns: a `tn.spec(shape, dtype)`, or a container of them. The
    result is checked against it.

    >>> import numpy as np, tenfold as tn
    >>> @tn.jit
    ... def median(x):
    ...     return tn.call_host(np.median, tn.spec((), "float64"), x) * 2
    >>> median(np.array([3.0, 1.0, 2.0]))
    np.float64(4.0)
    """
    called("call_host", "fn", fn)
    scope = current()
    if scope is None:
        return at_once(lambda *given: call_host(fn, out_types, *given, name=name), *args)
    inner = flatten(args)[1]
    values = [as_value(leaf, scope) for leaf in inner]
    structure, declared = flatten((args, out_types))
    types = [_type(item) for item in declared[len(inner) :]]
    wanted = flatten(out_types)[0]
    attributes = {
        "name": name or getattr(fn, "__name__", "") or type(fn).__name__,
        "default": scope.trace.number(fn),
        "structure": encode(structure),
        "types": tuple(types),
    }
    made = scope.node("call_host", values, attributes)
    return wanted.unflatten([Array(scope, value) for value in made])


def _string(what: str, given: Any, fix: str) -> None:
    if not isinstance(given, str):
        message = f"{what} is {kind_of(given)}, not a string"
        raise TypeMismatch(message, where=describe(here()), fix=fix)


def _type(item: Any) -> TensorType:
    if isinstance(item, TensorType):
        return item
    if hasattr(item, "dtype") and hasattr(item, "shape"):
        return TensorType(as_dtype(item.dtype), tuple(item.shape))
    raise TypeMismatch(
        f"call_host: out_types holds {kind_of(item)}, not a type",
        where=describe(here()),
        fix="declare each result with tn.spec(shape, dtype)",
    )
