"""Every error of tracing says what, where and what to do.

After a change of messages: `make golden`, then read the difference.
"""

import re
from pathlib import Path

import pytest

import tenfold as tn

from .wrong_programs import PROGRAMS

GOLDEN = Path(__file__).with_suffix(".txt").with_name("wrong_programs.txt")


def message(name: str) -> str:
    function, args, options = PROGRAMS[name]
    with pytest.raises(tn.TenfoldError) as caught:
        tn.jit(function, **options)(*args)
    error = caught.value
    assert any(base.__module__ == "builtins" for base in type(error).__mro__[1:-3])
    text = re.sub(r"\S*/(\w+\.py):\d+", r"\1", str(error))
    return f"== {name}: {type(error).__name__}\n{text}\n"


@pytest.fixture(scope="module")
def golden(update: bool) -> dict[str, str]:
    if update:
        GOLDEN.write_text("\n".join(message(name) for name in PROGRAMS))
    blocks = re.split(r"(?m)^(?=== )", GOLDEN.read_text())
    return {b[3:].partition(":")[0]: b.rstrip("\n") + "\n" for b in blocks if b.strip()}


def test_there_are_enough():
    assert len(PROGRAMS) >= 60


@pytest.mark.parametrize("name", PROGRAMS)
def test_message(name, golden):
    assert message(name) == golden[name]


# These are found before or after the function runs, so there is no line of it to name.
WITHOUT_A_LINE = {
    "argument_that_is_no_array",
    "argument_of_text",
    "random_numbers_while_tracing",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_message_has_its_parts(name):
    _, what, *rest = message(name).splitlines()
    assert what
    if name not in WITHOUT_A_LINE:
        assert any(line.startswith("  at ") and "wrong_programs.py" in line for line in rest)
    assert rest
    assert not rest[-1].startswith("  at "), "it does not say what to do"
