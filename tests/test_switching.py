"""The interval of switching between threads comes back, whichever block ends first."""

from __future__ import annotations

import sys

from tenfold.switching import INTERVAL, giving_way


def test_blocks_that_overlap_put_the_interval_back() -> None:
    before = sys.getswitchinterval()
    first, second = giving_way(), giving_way()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sys.getswitchinterval() <= INTERVAL
    second.__exit__(None, None, None)
    assert sys.getswitchinterval() == before


def test_what_the_user_sets_meanwhile_stays() -> None:
    before = sys.getswitchinterval()
    try:
        with giving_way():
            sys.setswitchinterval(0.25)
        assert sys.getswitchinterval() == 0.25
    finally:
        sys.setswitchinterval(before)
