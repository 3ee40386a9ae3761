"""What statements bind, and how they are left."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_WAITING = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_STATEMENTS = (ast.stmt, ast.ExceptHandler, ast.match_case)


def walk(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of these statements, not those of the functions and classes written in them."""
    stack = list(nodes)[::-1]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, SCOPES):
            outside = [*getattr(node, "decorator_list", ()), *getattr(node, "bases", ())]
            args = getattr(node, "args", None)
            if args is not None:
                outside += [*args.defaults, *(d for d in args.kw_defaults if d is not None)]
            stack += outside[::-1]
        else:
            stack += list(ast.iter_child_nodes(node))[::-1]


def bound(nodes: Iterable[ast.AST]) -> set[str]:
    """The names of the function that these statements bind or delete."""
    found: set[str] = set()
    own: set[int] = set()  # targets of comprehensions, which are theirs
    for node in walk(nodes):
        if isinstance(node, _COMPREHENSIONS):
            targets = [g.target for g in node.generators]
            own |= {id(n) for t in targets for n in ast.walk(t)}
        elif isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load) and id(node) not in own:
                found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            found |= {node.name} - {None}  # type: ignore[arg-type]
        elif isinstance(node, ast.MatchMapping):
            found |= {node.rest} - {None}  # type: ignore[arg-type]
    return found


def binds_inside(node: ast.AST) -> bool:
    """Whether an expression binds a name or waits, so that no lambda can hold it."""
    return any(isinstance(n, (ast.NamedExpr, *_WAITING)) for n in walk([node]))


def waits(nodes: Iterable[ast.AST]) -> bool:
    """Whether these statements yield or await, so that no function can hold them."""
    return any(isinstance(n, _WAITING) for n in walk(nodes))


def exits(statements: Sequence[ast.stmt]) -> set[type[ast.stmt]]:
    """How these statements may be left but at their end: Return (an error raised is one),
    Break, Continue."""
    found: set[type[ast.stmt]] = set()
    stack: list[tuple[ast.AST, bool, bool]] = [(s, False, False) for s in statements]
    while stack:
        node, looping, trying = stack.pop()
        if isinstance(node, ast.Return) or (isinstance(node, ast.Raise) and not trying):
            found.add(ast.Return)
        elif isinstance(node, ast.Break | ast.Continue):
            if not looping:
                found.add(type(node))
        elif isinstance(node, _LOOPS):
            stack += [(s, True, trying) for s in node.body]
            stack += [(s, looping, trying) for s in node.orelse]
        elif isinstance(node, _STATEMENTS) and not isinstance(node, SCOPES):
            inside = trying or isinstance(node, ast.Try | ast.TryStar)
            stack += [(c, looping, inside) for c in ast.iter_child_nodes(node)]
    return found


def always_left(statements: Sequence[ast.stmt]) -> bool:
    """Whether these statements never come to their end."""
    for statement in statements:
        if isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue):
            return True
        if isinstance(statement, ast.If) and all(
            map(always_left, (statement.body, statement.orelse))
        ):
            return True
    return False


def surely_changed(statements: Sequence[ast.stmt]) -> set[str]:
    """Names that these statements give a value made of their last one, whatever is tested."""
    found = set()
    for statement in statements:
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            found.add(statement.target.id)
    return found


def written_to(nodes: Iterable[ast.AST]) -> set[str]:
    """Names whose elements are assigned: `a` in `a[i] = v` and `a[i] += v`."""
    return {
        node.value.id
        for node in walk(nodes)
        if isinstance(node, ast.Subscript)
        and not isinstance(node.ctx, ast.Load)
        and isinstance(node.value, ast.Name)
    }


def lasting(nodes: Iterable[ast.AST], global_: set[str]) -> list[tuple[int, str]]:
    """What these statements do that only Python can, by line: they set fields or globals."""
    found = []
    for node in walk(nodes):
        if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            if isinstance(node, ast.Attribute):
                found.append((node.lineno, f"the field {ast.unparse(node)}"))
            elif isinstance(node, ast.Name) and node.id in global_:
                found.append((node.lineno, f"the global {node.id}"))
    return found
