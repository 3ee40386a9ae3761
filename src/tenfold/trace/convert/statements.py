"""Statements rewritten: `if`, `while` and `for` become calls of operators, their parts functions.

A part gives back how it was left: None at its end, else an Exit (`return`, `break`, `continue`).
What follows a statement that may be left is a part too, and goes on only where it was not.
Inside `try`, `with` and `match`, and beside `yield`, statements that may be left stay Python's
own, and so does what they test.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tenfold.frozen import frozen
from tenfold.trace.convert.expressions import LEAVES, MATCHES, Expressions, at, operator, thunk
from tenfold.trace.convert.names import (
    always_left,
    bound,
    exits,
    lasting,
    surely_changed,
    waits,
    walk,
    written_to,
)
from tenfold.trace.convert.source import Function


@frozen(eq=False)
class Site:
    """A statement that was rewritten."""

    kind: str  # if, while, for
    line: int
    names: tuple[str, ...]  # the variables that its parts bind
    changed: frozenset[str] = frozenset()  # those that each round surely changes
    written: frozenset[str] = frozenset()  # those whose elements are assigned
    lasting: tuple[tuple[int, str], ...] = ()  # what only Python can do, by line


def rewrite(tree: Function) -> tuple[Function, list[Site]]:
    """A function's tree rewritten, and the statements that were. The tree given is used up."""
    sites: list[Site] = []
    _bare(tree)
    if isinstance(tree, ast.Lambda):
        first = next((a.arg for a in (*tree.args.posonlyargs, *tree.args.args)), None)
        tree.body = Expressions(first).visit(tree.body)
    else:
        Statements(sites).function(tree)
        tree.name = "@function"
    return tree, sites


def _bare(tree: Function) -> None:
    """Without what is evaluated when a function is made, and is there already."""
    args = tree.args
    args.defaults = [at(ast.Constant(None), tree) for _ in args.defaults]
    args.kw_defaults = [d and at(ast.Constant(None), tree) for d in args.kw_defaults]
    if isinstance(tree, ast.FunctionDef):
        tree.decorator_list, tree.returns = [], None
        every = (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg)
        for parameter in every:
            if parameter is not None:
                parameter.annotation = None


class Statements(Expressions):
    """Rewrites the statements of one function. The functions written in it have their own."""

    def __init__(self, sites: list[Site]) -> None:
        super().__init__(None)
        self.sites = sites
        self.part = False  # whether what is rewritten is a part of a statement
        self.stays = False  # whether it is inside a statement that stays Python's
        self.loop = False  # whether the loop around it stays Python's

    def function(self, node: ast.FunctionDef) -> None:
        args = node.args
        every = [*args.posonlyargs, *args.args, *args.kwonlyargs]
        self.first = next((a.arg for a in (*args.posonlyargs, *args.args)), None)
        every += [a for a in (args.vararg, args.kwarg) if a is not None]
        declared = [n for n in walk(node.body) if isinstance(n, ast.Global | ast.Nonlocal)]
        self.globals = {x for n in declared if isinstance(n, ast.Global) for x in n.names}
        self.outer = {x for n in declared if isinstance(n, ast.Nonlocal) for x in n.names}
        own = bound(node.body) - self.globals - self.outer
        # A function written inside may bind these whenever it is called.
        inner = [n for n in ast.walk(node) if isinstance(n, ast.Nonlocal) and n not in declared]
        self.shared = {x for n in inner for x in n.names} & (own | {a.arg for a in every})
        body = self.block(node.body)
        head: list[ast.stmt] = []
        if self.globals:
            head.append(ast.Global(sorted(self.globals)))
        if self.outer:
            head.append(ast.Nonlocal(sorted(self.outer)))
        # Names that only parts bind are the function's all the same.
        unbound = sorted(own - {a.arg for a in every})
        head += [
            ast.AnnAssign(ast.Name(n, ast.Store()), ast.Constant(None), None, 1) for n in unbound
        ]
        wrong = ast.ExceptHandler(
            ast.Name("NameError", ast.Load()),
            "@error",
            [ast.Raise(operator("unbound", _name("@error")))],
        )
        node.body = [at(s, node) for s in head]
        if self.sites:
            node.body.append(at(ast.Try(body or [ast.Pass()], [wrong], [], []), node))
        else:
            node.body += body

    # -- blocks

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for number, statement in enumerate(statements):
            rest = list(statements[number + 1 :])
            if isinstance(statement, ast.If | ast.While | ast.For) and self.becomes(statement):
                left = exits([statement])
                if left and isinstance(statement, ast.If):
                    # Where one side is always left, what follows belongs to the other.
                    if always_left(statement.body):
                        statement.orelse, rest = [*statement.orelse, *rest], []
                    elif statement.orelse and always_left(statement.orelse):
                        statement.body, rest = [*statement.body, *rest], []
                parts, call = self.statement(statement)
                made += parts
                if not left:
                    made.append(at(ast.Expr(call), statement))
                    continue
                if rest:
                    after = self.as_part("@rest", rest, self.bound(rest))
                    made.append(at(after, rest[0]))
                    site = self.site("if", statement, rest)
                    call = operator("go_on", site, call, _name("@rest"))
                call = call if self.part else operator("result", call)
                made.append(at(ast.Return(call), statement))
                return made
            found = self.visit(statement)
            made += found if isinstance(found, list) else [found] if found is not None else []
        return made

    def becomes(self, statement: ast.If | ast.While | ast.For) -> bool:
        """Whether a statement becomes a call; else it stays, and so do those inside it."""
        if waits([statement]) or (self.stays and exits([statement])):
            return False
        return isinstance(statement, ast.If) or not exits(statement.orelse) & {
            ast.Break,
            ast.Continue,
        }

    def statement(self, node: ast.If | ast.While | ast.For) -> tuple[list[ast.stmt], ast.expr]:
        """The parts of a statement, and the call that carries it out."""
        names = self.bound([node])
        site = self.site(type(node).__name__.lower(), node, [node])
        parts: list[ast.stmt] = []
        call: ast.expr
        if isinstance(node, ast.If):
            test = self.test(node.test)
            parts = [
                at(self.as_part("@then", node.body, names), node.body[0]),
                at(self.as_part("@else", node.orelse, names), node),
            ]
            call = operator("if_", site, test, _name("@then"), _name("@else"))
            return parts, at(call, node)
        if isinstance(node, ast.While):
            tested = at(ast.Return(self.test(node.test)), node)
            parts.append(at(self.as_function("@test", [tested], names), node))
            parts.append(at(self.as_part("@body", node.body, names), node.body[0]))
            call = operator("while_", site, _name("@test"), _name("@body"))
        else:
            iterated = self.visit(node.iter)
            item = at(ast.Assign([self.visit(node.target)], _name("@item")), node)
            body = self.as_part("@body", node.body, names)
            assert isinstance(body, ast.FunctionDef)
            declared = [isinstance(s, ast.Global | ast.Nonlocal) for s in body.body].count(True)
            body.body.insert(declared, item)
            body.args.args = [ast.arg("@item")]
            parts.append(at(body, node.body[0]))
            call = operator("for_", site, iterated, _name("@body"))
        if node.orelse:
            parts.append(at(self.as_part("@else", node.orelse, names), node))
            call.args.append(_name("@else"))
        return parts, at(call, node)

    def as_part(
        self, name: str, statements: Sequence[ast.stmt], names: set[str]
    ) -> ast.FunctionDef:
        """Statements as a function that gives back how they were left."""
        before = self.part, self.stays, self.loop
        self.part, self.stays, self.loop = True, False, False
        body = self.block(statements)
        self.part, self.stays, self.loop = before
        return self.as_function(name, body, names)

    def as_function(self, name: str, body: list[ast.stmt], names: set[str]) -> ast.FunctionDef:
        inner, outer = sorted(names - self.globals), sorted(names & self.globals)
        head: list[ast.stmt] = []
        if inner:
            head.append(ast.Nonlocal(inner))
        if outer:
            head.append(ast.Global(outer))
        none = ast.arguments([], [], None, [], [], None, [])
        return ast.FunctionDef(name, none, [*head, *body] or [ast.Pass()], [])

    def site(self, kind: str, node: ast.stmt, statements: Sequence[ast.stmt]) -> ast.Constant:
        """The number of a new site."""
        looping = isinstance(node, ast.While | ast.For) and kind != "if"
        site = Site(
            kind,
            node.lineno,
            tuple(sorted(self.bound(statements) - self.globals)),
            frozenset(surely_changed(node.body) if looping else ()),  # type: ignore[attr-defined]
            frozenset(written_to(statements) if looping else ()),
            tuple(lasting(statements, self.globals)),
        )
        self.sites.append(site)
        return ast.Constant(len(self.sites) - 1)

    def bound(self, statements: Sequence[ast.stmt]) -> set[str]:
        """The variables that these statements may bind."""
        return bound(statements) | self.shared

    # -- single statements

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | None:  # noqa: N802
        if not isinstance(node.target, ast.Name):
            return super().visit_AnnAssign(node)
        if node.value is None:
            return None
        return at(ast.Assign([node.target], self.visit(node.value)), node)

    def visit_Global(self, node: ast.Global) -> None:  # noqa: N802
        return None  # declared at the head of the function

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:  # noqa: N802
        return None

    def visit_Return(self, node: ast.Return) -> ast.stmt:  # noqa: N802
        value = self.visit(node.value) if node.value is not None else ast.Constant(None)
        if self.part:
            value = operator("returned", value)
        return at(ast.Return(value), node)

    def visit_Break(self, node: ast.Break) -> ast.stmt:  # noqa: N802
        return node if self.loop else self.left("BREAK", node)

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:  # noqa: N802
        return node if self.loop else self.left("CONTINUE", node)

    def left(self, how: str, node: ast.stmt) -> ast.stmt:
        return at(ast.Return(operator(how).func), node)

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:  # noqa: N802
        self.generic_visit(node)
        if not self.part or self.stays or node.exc is None:
            return node
        raised = operator("raised", node.exc, node.cause or ast.Constant(None))
        return at(ast.Return(raised), node)

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:  # noqa: N802
        message = self.visit(node.msg) if node.msg is not None else ast.Constant(None)
        return at(ast.Expr(operator("assert_", self.test(node.test), thunk(message))), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:  # noqa: N802
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.args = self.visit(node.args)
        Statements(self.sites).function(node)
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:  # noqa: N802
        return node

    # -- statements that stay Python's

    def visit_If(self, node: ast.If) -> ast.stmt:  # noqa: N802
        node.test = self.plain(node.test, LEAVES)
        return self.stay(node)

    def visit_While(self, node: ast.While) -> ast.stmt:  # noqa: N802
        node.test = self.plain(node.test, LEAVES)
        return self.stay(node)

    def visit_For(self, node: ast.For) -> ast.stmt:  # noqa: N802
        node.iter, node.target = self.visit(node.iter), self.visit(node.target)
        return self.stay(node)

    def visit_With(self, node: ast.With) -> ast.stmt:  # noqa: N802
        node.items = [self.visit(item) for item in node.items]
        return self.stay(node)

    def visit_Try(self, node: ast.Try) -> ast.stmt:  # noqa: N802
        for handler in node.handlers:
            handler.body = self.stay_block(handler.body)
        node.finalbody = self.stay_block(node.finalbody)
        return self.stay(node)

    def visit_Match(self, node: ast.Match) -> ast.stmt:  # noqa: N802
        node.subject = self.plain(node.subject, MATCHES)
        for case in node.cases:
            if case.guard is not None:
                case.guard = self.plain(case.guard, MATCHES)
            case.body = self.stay_block(case.body)
        return node

    def stay(self, node: ast.stmt) -> ast.stmt:
        """A compound statement that stays."""
        loop = isinstance(node, ast.For | ast.While)
        node.body = self.stay_block(node.body, loop)  # type: ignore[attr-defined]
        if getattr(node, "orelse", None):
            node.orelse = self.stay_block(node.orelse)  # type: ignore[attr-defined]
        return node

    def stay_block(self, statements: Sequence[ast.stmt], loop: bool = False) -> list[ast.stmt]:
        before = self.stays, self.loop
        self.stays, self.loop = True, self.loop or loop
        made = self.block(statements)
        self.stays, self.loop = before
        return made or ([at(ast.Pass(), statements[0])] if statements else [])


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())
