"""numpy-100: its exercises' solutions as functions of arrays, under `tn.jit`, beside NumPy.

    python benchmarks/numpy100.py CHECKOUT [number ...] [--made]

CHECKOUT is a copy of github.com/rougier/numpy-100; without it, the environment's NUMPY100.

A solution becomes a function without a change to what it computes: what it draws or reads is an
argument, what it prints is collected, and it returns that with the variables it binds. With
`--made` what NumPy's constructors make of literals is an argument as well, so that it is traced.
NumPy runs the function first. Then `tn.jit(f)` is tried, then `tn.jit(f, control="convert")`, each
called twice; all that is returned and all arguments afterwards have to agree: dtypes, shapes,
values. Where the whole does not run, each thing that it shows is tried alone, with the statements
that it needs. Where NumPy raises, the same kind of error has to come.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.util
import os
import re
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import tenfold as tn

CLOSE = 1e-11  # of the largest element of an array

# No functions of arrays, and why.
NOT = {
    1: "an import",
    2: "prints versions",
    5: "shows documentation",
    23: "a structured dtype",
    26: "shows what `from numpy import *` does to a module",
    33: "dates",
    34: "dates",
    46: "a structured array",
    51: "a structured array",
    73: "a structured view",
    63: "a subclass of np.ndarray with an attribute",
    91: "an array of strings and a record array",
}
# What solutions take from elsewhere: other libraries that compute on the values of arrays.
FOREIGN = ("pandas", "scipy")
STRUCTURED = ("np.void", "dtype=[")
# What the exercises' text gives, or the solution before had by another name.
BEFORE = {27: "Z = np.array([1, 2, 3, 4])", 79: "distance = distance_slower"}
SMALLER = {92: ("5e7", "5e4")}  # which only takes longer

CONSTRUCTORS = ("zeros", "ones", "eye", "arange", "linspace", "array", "asarray")
DRAWS = ("random", "genfromtxt")
COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)


def solutions(checkout: Path) -> dict[int, str]:
    """The solutions by number, as Python: notebooks' `%timeit` is left out."""
    text = (checkout / "source" / "exercises100.ktx").read_text()
    found = {
        int(n): code for n, code in re.findall(r"^< a(\d+)\n(.*?)(?=^< |\Z)", text, re.M | re.S)
    }
    for n, (old, new) in SMALLER.items():
        found[n] = found[n].replace(old, new)
    return {n: re.sub(r"^%timeit +", "", code, flags=re.M) for n, code in found.items()}


def dotted(node: ast.AST) -> str:
    """np.random.rand as it is written; "" for what is no chain of names."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def names(nodes: Iterable[ast.AST], context: type[ast.expr_context]) -> set[str]:
    """The names that are read or bound in these nodes."""
    every = (node for root in nodes for node in ast.walk(root))
    return {n.id for n in every if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


class Hoist(ast.NodeTransformer):
    """Puts arguments in the place of what is drawn or read, or made of literals."""

    def __init__(self, made: bool) -> None:
        self.made = made
        self.calls: dict[str, ast.expr] = {}  # what each argument is
        self.literals: set[str] = set()  # variables that hold literals

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node

    visit_ClassDef = visit_Lambda = visit_ListComp = visit_For = visit_FunctionDef  # noqa: N815

    def visit_Assign(self, node: ast.Assign) -> Any:
        if not names([node.value], ast.Load) - self.literals and not any(
            isinstance(n, ast.Call) for n in ast.walk(node.value)
        ):
            self.literals |= names(node.targets, ast.Store)
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Call) and dotted(node.value.func) == "np.random.shuffle":
            target = node.value.args[0]
            assert isinstance(target, ast.Name)
            call = ast.parse(f"np.random.permutation({target.id})", mode="eval").body
            return ast.Assign([ast.Name(target.id, ast.Store())], self.argument(call))
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        path = dotted(node.func).split(".")
        inside = names([*node.args, *(k.value for k in node.keywords)], ast.Load)
        if path[0] == "np" and path[1:2] and path[1] in DRAWS:
            return self.argument(node)
        literal = inside <= self.literals | {"np", "int", "float"}
        if self.made and literal and path[0] == "np" and path[1:2] and path[1] in CONSTRUCTORS:
            return self.argument(node)
        return self.generic_visit(node)

    def argument(self, call: ast.expr) -> ast.Name:
        name = f"given{len(self.calls)}"
        self.calls[name] = call
        return ast.Name(name, ast.Load())


def is_shown(statement: ast.stmt) -> bool:
    """Whether a statement prints, or is an expression that a notebook would show."""
    if not isinstance(statement, ast.Expr):
        return False
    call = statement.value
    if not isinstance(call, ast.Call):
        return True
    if any(word.arg == "out" for word in call.keywords):
        return False
    written = dotted(call.func)
    return not written.startswith(("np.add.at", "np.put")) and not written.endswith(
        (".sort", ".set_printoptions")
    )


def touched(statement: ast.stmt) -> set[str]:
    """The names that a statement binds, or whose arrays it may write to."""
    inner = (n.generators for n in ast.walk(statement) if isinstance(n, COMPREHENSIONS))
    bound = names([statement], ast.Store) - {
        name for generators in inner for name in names(generators, ast.Store)
    }
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, ast.Assign) and all(
        isinstance(t, ast.Name) for t in statement.targets
    ):
        return bound
    return bound if is_shown(statement) else bound | names([statement], ast.Load)


def needed(statements: Sequence[ast.stmt], last: int) -> list[ast.stmt]:
    """The statements that one of them needs, and itself."""
    wanted, kept = names([statements[last]], ast.Load), [statements[last]]
    for statement in reversed(statements[:last]):
        if not touched(statement) & wanted or is_shown(statement):
            continue
        kept.insert(0, statement)
        if isinstance(statement, ast.Assign):
            wanted -= touched(statement) & names(statement.targets, ast.Store)
        wanted |= names([statement], ast.Load)
    return kept


class Shown(ast.NodeTransformer):
    """Collects what is printed."""

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if dotted(node.func) == "print":
            node.func = ast.Name("shown", ast.Load())
        return node


@dataclass
class Function:
    """A solution, or a part of one, as a function: its source, and what draws its arguments."""

    statements: Sequence[ast.stmt]
    made: bool
    calls: dict[str, ast.expr] = field(default_factory=dict)

    def source(self, drawn: bool) -> str:
        """A module with the function `solution`; with `drawn` it draws what it is given elsewhere,
        and keeps that in `arguments`."""
        hoist = Hoist(self.made)
        body = [hoist.visit(copy.deepcopy(s)) for s in self.statements]
        outside = [s for s in body if isinstance(s, (ast.Import, ast.ImportFrom))]
        body = [s for s in body if s not in outside]
        bound: list[str] = []
        for s in body:
            for name in sorted(touched(s) & names([s], ast.Store)):  # not what is only written to
                if name not in bound and not isinstance(s, (ast.FunctionDef, ast.ClassDef)):
                    bound.append(name)
        lines = []
        for s in body:
            lines += [
                f"{name} = draw({name!r}, {ast.unparse(hoist.calls[name])})"
                for name in sorted(names([s], ast.Load) & set(hoist.calls))
                if drawn
            ]
            value = s.value if isinstance(s, ast.Expr) and is_shown(s) else None
            printing = isinstance(value, ast.Call) and dotted(value.func) == "print"
            s = Shown().visit(s)
            text = ast.unparse(ast.fix_missing_locations(s))
            lines.append(f"shown({text})" if value is not None and not printing else text)
        lines.append(f"return results, kept([{', '.join(bound)}])")
        given = "" if drawn else ", ".join(hoist.calls)
        head = [*map(ast.unparse, outside), f"def solution({given}):"]
        start = ["results = []", "def shown(*values): results.append(kept(values))"]
        return "\n".join([*head, textwrap.indent("\n".join([*start, *lines]), "    "), ""])


def kept(value: Any) -> Any:
    """What of a value can be returned: text as its bytes, and nothing of classes and functions."""
    if isinstance(value, str):
        return np.frombuffer(value.encode(), np.uint8)
    if isinstance(value, (list, tuple)):
        return [kept(part) for part in value]
    keeps = (np.ndarray, np.generic, tn.Array, bool, int, float, complex)
    return value if isinstance(value, keeps) else None


@dataclass
class Notebook:
    """The exercises in their order: what one imports or defines, later ones use."""

    checkout: Path
    made: bool
    folder: Path
    namespace: dict[str, Any] = field(default_factory=lambda: {"np": np, "kept": kept})
    modules: int = 0

    def load(self, source: str, **more: Any) -> Callable[..., Any]:
        """The function of a module's source, which is kept in a file: converting reads it."""
        self.modules += 1
        path = self.folder / f"solution_{self.modules}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        vars(module).update({**self.namespace, **more})
        spec.loader.exec_module(module)
        found: Callable[..., Any] = module.solution
        return found

    def define(self, code: str) -> None:
        """Let later solutions have what this one imports and defines."""
        for s in ast.parse(code).body:
            if isinstance(s, (ast.Import, ast.ImportFrom, ast.FunctionDef)) and not is_foreign(s):
                exec(ast.unparse(s), self.namespace)

    def attempt(self, statements: Sequence[ast.stmt]) -> tuple[str, str]:
        """How these statements run as a function, and what is to say about that."""
        function = Function(statements, self.made)
        arguments: dict[str, Any] = {}

        def draw(name: str, value: Any) -> Any:
            arguments[name] = copy.deepcopy(value)
            return value

        np.random.seed(0)
        first = outcome(self.load(function.source(drawn=True), draw=draw))
        if isinstance(first, (ImportError, NameError)):
            return "not", f"{type(first).__name__}: {first}"
        plain = self.load(function.source(drawn=False))
        mine = copy.deepcopy(arguments)
        wanted = outcome(plain, **mine)
        said = ""
        for way, options in (("jit", {}), ("convert", {"control": "convert"})):
            jitted = tn.jit(plain, **options)
            for _ in range(2):  # the second call is native
                theirs = copy.deepcopy(arguments)
                found = outcome(jitted, **theirs)
                if isinstance(found, Exception) and not isinstance(wanted, Exception):
                    said = said or f"{type(found).__name__}: {found}"
                    break
                problem = difference((wanted, list(mine.values())), (found, list(theirs.values())))
                if problem is not None:
                    return "differs", problem
            else:
                raised = isinstance(wanted, Exception)
                return ("raises", f"{type(wanted).__name__}, as NumPy") if raised else (way, "")
        return "refused", said.replace("\n", " ")

    def exercise(self, n: int, code: str) -> tuple[str, str]:
        """How an exercise runs, and what is to say about that."""
        if n in NOT:
            return "not", NOT[n]
        statements = ast.parse(BEFORE.get(n, "") + "\n" + code).body
        used = own(statements)
        skipped = f"without {len(statements) - len(used)} lines of other libraries or dtypes"
        way, said = self.attempt(used)
        if way in ("jit", "convert", "not"):
            return way, said or (skipped if len(used) < len(statements) else "")
        shows = [i for i, s in enumerate(used) if is_shown(s)]
        parts = [self.attempt(needed(used, i)) for i in shows] if len(shows) > 1 else []
        right = sum(how in ("jit", "convert", "raises") for how, _ in parts)
        if way == "raises" and right == len(parts):
            way = "jit"
        return way, (f"{right} of {len(parts)} parts run; " if parts else "") + said


def own(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements that other libraries, or dtypes that are no numbers, have no part in."""
    kept, foreign = [], set[str]()
    for s in statements:
        if is_foreign(s) or names([s], ast.Load) & foreign:
            foreign |= names([s], ast.Store)
        else:
            foreign -= names([s], ast.Store)
            kept.append(s)
    return kept


def is_foreign(statement: ast.stmt) -> bool:
    text = ast.unparse(statement)
    return any(word in text for word in (*FOREIGN, "pd.", *STRUCTURED))


def outcome(function: Callable[..., Any], **arguments: Any) -> Any:
    """What a call gives; what it raises is an outcome, too."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(**arguments)
    except Exception as error:
        return error


def difference(wanted: Any, found: Any) -> str | None:
    """What is not the same in two results."""
    if isinstance(wanted, Exception) or isinstance(found, Exception):
        same = isinstance(found, type(wanted))
        return None if same else f"{wanted!r}, and not {found!r}"
    if isinstance(wanted, (list, tuple)):
        if len(wanted) != len(found):
            return f"{len(wanted)} results, and not {len(found)}"
        found_in = (difference(a, b) for a, b in zip(wanted, found, strict=True))
        return next((text for text in found_in if text), None)
    if wanted is None or found is None:
        return None if wanted is found else f"{wanted!r}, and not {found!r}"
    a, b = np.asarray(wanted), np.asarray(found)
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return f"{a.dtype}{list(a.shape)}, and not {b.dtype}{list(b.shape)}"
    if a.dtype.kind not in "fc":
        return None if np.array_equal(a, b) else f"{a}, and not {b}"
    with np.errstate(all="ignore"):
        bound = CLOSE * np.max(np.abs(a), initial=0.0, where=np.isfinite(a))
        if a.dtype == np.float32:
            bound = bound * 1e5
    same = np.allclose(a, b, rtol=0.0, atol=bound, equal_nan=True)
    return None if same else f"{a}, and not {b}"


def main() -> None:
    parser = argparse.ArgumentParser(description="numpy-100's exercises under tn.jit")
    parser.add_argument("checkout", nargs="?", default=os.environ.get("NUMPY100", ""))
    parser.add_argument("numbers", nargs="*", type=int)
    parser.add_argument("--made", action="store_true", help="what is made of literals is traced")
    options = parser.parse_intermixed_args()
    checkout = Path(options.checkout)
    if not (checkout / "source" / "exercises100.ktx").is_file():
        raise SystemExit(
            f"no numpy-100 at {options.checkout!r}: git clone https://github.com/rougier/numpy-100 "
            "beside the project, and give its path, or set NUMPY100"
        )
    found: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        notebook = Notebook(checkout, options.made, Path(folder))
        for n, code in solutions(checkout).items():
            if n not in NOT:
                notebook.define(code)
            if not options.numbers or n in options.numbers:
                found[n], said = notebook.exercise(n, code)
                print(f"{n:3} {found[n]:<8} {said[:300]}", flush=True)
    counts = {way: list(found.values()).count(way) for way in dict.fromkeys(found.values())}
    runs = counts.get("jit", 0) + counts.get("convert", 0)
    print(f"\n{runs} run of {len(found) - counts.get('not', 0)} that are functions of arrays")
    print(", ".join(f"{count} {way}" for way, count in counts.items()))


if __name__ == "__main__":
    main()
