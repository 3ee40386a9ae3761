"""Arguments: from a call to the leaves and the signature that a trace is kept under."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from operator import is_not
from typing import Any

import numpy as np

from tenfold.errors import (
    MutationError,
    OverflowProblem,
    TenfoldError,
    TypeMismatch,
    ValueProblem,
)
from tenfold.frozen import frozen
from tenfold.trace.array import Array
from tenfold.trace.containers import LEAF, Structure, flatten
from tenfold.trace.exact import exact
from tenfold.trace.function import Leaf
from tenfold.trace.lazy.lazy import LAZY
from tenfold.types import (
    BOOL,
    C128,
    F64,
    I64,
    SHORT,
    TensorType,
    as_dtype,
    base_array,
    means_more,
)

_WEAK: dict[type, TensorType] = {
    int: TensorType(I64, ()),
    float: TensorType(F64, ()),
    complex: TensorType(C128, ()),
}
_BOOL = TensorType(BOOL, ())


@frozen
class Call:
    """The arguments of one call: structure and static values apart from the leaves."""

    names: tuple[str, ...]  # the parameters given, static ones left out
    structure: Structure  # of the tuple of their values
    statics: tuple[tuple[str, type, Any], ...]
    leaves: list[Any]

    @property
    def key(self) -> Any:
        """What has to be equal for one trace to serve two calls."""
        leaves = tuple([leaf_key(leaf) for leaf in self.leaves])
        statics = tuple([(name, exact(value)) for name, _, value in self.statics])
        return self.names, self.structure.key, statics, leaves

    def leaf_names(self) -> list[str]:
        """What each leaf is called: x, params['w'][0], args[2]."""
        if self.structure.tokens[1:] == (LEAF,) * len(self.names):
            return list(self.names)
        found = []
        for path in self.structure.paths():
            head, _, rest = path[1:].partition("]")
            found.append(self.names[int(head)] + rest)
        return found


class Binder:
    """Brings the calls of one function into one form, however they were written."""

    def __init__(self, function: Callable[..., Any], static: Any = (), donate: Any = ()) -> None:
        self.function = function
        try:
            self.signature = inspect.signature(function)
        except (TypeError, ValueError):  # some builtins have none that can be read
            self.signature = inspect.signature(lambda *args, **kwargs: None)
        self.names = tuple(self.signature.parameters)
        self.static = parameter_names(static, self.names, "jit: static", _name(function))
        self.donate = parameter_names(donate, self.names, "jit: donate", _name(function))
        both = self.static & self.donate
        if both:
            raise ValueProblem(f"jit: {sorted(both)} can't be both static and donated")
        kinds = {p.kind for p in self.signature.parameters.values()}
        simple = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY}
        # With plain parameters alone, a call that gives each of them in order needs no binding.
        self._width = len(self.names) if kinds <= simple and not self.static else -1

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Take a call apart; arguments that do not fit are a TypeError, as Python's own."""
        if len(args) == self._width and not kwargs:
            structure, leaves = flatten(args)
            return Call(self.names, structure, (), leaves)
        # Defaults are left to Python: they are part of the function, not of the call.
        try:
            given = self.signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeMismatch(
                f"{_name(self.function)}: {error}",
                fix=f"its parameters are {self.signature}",
            ) from None
        statics = []
        for name in self.static & given.keys():
            value = given.pop(name)
            try:
                hash(value)
            except TypeError:
                raise TypeMismatch(
                    f"{_name(self.function)}: the static argument {name!r} is not hashable "
                    f"({type(value).__name__})",
                    fix="pass a tuple instead of a list, or leave it out of static",
                ) from None
            statics.append((name, type(value), value))
        structure, leaves = flatten(tuple(given.values()))
        return Call(tuple(given), structure, tuple(sorted(statics, key=_first)), leaves)

    def call(self, call: Call, leaves: list[Any]) -> Any:
        """Call the function itself with these leaves in the places of the arguments. What it puts
        into their containers would not reach the caller's, so it must not."""
        values = call.structure.unflatten(leaves)
        if len(values) == self._width:
            result = self.function(*values)
        else:
            given = dict(zip(call.names, values, strict=True))
            given.update((name, value) for name, _, value in call.statics)
            ordered = OrderedDict((name, given[name]) for name in self.names if name in given)
            bound = inspect.BoundArguments(self.signature, ordered)
            result = self.function(*bound.args, **bound.kwargs)
        structure, after = flatten(values)
        if structure.key != call.structure.key or any(map(is_not, after, leaves)):
            names = Call(call.names, structure, (), []).leaf_names()
            before = dict(zip(call.leaf_names(), leaves, strict=True))
            now = dict(zip(names, after, strict=True))
            changed = [name for name in now if before.get(name) is not now[name]]
            name = next(iter((*changed, *(before.keys() - now.keys()))), "a part that is no array")
            raise MutationError(
                f"{_name(self.function)}: {name} is set, added or removed in a container that is "
                "an argument, and the caller's would stay as it is",
                fix=f"update the array itself ({name}[...] = v), or return a container of your own",
            )
        return result


def parameter_names(given: Any, names: Sequence[str], option: str, function: str) -> frozenset[str]:
    """Parameter names from names and positions."""
    items = (given,) if isinstance(given, (str, int)) else tuple(given)
    found = set()
    for item in items:
        if isinstance(item, int) and -len(names) <= item < len(names):
            found.add(names[item])
        elif item in names:
            found.add(item)
        else:
            raise ValueProblem(
                f"{option}={item!r} names no parameter of {function}",
                fix=f"its parameters are {', '.join(names) or 'none'}",
            )
    return frozenset(found)


def _first(static: tuple[str, type, Any]) -> str:
    return static[0]


def leaf_key(leaf: Any) -> Any:
    """What the signature keeps of a leaf: dtype and shape, or the type of a Python number."""
    if type(leaf) is np.ndarray:
        return leaf.dtype, leaf.shape
    kind: Any = type(leaf)
    if kind in _WEAK or kind is bool:
        return kind
    if isinstance(leaf, TensorType):
        return leaf.dtype, leaf.shape
    if isinstance(leaf, np.ndarray) and means_more(kind):
        return kind  # of which there is no trace: it is refused
    if isinstance(leaf, (np.ndarray, np.generic, Array)):
        return leaf.dtype, leaf.shape
    return None


def is_opaque(given: Any) -> bool:
    """Whether this is an object that has no arrays in it that a call could take apart."""
    leaves = flatten(given)[1]
    return len(leaves) == 1 and leaves[0] is given and leaf_key(given) is None


def describe_leaf(leaf: Any, name: str, function: Callable[..., Any]) -> Leaf:
    """The type a leaf is traced with; a leaf that is no array is an error that names it."""
    kind = type(leaf)
    if kind is np.ndarray and leaf.dtype in SHORT:
        return Leaf(TensorType(as_dtype(leaf.dtype), leaf.shape), name)
    if kind in _WEAK:
        return Leaf(_WEAK[kind], name, kind, array=False)
    if kind is bool:
        return Leaf(_BOOL, name, array=False)
    if isinstance(leaf, TensorType):
        return Leaf(leaf, name)
    if isinstance(leaf, Array) and leaf._scope is LAZY:
        return Leaf(leaf.type, name)
    if isinstance(leaf, (np.ndarray, np.generic)):
        try:
            type_ = TensorType(as_dtype(base_array(leaf).dtype), leaf.shape)
            return Leaf(type_, name, array=isinstance(leaf, np.ndarray))
        except TenfoldError as error:
            error.message = f"{_name(function)}: the argument {name!r}: {error.message}"
            raise
    random = kind.__module__.startswith("numpy.random")
    raise TypeMismatch(
        f"{_name(function)}: the argument {name!r} is a {kind.__name__}, no array and no number",
        fix="pass a key, tn.random.key(seed), and draw by the functions of tn.random"
        if random
        else f"pass an array, or make it static: tn.jit(f, static={parameter_of(name)!r})",
    )


def as_array(leaf: Any) -> np.ndarray[Any, Any]:
    """A leaf as the native NumPy array that runs."""
    if type(leaf) is int and not -(2**63) <= leaf < 2**63:
        raise OverflowProblem(
            f"the Python integer {leaf} does not fit int64",
            fix="pass it as a float, or make the argument static",
        )
    array = np.asarray(base_array(leaf))
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def check_names(names: Collection[str], known: Collection[str], what: str) -> None:
    """Every name must be a known one."""
    for name in names:
        if name not in known:
            raise ValueProblem(
                f"{what} {name!r} is not in the program",
                fix=f"it has {', '.join(sorted(known)) or 'none'}",
            )


def parameter_of(name: str) -> str:
    """The parameter that a leaf of this name was given in."""
    for i, letter in enumerate(name):
        if letter in "[.":
            return name[:i]
    return name


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__name__)
