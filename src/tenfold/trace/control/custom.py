"""Custom: an op of the user's own, with a fallback in ordinary ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tenfold.errors import TypeMismatch
from tenfold.frames import entry
from tenfold.frozen import frozen
from tenfold.trace.array import Array
from tenfold.trace.containers import flatten
from tenfold.trace.control.agree import form
from tenfold.trace.control.eager import at_once
from tenfold.trace.control.inner import called, trace_inner
from tenfold.trace.control.plain import own
from tenfold.trace.operand import as_value, weak_of
from tenfold.trace.scope import Scope, current, is_plain
from tenfold.trace.source import describe, here

# The faster versions by the name of their op, then by backend; a compiler looks them up.
VERSIONS: dict[str, Mapping[str, Callable[..., Any]]] = {}


@frozen
class Custom:
    """An op of the user's own; call it like its fallback."""

    name: str
    fallback: Callable[..., Any]

    @entry
    def __call__(self, *args: Any) -> Any:
        if is_plain():
            return self.fallback(*own(args))
        scope = current()
        if scope is None:
            return at_once(self, *args)
        structure, leaves = flatten(args)
        values = [as_value(leaf, scope) for leaf in leaves]

        def call(inner: Scope) -> Any:
            types = [scope.builder.types[value] for value in values]
            arrays = [
                Array(inner, inner.builder.parameter(type), weak=weak_of(leaf))
                for type, leaf in zip(types, leaves, strict=True)
            ]
            return self.fallback(*structure.unflatten(arrays))

        inner = trace_inner(f"custom {self.name}", call)
        forms = [form(leaf) for leaf in inner.leaves]
        for leaf, wanted in zip(inner.leaves, forms, strict=True):
            inner.give(leaf, wanted.type)
        captures = inner.captures()
        graph = inner.close(captures, last=True)
        made = scope.node("custom", (*values, *captures), {"name": self.name}, [graph])
        results = [Array(scope, v, weak=f.weak) for v, f in zip(made, forms, strict=True)]
        return inner.structure.unflatten(results)


def custom(
    name: str, fallback: Callable[..., Any], **versions: Callable[..., Any]
) -> Callable[..., Any]:
    """An op of your own: a function that stands in graphs as one node of this name.

    The fallback, written with ordinary ops, says what it means and runs wherever no faster
    version is there. A version is named by its backend (`cpu=…`); it takes the flat input
    arrays, those of the arguments and then those the fallback uses from outside, and gives the
    flat outputs. It is never in a graph: compilers look it up by the op's name, and hold it to
    what the fallback gives. Making an op of the same name anew replaces its versions.

    >>> import numpy as np, tenfold as tn
    >>> gelu = tn.custom("gelu", lambda x: x / (1 + np.exp(-1.702 * x)))
    >>> gelu(np.array([0.0, 100.0]))
    array([  0., 100.])
    >>> [node.op for node in tn.trace(lambda x: gelu(x), np.zeros(3)).nodes]
    ['custom']
    """
    called("custom", "fallback", fallback)
    for backend, version in versions.items():
        called("custom", f"the version for {backend}", version)
    if not isinstance(name, str) or not name:
        raise TypeMismatch(
            f"custom: the name is {name!r}",
            where=describe(here()),
            fix="write tn.custom('name', fallback)",
        )
    VERSIONS[name] = dict(versions)
    return Custom(name, fallback)
