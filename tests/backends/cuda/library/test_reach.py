"""Chains of boolean matrices on a simulated GPU: the CPU's answer, whatever the inputs hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.backends.cuda.library import reach
from tenfold.ops import TABLE, samples
from tests.backends.cuda.against import alike, graph_of, same, steps

OP = TABLE["reach"]
SAMPLES = OP.samples(np.random.default_rng(3))


def reached(sample: Any) -> list[np.ndarray]:
    arrays = [np.asarray(x, order="C") for x in sample.inputs]
    made, program = alike(graph_of("reach", arrays, **sample.attributes), arrays)
    assert steps(program) == ["RoutineStep"]
    return made


@pytest.mark.parametrize("number", range(len(SAMPLES)))
@pytest.mark.parametrize("words", [512, 0])
def test_samples(number: int, words: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With sets in shared memory, and in memory of their own."""
    monkeypatch.setattr(reach, "_SHARED_WORDS", words)
    sample = SAMPLES[number]
    wanted = OP.reference(*sample.inputs, **sample.attributes)
    for ours, theirs in zip(reached(sample), wanted, strict=True):
        same(ours, theirs)


def long_rows(extent: int, entries: int, room: int) -> Any:
    """Two matrices in a table, with a long line, and one as bits; sets of more words than a warp
    has threads."""
    random = np.random.default_rng(extent)
    words = -(-extent // 64)
    counts = random.multinomial(entries, np.full(2 * extent, 0.5 / extent))
    counts[3] = 70
    items = [np.sort(random.choice(extent, n, False)) for n in counts.tolist()]
    wide = np.zeros((2, words * 64), bool)
    wide[:, :extent] = counts.reshape(2, extent) > 0
    each = wide.reshape(2, words, 64).sum(axis=2)
    ranks = (np.cumsum(each) - each.ravel()).reshape(2, words).astype(np.int32)
    starts = np.append(0, np.cumsum(counts[counts > 0])).astype(np.int32)
    lines = np.packbits(wide, axis=1, bitorder="little").view(np.uint64)
    table = [lines, ranks, starts, np.concatenate(items).astype(np.int32)]
    none = [np.zeros((1, words), np.uint64), np.zeros((1, words), np.int32),
            np.zeros(1, np.int32), np.zeros(1, np.int32)]  # fmt: skip
    bits = np.zeros((1, extent, words), np.uint64)
    bits[0, :, 0], bits[0, :, -1] = np.uint64(1), np.uint64(2**64 - 1)  # some behind the last
    steps = [[[0, 0, 1], [1, 0, 1], [0, 0, 4]], [[0, -1, 0], [-1, 0, 0], [0, 0, 1]]]
    heads = np.array([[0, 2, 0, 0, 1], [1, 2, 0, -1, 0]], np.int32)
    ranges = np.array([[0, 2, 5], [1, extent - 2, extent]], np.int32)
    inputs = [np.array(steps, np.int32), heads, ranges, bits, *table, *none, *none, *none]
    return samples.Sample(tuple(inputs), {"rows": 3, "room": room})


@pytest.mark.parametrize("room", [400, 40])
def test_sets_of_many_words(room: int) -> None:
    counts, _ = reached(long_rows(2059, 2059, room))
    assert (counts < 0).any() == (room == 40)
    assert (counts > 10).any()
