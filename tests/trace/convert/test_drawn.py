"""Programs drawn at random, as text: converted, they give what Python gives."""

from __future__ import annotations

import linecache

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tenfold as tn

VARIABLES = ("a", "b", "c")
RESULT = "return a, b, c, i, x"


@st.composite
def expressions(draw, depth=2):
    kinds = ["number", "variable", "variable", "element"]
    if depth:
        kinds += ["binary", "binary", "choose", "best"]
    kind = draw(st.sampled_from(kinds))
    inner = expressions(depth - 1)
    if kind == "number":
        return str(draw(st.integers(-5, 9)))
    if kind == "variable":
        return draw(st.sampled_from((*VARIABLES, "i")))
    if kind == "element":
        return f"x[{draw(st.sampled_from(VARIABLES))} % 4]"
    if kind == "binary":
        return f"({draw(inner)} {draw(st.sampled_from('+-*'))} {draw(inner)}) % 97"
    if kind == "choose":
        return f"({draw(inner)} if {draw(conditions(depth - 1))} else {draw(inner)})"
    return f"{draw(st.sampled_from(('min', 'max')))}({draw(inner)}, {draw(inner)})"


@st.composite
def conditions(draw, depth=1):
    left, right = draw(expressions(0)), draw(expressions(0))
    kind = draw(
        st.sampled_from(["compare", "compare", "number"] + ["join", "not", "chain"] * depth)
    )
    if kind == "number":
        return left
    if kind == "chain":
        return f"{left} < {right} <= {draw(expressions(0))}"
    if kind == "not":
        return f"not ({draw(conditions(0))})"
    if kind == "join":
        return (
            f"({draw(conditions(0))} {draw(st.sampled_from(('and', 'or')))} {draw(conditions(0))})"
        )
    return f"{left} {draw(st.sampled_from(('<', '>=', '==', '!=')))} {right}"


@st.composite
def blocks(draw, depth, looping, name):
    lines = []
    for number in range(draw(st.integers(1, 4))):
        lines += draw(statements(depth, looping, f"{name}{number}"))
    return lines


@st.composite
def statements(draw, depth, looping, name):
    kinds = ["assign", "assign", "augment", "store"]
    if depth:
        kinds = ["assign", "store", "if", "if", "while", "for", "leave"]
    kind = draw(st.sampled_from(kinds))
    variable = draw(st.sampled_from(VARIABLES))
    if kind == "assign":
        return [f"{variable} = {draw(expressions())}"]
    if kind == "augment":
        return [f"{variable} {draw(st.sampled_from(('+=', '-=')))} {draw(expressions())}"]
    if kind == "store":
        return [f"x[{variable} % 4] = {draw(expressions())}"]
    if kind == "leave":
        ways = [RESULT, "break", "continue"] if looping else [RESULT]
        return [f"if {draw(conditions())}:", f"    {draw(st.sampled_from(ways))}"]
    inner = [
        f"    {line}" for line in draw(blocks(depth - 1, looping or kind in ("while", "for"), name))
    ]
    if kind == "if":
        made = [f"if {draw(conditions())}:", *inner]
        if draw(st.booleans()):
            other = draw(blocks(depth - 1, looping, name + "e"))
            made += ["else:", *(f"    {line}" for line in other)]
        return made
    rounds = draw(st.sampled_from(("3", "b % 4", "1", "abs(a) % 3")))
    if kind == "for":
        return [f"for i in range({rounds}):", *inner]
    count = f"k{name}"
    test = draw(st.sampled_from((f"{count} < {rounds}", f"{count} < 3 and ({draw(conditions())})")))
    return [f"{count} = 0", f"while {test}:", f"    {count} += 1", *inner]


@st.composite
def sources(draw):
    lines = draw(blocks(3, False, "n"))
    body = ["x = x.copy()", "i = 0", *lines, RESULT]
    return "\n".join(["def drawn(a, b, c, x):", *(f"    {line}" for line in body)]) + "\n"


def made_of(source):
    """The function of a text, which Python finds as it finds a file's."""
    name = f"<drawn {hash(source)}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    space = {}
    exec(compile(source, name, "exec"), space)
    return space["drawn"]


CALLS = [(1, 2, 3), (-4, 7, 0), (10, 0, -1), (5, 5, 5)]
X = np.array([3, -1, 4, 12])


def compare(source, compile):
    function = made_of(source)
    jitted = tn.jit(function, control="convert", compile=compile)
    for call in CALLS:
        wanted = function(*call, X)
        found = jitted(*call, X)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=source)


calm = settings(deadline=None, suppress_health_check=list(HealthCheck))


@settings(calm, max_examples=40)
@given(sources())
def test_drawn_programs_agree(source):
    compare(source, "never")


@settings(calm, max_examples=6)
@given(sources())
def test_drawn_programs_agree_compiled(source):
    compare(source, "now")
