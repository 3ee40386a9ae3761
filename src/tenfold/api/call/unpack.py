"""Unpacking: a Python function made for one signature, which takes a call's containers apart,
calls native code with the leaves and puts the results together.

It does what `Binder` and `Structure` do, for calls that look just like the one it was made for;
any other call goes on unchanged. Ten leaves in nested containers take about a microsecond.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from tenfold.api.call.arguments import Call
from tenfold.trace.containers import Structure
from tenfold.trace.exact import PLAIN, same
from tenfold.trace.function import Traced

_MISSING = object()
_LARGEST = 200  # tokens: a larger or deeper container is not worth a function of its own
SCALARS = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}


class Declined(Exception):
    """Native code did not take these leaves."""


# What taking apart a container of another shape can raise.
_OTHERS = (Declined, KeyError, AttributeError)


def decline(*leaves: Any) -> Any:
    raise Declined


def can_unpack(signature: Signature, call: Call, traced: Traced) -> bool:
    """Whether calls like this one can be unpacked so."""
    kinds = {p.kind for p in signature.parameters.values()}
    return (
        len(call.structure.tokens) + len(traced.outputs.tokens) <= _LARGEST
        and kinds <= {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}
        and not traced.graph.effects
        and not traced.limits
        and all(
            type(leaf) in SCALARS or isinstance(leaf, (np.ndarray, np.generic))
            for leaf in call.leaves
        )
    )


def unpacker(
    signature: Signature,
    call: Call,
    traced: Traced,
    native: Callable[..., Any],
    slow: Callable[..., Any],
    apart: Sequence[tuple[int, Any]] = (),
) -> Callable[..., Any]:
    """The function for calls like this one; `native` takes the leaves and gives a tuple. `apart`
    are leaves with arrays that they may not share memory with."""
    writer = _Writer()
    use = writer.use
    missing = use(_MISSING)
    names = {p: f"p{i}" for i, p in enumerate(signature.parameters)}
    head = [f"{p}={missing}" for p, one in signature.parameters.items() if not _only(one)]
    only = [f"{p}={missing}" for p, one in signature.parameters.items() if _only(one)]
    lines = [f"def call({', '.join([*head, *(['*', *only] if only else [])])}):", " try:"]
    statics = {key: (kind, value) for key, kind, value in call.statics}
    for parameter in names:
        if parameter in statics:
            kind, value = statics[parameter]
            lines.append(f"  if not {_same(writer, parameter, kind, value)}: raise {use(Declined)}")
        elif parameter not in call.names:
            lines.append(f"  if {parameter} is not {missing}: raise {use(Declined)}")
    leaves: list[str] = []
    tokens = iter(call.structure.tokens[1:])  # the outermost is the tuple of arguments
    todo = list(reversed(call.names))
    kinds = iter([type(leaf) for leaf in call.leaves])
    while todo:
        source, token = todo.pop(), next(tokens)
        todo.extend(reversed(_take(writer, lines, token, source, leaves, kinds)))
    for number, array in apart:
        shared = f"{use(np.may_share_memory)}({leaves[number]}, {use(array)})"
        lines.append(f"  if {shared}: raise {use(Declined)}")
    lines.append(f"  r = {use(native)}({', '.join(leaves)})")
    lines.append(f" except {use(_OTHERS)}:")
    given = ", ".join(f"'{p}': {p}" for p in names)
    by_position = use([p for p, one in signature.parameters.items() if not _only(one)])
    lines.append(f"  return {use(_again)}({use(slow)}, {{{given}}}, {by_position})")
    for place, number in enumerate(traced.updates, len(traced.weak)):
        lines.append(f" {use(np.copyto)}({leaves[number]}, r[{place}])")
    lines.append(f" return {_put(writer, traced.outputs, traced.weak)}")
    exec(compile("\n".join(lines), "<unpacker>", "exec"), writer.space)
    made: Callable[..., Any] = writer.space.pop("call")  # no cycle: what it calls dies with it
    return made


def _again(slow: Callable[..., Any], given: dict[str, Any], by_position: list[str]) -> Any:
    """The same call, on to the slow path: by position up to the first that is not given."""
    given = {name: value for name, value in given.items() if value is not _MISSING}
    args = []
    for name in by_position:
        if name not in given:
            break
        args.append(given.pop(name))
    return slow(*args, **given)


def _only(parameter: Parameter) -> bool:
    return parameter.kind is Parameter.KEYWORD_ONLY


class _Writer:
    """Names for the objects that the text refers to."""

    def __init__(self) -> None:
        self.space: dict[str, Any] = {}
        self.count = 0

    def use(self, value: Any) -> str:
        for known, held in self.space.items():
            if held is value:
                return known
        known = f"c{len(self.space)}"
        self.space[known] = value
        return known

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"


def _same(writer: _Writer, source: str, kind: type, value: Any) -> str:
    held = writer.use(value)
    equal = f"{source} == {held}" if kind in PLAIN else f"{writer.use(same)}({source}, {held})"
    return f"({source} is {held} or type({source}) is {writer.use(kind)} and {equal})"


def _take(
    writer: _Writer, lines: list[str], token: Any, source: str, leaves: list[str], kinds: Any
) -> list[str]:
    """Add what takes one item apart; gives the sources of its parts."""
    declined = f"raise {writer.use(Declined)}"
    if token[0] == "leaf":
        scalar = SCALARS.get(kind := next(kinds))
        if scalar is None:
            leaves.append(source)
        else:
            value = writer.fresh()
            lines.append(f"  {value} = {source}")
            lines.append(f"  if type({value}) is not {writer.use(kind)}: {declined}")
            leaves.append(f"{writer.use(scalar)}({value})")
        return []
    if token[0] == "static":
        lines.append(f"  if not {_same(writer, source, token[1], token[2])}: {declined}")
        return []
    value = writer.fresh()
    lines.append(f"  {value} = {source}")
    kind = {"tuple": tuple, "list": list, "dict": dict}.get(token[0]) or token[1]
    check = f"type({value}) is not {writer.use(kind)}"
    if token[0] in ("tuple", "list"):
        lines.append(f"  if {check} or len({value}) != {token[1]}: {declined}")
        return [f"{value}[{i}]" for i in range(token[1])]
    if token[0] == "dict":
        lines.append(f"  if {check} or len({value}) != {len(token[1])}: {declined}")
        keys = [(writer.fresh(), name, writer.use(key)) for name, key in token[1]]
        if keys:
            lines.append(f"  {', '.join(given for given, _, _ in keys)}, = {value}")
        for given, name, key in keys:
            other = f"{given} != {key}"
            if name != "str":
                other = f"not {writer.use(same)}({given}, {key})"
            lines.append(f"  if {given} is not {key} and {other}: {declined}")
        return [f"{value}[{key}]" for _, _, key in keys]
    lines.append(f"  if {check}: {declined}")
    return [f"{value}.{field}" for field in token[2]]


def _put(writer: _Writer, structure: Structure, weak: tuple[type | None, ...]) -> str:
    """The expression of the results in their containers."""
    if any(token[0] in ("named", "data") for token in structure.tokens):
        leaves = ", ".join(_leaf(i, kind) for i, kind in enumerate(weak))
        return f"{writer.use(structure)}.unflatten([{leaves}])"
    open_: list[tuple[Any, int, list[str]]] = [(None, 1, [])]
    numbers = iter(enumerate(weak))
    for token in structure.tokens:
        if token[0] == "leaf":
            open_[-1][2].append(_leaf(*next(numbers)))
        elif token[0] == "static":
            open_[-1][2].append(writer.use(token[2]))
        else:
            width = len(token[1]) if token[0] == "dict" else token[1]
            open_.append((token, width, []))
        while len(open_) > 1 and len(open_[-1][2]) == open_[-1][1]:
            made, _, parts = open_.pop()
            if made[0] == "tuple":
                text = f"({''.join(p + ', ' for p in parts)})"
            elif made[0] == "list":
                text = f"[{', '.join(parts)}]"
            else:
                pairs = zip(made[1], parts, strict=True)
                text = "{" + ", ".join(f"{writer.use(k)}: {p}" for (_, k), p in pairs) + "}"
            open_[-1][2].append(text)
    return open_[0][2][0]


def _leaf(number: int, weak: type | None) -> str:
    return f"r[{number}].item()" if weak else f"r[{number}]"
