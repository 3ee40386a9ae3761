# ruff: noqa: B007, F841, PERF402, RET503  these are written as people write them
"""What can't be converted is refused with the line, the variable and what to write instead."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import ControlError, TenfoldError

REFUSALS = []
X = np.array([1.0, 2.0, 3.0])
SEEN = 0


def refused(*args, saying, line=None):
    """A function that is refused for these arguments, at the line (from its def on) it names."""

    def add(function):
        REFUSALS.append(pytest.param(function, args, saying, line, id=function.__name__))
        return function

    return add


@refused(1.0, saying=["y is used after the if", "on one side only", "give y a value"], line=3)
def one_branch_only(x):
    if x > 0:
        y = 1.0
    return y


@refused(X, saying=["f64[3] on one side", "a Python float on the other", "same dtype"], line=5)
def shapes_differ(x):
    if x.sum() > 0:
        y = x
    else:
        y = 0.0
    return y


@refused(X, saying=["y is used after", "f32[3] on one side, f64[3]"], line=4)
def dtypes_differ(x):
    y = x
    if x.sum() > 0:
        y = x.astype("f4")
    return y


@refused(1.0, saying=["what is returned depends on the if", "f32 on one side, f64"], line=1)
def returns_differ(x):
    if x > 0:
        return np.float32(1)
    return np.float64(2) * x


@refused(1.0, saying=["(it is|it) .*tuple of 2", "no one type"], line=1)
def containers_differ(x):
    if x > 0:
        return x, x
    return x


@refused(1.0, saying=["comes to its end without one", "end it with a return"], line=1)
def falls_off(x):
    if x > 0:
        return x


@refused(1.0, saying=["sets the field box.value", "set a local variable"], line=5)
def field_set(x):
    class Box:
        value = 0.0

    box = Box()
    if x > 0:
        box.value = x
    return x


@refused(1.0, saying=["sets the global SEEN", "set a local variable"], line=2)
def global_set(x):
    global SEEN
    if x > 0:
        SEEN = 1
    return x


@refused(3, saying=["out, a list, is changed inside the for", "an array whose size"], line=2)
def list_grows(n):
    out = []
    for i in range(n):
        out.append(i)
    return len(out)


@refused(3, saying=["seen, a dict, is changed inside the if"], line=2)
def dict_grows(n):
    seen = {}
    if n > 2:
        seen["n"] = 1
    return len(seen)


@refused(3, saying=["y is used after the for", "there may be no round", "a value before"], line=3)
def set_in_the_loop(n):
    for i in range(n):
        y = i
    return y


@refused(np.int64(3), saying=["s is used after the while", "i64 before a round, f64 after"], line=3)
def int_to_float(n):
    s = n * 2
    while n > 0:
        s = s / 2
        n = n - 1
    return s


@refused(X, saying=["x is used after the while", "f64[3] before a round, f64[6] after"], line=2)
def grows_in_the_loop(x):
    while x.sum() < 100:
        x = np.concatenate([x, x])
    return x


@refused(3, saying=["last is used after the while", "NoneType", "start last with"], line=5)
def none_before(n):
    last = None
    while n > 0:
        last = n
        n -= 1
    return last


@refused(X, saying=["what the if of line", "is f64[3], not a scalar", "np.where"], line=1)
def an_array_tested(x):
    if x:
        return 1
    return 0


@refused(1.0, saying=["tested by Python", "may leave", "np.where or tn.cond"], line=2)
def return_in_try(x):
    try:
        if x > 0:
            return 1
    finally:
        x = 0
    return 0


@refused(1.0, saying=["tested by Python", "beside a yield"], line=2)
def yields(x):
    def each():
        if x > 0:
            yield 1

    return list(each())


@refused(X, saying=["tested by Python", "how long a comprehension is"], line=1)
def filtered(x):
    return [v for v in x if v > 0]


@refused(1, saying=["tested by Python", "patterns are matched"], line=1)
def matches(n):
    match n:
        case 1:
            return 1
    return 0


@refused(1.0, saying=["tested by Python", "binds a name with :="], line=1)
def binds_on_the_right(x):
    return x > 0 and (y := x) > 1


@refused(X, saying=["max() of arrays f64[3]", "np.maximum(a, b)"], line=1)
def max_of_arrays(x):
    return max(x, x + 1)


@refused(X, saying=["max() of traced values with key", "np.where"], line=1)
def max_with_key(x):
    return max(x[0], x[1], key=lambda v: -v)


@refused(X, saying=["min() may give either of two types", "f64", "i64"], line=1)
def min_of_two_types(x):
    return min(x[0], np.int64(2))


@refused(1.0, saying=["left by a traced test, and goes over a dict", "an array"], line=1)
def break_from_a_dict(x):
    for k in {1: 2, 3: 4}:
        if x > k:
            break
    return x


@refused(1.0, saying=["conditional expression", "'a' on one side, 'b'"], line=1)
def text_chosen(x):
    name = "a" if x > 0 else "b"
    return x, name


@refused(1.0, saying=["conditional expression", "a ufunc, no array and no number"], line=1)
def function_chosen(x):
    f = np.sin if x > 0 else np.cos
    return f(x)


@refused(1.5, saying=["range() of a traced f64", "int(n)"], line=1)
def range_of_a_float(x):
    for i in range(x):
        pass
    return 1


@refused(3, saying=["outside a for statement", "make the number static"], line=1)
def list_of_range(n):
    return list(range(n))


@refused(X, saying=["int() of f64[3], not a scalar", "x.astype(int)"], line=1)
def int_of_an_array(x):
    return int(x)


@refused(3, saying=["nest more than", "write it with tn.while_loop"], line=None)
def recursion(n):
    if n <= 1:
        return 1
    return n * recursion(n - 1)


@pytest.mark.parametrize(("function", "args", "saying", "line"), REFUSALS)
def test_a_refusal_names_the_line_and_the_remedy(function, args, saying, line):
    with pytest.raises(TenfoldError) as caught:
        tn.jit(function, control="convert", compile="never")(*args)
    text = str(caught.value)
    for part in saying:
        assert part in text or re.search(part, text), text
    assert caught.value.fix, text
    if line is not None:
        first = function.__code__.co_firstlineno
        decorators = 1
        assert f"{__file__}:{first + decorators + line}," in text, text
    assert "@" not in text.replace("@refused", "")


def test_lists_are_as_they_were_after_a_refusal():
    out = [1]

    def grows(n):
        for i in range(n):
            out.append(i)
        return n

    with pytest.raises(ControlError, match="out, a list"):
        tn.jit(grows, control="convert")(3)
    assert out == [1]


class Log:
    def __init__(self):
        self.entries, self.count = [], 0

    def add(self, entry):
        self.entries.append(entry)

    def tick(self):
        self.count += 1


@pytest.mark.parametrize("method", ["add", "tick"])
def test_objects_that_a_branch_changes_by_their_methods(method):
    log = Log()

    def told(x):
        kept = log
        if x > 0:
            if method == "add":
                kept.add(1)
            else:
                kept.tick()
        return x

    with pytest.raises(ControlError, match=r"kept.* is changed inside the if"):
        tn.jit(told, control="convert")(1.0)
    assert (log.entries, log.count) == ([], 0)


def test_long_loops_that_only_python_can_do_stay_pythons():
    def remembers(x):
        log, order = Log(), iter(range(1000))
        for _ in range(300):
            log.add(x)
            x = x * 0.5 + next(order) % 3
        return x, len(log.entries)

    assert tn.jit(remembers, control="convert", compile="never")(1.0) == remembers(1.0)

    def listed(x):
        log = Log()
        for i in range(300):
            log.add(x)
            x = x * 0.5 + i % 3
        return x, len(log.entries)

    assert tn.jit(listed, control="convert", compile="never")(1.0) == listed(1.0)


def test_functions_without_a_source():
    space = {}
    exec("def f(x):\n    return x if x > 0 else -x", space)
    with pytest.raises(ControlError, match="has no source"):
        tn.jit(space["f"], control="convert")(1.0)
    with pytest.raises(ControlError, match="not written in Python"):
        tn.jit(len, control="convert")(X)


def test_lambdas_of_one_line_are_told_apart_or_refused():
    f, g = (lambda x: x if x > 0 else -x), (lambda x: x if x < 0 else -x)
    assert tn.jit(f, control="convert")(-2.0) == 2.0
    assert tn.jit(g, control="convert")(2.0) == -2.0


def test_what_control_may_be():
    with pytest.raises(ValueError, match=r"control='yes'.*\n.*'convert'"):
        tn.jit(lambda x: x, control="yes")


def test_it_is_off_by_default():
    with pytest.raises(TypeError, match="a Python branch"):
        tn.jit(lambda x: 1 if x > 0 else 0)(1.0)


def test_errors_and_asserts_are_raised_when_the_program_runs():
    def checked(x):
        assert x < 100, "too large"
        if x < 0:
            raise ValueError("negative")
        return np.sqrt(x)

    f = tn.jit(checked, control="convert")
    assert f(4.0) == 2.0
    with pytest.raises(ValueError, match="negative"):
        f(-1.0)
    with pytest.raises(AssertionError, match="too large"):
        f(100.0)
    assert f(9.0) == 3.0
    assert f.traces == 1
