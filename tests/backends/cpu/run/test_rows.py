"""Every row of the op table, compiled, on its own samples."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold.backends.cpu.backend import BACKEND
from tenfold.graph import Builder, Graph
from tenfold.graph.op import Sample
from tenfold.ops import TABLE
from tenfold.parity.rule.agree import disagreement, judged
from tenfold.types import TensorType, as_dtype

NAMES = [name for name, row in TABLE.items() if not row.effect]
FEW = 19  # samples of a row, at most: a prime, so that dtypes and shapes both vary


def alone(name: str, sample: Sample) -> Graph:
    builder = Builder(TABLE)
    types = [TensorType(as_dtype(a.dtype), a.shape) for a in sample.inputs]
    values = [builder.parameter(t) for t in types]
    return builder.finish(builder.node(name, values, sample.attributes, sample.scopes))


@pytest.mark.parametrize("name", NAMES)
def test_a_row_compiled(name: str) -> None:
    samples = list(TABLE[name].samples(np.random.default_rng(5)))
    builder = Builder(TABLE)
    arrays, outputs, wanted = [], [], []
    count = min(FEW, len(samples))
    for sample in (samples[n * len(samples) // count] for n in range(count)):
        graph = alone(name, sample)
        given = [np.asarray(a) for a in sample.inputs]
        results = judged(graph, given)  # a sample that nothing can be said of is a wrong sample
        values = [builder.parameter(p.type) for p in graph.parameters]
        outputs += builder.node(name, values, sample.attributes, sample.scopes)
        arrays += given
        wanted += results
    assert wanted
    got = BACKEND.compile(builder.finish(outputs))(arrays)
    for mine, theirs in zip(got, wanted, strict=True):
        assert disagreement(mine, theirs) is None
