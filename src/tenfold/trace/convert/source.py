"""From a function to its syntax tree, and from a rewritten tree to a function."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from dataclasses import replace
from types import CellType, CodeType, FunctionType
from typing import Any

from tenfold.errors import ControlError
from tenfold.frozen import frozen

Function = ast.FunctionDef | ast.Lambda
OWN = "@control"  # no identifier, so no name of the user's: where the operators are found

_files: dict[str, tuple[list[str], ast.Module]] = {}  # the trees of files, by name


@frozen(eq=False)
class Definition:
    """How a function is written: its tree, and the class around it, whose name private names
    take."""

    tree: Function
    owner: str | None


def definition(function: FunctionType) -> Definition:
    """The definition of a function, in a tree to be used up; ControlError where it can't be found,
    or told apart."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise refusal(
            function,
            "has no source: it was typed in or made by exec",
            "write it in a file, or write tn.cond and tn.while_loop",
        )
    tree = _tree(code.co_filename, lines, function)
    found = [d for d in _definitions(tree, code.co_firstlineno) if _is(d.tree, code)]
    if len(found) > 1:
        found = [d for d in found if _spans(d.tree, code)]
    if len(found) == 1:
        return replace(found[0], tree=_copied(found[0].tree))
    if code.co_name == "<lambda>" and found:
        raise refusal(
            function,
            "can't be told from another lambda of its line",
            "write it with def, or on a line of its own",
        )
    raise refusal(
        function,
        "is not in its file as it runs: the file has changed since",
        "load it again, or start Python anew",
    )


def _tree(name: str, lines: list[str], function: FunctionType) -> ast.Module:
    kept = _files.get(name)
    if kept is None or kept[0] != lines:
        try:
            kept = _files[name] = lines, ast.parse("".join(lines), name)
        except SyntaxError as error:
            raise refusal(
                function,
                f"stands in a file that is not Python as it is now: {error.msg}",
                "write it in a file of its own",
            ) from None
    return kept[1]


def _copied(value: Any) -> Any:
    """A copy of a tree, or of what a node of one holds: `deepcopy` takes five times as long."""
    if isinstance(value, list):
        return [_copied(one) for one in value]
    if not isinstance(value, ast.AST) or isinstance(value, ast.expr_context):
        return value
    made = value.__class__()
    vars(made).update({name: _copied(one) for name, one in vars(value).items()})
    return made


def _definitions(tree: ast.AST, line: int) -> Iterator[Definition]:
    """The functions of a tree that begin in a line, and those around them."""
    stack: list[tuple[ast.AST, str | None]] = [(tree, None)]
    while stack:
        node, owner = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            yield Definition(node, owner)
        inside = node.name if isinstance(node, ast.ClassDef) else owner
        stack += [(n, inside) for n in ast.iter_child_nodes(node) if _covers(n, line)]


def _covers(node: ast.AST, line: int) -> bool:
    """Whether a line may be one of a node's; its decorators come before its own first."""
    if not isinstance(node, ast.stmt | ast.expr):
        return True
    above: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(d.lineno for d in above)])
    return first <= line <= (node.end_lineno or line)


def _is(tree: Function, code: CodeType) -> bool:
    """Whether this may be the tree of the code: by name, line and parameters."""
    if isinstance(tree, ast.Lambda):
        name, line = "<lambda>", tree.lineno
    else:
        name = tree.name
        line = min([tree.lineno, *(d.lineno for d in tree.decorator_list)])
    count = code.co_argcount + code.co_kwonlyargcount
    named = [a.arg for a in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)]
    return (
        name == code.co_name
        and line == code.co_firstlineno
        and len(named) == count
        and all(a == b or b.endswith(a) for a, b in zip(named, code.co_varnames, strict=False))
    )


def _spans(tree: Function, code: CodeType) -> bool:
    """Whether every instruction stands inside the body of this lambda."""
    body = tree.body
    if not isinstance(body, ast.expr):
        return True
    first, last = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    places = [p for p in code.co_positions() if None not in p and p[2:] != (0, 0)]
    return all(first <= (p[0], p[2]) and (p[1], p[3]) <= last for p in places)


def refusal(function: FunctionType, why: str, fix: str) -> ControlError:
    code = function.__code__
    return ControlError(
        f"control='convert': {function.__qualname__} {why}",
        where=f"{code.co_filename}:{code.co_firstlineno}",
        fix=fix,
    )


def compiled(code: CodeType, written: Definition, tree: Function) -> CodeType:
    """The code of a rewritten tree, with the lines and the private names of the one given."""
    inner: ast.stmt = ast.Expr(tree) if isinstance(tree, ast.Lambda) else tree
    if written.owner is not None:  # private names take the class's, less its underscores
        owner = written.owner
        used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        while owner in used:
            owner = "_" + owner
        inner = ast.ClassDef(owner, [], [], [inner], [])
    names = [ast.arg(name) for name in (OWN, *code.co_freevars)]
    outer = ast.FunctionDef("outer", ast.arguments([], names, None, [], [], None, []), [inner], [])
    module = ast.fix_missing_locations(ast.Module([outer], []))
    future = code.co_flags & _FUTURE
    made: CodeType = compile(module, code.co_filename, "exec", future, dont_inherit=True)
    while made.co_name not in ("@function", "<lambda>"):
        made = next(c for c in made.co_consts if isinstance(c, CodeType))
    return _renamed(made, code)


def with_code(function: FunctionType, code: CodeType, control: Any) -> FunctionType:
    """A function with this code, and all else as another has it: globals, cells, defaults."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[OWN] = CellType(control)
    closure = tuple([cells[name] for name in code.co_freevars])
    copy = FunctionType(code, function.__globals__, function.__name__, None, closure)
    copy.__defaults__, copy.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    copy.__annotations__ = function.__annotations__
    copy.__qualname__, copy.__doc__ = function.__qualname__, function.__doc__
    copy.__module__ = function.__module__
    copy.__dict__.update(function.__dict__)
    return copy


def as_written(function: FunctionType) -> FunctionType:
    """The function that a converted one was made from; any other itself."""
    names = function.__code__.co_freevars
    if OWN not in names or function.__closure__ is None:
        return function
    written: FunctionType = function.__closure__[names.index(OWN)].cell_contents.function
    return written


_FUTURE = 0x1FE0000  # what `from __future__` sets


def _renamed(code: CodeType, original: CodeType) -> CodeType:
    """The code with the functions made of its parts under its own name, as messages show it."""
    parts = [_renamed(c, original) if isinstance(c, CodeType) else c for c in code.co_consts]
    if not code.co_name.startswith("@"):
        return code.replace(co_consts=tuple(parts))
    return code.replace(
        co_consts=tuple(parts), co_name=original.co_name, co_qualname=original.co_qualname
    )
