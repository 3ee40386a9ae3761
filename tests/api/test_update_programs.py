"""Random programs of updates in place: arguments and results as in NumPy."""

import random

import numpy as np
import pytest

import tenfold as tn

NAMES = "abc"
SLICES = ["[1:-1]", "[:-2]", "[2:]", "[::-1][2:]", "[2:][::-1]"]  # all of one length
WHOLE = ["[:]", "[::-1]", ""]


def term(draw: random.Random, whole: bool) -> str:
    name = draw.choice([*NAMES, "t"])
    part = draw.choice(WHOLE if whole else SLICES)
    number = draw.choice(["0.5", "-1.25", "2"])
    return draw.choice([f"{name}{part}", f"{name}{part} * {number}", f"np.tanh({name}{part})"])


def statement(draw: random.Random) -> str:
    name = draw.choice(NAMES)
    whole = draw.random() < 0.4
    target = name + draw.choice(WHOLE[:2] if whole else SLICES)
    value = draw.choice([" + ", " - ", ", "]).join(term(draw, whole) for _ in range(2))
    if ", " in value:
        value = f"np.maximum({value})"
    lone = term(draw, True)
    return draw.choice(
        [
            f"{target} = {value}",
            f"{target} {draw.choice('+-')}= {value}",
            f"{name} {draw.choice('+-*')}= {lone}",
            f"t = {lone} + 1",
            f"t = {draw.choice(NAMES)}",
            f"v = {target}; v {draw.choice('+-')}= {value}",
            f"np.subtract({name}, {lone}, out={draw.choice(NAMES)})",
            f"{name}.sort()",
            f"{name}[t > 0.25] = {draw.choice(['0.5', '-2'])}",
        ]
    )


def program(seed: int) -> str:
    draw = random.Random(seed)
    lines = ["t = b.copy()", *(statement(draw) for _ in range(draw.randint(1, 6)))]
    result = draw.choice(["None", "a", "(a, t)", "t + 1", "(b[1:], a, a)", "c.sum()"])
    return "\n  ".join([f"def f({', '.join(NAMES)}):", *lines, f"return {result}"])


def compare(seed: int) -> None:
    text = program(seed)
    space = {"np": np}
    exec(text, space)
    f = space["f"]
    draw = np.random.default_rng(seed)
    size = int(draw.choice([5, 40, 3000]))
    given = [draw.standard_normal(size) for _ in NAMES]
    mine = [a.copy() for a in given]
    jitted = tn.jit(f, verify="off" if seed % 2 else "first")
    for _ in range(3):
        before = [a.copy() for a in mine]
        got, want = jitted(*given), f(*mine)
        for one, other in zip(given, mine, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=text)
        for one, other in zip(parts(got), parts(want), strict=True):
            places = [n for n, argument in enumerate(mine) if other is argument]
            if one is not None:
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=text)
            for n in places:  # an argument that is not updated comes back as a copy
                assert one is given[n] or np.array_equal(mine[n], before[n]), text
        for one, other in zip(given, mine, strict=True):
            one[:], other[:] = other * 0.5, other * 0.5  # again from the same, and bounded


def parts(results):
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("seed", range(40))
def test_as_in_numpy(seed):
    compare(seed)


if __name__ == "__main__":
    import sys

    for one in range(int(sys.argv[1]), int(sys.argv[2])):
        try:
            compare(one)
        except Exception as error:
            print(one, type(error).__name__, str(error)[:600])
