"""An op is one row: outside the table and NumPy's surface, no file decides by an op's name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import tenfold
from tenfold.graph.op import Routine
from tenfold.kernel.ir.kernel import ELEMENTWISE, REDUCTIONS, UPDATES
from tenfold.ops import TABLE

HERE = Path(tenfold.__file__).parent
# Where graphs are traced, what is traced is named: the NumPy surface. The table names its ops.
SURFACE = ("ops/", "trace/", "api/namespace/", "apps/", "__init__.py")
# Kernels have instructions of their own, and backends routines: many have the name of an op.
KERNELS = ("kernel/", "backends/")
INSTRUCTIONS = {*ELEMENTWISE, *REDUCTIONS, *UPDATES, "select", "cast", "bitcast", "reduce"}
ROUTINES = {op.lowering.name for op in TABLE.values() if isinstance(op.lowering, Routine)}
ATTRIBUTES = {attribute.name for op in TABLE.values() for attribute in op.attributes}
# Calls that make a node, or an instruction: to name what is made is not to decide.
MAKERS = ("node", "op", "make", "emit", "emit_all")
# Words that mean something else, by the name of the file.
SENSES = {
    "access.py": {"cast": "an instruction of kernels"},
    "callbacks.py": {"hook": "a word of an error"},
    "check.py": dict.fromkeys(
        ("reduce", "argmin", "argmax", "select", "cast", "bitcast"), "instructions of kernels"
    ),
    "choosing.py": {"clip": "what becomes of an index that is out of range"},
    "explain.py": {"constant": "how a capture is guarded"},
    "lane_moves.py": dict.fromkeys(("gather", "scatter"), "moves of lanes"),
    "loader.py": {"lgamma": "a function of libm"},
    "plan.py": {"constant": "where a slot lies"},
    "polling.py": dict.fromkeys(("gather", "scatter"), "intrinsics of LLVM"),
    "reads.py": dict.fromkeys(("add", "sort"), "methods of Python's containers"),
    "scopes.py": {"slice": "a slice of a stack"},
    "short.py": {"scatter": "a label"},
    "signature.py": {"complex": "a Python number"},
}


def is_op(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "op"


def named(source: str) -> Iterator[tuple[int, str, bool]]:
    """Where a file names an op but to make one: the line, the name, and whether an op is compared
    with it for sure."""
    tree = ast.parse(source)
    made: set[int] = set()
    compared: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            made.update(id(inner) for inner in ast.walk(node))  # functions of the file
        if isinstance(node, ast.Call):
            called = node.func
            name = getattr(called, "attr", None) or getattr(called, "id", None)
            if name in MAKERS and node.args:
                made.update(id(inner) for inner in ast.walk(node.args[0]))
            bound = called.value if isinstance(called, ast.Attribute) else called
            if name in ("startswith", "endswith") and is_op(bound):
                yield node.lineno, f"{name} of an op", True
        if isinstance(node, ast.Compare) and any(map(is_op, (node.left, *node.comparators))):
            compared.update(id(inner) for inner in ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in TABLE and id(node) not in made:
            yield node.lineno, node.value, id(node) in compared


def found(path: str, source: str) -> Iterator[str]:
    for line, name, compared in named(source):
        if name in SENSES.get(Path(path).name, {}) or (name in ATTRIBUTES and not compared):
            continue
        if path.startswith(KERNELS) and name in INSTRUCTIONS | ROUTINES:
            continue
        yield f"{path}:{line}: {name}"


def test_no_file_outside_the_table_decides_by_an_ops_name() -> None:
    looked_at, wrong = 0, []
    for file in sorted(HERE.rglob("*.py")):
        path = file.relative_to(HERE).as_posix()
        if not path.startswith(SURFACE):
            looked_at += 1
            wrong.extend(found(path, file.read_text()))
    assert looked_at > 150
    assert not wrong, "make it a column of the row:\n" + "\n".join(wrong)


def test_the_words_with_other_senses_are_there() -> None:
    for file, senses in SENSES.items():
        words = {name for path in HERE.rglob(file) for _, name, _ in named(path.read_text())}
        assert set(senses) <= words, file


def test_decisions_by_name_are_found() -> None:
    for text in (
        'if node.op == "sin": pass',
        'if node.op in ("erf", "cumsum"): pass',
        'RULES = {"scatter": 1}',
        'row = TABLE["contract"]',
        'if node.op == "reverse": pass',
        'if node.op.startswith("reduce"): pass',
    ):
        assert list(found("plan/new.py", text)), text
    for text in ('builder.node("cast", [x])', 'node["reverse"]', '"""Of a sin."""'):
        assert not list(found("plan/new.py", text)), text
    assert not list(found("backends/new.py", 'if i.op == "add": pass'))
    assert list(found("backends/new.py", 'if step.name == "contract": pass'))
