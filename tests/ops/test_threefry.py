"""The block function of random numbers against the answers its authors publish."""

from __future__ import annotations

import numpy as np

from tenfold.ops import TABLE

ANSWERS = (
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
)


def test_known_answers() -> None:
    for key, counter, want in ANSWERS:
        words = [np.array(w, np.uint32) for w in (*key, *counter)]
        got = TABLE["threefry"].reference(*words)
        assert tuple(int(w) for w in got) == want


def test_a_counter_is_read_element_by_element() -> None:
    op = TABLE["threefry"]
    zero, ones = np.zeros((), np.uint32), np.arange(5, dtype=np.uint32)
    x, y = op.reference(zero, zero, ones, zero)
    for i in range(5):
        a, b = op.reference(zero, zero, ones[i : i + 1].reshape(()), zero)
        assert (x[i], y[i]) == (a, b)
