"""Draws: where a function draws random numbers, and what tn.random has for each way to do so."""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from tenfold.frozen import frozen
from tenfold.trace.source import here

_UNIFORM = "tn.random.uniform(key, shape)"
_NORMAL = "tn.random.normal(key, shape)"
_ORDER = "tn.random.permutation(key, x)"
_NONE = ""  # there is nothing alike

# By the names of NumPy's generators, of its old functions, and of Python's random module.
INSTEAD: dict[str, str] = {
    **dict.fromkeys(("random", "random_sample", "ranf", "rand"), _UNIFORM),
    "uniform": "tn.random.uniform(key, shape, low=a, high=b)",
    **dict.fromkeys(("standard_normal", "randn"), _NORMAL),
    **dict.fromkeys(
        ("normal", "gauss", "normalvariate"), "tn.random.normal(key, shape, loc=m, scale=s)"
    ),
    "integers": "tn.random.integers(key, low, high, shape)",
    "randint": "tn.random.integers(key, low, high, shape)",
    "randrange": "tn.random.integers(key, low, high, shape)",
    "random_integers": "tn.random.integers(key, low, high, shape, endpoint=True)",
    **dict.fromkeys(("bytes", "randbytes"), "tn.random.bits(key, shape, np.uint8)"),
    **dict.fromkeys(("getrandbits", "tomaxint"), "tn.random.bits(key, shape)"),
    "choice": "tn.random.choice(key, a, shape)",
    "choices": "tn.random.choice(key, a, shape)",
    "sample": "tn.random.choice(key, a, shape, replace=False)",
    **dict.fromkeys(("permutation", "permuted", "shuffle"), _ORDER),
    "seed": "tn.random.key(seed)",
    "spawn": "tn.random.split(key, n)",
    "binomial": "tn.random.bernoulli(key, p, (n, *shape)).sum(0)",
    "multinomial": "tn.random.categorical(key, np.log(p), shape=(n,)), and count",
    **dict.fromkeys(("beta", "betavariate"), "tn.random.beta(key, a, b, shape)"),
    "chisquare": "tn.random.chisquare(key, df, shape)",
    "dirichlet": "tn.random.dirichlet(key, alpha, shape)",
    **dict.fromkeys(
        ("exponential", "standard_exponential", "expovariate"),
        "tn.random.exponential(key, shape, scale=s)",
    ),
    **dict.fromkeys(
        ("gamma", "standard_gamma", "gammavariate"), "tn.random.gamma(key, a, shape, scale=s)"
    ),
    "geometric": "tn.random.geometric(key, p, shape)",
    "gumbel": "tn.random.gumbel(key, shape, loc=m, scale=s)",
    "laplace": "tn.random.laplace(key, shape, loc=m, scale=s)",
    "logistic": "tn.random.logistic(key, shape, loc=m, scale=s)",
    **dict.fromkeys(
        ("lognormal", "lognormvariate"), "tn.random.lognormal(key, shape, mean=m, sigma=s)"
    ),
    "multivariate_normal": "tn.random.multivariate_normal(key, mean, cov, shape)",
    **dict.fromkeys(("pareto", "paretovariate"), "tn.random.pareto(key, a, shape)"),
    "poisson": "tn.random.poisson(key, lam, shape)",
    "rayleigh": "tn.random.rayleigh(key, shape, scale=s)",
    "standard_cauchy": "tn.random.cauchy(key, shape)",
    "standard_t": "tn.random.student_t(key, df, shape)",
    **dict.fromkeys(("weibull", "weibullvariate"), "tn.random.weibull(key, a, shape)"),
    **dict.fromkeys(
        (
            *("f", "hypergeometric", "logseries", "multivariate_hypergeometric", "power", "wald"),
            *("negative_binomial", "noncentral_chisquare", "noncentral_f", "triangular"),
            *("vonmises", "vonmisesvariate", "zipf"),
        ),
        _NONE,
    ),
}


@frozen
class Draw:
    """A call that draws: as it is written, the function's name, and where it stands."""

    text: str
    name: str
    where: str

    @property
    def fix(self) -> str:
        return fix(self.text, self.name)


def fix(text: str, name: str) -> str:
    """What to write instead of a call that draws."""
    if not INSTEAD[name]:
        return f"tn.random has nothing for {text}: draw the numbers outside and pass them in"
    return (
        f"for {text} write {INSTEAD[name]}, the key being an argument; or draw the numbers "
        "outside and pass them in"
    )


def draws(functions: Iterable[Any]) -> Iterator[Draw]:
    """The calls in the text of these functions that draw random numbers."""
    for one in functions:
        function = _plain(one)
        if function is None:
            continue
        for code in _nested(function.__code__):
            yield from _draws(code, function)


def _plain(function: Any) -> FunctionType | None:
    """The function of a method, a partial or a wrapper."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(getattr(function, "__func__", function))
    return function if isinstance(function, FunctionType) else None


def _nested(code: CodeType) -> Iterator[CodeType]:
    open_ = [code]
    while open_:
        found = open_.pop()
        yield found
        open_ += [c for c in found.co_consts if isinstance(c, CodeType)]


def _draws(code: CodeType, function: FunctionType) -> Iterator[Draw]:
    chain: list[str] = []
    for step in dis.get_instructions(code):
        chain = _longer(chain, step)
        if chain and chain[-1] in INSTEAD and _is_random(chain, function):
            line = step.positions.lineno if step.positions else code.co_firstlineno
            where = f"{code.co_filename}:{line}, in {code.co_qualname}"
            yield Draw(".".join(chain), chain[-1], where)


def _longer(chain: list[str], step: dis.Instruction) -> list[str]:
    """The names that lead to what an instruction loads: `rng`, then `normal`."""
    if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and chain:
        return [*chain, str(step.argval)]
    if step.opname.startswith(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_FAST")):
        return [str(step.argval)]
    return []


def _is_random(chain: list[str], function: FunctionType) -> bool:
    """Whether names lead to a way of drawing; of a local variable it is taken for granted."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    known = function.__globals__ | {n: c.cell_contents for n, c in cells if _is_set(c)}
    return _leads(chain, known) if chain[0] in known else len(chain) > 1


def _is_set(cell: CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _leads(chain: list[str], known: Mapping[str, Any]) -> bool:
    """Whether names lead to a method of a generator, or to a function of a module of them."""
    first, *rest = chain
    value = known.get(first)
    for name in rest[:-1]:
        value = getattr(value, name, None)
    owner = value if rest else getattr(value, "__self__", None)
    home = owner.__name__ if isinstance(owner, ModuleType) else type(owner).__module__
    return home.split(".")[0] == "random" or home.startswith("numpy.random")


def drawn_here() -> Draw | None:
    """The call that the user's line makes, if it is of a function that draws: compiled code has no
    line of its own, and asks for values at the one that calls it."""
    raw, frame = here(), sys._getframe()
    while frame is not None and (frame.f_code, frame.f_lasti) != raw:
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return None
    steps = list(dis.get_instructions(frame.f_code))
    call = next((s.positions for s in steps if s.offset == frame.f_lasti), None)
    if call is None:
        return None
    chain: list[str] = []
    for step in steps:  # a call and what it calls begin at one place of the text
        at = step.positions
        if at is None or (at.lineno, at.col_offset) != (call.lineno, call.col_offset):
            continue
        if step.offset >= frame.f_lasti:
            break
        chain = _longer(chain, step) or chain
    if not chain or chain[-1] not in INSTEAD:
        return None
    if not _leads(chain, frame.f_globals | frame.f_locals):
        return None
    return Draw(".".join(chain), chain[-1], "")
