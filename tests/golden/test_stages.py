"""The middle, stage by stage: graph in, groups out; kernel in, loops out.

After a change that is meant: `make golden`, then read the difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import cases
from tests.golden.kernel_text import parse_kernel
from tests.golden.stages import run

FILES = sorted((Path(__file__).parent / "middle").glob("*.txt"))
CASES = [
    pytest.param(path, case, id=f"{path.stem}: {case.title}")
    for path in FILES
    for case in cases.read(path)
]


def test_there_are_enough() -> None:
    titles = [(path, case.title) for path, case in (param.values for param in CASES)]
    assert len(titles) == len(set(titles)) >= 60
    assert all(case.given and case.outputs for _, case in (param.values for param in CASES))


@pytest.mark.parametrize(("path", "case"), CASES)
def test_stages(path: Path, case: cases.Case, update: bool) -> None:
    if update:
        cases.update(path, case.title, run)
        return
    found = cases.difference(path, case, run)
    if found:
        pytest.fail(f"{found}\n\nif that is meant: make golden", pytrace=False)


@pytest.mark.parametrize(
    "case", [c for p in CASES for c in [p.values[1]] if c.given.startswith("kernel")]
)
def test_kernels_are_read_as_they_are_shown(case: cases.Case) -> None:
    assert str(parse_kernel(case.given)) == case.given


def test_a_difference_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_text("== first\n# why\n64 0 1\n-- slots\n64 bytes at 0\n65 bytes in all\n")
    (case,) = cases.read(path)
    assert cases.difference(path, case, run).splitlines()[-2:] == [
        "-65 bytes in all",
        "+64 bytes in all",
    ]
    cases.update(path, "first", run)
    assert path.read_text().endswith("# why\n64 0 1\n-- slots\n64 bytes at 0\n64 bytes in all\n")
