"""Expressions rewritten: `and`, `or`, `not`, chained comparisons, conditional expressions, calls.

What Python evaluates only if it must becomes a lambda, so an operator decides.
"""

from __future__ import annotations

import ast
import builtins
from typing import Any, TypeVar

from tenfold.trace.convert.names import binds_inside
from tenfold.trace.convert.source import OWN

N = TypeVar("N", bound=ast.AST)

# Builtins that ask for a value, and have another form for a traced one.
ASKING = frozenset(
    ("all", "any", "bool", "complex", "enumerate", "float", "int", "len", "max", "min")
)
ASKING |= {"range", "reversed", "zip"}

# Why a test stays Python's.
BINDS = "what is evaluated after it binds a name with :="
FILTERS = "it decides how long a comprehension is"
LEAVES = "it stands in a try, a with or a match that it may leave, or beside a yield"
MATCHES = "patterns are matched by Python"


def operator(name: str, *args: ast.expr) -> ast.Call:
    """A call of an operator."""
    own = ast.Name(OWN, ast.Load())
    return ast.Call(ast.Attribute(own, name, ast.Load()), list(args), [])


def thunk(body: ast.expr) -> ast.Lambda:
    """A function that gives an expression's value."""
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)


def at(node: N, place: ast.AST) -> N:
    """A made node, and those made with it, at the line of what it is made from."""
    for inner in ast.walk(node):
        if not hasattr(inner, "lineno"):
            ast.copy_location(inner, place)
            if isinstance(inner, ast.expr | ast.stmt):  # of one line: a call has that of its end
                inner.end_lineno, inner.end_col_offset = inner.lineno, inner.col_offset
    return node


def _behind(node: ast.expr) -> ast.expr:
    """The place behind an expression. What is called begins where the user's text does, and what
    is made of it does not: so it shows who calls (`trace/swap/caller`)."""
    line, column = node.end_lineno or node.lineno, node.end_col_offset or 0
    return ast.Constant(
        None, lineno=line, col_offset=column, end_lineno=line, end_col_offset=column
    )


class Expressions(ast.NodeTransformer):
    """Rewrites the expressions of a function."""

    def __init__(self, first: str | None) -> None:
        self.first = first  # the first parameter, which a bare super() takes

    def test(self, node: ast.expr) -> ast.expr:
        """What is tested: of a part that is no bool, whether it is true."""
        if isinstance(node, ast.BoolOp) and not any(map(binds_inside, node.values)):
            return self.folded(node, [self.test(value) for value in node.values])
        made: ast.expr = self.visit(node)
        inverted = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        if inverted or isinstance(node, ast.Compare):
            return made
        return at(operator("truth", made), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        *parts, last = node.values
        if any(map(binds_inside, node.values[1:])):
            node.values = [*(self.plain(p, BINDS) for p in parts), self.visit(last)]
            return node
        return self.folded(node, [self.visit(value) for value in node.values])

    def folded(self, node: ast.BoolOp, values: list[ast.expr]) -> ast.expr:
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        *parts, made = values
        for part in reversed(parts):
            made = at(operator(name, part, thunk(made)), node)
        return made

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            return at(operator("not_", self.test(node.operand)), node)
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) == 1 or any(binds_inside(c) for c in node.comparators):
            return self.generic_visit(node)  # type: ignore[return-value]
        parts: list[ast.expr] = [self.visit(node.left)]
        for op, right in zip(node.ops, node.comparators, strict=True):
            parts += [ast.Constant(type(op).__name__), thunk(self.visit(right))]
        return at(operator("compare", *parts), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        if binds_inside(node.body) or binds_inside(node.orelse):
            node.test = self.plain(node.test, BINDS)
            node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
            return node
        sides = thunk(self.visit(node.body)), thunk(self.visit(node.orelse))
        return at(operator("choose", self.test(node.test), *sides), node)

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        node.iter = self.visit(node.iter)
        node.ifs = [self.plain(test, FILTERS) for test in node.ifs]
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            if not node.args and self.first is not None:  # its frame has no parameters any more
                names = "__class__", self.first
                node.args = [at(ast.Name(name, ast.Load()), node) for name in names]
            return node
        self.generic_visit(node)
        func = node.func
        if isinstance(func, ast.Name) and func.id in ASKING:
            node.func = at(operator("builtin", func), _behind(func))
        elif isinstance(func, ast.Attribute) or (
            isinstance(func, ast.Name) and not hasattr(builtins, func.id)
        ):
            node.func = at(operator("callee", func), _behind(func))
        return node

    def plain(self, test: ast.expr, why: str) -> ast.expr:
        """A test that stays Python's, and why."""
        return at(operator("plain", self.visit(test), ast.Constant(why)), test)

    # -- what is left as it is: annotations, and classes, whose names no lambda sees

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | None:
        node.target = self.visit(node.target)
        if node.value is not None:
            node.value = self.visit(node.value)
        return node
