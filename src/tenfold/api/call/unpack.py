"""Unpacking: a Python function made for one form of call, which takes containers apart, calls
native code with the leaves and puts the results together.

It does what `Binder` and `Structure` do, for calls of that form alone; any other call goes on
unchanged. Ten leaves in nested containers take about a microsecond.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from inspect import Parameter, Signature
from itertools import count
from typing import Any

import numpy as np

from tenfold.api.call.form import SCALARS, CallForm
from tenfold.backends.program import NoMatch
from tenfold.frames import hide
from tenfold.trace.containers import LEAF, width
from tenfold.trace.exact import EXACT_TYPES, same

_MISSING = object()
NOT_TAKEN = object()  # what an unpacker gives for another's call, where there are several

# What taking apart a container of another shape can raise.
_OTHERS = (NoMatch, KeyError, AttributeError)

Function = Callable[..., Any]


def unpacker(
    form: CallForm,
    native: Function,
    slow: Function,
    apart: Sequence[tuple[int, Any]] = (),
    copied: Collection[int] = (),
) -> Function:
    """The function for calls of this form; `native` takes the leaves and gives a tuple. `apart` are
    leaves with arrays that they may not share memory with, `copied` those that native code gets a
    copy of. What it does not take goes to `slow`."""
    writer = _Writer(form.signature, slow)
    use, result = writer.use, writer.result
    lines = [" try:"]
    statics = {key: (kind, value) for key, kind, value in form.statics}
    for parameter in form.signature.parameters:
        if parameter in statics:
            kind, value = statics[parameter]
            lines.append(f"  if not {_same(writer, parameter, kind, value)}: raise {use(NoMatch)}")
        elif parameter not in form.names:
            lines.append(f"  if {parameter} is not {use(_MISSING)}: raise {use(NoMatch)}")
    leaves: list[str] = []
    tokens = iter(form.structure.tokens[1:])  # the outermost is the tuple of arguments
    todo = list(reversed(form.names))
    numbers = iter(form.numbers)
    while todo:
        source, token = todo.pop(), next(tokens)
        todo.extend(reversed(_take(writer, lines, token, source, leaves, numbers)))
    for number, array in apart:
        shared = f"{use(np.may_share_memory)}({leaves[number]}, {use(array)})"
        lines.append(f"  if {shared}: raise {use(NoMatch)}")
    given = [f"{use(np.array)}({a})" if n in copied else a for n, a in enumerate(leaves)]
    lines.append(f"  {result} = {use(native)}({', '.join(given)})")
    lines.append(f" except {use(_OTHERS)}:")
    lines.append("  pass")
    lines.append(" else:")
    lines.append(f"  return {_put(writer, form, leaves)}")
    lines.append(f" return {writer.go_on()}")
    return writer.made(lines)


Outlines = dict[tuple[Any, ...], list[Function]]


def chooser(signature: Signature, static: Collection[str], known: Outlines, slow: Function) -> Any:
    """The function that finds the unpacker of a call among many, by its outline: what each argument
    is, static values, lengths of containers. Calls of no unpacker go to `slow`."""
    writer = _Writer(signature, slow)
    use, result, one = writer.use, writer.result, writer.fresh()
    kinds = []
    for name in signature.parameters:
        kind = f"{writer.type}({name})"
        sizes = f"({kind}, {writer.len}({name}))"
        if name in static:
            known_by = f"{kind} in {use(_COMPARED)} and {name} == {name}"
            kinds.append(f"({kind}, {name}) if {known_by} else None")
        else:
            is_number = f"{kind} if {kind} in {use(SCALARS)} else None"
            kinds.append(f"{sizes} if {kind} in {use(_SIZED)} else {is_number}")
    given = [f"{n}={n}" if _only(p) else n for n, p in signature.parameters.items()]
    outline = "".join(f"{kind}, " for kind in kinds)
    lines = [
        f" for {one} in {use(known.get)}(({outline}), ()):",
        f"  {result} = {one}({', '.join(given)})",
        f"  if {result} is not {use(NOT_TAKEN)}: return {result}",
        f" return {writer.go_on()}",
    ]
    return writer.made(lines)


_SIZED = (tuple, list, dict)
_COMPARED = EXACT_TYPES | {float, complex}  # static values that an outline has, NaN excepted


def outline_of(form: CallForm, static: Collection[str]) -> tuple[Any, ...]:
    """The outline of calls of this form, as `chooser` finds it."""
    values: dict[str, Any] = {name: (kind, value) for name, kind, value in form.statics}
    tokens, numbers = iter(form.structure.tokens[1:]), iter(form.numbers)
    found: dict[str, Any] = {}
    for name in form.names:
        token = next(tokens)
        number = next(numbers) if token == LEAF else None
        kind = {"tuple": tuple, "list": list, "dict": dict}.get(token[0])
        number = number if number in SCALARS else None
        found[name] = number if kind is None else (kind, width(token))
        left = width(token)
        while left:  # past all that is inside
            inner = next(tokens)
            left += width(inner) - 1
            if inner == LEAF:
                next(numbers)
    for name in static:
        kind, value = values.get(name, (None, None))
        found[name] = (kind, value) if kind in _COMPARED and value == value else None
    return tuple([found.get(name) for name in form.signature.parameters])


def not_taken(*args: Any, **names: Any) -> Any:
    return NOT_TAKEN


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
    """The text of a function, and names for the objects that it refers to."""

    def __init__(self, signature: Signature, slow: Function) -> None:
        self.signature = signature
        self.prefix = "_"  # of all names that are not the user's
        while any(name.startswith(self.prefix) for name in signature.parameters):
            self.prefix += "_"
        self.space: dict[str, Any] = {}
        self.slow = self.use(slow)
        self.type, self.len = self.use(type), self.use(len)
        self.result = f"{self.prefix}r"
        self.count = 0

    def head(self) -> str:
        """The line that has the parameters."""
        missing, parameters = self.use(_MISSING), self.signature.parameters
        head = [f"{p}={missing}" for p, one in parameters.items() if not _only(one)]
        only = [f"{p}={missing}" for p, one in parameters.items() if _only(one)]
        return f"def call({', '.join([*head, *(['*', *only] if only else [])])}):"

    def go_on(self) -> str:
        """The same call, on to the slow path."""
        parameters = self.signature.parameters
        given = ", ".join(f"{self.use(p)}: {p}" for p in parameters)
        by_position = self.use([p for p, one in parameters.items() if not _only(one)])
        return f"{self.use(_again)}({self.slow}, {{{given}}}, {by_position})"

    def made(self, lines: Sequence[str]) -> Function:
        error = self.fresh()
        text = [self.head(), " try:", *(f" {line}" for line in lines)]
        text += [f" except BaseException as {error}:", f"  {self.use(hide)}({error})", "  raise"]
        exec(compile("\n".join(text), f"{__file__}:call", "exec"), self.space)
        made: Function = self.space.pop("call")  # no cycle: what it calls dies with it
        return made

    def use(self, value: Any) -> str:
        for known, held in self.space.items():
            if held is value:
                return known
        known = f"{self.prefix}c{len(self.space)}"
        self.space[known] = value
        return known

    def fresh(self) -> str:
        self.count += 1
        return f"{self.prefix}v{self.count}"


def _same(writer: _Writer, source: str, kind: type, value: Any) -> str:
    held = writer.use(value)
    equal = (
        f"{source} == {held}" if kind in EXACT_TYPES else f"{writer.use(same)}({source}, {held})"
    )
    return f"({source} is {held} or {writer.type}({source}) is {writer.use(kind)} and {equal})"


def _take(
    writer: _Writer, lines: list[str], token: Any, source: str, leaves: list[str], numbers: Any
) -> list[str]:
    """Add what takes one item apart; gives the sources of its parts."""
    declined = f"raise {writer.use(NoMatch)}"
    if token[0] == "leaf":
        kind = next(numbers)
        if kind is None:
            leaves.append(source)
        else:
            value = writer.fresh()
            lines.append(f"  {value} = {source}")
            lines.append(f"  if {writer.type}({value}) is not {writer.use(kind)}: {declined}")
            leaves.append(f"{writer.use(SCALARS.get(kind, kind))}({value})")
        return []
    if token[0] == "static":
        lines.append(f"  if not {_same(writer, source, token[1], token[2])}: {declined}")
        return []
    value = writer.fresh()
    lines.append(f"  {value} = {source}")
    kind = {"tuple": tuple, "list": list, "dict": dict}.get(token[0]) or token[1]
    check = f"{writer.type}({value}) is not {writer.use(kind)}"
    if token[0] in ("tuple", "list"):
        lines.append(f"  if {check} or {writer.len}({value}) != {token[1]}: {declined}")
        return [f"{value}[{i}]" for i in range(token[1])]
    if token[0] == "dict":
        lines.append(f"  if {check} or {writer.len}({value}) != {len(token[1])}: {declined}")
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


def _put(writer: _Writer, form: CallForm, leaves: Sequence[str]) -> str:
    """The expression of the results in their containers."""
    structure, given = form.outputs, _parts(writer.result, form, leaves)
    if any(token[0] in ("named", "data", "cut") for token in structure.tokens):
        return f"{writer.use(structure)}.unflatten([{', '.join(given)}])"
    open_: list[tuple[Any, int, list[str]]] = [(None, 1, [])]
    for token in structure.tokens:
        if token[0] == "leaf":
            open_[-1][2].append(next(given))
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


def _parts(result: str, form: CallForm, leaves: Sequence[str]) -> Iterator[str]:
    """The expression of each result: one of those that native code gives, or the caller's array."""
    own = count()
    for weak, leaf in zip(form.weak, form.returned, strict=True):
        if leaf is not None:
            yield leaves[leaf]
        else:
            yield f"{result}[{next(own)}].item()" if weak else f"{result}[{next(own)}]"
