"""Code that is compiled before it is asked for, where sizes grow step by step."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from fresh import forget_code

import tenfold as tn
from tenfold.backends.cpu.run import ahead, kernels
from tenfold.backends.cpu.run.ahead import STEPS, Course, coming
from tenfold.kernel import Builder
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.kernel.passes.generalise import generalise
from tests.backends.cpu.running import HOST


def rows(count: int, width: int) -> SizedKernel:
    """Every other element of each row."""
    b = Builder()
    x, y = b.buffer("f32", count * width * 2), b.buffer("f32", count * width, "write")
    i, j = b.axis(count), b.axis(width)
    b.store(y, i * width + j, b.load(x, i * (2 * width) + j * 2))
    return generalise(b.finish())


def attend(q: Any, keys: Any, values: Any) -> Any:
    scores = q @ keys.swapaxes(-1, -2) * 0.125
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ values


def decode(q: Any, keys: Any, values: Any) -> tuple[Any, Any, Any]:
    """What one more query makes of a cache that is one longer."""
    keys, values = np.concatenate([keys, q], axis=1), np.concatenate([values, q], axis=1)
    return attend(q, keys, values), keys, values


def counts(
    monkeypatch: pytest.MonkeyPatch, heads: int, width: int, prompt: int, steps: int
) -> list[int]:
    """The kernels compiled for each step of a cache that grows."""
    forget_code(monkeypatch)
    rng = np.random.default_rng(0)
    keys, values = (rng.standard_normal((heads, prompt, width), np.float32) for _ in range(2))
    f, found = tn.jit(decode), [tn.stats()["kernels_compiled"]]
    for _ in range(steps):
        q = rng.standard_normal((heads, 1, width), np.float32)
        wanted = decode(q, keys, values)[0]
        result, keys, values = f(q, keys, values)
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)
        found.append(tn.stats()["kernels_compiled"])
    return [b - a for a, b in pairwise(found)]


@pytest.mark.parametrize(
    ("heads", "width", "prompt"),
    [(12, 64, 31), (12, 64, 60), (4, 8, 5), (3, 16, 12)],  # past 32,768 elements, and equal extents
)
def test_nothing_is_compiled_for_a_cache_that_grows(
    monkeypatch: pytest.MonkeyPatch, heads: int, width: int, prompt: int
) -> None:
    first, *rest = counts(monkeypatch, heads, width, prompt, 20)
    assert first > 0
    assert not any(rest[1:])


def test_without_looking_ahead_there_is_more_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "coming", lambda *_: ())
    _, *rest = counts(monkeypatch, 12, 64, 31, 20)
    assert any(rest[1:])


def test_what_is_foreseen_is_what_would_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def name(*counts: int) -> str:
        forget_code(monkeypatch)
        for count in counts:
            call = rows(count, 1000)
            found = kernels.Request(HOST, False).finish([call])
        return found[call].compiled.name

    assert name(30, 31, 32, 33) == name(33) != name(32)


def test_only_small_regular_steps_are_followed() -> None:
    def followed(*counts: int) -> list[bool]:
        course = Course()
        return [bool(course.follow(rows(count, 5))) for count in counts]

    assert followed(20, 21, 22) == [False, True, False]  # once is enough
    assert followed(20, 20) == [False, False]
    assert followed(20, 30) == [False, False]  # too large a step
    assert followed(21, 24, 28) == [False, True, True]  # another step
    assert followed(20, 23) == [False, False]  # 23 is no number of threes
    assert followed(21, 20) == [False, False]


def test_it_looks_again_when_what_was_foreseen_is_over() -> None:
    course = Course()
    followed = [bool(course.follow(rows(count, 5))) for count in range(20, 20 + 2 * STEPS)]
    assert [n for n, was in enumerate(followed) if was] == [1, STEPS + 2]


def test_equal_extents_are_foreseen_as_the_kernel_they_make() -> None:
    course = Course()
    course.follow(rows(20, 24))
    call = rows(21, 24)
    later = list(coming(call, course.follow(call)))
    assert rows(22, 24) in later
    assert rows(24, 24) in later
    assert rows(24, 24).kernel != call.kernel
