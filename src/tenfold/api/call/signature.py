"""How a plan is called: the function's parameters, containers and types, as plain data."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from tenfold.api.call.arguments import Binder, Call, as_array, leaf_key
from tenfold.api.call.form import CallForm
from tenfold.errors import PlanError, TypeMismatch
from tenfold.graph import Graph
from tenfold.graph.op import asking
from tenfold.locks import cached_property
from tenfold.ops import TABLE
from tenfold.trace.containers import LEAF, Structure, flatten
from tenfold.trace.control.encoding import decode, encode
from tenfold.trace.function import FunctionTrace
from tenfold.trace.operand import literal
from tenfold.types import DTYPES, I64, SHORT, TensorType, base_array, parse_type

_KINDS = {"bool": "b", "int": "i", "float": "f", "complex": "c"}  # as `types` has them
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_LENGTH = TensorType(I64, ())
_WEAK: dict[str, type] = {t.__name__: t for t in (bool, int, float, complex)}


@dataclass(frozen=True)
class Signature:
    """What a call of a plan has to look like, and what it gives."""

    name: str
    source: str
    parameters: tuple[tuple[str, int, bool], ...]  # name, kind, whether it has a default
    names: tuple[str, ...]  # the arguments given, static ones left out
    statics: tuple[tuple[str, str], ...]  # with the values as text
    arguments: str  # the structure of the tuple of arguments
    leaves: tuple[str, ...]  # a type, or that of a Python number
    outputs: str
    weak: tuple[str, ...]  # of each output: the type of a Python number, or ''
    limits: tuple[tuple[int, str], ...]
    captures: tuple[str, ...]
    hooks: tuple[tuple[str, bool], ...]  # name, whether it can't do without
    updates: tuple[int, ...] = ()  # leaves that the last outputs are written back into
    returned: tuple[int | None, ...] = ()  # of each result: the updated leaf that it is, or None
    rebound: tuple[int, ...] = ()  # leaves that have to be scalars

    @staticmethod
    def of(call: Call, traced: FunctionTrace, binder: Binder) -> Signature:
        function = inspect.unwrap(binder.function)
        code = getattr(function, "__code__", None)
        return Signature(
            getattr(function, "__qualname__", type(function).__name__),
            f"{code.co_filename}:{code.co_firstlineno}" if code else "",
            tuple(
                (p.name, int(p.kind), p.default is not p.empty)
                for p in binder.signature.parameters.values()
            ),
            call.names,
            tuple((name, _static(value)) for name, _, value in call.statics),
            encode(call.structure),
            tuple(_leaf(leaf) for leaf in call.leaves),
            encode(traced.outputs),
            tuple(w.__name__ if w else "" for w in traced.weak),
            tuple((position, SHORT[dtype]) for position, dtype in traced.limits),
            tuple(c.name for c in traced.captures),
            hooks_of(traced.graph),
            traced.updates,
            traced.returned,
            traced.rebound,
        )

    def to_data(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @staticmethod
    def from_data(data: Any, graph: Graph | None = None) -> Signature:
        """The signature in this data, checked; against the graph too, where there is one."""
        try:
            made = Signature(**data)
            _check(made)
            if graph is not None:
                _check_against(made, graph)
            return made
        except PlanError:
            raise
        except Exception as error:  # whatever malformed data makes of it
            raise PlanError(f"plan file: its signature is malformed: {error!r}") from error

    @cached_property
    def _binding(self) -> inspect.Signature:
        kinds = {int(kind): kind for kind in inspect._ParameterKind}
        return inspect.Signature(
            [
                inspect.Parameter(name, kinds[kind], default=None if default else inspect._empty)
                for name, kind, default in self.parameters
            ]
        )

    @cached_property
    def _keys(self) -> tuple[Any, ...]:
        return tuple(_WEAK[leaf] if leaf in _WEAK else _key(leaf) for leaf in self.leaves)

    @cached_property
    def leaf_names(self) -> list[str]:
        structure = decode(self.arguments)
        return Call(self.names, structure, (), []).leaf_names()

    @cached_property
    def form(self) -> CallForm:
        """The form of the calls that it describes, static arguments left out."""
        return CallForm(
            self._binding,
            self.names,
            decode(self.arguments),
            (),
            tuple(
                self._keys[n][0].type if n in self.rebound else _WEAK.get(leaf)
                for n, leaf in enumerate(self.leaves)
            ),
            decode(self.outputs),
            tuple(_WEAK.get(weak) for weak in self.weak),
            self.updates,
            self.returned,
            bool(self.limits or self.statics),
        )

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        """The leaves of a call, and their arrays in the order of the graph's parameters."""
        given = self._binding.bind(*args, **kwargs).arguments
        for name, text in self.statics:
            if name in given and _static(given.pop(name)) != text:
                raise TypeMismatch(
                    f"{self.name}: this plan was made with {name}={text}",
                    fix="leave it out, or make a plan for the other value",
                )
        if tuple(given) != self.names:
            raise TypeMismatch(
                f"{self.name}: this plan was made for the arguments ({', '.join(self.names)}), "
                f"({', '.join(given)}) given",
                fix="give the same ones, or make a plan for these",
            )
        structure, leaves = flatten(tuple(given.values()))
        if encode(structure) != self.arguments:
            raise TypeMismatch(
                f"{self.name}: the containers of the arguments are {structure}, this plan was made "
                f"for {decode(self.arguments)}",
                fix="give the same containers, or make a plan for these",
            )
        arrays = []
        for leaf, key, name, wanted in zip(
            leaves, self._keys, self.leaf_names, self.leaves, strict=True
        ):
            if leaf_key(leaf) != key:
                base_array(leaf)
                raise TypeMismatch(
                    f"{self.name}: {name} is {_given(leaf)}, this plan was made for {wanted}",
                    fix="convert it, or make a plan for this type",
                )
            arrays.append(as_array(leaf))
        for number in self.rebound:
            if isinstance(leaves[number], np.ndarray):
                raise TypeMismatch(
                    f"{self.name}: {self.leaf_names[number]} is an array, this plan was made for "
                    "a scalar, which the function does not update but bind anew",
                    fix="pass x[()], or make a plan for an array",
                )
        for position, short in self.limits:
            literal(leaves[position], DTYPES[short])
        return leaves, arrays


def hooks_of(graph: Graph) -> tuple[tuple[str, bool], ...]:
    """The names of hooks and host calls, and whether each needs a callable."""
    found: dict[str, bool] = {}
    for node, effect in asking(graph, TABLE):
        if effect.named:
            need = effect.answers or node["default"] >= 0
            found[node["name"]] = found.get(node["name"], False) or need
    return tuple(sorted(found.items()))


def _static(value: Any) -> str:
    return encode(Structure((("static", type(value), value),)))


def _leaf(leaf: Any) -> str:
    kind = type(leaf)
    if kind.__name__ in _WEAK and _WEAK[kind.__name__] is kind:
        return kind.__name__
    return _type_text(leaf)


def _type_text(leaf: Any) -> str:
    dims = ",".join(map(str, leaf.shape))
    short = SHORT[leaf.dtype.newbyteorder("=")]
    return f"{short}[{dims}]" if dims else f"{short}[]"


def _key(text: str) -> Any:
    type = parse_type(text.removesuffix("[]"))
    return type.dtype, type.shape


def _given(leaf: Any) -> str:
    try:
        return _leaf(leaf)
    except (AttributeError, KeyError):
        return f"a {type(leaf).__name__}"


def _check(made: Signature) -> None:
    """Each field of the form it is declared with, each text one that can be read."""
    for texts in (made.names, made.leaves, made.weak, made.captures):
        if type(texts) is not tuple or not all(type(t) is str for t in texts):
            raise ValueError("a list of names holds something else")
    for text in (made.name, made.source, made.arguments, made.outputs):
        if type(text) is not str:
            raise ValueError(f"{text!r} is no text")
    if not all(type(n) is str and type(t) is str for n, t in made.statics):
        raise ValueError("a static argument is malformed")
    if not all(type(n) is str and type(need) is bool for n, need in made.hooks):
        raise ValueError("a hook is malformed")
    if not all(type(default) is bool for _, _, default in made.parameters):
        raise ValueError("a parameter is malformed")
    _ = made._binding  # raises where there is no such signature
    taken = {*made.names, *(name for name, _ in made.statics)}
    known = [name for name, _, _ in made.parameters]
    if made.names != tuple(n for n in known if n in made.names) or not taken <= set(known):
        raise ValueError("the arguments are not those of the parameters")
    for name, kind, default in made.parameters:
        if name not in taken and not default and kind not in _VARIABLE:
            raise ValueError(f"the parameter {name} is not given")
    structure = decode(made.arguments)
    for one in (structure, decode(made.outputs)):
        if not one.closed:
            raise ValueError("a structure has more or fewer parts than it says")
        for token in one.tokens:
            if token[0] == "dict" and len(dict.fromkeys(token[1])) != len(token[1]):
                raise ValueError("a dict has a key twice")
    if structure.tokens[0] != ("tuple", len(made.names)):
        raise ValueError("the arguments are not as many as their names")
    if structure.count != len(made.leaves) or len(made._keys) != len(made.leaves):
        raise ValueError("the arguments are not as many as their types")
    if decode(made.outputs).count != len(made.weak) or set(made.weak) - {"", *_WEAK}:
        raise ValueError("the outputs are not as many as their types")
    if len(made.leaf_names) != len(made.leaves):
        raise ValueError("the arguments are not as many as their names")
    structure.unflatten([0] * structure.count)
    if type(made.updates) is not tuple or len(set(made.updates)) != len(made.updates):
        raise ValueError("what is updated is malformed")
    if any(type(n) is not int or not 0 <= n < len(made.leaves) for n in made.updates):
        raise ValueError("something is updated that is no argument")
    if len(made.returned) != len(made.weak) or set(made.returned) - {None, *made.updates}:
        raise ValueError("something is returned that is not updated")
    if any(made.weak[i] for i, leaf in enumerate(made.returned) if leaf is not None):
        raise ValueError("an argument is returned as a number")
    if any(type(n) is not int or made.leaves[n][-2:] != "[]" for n in made.rebound):
        raise ValueError("something is bound anew that is no scalar")
    for position, short in made.limits:
        if type(position) is not int or not 0 <= position < len(made.leaves) or short not in DTYPES:
            raise ValueError("a limit is malformed")
        if made.leaves[position] != "int":
            raise ValueError("a limit is for something else than a Python integer")


def _check_cuts(made: Signature, graph: Graph) -> None:
    """Each cut is of an array that the graph gives, along one of its axes, to a length."""
    tokens = decode(made.outputs).tokens
    for place, token in enumerate(tokens):
        if token[0] != "cut":
            continue
        first = tokens[:place].count(LEAF)
        own = first - sum(leaf is not None for leaf in made.returned[:first])
        types = graph.output_types[own : own + 2]
        if (
            tokens[place + 1 : place + 3] != (LEAF, LEAF)
            or made.returned[first : first + 2] != (None, None)
            or any(made.weak[first : first + 2])
            or not 0 <= token[1] < types[0].rank
            or types[1] != _LENGTH
        ):
            raise ValueError("what is cut is malformed")


def _check_against(made: Signature, graph: Graph) -> None:
    count = len(made.leaves)
    if count + len(made.captures) != len(graph.parameters):
        raise ValueError("the graph takes another number of arguments and captures")
    own = [weak for weak, leaf in zip(made.weak, made.returned, strict=True) if leaf is None]
    if len(own) + len(made.updates) != len(graph.outputs):
        raise ValueError("the graph gives another number of outputs")
    for number, type_ in zip(made.updates, graph.output_types[len(own) :], strict=True):
        if type_ != graph.parameters[number].type:
            raise ValueError(f"an argument is to become {type_!r}")
    for key, parameter in zip(made._keys, graph.parameters, strict=False):
        type_ = parameter.type
        if isinstance(key, type):
            if type_.rank or type_.kind != _KINDS[key.__name__]:
                raise ValueError(f"a Python number is given for {type_!r}")
        elif key != (type_.dtype, type_.shape):
            raise ValueError(f"{key} is given for {type_!r}")
    for weak, type_ in zip(own, graph.output_types, strict=False):
        if weak and (type_.rank or type_.kind != _KINDS[weak]):
            raise ValueError("a Python number is to be made of an array")
    _check_cuts(made, graph)
    if made.hooks != hooks_of(graph):
        raise ValueError("the hooks are not the graph's")
