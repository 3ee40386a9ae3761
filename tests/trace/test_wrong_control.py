"""Wrong programs of control flow and effects: each message says what, where and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn

X = np.ones(3, "f4")
WIDE = np.ones(3)

# A program, what its message says, and its remedy.
WRONG: dict[str, tuple[Any, str, str]] = {
    "an array as predicate": (
        lambda: tn.cond(X > 0, lambda: 1, lambda: 2),
        "cond: the predicate is bool[3], not a scalar",
        "reduce it with .any() or .all(); to choose element by element use np.where",
    ),
    "a container as predicate": (
        lambda: tn.cond((True, False), lambda: 1, lambda: 2),
        "cond: the predicate is a tuple, not a scalar",
        "give one array",
    ),
    "None as predicate": (
        lambda: tn.cond(None, lambda: 1, lambda: 2),
        "cond: the predicate is None, not a scalar",
        "give one array",
    ),
    "a value instead of a branch": (
        lambda: tn.cond(True, X, lambda: X),
        "cond: true_fn is a ndarray, not a function",
        "wrap what it gives: lambda *args: value",
    ),
    "branches of other shapes": (
        lambda: tn.cond(True, lambda: {"a": X}, lambda: {"a": np.ones(4)}),
        "cond: the results of the branches do not broadcast\n"
        "  result['a']: f32[3] from true_fn, f64[4] from false_fn",
        "reshape or pad them so that every branch gives the same shape",
    ),
    "branches of other containers": (
        lambda: tn.cond(True, lambda: (X, [X]), lambda: (X, X)),
        "cond: the branches give different containers\n"
        "  result[1]: a list of 1 from true_fn, an array from false_fn",
        "return the same containers with the same keys from every branch",
    ),
    "branches with other keys": (
        lambda: tn.cond(True, lambda: {"a": X}, lambda: {"b": X, "c": X}),
        "cond: the branches give different containers\n"
        "  result: a dict with keys 'a' from true_fn, a dict with keys 'b', 'c' from false_fn",
        "return the same containers with the same keys from every branch",
    ),
    "branches with other static values": (
        lambda: tn.cond(True, lambda: {"mode": "fast"}, lambda: {"mode": "slow"}),
        "cond: the branches give different containers\n"
        "  result['mode']: 'fast' from true_fn, 'slow' from false_fn",
        "return the same containers with the same keys from every branch",
    ),
    "a branch that returns nothing": (
        lambda: tn.cond(True, lambda: X, lambda: None),
        "cond: the branches give different containers\n"
        "  result: an array from true_fn, None from false_fn",
        "return the same containers with the same keys from every branch",
    ),
    "no branches": (
        lambda: tn.switch(0, [], X),
        "switch: there are no branches",
        "give a list of at least one function",
    ),
    "a float as index": (
        lambda: tn.switch(0.5, [np.sin], X),
        "switch: the index is f64, not an integer scalar",
        "cast it: index.astype(int); take one element if it is an array",
    ),
    "an array as index": (
        lambda: tn.switch(np.arange(2), [np.sin], X),
        "switch: the index is i64[2], not an integer scalar",
        "cast it: index.astype(int); take one element if it is an array",
    ),
    "a branch that is no function": (
        lambda: tn.switch(0, [np.sin, 3], X),
        "switch: branch 1 is an int, not a function",
        "wrap what it gives: lambda *args: value",
    ),
    "a state that changes its dtype": (
        lambda: tn.while_loop(
            lambda s: s["h"][0].sum() < 9, lambda s: {"h": [s["h"][0] + WIDE]}, {"h": [X]}
        ),
        "while_loop of <lambda>: the body changes the type of the state\n"
        "  state['h'][0]: f32[3] goes in, f64[3] comes out",
        "cast it back in the body, .astype('float32'), or start from .astype('float64')",
    ),
    "a state that changes its shape": (
        lambda: tn.fori_loop(0, 3, lambda i, s: s + X, 0.0),
        "fori_loop of <lambda>: the body changes the type of the state\n"
        "  state: a Python float goes in, f32[3] comes out",
        "start from an array of shape (3,), or keep the shape in the body",
    ),
    "a bool that becomes a number": (
        lambda: tn.fori_loop(0, 3, lambda i, s: s + 1, True),
        "fori_loop of <lambda>: the body changes the type of the state\n"
        "  state: bool goes in, i64 comes out",
        "cast it back in the body, .astype('bool'), or start from .astype('int64')",
    ),
    "a body that returns nothing": (
        lambda: tn.fori_loop(0, 3, lambda i, s: None, X),
        "fori_loop of <lambda>: the body changes the containers of the state\n"
        "  state: an array goes in, None comes out",
        "return the state in the containers it came in, with all its parts",
    ),
    "a body that leaves out a part": (
        lambda: tn.while_loop(lambda s: s[0] < 3, lambda s: (s[0],), (0, X)),
        "while_loop of <lambda>: the body changes the containers of the state\n"
        "  state: a tuple of 2 goes in, a tuple of 1 comes out",
        "return the state in the containers it came in, with all its parts",
    ),
    "a condition that is an array": (
        lambda: tn.while_loop(lambda s: s < 3, lambda s: s, X),
        "while_loop: what cond_fn returns is bool[3], not a scalar",
        "reduce it with .any() or .all(); to choose element by element use np.where",
    ),
    "a condition that returns nothing": (
        lambda: tn.while_loop(lambda s: None, lambda s: s, X),
        "while_loop: what cond_fn returns is None, not a scalar",
        "give one array",
    ),
    "a float as bound": (
        lambda: tn.fori_loop(0, 2.5, lambda i, s: s, X),
        "fori_loop: upper is a float, not an integer scalar",
        "give a Python integer or an integer scalar, cast with .astype(int)",
    ),
    "an array as bound": (
        lambda: tn.jit(lambda n: tn.fori_loop(n, 3, lambda i, s: s, X))(np.arange(3)),
        "fori_loop: lower is i64[3], not an integer scalar",
        "give a Python integer or an integer scalar, cast with .astype(int)",
    ),
    "a carry that changes its type": (
        lambda: tn.scan(lambda c, x: ((c[0] + 1, c[1] * WIDE), x), (0, X), X),
        "scan of <lambda>: the body changes the type of the carry\n"
        "  carry[1]: f32[3] goes in, f64[3] comes out",
        "cast it back in the body, .astype('float32'), or start from .astype('float64')",
    ),
    "a scan without a pair": (
        lambda: tn.scan(lambda c, x: c + x, 0.0, X),
        "scan of <lambda>: f returned f32, not a pair (carry, y)",
        "return carry, y; where there is nothing to stack return carry, None",
    ),
    "a scan over a scalar": (
        lambda: tn.scan(lambda c, x: (c, x), 0.0, {"v": [1, 2]}),
        "scan of <lambda>: xs['v'][0] is a scalar i64; it goes along the first axis of arrays",
        "stack the entries into one array: np.array([...])",
    ),
    "a scan over unequal axes": (
        lambda: tn.scan(lambda c, x: (c, None), 0.0, (X, np.ones((4, 2)))),
        "scan of <lambda>: the first axes differ (xs[0]: 3, xs[1]: 4)",
        "give every part of xs the same first axis",
    ),
    "a scan of another length": (
        lambda: tn.scan(lambda c, x: (c, None), 0.0, X, length=4),
        "scan of <lambda>: the first axes differ (xs: 3, length: 4)",
        "give every part of xs the same first axis",
    ),
    "a scan of no length": (
        lambda: tn.scan(lambda c, x: (c, None), 0.0),
        "scan of <lambda>: neither xs nor length says how many rounds",
        "pass xs with a first axis, or length=n",
    ),
    "a scan of a negative length": (
        lambda: tn.scan(lambda c, x: (c, None), 0.0, length=-1),
        "scan of <lambda>: length is -1",
        "give the number of rounds, 0 or more",
    ),
    "a scan unrolled by nothing": (
        lambda: tn.scan(lambda c, x: (c, None), 0.0, X, unroll=0),
        "scan: unroll is 0",
        "give 1 or more",
    ),
    "a map over a scalar": (
        lambda: tn.map(np.sin, 3.0),
        "map of sin: xs is a scalar f64; it goes along the first axis of arrays",
        "stack the entries into one array: np.array([...])",
    ),
    "a reduce from an array": (
        lambda: tn.reduce(np.add, X, X),
        "reduce: init is f32[3], not a scalar",
        "start from one number, such as 0.0",
    ),
    "a reduce to another dtype": (
        lambda: tn.reduce(lambda a, b: a < b, X, 0.0),
        "reduce of <lambda>: the body changes the type of the result\n"
        "  result: f32 goes in, bool comes out",
        "cast it back in the body, .astype('float32'), or start from .astype('bool')",
    ),
    "a reduce that captures": (
        lambda: tn.jit(lambda x, w: tn.reduce(lambda a, b: a + b * w, x, 0.0))(X, X[0]),
        "reduce: the function uses an array from outside it",
        "use only its two arguments and constants, or write the loop with tn.scan",
    ),
    "a reduce over an axis that is not there": (
        lambda: tn.reduce(np.add, X, 0.0, axis=1),
        "axis 1 of an array with 1 axes",
        "give an axis from -1 to 0",
    ),
    "a hook without a name": (
        lambda: tn.hook(X, X),
        "hook: the name is a ndarray, not a string",
        "write tn.hook('name', x, fn)",
    ),
    "a hook that is no function": (
        lambda: tn.hook("h", X, 3),
        "hook: fn is an int, not a function",
        "wrap what it gives: lambda *args: value",
    ),
    "a label that is no string": (
        lambda: tn.print(X, X),
        "print: the label is a ndarray, not a string",
        "write tn.print(x, label='name')",
    ),
    "a host call without types": (
        lambda: tn.call_host(np.sum, 3, X),
        "call_host: out_types holds an int, not a type",
        "declare each result with tn.spec(shape, dtype)",
    ),
    "a host call of nothing": (
        lambda: tn.call_host(3, tn.spec(3), X),
        "call_host: fn is an int, not a function",
        "wrap what it gives: lambda *args: value",
    ),
    "a custom op without a name": (
        lambda: tn.custom("", np.sin),
        "custom: the name is ''",
        "write tn.custom('name', fallback)",
    ),
    "a custom op without a fallback": (
        lambda: tn.custom("mine", None),
        "custom: fallback is None, not a function",
        "wrap what it gives: lambda *args: value",
    ),
    "a literal that does not fit": (
        lambda: tn.cond(True, lambda: np.uint8(1), lambda: 300),
        "the Python integer 300 does not fit uint8 (0 to 255)",
        "cast the array to a wider dtype, or write np.array(300).astype('uint8') if wrapping "
        "around is meant",
    ),
    "an operand that is no array": (
        lambda: tn.cond(True, lambda x: x, lambda x: x, object()),
        "an operand of type object is no array and no number",
        "pass an array, a number or a nested list of these",
    ),
    "a state that is no array": (
        lambda: tn.while_loop(lambda s: True, lambda s: s, {"a": object()}),
        "an operand of type object is no array and no number",
        "pass an array, a number or a nested list of these",
    ),
    "Python's own if": (
        lambda: tn.while_loop(lambda s: s < 3, lambda s: s + 1 if s > 1 else s, 0),
        "a Python branch (if, while, and, or, not) needs the value of a traced bool, which only "
        "a running program has",
        "write tn.cond(p, f, g, *args) or np.where(p, a, b); for a loop tn.while_loop; for and, "
        'or, not the operators &, |, ~; or tn.jit(f, control="convert")',
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_message_of(name: str) -> None:
    program, message, fix = WRONG[name]
    with pytest.raises(tn.TenfoldError) as caught:
        program()
    error = caught.value
    assert error.message == message
    assert error.fix == fix
    assert error.where is not None
    assert error.where.startswith(f"{__file__}:")


def test_every_message_can_be_read_in_full() -> None:
    with pytest.raises(TypeError) as caught:
        WRONG["a state that changes its dtype"][0]()
    lines = str(caught.value).splitlines()
    assert [line.strip()[:12] for line in lines] == [
        "while_loop o",
        "state['h'][0",
        f"at {__file__}"[:12],
        "cast it back",
    ]


def test_many_differences_are_cut_short() -> None:
    state = [X] * 10
    with pytest.raises(tn.TenfoldError) as caught:
        tn.fori_loop(0, 2, lambda i, s: [v + WIDE for v in s], state)
    assert caught.value.message.endswith("state[5]: f32[3] goes in, f64[3] comes out\n  and 4 more")


def test_an_error_in_a_branch_leaves_tracing_usable() -> None:
    def fail(x: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tn.jit(lambda x: tn.cond(True, fail, fail, x))(X)
    with pytest.raises(ZeroDivisionError):
        tn.while_loop(lambda s: True, fail, X)
    assert tn.cond(True, lambda: 1, lambda: 2) == 1
